//! Spot machines, which Azure evicts when it needs the capacity.

use azure_types::ResourceId;
use serde_json::Value;

use azure_engine::document::{at, text};
use azure_engine::provider::{AzureState, Record};
use azure_engine::refusal::{Code, Result};

/// Whether the priority of a machine or a model is that of spot machines, or its former name.
pub(crate) fn is_of_spot(profile: &Value) -> bool {
    let priority = text(profile, "priority").unwrap_or_default();
    ["Spot", "Low"].iter().any(|name| priority.eq_ignore_ascii_case(name))
}

/// Refuses members that only spot machines take ("Error messages for Azure Spot Virtual Machines and scale sets").
pub(crate) fn check_members(profile: &Value) -> Result<()> {
    let wrong = |member: &str| !is_of_spot(profile) && at(profile, member).is_some();
    Code::azures(400, "EvictionPolicyCanBeSetOnlyOnAzureSpotVirtualMachines").says_when(
        wrong("evictionPolicy"),
        "Eviction policy can be set only on Azure Spot Virtual Machines.",
    )?;
    Code::azures(400, "MaxPriceIsSupportedOnlyForAzureSpotVirtualMachines").says_when(
        wrong("billingProfile/maxPrice"),
        "Max price is supported only for Azure Spot Virtual Machines.",
    )?;
    // A machine with an ephemeral disk cannot be deallocated, which is the default policy
    // (kubernetes-sigs/cluster-api-provider-azure#2570, #2579).
    let ephemeral = at(profile, "storageProfile/osDisk/diffDiskSettings").is_some();
    let deleted = text(profile, "evictionPolicy").is_some_and(|policy| policy.eq_ignore_ascii_case("Delete"));
    // Shown by no source; other refusals about ephemeral disks have this code.
    Code::ours(409, "NotSupported").says_when(
        is_of_spot(profile) && ephemeral && !deleted,
        "A spot machine with an ephemeral OS disk needs the eviction policy Delete.",
    )
}

/// The profile with which a spot machine was created; `None` for other machines. For the instances of a scale set it is
/// the model's.
fn profile<'a>(azure: &'a AzureState, machine: &'a Record) -> Option<&'a Value> {
    let own = machine.body.get("properties");
    let model = || {
        let set = azure.store.get(&machine.id.parent()?)?;
        at(&set.body, "properties/virtualMachineProfile")
    };
    own.filter(|own| is_of_spot(own)).or_else(|| model().filter(|model| is_of_spot(model)))
}

/// Whether a machine is a spot one.
pub(crate) fn is_spot(azure: &AzureState, machine: &Record) -> bool {
    profile(azure, machine).is_some()
}

/// Whether a spot machine is deleted when it is evicted; `None` for machines that are not.
pub(crate) fn deleted_when_evicted(azure: &AzureState, id: &ResourceId) -> Option<bool> {
    let policy = text(profile(azure, azure.store.get(id)?)?, "evictionPolicy");
    Some(policy.is_some_and(|policy| policy.eq_ignore_ascii_case("Delete")))
}
