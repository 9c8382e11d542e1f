//! The catalogue of sizes and kinds of disks: `skus`, `vmSizes`, and restrictions.

use serde_json::{Value, json};

use crate::compute::disk::sku::{SKUS, largest};
use crate::compute::tables::sizes::{SIZES, Size};
use azure_engine::document::location::normal_location;
use azure_engine::document::{items, text};
use azure_engine::provider::{AzureState, ProviderCall};
use azure_engine::refusal::{Code, Refusal, Result};

/// `$filter=location eq '{location}'` is the one filter that the catalogue takes.
///
/// # Errors
/// Refuses another filter.
pub(crate) fn catalogue(azure: &AzureState, call: &ProviderCall<'_>) -> Result<Value> {
    let location = match call.query.get("$filter").map(|filter| filter.trim()) {
        None | Some("") => azure.options.region.clone(),
        Some(filter) => {
            let (member, wanted) = filter.split_once(" eq ").unwrap_or((filter, ""));
            let text = format_args!(
                "The filter '{filter}' is not supported: it must be location eq '{{location}}'."
            );
            Refusal::invalid_when(!member.trim().eq_ignore_ascii_case("location"), "$filter", text)?;
            normal_location(wanted.trim().trim_matches('\''))
        }
    };
    if !is_region(azure, call.subscription, &location) {
        return Ok(json!({ "value": [] }));
    }
    let machines = SIZES.iter().map(|size| machine_sku(azure, size, &location));
    let disks = SKUS.iter().map(|name| disk_sku(azure, name, &location));
    let sets = ["Classic", "Aligned"].iter().map(|name| {
        json!({
            "resourceType": "availabilitySets",
            "name": name,
            "locations": [location],
            "locationInfo": [{ "location": location, "zones": [], "zoneDetails": [] }],
            "capabilities": [{ "name": "MaximumPlatformFaultDomainCount", "value": "3" }],
            "restrictions": [],
        })
    });
    Ok(json!({ "value": machines.chain(disks).chain(sets).collect::<Vec<_>>() }))
}

/// Whether there is a region of that name.
fn is_region(azure: &AzureState, subscription: &str, location: &str) -> bool {
    let listed = || {
        let regions = crate::resources::list_locations(azure, subscription).body.unwrap_or_default();
        items(&regions, "value").iter().any(|region| text(region, "name") == Some(location))
    };
    location == azure.options.region || listed()
}

/// The zones that a region has: the simulated one has those of its options, others the usual three.
pub(crate) fn zones(azure: &AzureState, location: &str) -> Vec<String> {
    if location == azure.options.region {
        azure.options.zones.clone()
    } else {
        ["1", "2", "3"].map(str::to_owned).to_vec()
    }
}

fn machine_sku(azure: &AzureState, size: &Size, location: &str) -> Value {
    let capability = |name: &str, value: String| json!({ "name": name, "value": value });
    let truth = |value: bool| if value { "True".to_owned() } else { "False".to_owned() };
    let modern = ["v5", "v6"].iter().any(|version| size.name.ends_with(version));
    let parts: Vec<&str> = size.name.splitn(2, '_').collect();
    let zones = zones(azure, location);
    let ultra = modern && size.premium();
    // In regions with zones, ultra disks are available only in zones.
    let details: Vec<Value> = (ultra && !zones.is_empty())
        .then(|| json!({ "name": zones, "capabilities": [capability("UltraSSDAvailable", truth(true))] }))
        .into_iter()
        .collect();
    let mut shown = json!({
        "resourceType": "virtualMachines",
        "name": size.name,
        "tier": parts.first(),
        "size": parts.last(),
        "family": size.family,
        "locations": [location],
        "locationInfo": [{ "location": location, "zones": zones, "zoneDetails": details }],
        "capabilities": [
            capability("MaxResourceVolumeMB", (size.temporary_gib * 1_024).to_string()),
            capability("vCPUs", size.cores.to_string()),
            capability("vCPUsAvailable", size.cores.to_string()),
            capability("MemoryGB", size.memory_gib.to_string()),
            capability("MaxDataDiskCount", size.disks.to_string()),
            capability("MaxNetworkInterfaces", size.interfaces.to_string()),
            capability("PremiumIO", truth(size.premium())),
            capability("CpuArchitectureType", if size.arm() { "Arm64" } else { "x64" }.to_owned()),
            capability("HyperVGenerations", if size.arm() { "V2" } else { "V1,V2" }.to_owned()),
            capability("AcceleratedNetworkingEnabled", truth(size.cores > 1)),
            capability("EphemeralOSDiskSupported", truth(size.temporary_gib >= 30)),
            capability("EncryptionAtHostSupported", truth(size.premium())),
            capability("LowPriorityCapable", truth(!size.name.starts_with("Standard_B"))),
        ],
        "restrictions": restrictions(azure, size.name, location),
    });
    if let Some(Value::Array(list)) = shown.get_mut("capabilities").filter(|_| zones.is_empty()) {
        list.push(capability("UltraSSDAvailable", truth(ultra)));
    }
    shown
}

fn disk_sku(azure: &AzureState, name: &str, location: &str) -> Value {
    let zonal = if name.ends_with("ZRS") { Vec::new() } else { zones(azure, location) };
    let (tier, kind) = name.split_once('_').unwrap_or((name, ""));
    json!({
        "resourceType": "disks",
        "name": name,
        "tier": tier,
        "size": kind,
        "locations": [location],
        "locationInfo": [{ "location": location, "zones": zonal, "zoneDetails": [] }],
        "capabilities": [{ "name": "MaxSizeGiB", "value": largest(name).to_string() }],
        "restrictions": [],
    })
}

/// The restrictions of a size by the options.
fn restrictions(azure: &AzureState, size: &str, location: &str) -> Vec<Value> {
    let Some(zones) = restricted(azure, size).filter(|_| location == azure.options.region) else {
        return Vec::new();
    };
    let mut info = json!({ "locations": [location] });
    if !zones.is_empty() {
        info["zones"] = json!(zones);
    }
    vec![json!({
        "type": if zones.is_empty() { "Location" } else { "Zone" },
        "values": [location],
        "restrictionInfo": info,
        "reasonCode": "NotAvailableForSubscription",
    })]
}

fn restricted<'a>(azure: &'a AzureState, size: &str) -> Option<&'a Vec<String>> {
    let found = azure.options.restricted_sizes.iter().find(|(name, _)| name.eq_ignore_ascii_case(size));
    found.map(|(_, zones)| zones)
}

/// Refuses an unavailable size, in the words of Azure-Samples/azuresandbox#70.
pub(crate) fn check_available(azure: &AzureState, size: &str, body: &Value) -> Result<()> {
    let location = text(body, "location").unwrap_or_default();
    let restricted = restricted(azure, size).filter(|_| location == azure.options.region);
    let wanted = |zone: &String| items(body, "zones").iter().any(|wanted| wanted == zone);
    let hit = restricted.is_some_and(|zones| zones.is_empty() || zones.iter().any(wanted));
    Code::azures(409, "SkuNotAvailable").says_when(
        hit,
        format_args!(
            "The requested VM size for resource 'Following SKUs have failed for Capacity Restrictions: {size}' is currently not \
             available in location '{location}'. Please try another size or deploy to a different location or different \
             zone. See https://aka.ms/azureskunotavailable for details."
        ),
    )
}

/// All sizes as `vmSizes` lists them.
pub(crate) fn sizes() -> Value {
    let shown = SIZES.iter().map(|size| {
        json!({
            "name": size.name,
            "numberOfCores": size.cores,
            "osDiskSizeInMB": 1_047_552,
            "resourceDiskSizeInMB": size.temporary_gib * 1_024,
            "memoryInMB": size.memory_gib * 1_024,
            "maxDataDiskCount": size.disks,
        })
    });
    json!({ "value": shown.collect::<Vec<_>>() })
}
