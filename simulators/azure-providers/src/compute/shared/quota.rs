//! Cores in use in a region, of all sizes and by family, and their limits ("vCPU quotas").

use std::collections::BTreeMap;

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::compute::machine::spot;
use crate::compute::tables::limits::over_quota;
use crate::compute::tables::sizes::{SIZES, cores, family};
use crate::compute::tables::type_names::{INSTANCE_TYPE, MACHINE_TYPE, SET_TYPE};
use azure_engine::document::text;
use azure_engine::provider::{AzureState, Record};
use azure_engine::refusal::Result;

/// The size of a machine or instance.
fn size_of(record: &Record) -> &str {
    text(&record.body, "properties/hardwareProfile/vmSize")
        .or_else(|| text(&record.body, "sku/name"))
        .unwrap_or_default()
}

/// The machines of a region of a subscription, without those for which `but` is true.
fn machines<'a>(
    azure: &'a AzureState,
    subscription: &'a str,
    location: &'a str,
    but: Option<&'a ResourceId>,
) -> impl Iterator<Item = &'a Record> {
    azure
        .store
        .of_type(MACHINE_TYPE)
        .chain(azure.store.of_type(INSTANCE_TYPE))
        .filter(move |record| record.id.subscription_id().eq_ignore_ascii_case(subscription))
        .filter(move |record| but.is_none_or(|but| !record.id.is_within(but)))
        .filter(move |record| text(&record.body, "location") == Some(location))
}

/// Refuses machines whose cores would exceed the quota of the region or of their family. `count` is the total number of
/// machines of `id`, a machine or a scale set. Spot machines have a quota of their own.
pub(crate) fn check(
    azure: &AzureState,
    id: &ResourceId,
    location: &str,
    size: &str,
    count: u64,
    is_spot: bool,
) -> Result<()> {
    let wanted = cores(size).saturating_mul(count);
    let kind = family(size);
    let (mut used, mut used_by_family) = (0, 0);
    for record in machines(azure, id.subscription_id(), location, Some(id)) {
        if spot::is_spot(azure, record) == is_spot {
            let theirs = cores(size_of(record));
            used = u64::saturating_add(used, theirs);
            if family(size_of(record)) == kind {
                used_by_family = u64::saturating_add(used_by_family, theirs);
            }
        }
    }
    let of_family = format!("{kind} Cores");
    let quotas: &[(&str, u64, u64)] = if is_spot {
        &[("LowPriorityCores", used, azure.limit("compute.spotCoresPerRegion"))]
    } else {
        &[
            ("Total Regional Cores", used, azure.limit("compute.coresPerRegion")),
            (of_family.as_str(), used_by_family, azure.limit("compute.coresPerFamily")),
        ]
    };
    match quotas.iter().find(|(_, used, most)| used.saturating_add(wanted) > *most) {
        None => Ok(()),
        Some((called, used, most)) => Err(over_quota(called, location, *most, *used, wanted)),
    }
}

/// `locations/{location}/usages`.
pub(crate) fn usages(azure: &AzureState, subscription: &str, location: &str) -> Value {
    let mut by_family: BTreeMap<String, u64> = SIZES.iter().map(|size| (size.family.to_owned(), 0)).collect();
    let (mut count, mut total, mut total_of_spot) = (0, 0, 0);
    for record in machines(azure, subscription, location, None) {
        let size = size_of(record);
        count += 1;
        if spot::is_spot(azure, record) {
            total_of_spot = u64::saturating_add(total_of_spot, cores(size));
            continue;
        }
        total = u64::saturating_add(total, cores(size));
        let of_family = by_family.entry(family(size)).or_default();
        *of_family = of_family.saturating_add(cores(size));
    }
    let here = |kind: &'static str| {
        let records = azure.store.of_type(kind);
        records
            .filter(|record| text(&record.body, "location") == Some(location))
            .filter(|record| record.id.subscription_id().eq_ignore_ascii_case(subscription))
            .count() as u64
    };
    let usage = |name: &str, shown: &str, value: u64, limit: &str| {
        json!({
            "unit": "Count",
            "currentValue": value,
            "limit": azure.limit(limit),
            "name": { "value": name, "localizedValue": shown },
        })
    };
    let (sets, scale_sets) = (here("Microsoft.Compute/availabilitySets"), here(SET_TYPE));
    let mut list = vec![
        usage("availabilitySets", "Availability Sets", sets, "compute.availabilitySetsPerRegion"),
        usage("cores", "Total Regional vCPUs", total, "compute.coresPerRegion"),
        usage("lowPriorityCores", "Total Regional Spot vCPUs", total_of_spot, "compute.spotCoresPerRegion"),
        usage("virtualMachines", "Virtual Machines", count, "compute.virtualMachinesPerRegion"),
        usage(
            "virtualMachineScaleSets",
            "Virtual Machine Scale Sets",
            scale_sets,
            "compute.scaleSetsPerRegion",
        ),
    ];
    let of_family = |(name, value): (&String, &u64)| {
        usage(name, &format!("{name} vCPUs"), *value, "compute.coresPerFamily")
    };
    list.extend(by_family.iter().map(of_family));
    json!({ "value": list })
}
