use super::*;
use serde_json::json;

/// A size in the form of Azure's list, with these capabilities, offered in these zones of `westus2`.
pub(crate) fn document(name: &str, capabilities: &[(&str, &str)], zones: &[&str]) -> Value {
    json!({
        "resourceType": "virtualMachines",
        "name": name,
        "tier": "Standard",
        "locations": ["westus2"],
        "locationInfo": [{ "location": "westus2", "zones": zones, "zoneDetails": [] }],
        "capabilities": capabilities
            .iter()
            .map(|(name, value)| json!({ "name": name, "value": value }))
            .collect::<Vec<_>>(),
        "restrictions": [],
    })
}

pub(crate) fn size(capabilities: &[(&str, &str)]) -> Sku {
    Sku::read(&document("Standard_D2s_v3", capabilities, &["1", "2", "3"]), "westus2").unwrap()
}

fn restricted(mut document: Value, restriction: Value) -> Value {
    document["restrictions"] = json!([restriction]);
    document
}

/// CAPZ-065, CAPZ-066: zones of a region are those in which any size is offered.
#[test]
fn zones_of_a_region_are_those_that_are_offered() {
    let all = document("A", &[], &["1", "2", "3"]);
    let zone = |zones: &[&str]| json!({ "type": "Zone", "restrictionInfo": { "locations": ["westus2"], "zones": zones } });
    let location = json!({ "type": "Location", "restrictionInfo": { "locations": ["westus2"] } });
    let mut disk = all.clone();
    disk["resourceType"] = json!("disks");
    let mut elsewhere = all.clone();
    elsewhere["locationInfo"][0]["location"] = json!("eastus");
    for (documents, zones) in [
        (vec![all.clone()], vec!["1", "2", "3"]),
        (vec![document("A", &[], &["1"]), document("B", &[], &["3"])], vec!["1", "3"]),
        (vec![restricted(all.clone(), zone(&["1", "2"]))], vec!["3"]),
        // A restriction of one size does not affect others.
        (vec![restricted(all.clone(), zone(&["1"])), document("B", &[], &["1"])], vec!["1", "2", "3"]),
        (vec![restricted(all.clone(), location.clone()), document("B", &[], &["2"])], vec!["2"]),
        (vec![restricted(all.clone(), location)], vec![]),
        (vec![disk, elsewhere, document("B", &[], &[])], vec![]),
    ] {
        let skus = Skus::read("WestUS2", &documents);
        assert_eq!(skus.zones().into_iter().collect::<Vec<_>>(), zones, "{documents:#?}");
    }
}

/// CAPZ-110: the message for a missing size names it and its region.
#[test]
fn a_size_that_is_not_there_is_named() {
    let skus = Skus::read("westus2", &[document("Standard_D2s_v3", &[], &[])]);
    assert_eq!(skus.get("Standard_D2s_v3", VIRTUAL_MACHINES).unwrap().name(), "Standard_D2s_v3");
    let error = skus.get("Standard_None", VIRTUAL_MACHINES).unwrap_err();
    assert_eq!(error.reason.as_str(), "InvalidConfiguration");
    assert_eq!(error.reason.event(), "SKUNotFound");
    assert_eq!(
        error.message,
        "resource sku with name 'Standard_None' and category 'virtualMachines' not found in location 'westus2'"
    );
}

#[test]
fn capabilities_are_read() {
    let size = size(&[
        ("vCPUs", "2"),
        ("MemoryGB", "3.5"),
        ("EphemeralOSDiskSupported", "true"),
        ("AcceleratedNetworkingEnabled", "False"),
        ("Other", "1"),
    ]);
    assert_eq!(size.amount(capability::MEMORY_GB), Some(3.5));
    assert_eq!(size.amount(capability::MAX_FAULT_DOMAINS), None);
    assert!(size.can(capability::EPHEMERAL_OS_DISK));
    assert!(!size.can(capability::ACCELERATED_NETWORKING));
    assert_eq!(size.capability("Other"), None, "unused capabilities are not kept");
}

#[test]
fn ultra_disks_are_in_zones_or_wherever_the_size_is() {
    let ultra = json!([{ "name": "UltraSSDAvailable", "value": "True" }]);
    let with = |details: Value, capabilities: &[(&str, &str)]| {
        let mut document = document("A", capabilities, &["1", "2"]);
        document["locationInfo"][0]["zoneDetails"] = details;
        Sku::read(&document, "westus2").unwrap()
    };
    let general = [("UltraSSDAvailable", "True")];
    for (sku, zone, has) in [
        (with(json!([{ "name": ["1"], "capabilities": ultra }]), &[]), Some("1"), true),
        (with(json!([{ "Name": ["1"], "capabilities": ultra }]), &[]), Some("1"), true),
        (with(json!([{ "name": ["1"], "capabilities": ultra }]), &[]), Some("2"), false),
        (with(json!([{ "name": ["1"], "capabilities": ultra }]), &[]), None, false),
        (with(json!([{ "capabilities": ultra }]), &[]), None, true),
        (with(json!([{ "name": ["1"], "capabilities": [] }]), &[]), Some("1"), false),
        (with(json!([]), &general), None, true),
        (with(json!([]), &general), Some("1"), false),
        (with(json!([]), &[]), None, false),
    ] {
        assert_eq!(sku.has_ultra_disks(zone), has, "{sku:?} {zone:?}");
    }
}

/// CAPZ-124.
#[test]
fn a_template_says_what_a_machine_offers() {
    for (memory, architecture, os, wanted) in [
        ("8", "x64", "Linux", json!(["2", "8Gi", "amd64", "linux"])),
        ("3.5", "Arm64", "Linux", json!(["2", "3584Mi", "arm64", "linux"])),
        ("1024", "x64", "Windows", json!(["2", "1Ti", "amd64", "windows"])),
    ] {
        let size = size(&[("vCPUs", "2"), ("MemoryGB", memory), ("CpuArchitectureType", architecture)]);
        let status = json!(template_status(&size, Some(os)).unwrap());
        let info = &status["nodeInfo"];
        let said = json!([
            status["capacity"]["cpu"],
            status["capacity"]["memory"],
            info["architecture"],
            info["operatingSystem"]
        ]);
        assert_eq!(said, wanted);
    }
    for (capabilities, name) in [
        (vec![("MemoryGB", "8"), ("CpuArchitectureType", "x64")], "vCPUs"),
        (vec![("vCPUs", "2"), ("MemoryGB", "much"), ("CpuArchitectureType", "x64")], "MemoryGB"),
        (vec![("vCPUs", "2"), ("MemoryGB", "8"), ("CpuArchitectureType", "Z80")], "CpuArchitectureType"),
    ] {
        let error = template_status(&size(&capabilities), None).unwrap_err();
        assert_eq!(error, format!("the size Standard_D2s_v3 has no usable capability {name}"));
    }
}
