//! Compute's limits and name rules, as published ("Virtual machine limits - Azure Resource Manager",
//! "Naming rules and restrictions for Azure resources").

use crate::compute::tables::codes::OPERATION_NOT_ALLOWED;
use azure_engine::refusal::Refusal;
use azure_engine::settings::limits::{Counts, Excess, Limit};
use azure_engine::types::names::{NameRule, ordinary};

macro_rules! per_region {
    ($name:literal, $value:literal, $of:literal, $called:literal) => {
        Limit {
            name: concat!("compute.", $name),
            value: $value,
            counts: Counts::PerRegion {
                of: concat!("Microsoft.Compute/", $of),
                called: $called,
                words: quota,
            },
        }
    };
}

pub(crate) static LIMITS: &[Limit] = &[
    per_region!("virtualMachinesPerRegion", 25_000, "virtualMachines", "Virtual Machines"),
    per_region!("scaleSetsPerRegion", 2_500, "virtualMachineScaleSets", "Virtual Machine Scale Sets"),
    Limit::of("compute.instancesPerScaleSet", 1_000),
    Limit::of("compute.instancesPerPlacementGroup", 100),
    per_region!("availabilitySetsPerRegion", 2_500, "availabilitySets", "Availability Sets"),
    Limit {
        name: "compute.virtualMachinesPerAvailabilitySet",
        value: 200,
        counts: Counts::Users {
            of: "Microsoft.Compute/availabilitySets",
            called: "virtual machines",
            words: too_many_users,
        },
    },
    // Cores of all sizes, and of one family. Offers begin lower and are raised on request; the figure is
    // our choice, high enough to be no hindrance.
    Limit::of("compute.coresPerRegion", 100_000),
    Limit::of("compute.coresPerFamily", 100_000),
    Limit::of("compute.spotCoresPerRegion", 100_000),
];

/// Types of which a group may hold any number ("Resources not limited to 800 instances per resource
/// group").
pub(crate) static UNLIMITED: &[&str] =
    &["Microsoft.Compute/disks", "Microsoft.Compute/snapshots", "Microsoft.Compute/virtualMachines"];

fn too_many_users(excess: &Excess<'_>) -> Refusal {
    let Excess { id, called, most, .. } = excess;
    let (noun, name) = (id.type_and_name_pairs().last().map_or("", |pair| pair.0), id.name());
    OPERATION_NOT_ALLOWED.says(format_args!(
        "The maximum number of {called} of '{name}' ({noun}) is {most}. It has been reached."
    ))
}

fn quota(excess: &Excess<'_>) -> Refusal {
    let Excess { called, region, most, wanted, .. } = excess;
    over_quota(called, region, *most, wanted.saturating_sub(1), 1)
}

/// Compute's words for every quota. Reports show them with this code for cores (Azure/karpenter-provider-azure#192);
/// `QuotaExceeded` comes from the validation of a template.
pub(crate) fn over_quota(called: &str, region: &str, most: u64, used: u64, more: u64) -> Refusal {
    OPERATION_NOT_ALLOWED.says(format_args!(
        "Operation could not be completed as it results in exceeding approved {called} quota. Additional details - \
         Deployment Model: Resource Manager, Location: {region}, Current Limit: {most}, Current Usage: {used}, Additional \
         Required: {more}, (Minimum) New Limit Required: {}.",
        used.saturating_add(more)
    ))
}

pub(crate) static NAMES: &[NameRule] = &[
    rule("Microsoft.Compute/virtualMachines", machine, |_, _| bad("vmName", 63)),
    rule("Microsoft.Compute/virtualMachineScaleSets", machine, |_, _| bad("vmScaleSetName", 63)),
    rule("Microsoft.Compute/disks", of_80, |_, _| bad("diskName", 79)),
    rule("Microsoft.Compute/snapshots", of_80, |_, _| bad("snapshotName", 79)),
    rule("Microsoft.Compute/availabilitySets", of_80, |_, _| bad("availabilitySetName", 79)),
];

const fn rule(of: &'static str, fits: fn(&str) -> bool, refusal: fn(&str, &str) -> Refusal) -> NameRule {
    NameRule { of, fits, refusal }
}

fn of_80(name: &str) -> bool {
    ordinary(name, 80)
}

/// The rule that refusals quote.
fn machine(name: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    name.chars().count() <= 64
        && name.starts_with(char::is_alphanumeric)
        && !name.ends_with(['-', '.'])
        && name.chars().all(|c| word(c) || matches!(c, '.' | '-'))
}

fn bad(entity: &str, further: usize) -> Refusal {
    let text = format!(
        "The entity name '{entity}' is invalid according to its validation rule: \
         ^[^_\\W][\\w-._]{{0,{further}}}(?<![-.])$."
    );
    Refusal::invalid_parameter(entity, text)
}
