//! What is read from machines' documents and from provider ids.

use azure_types::NetworkInterface;
use serde_json::json;

use super::*;
use crate::instance::{
    DescribeError, InstanceName, ProviderId, candidates_for_node_name, describe, instance_id_of_node_name,
    is_called, is_shut_down, parse_provider_id, power_state, provider_id,
};

const VM: &str =
    "azure:///subscriptions/subscription/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/vm1";
const SET: &str = "azure:///subscriptions/subscription/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/ss";

fn instance_of(text: &str) -> InstanceName {
    match parse_provider_id(text) {
        ProviderId::Instance(name) => name,
        other => panic!("{text}: {other:?}"),
    }
}

/// NODE-070.
#[test]
fn node_070_provider_ids() {
    let name = instance_of(&format!("{SET}/virtualMachines/12"));
    assert_eq!((name.scale_set.name(), name.instance_id.as_str()), ("ss", "12"));
    assert_eq!(provider_id(&name.id()), format!("{SET}/virtualMachines/12"));
    assert_eq!(instance_of(&format!("{SET}/virtualMachines/SS_12")), name);
    assert_eq!(instance_of(&format!("{SET}/VIRTUALMACHINES/12")), name);
    assert!(matches!(parse_provider_id(VM), ProviderId::Machine(_)));
    for other in
        ["", "azure://", "aws:///x/y", &VM[8..], "azure:///subscriptions/s/resourceGroups/g", "azure://vm1"]
    {
        assert_eq!(parse_provider_id(other), ProviderId::Other, "{other}");
    }
    let odd = VM.replace("virtualMachines", "VM");
    assert_eq!(parse_provider_id(&odd), ProviderId::Other);
}

#[test]
fn the_resource_group_of_a_provider_id_is_in_lower_case_and_nothing_else() {
    let id = "/subscriptions/RG/resourceGroups/RG/providers/Microsoft.Compute/virtualMachineScaleSets/RG/virtualMachines/0";
    let expected = "azure:///subscriptions/RG/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/RG/virtualMachines/0";
    assert_eq!(provider_id(&id.parse().unwrap()), expected);
}

fn named(set: &str, prefix: &str) -> ScaleSet {
    let mut model = Arc::unwrap_or_clone(scale_set(set, 0).0);
    let profile = model.properties.as_mut().unwrap().virtual_machine_profile.as_mut().unwrap();
    profile.os_profile.as_mut().unwrap().computer_name_prefix = Some(prefix.to_owned());
    model
}

/// NODE-056, NODE-057, NODE-058.
#[test]
fn node_056_node_057_node_058_a_nodes_name_tells_scale_set_and_instance() {
    let set = named("ss", "vmssee6c2");
    assert_eq!(instance_id_of_node_name("vmvm", &set), None);
    assert_eq!(instance_id_of_node_name("vm00000Z", &named("ss", "vm")).as_deref(), Some("35"));
    for name in ["vmssee6c2000001", "VMSSEE6C2000001"] {
        assert_eq!(instance_id_of_node_name(name, &set).as_deref(), Some("1"));
    }
    let own_name = named("vmssee6c2", "");
    assert_eq!(instance_id_of_node_name("vmssee6c2000010", &own_name).as_deref(), Some("36"));
    let sets = [named("other", "xyz"), set];
    let found = candidates_for_node_name("vmssee6c2000001", &sets);
    assert_eq!(found, [InstanceName { scale_set: scale_set_id("ss"), instance_id: "1".into() }]);
    assert_eq!(candidates_for_node_name("agente6c2000005", &sets), []);
    assert_eq!(instance_id_of_node_name("vmssee6c2é0001", &sets[1]), None, "no character is cut");
}

/// NODE-059.
#[test]
fn node_059_a_nodes_name_gives_the_id_of_its_machine() {
    let found = candidates_for_node_name("vmssee6c2000001", &[named("ss", "vmssee6c2")]);
    let ids: Vec<String> = found.iter().map(|machine| machine.id().to_string()).collect();
    assert_eq!(ids, [format!("{}/virtualMachines/1", &SET["azure://".len()..])]);
}

/// NODE-071.
#[test]
fn node_071_only_ids_of_azures_name_virtual_machines() {
    let id = VM.replace("vm1", "k8s-agent-AAAAAAAA-0");
    let ProviderId::Machine(machine) = parse_provider_id(&id) else { panic!("{id}") };
    assert_eq!(machine.name(), "k8s-agent-AAAAAAAA-0");
    let path = &id["azure://".len()..];
    for prefix in ["", "azure:/", "://", "aws://"] {
        assert_eq!(parse_provider_id(&format!("{prefix}{path}")), ProviderId::Other, "{prefix}");
    }
    assert_eq!(parse_provider_id("azure://"), ProviderId::Other);
}

/// NODE-078: names that are too short for a number, with sets of both kinds.
#[test]
fn node_078_a_short_name_is_no_instances() {
    let sets = [named("ss", "vm"), Arc::unwrap_or_clone(flexible_set("vm"))];
    for name in ["", "v", "vm", "vm1", "vm001", "000001"] {
        assert_eq!(candidates_for_node_name(name, &sets), [], "{name}");
    }
}

#[test]
fn scale_sets_with_one_prefix_are_told_apart_by_the_machines_host_names() {
    let sets = [named("b", "worker"), named("a", "worker"), named("c", "work")];
    let found = candidates_for_node_name("worker000002", &sets);
    let sets: Vec<_> = found.iter().map(|name| name.scale_set.name()).collect();
    assert_eq!(sets, ["a", "b"]);
    let mut machine = instance("a", 2);
    assert!(!is_called(&machine, "worker000002"), "it does not say what it is called");
    let properties = machine.properties.as_mut().unwrap();
    properties.os_profile = serde_json::from_value(json!({"computerName": "Worker000002"})).unwrap();
    assert!(is_called(&machine, "worker000002"));
    assert!(!is_called(&machine, "worker000003"));
}

/// NODE-035.
#[test]
fn node_035_power_states() {
    let with = |codes: &[&str]| {
        let mut machine = instance("ss", 0);
        let statuses: Vec<Value> = codes.iter().map(|code| json!({"code": code})).collect();
        let view = machine.properties.as_mut().unwrap().instance_view.as_mut().unwrap();
        view.statuses = serde_json::from_value(json!(statuses)).unwrap();
        machine
    };
    assert_eq!(power_state(&with(&["foo", "PowerState/Running"])), "Running");
    assert_eq!(power_state(&with(&["foo"])), "unknown");
    assert_eq!(power_state(&with(&[])), "unknown");
    let mut bare = instance("ss", 0);
    bare.properties.as_mut().unwrap().instance_view = None;
    assert_eq!(power_state(&bare), "unknown");
}

/// NODE-023, NODE-024, NODE-025, NODE-026, NODE-027, NODE-028, NODE-029, NODE-030: one row each, in this order.
#[test]
fn which_machines_are_shut_down() {
    for (power, provisioning, down) in [
        ("Running", "Succeeded", false),
        ("Deallocated", "Succeeded", true),
        ("Deallocating", "Succeeded", true),
        ("Starting", "Succeeded", false),
        ("Stopped", "succeeded", true),
        ("Stopped", "Creating", false),
        ("Stopping", "Succeeded", false),
        ("Unknown", "Succeeded", false),
    ] {
        let mut machine = instance("ss", 0);
        let properties = machine.properties.as_mut().unwrap();
        properties.provisioning_state = Some(provisioning.into());
        properties.instance_view =
            serde_json::from_value(json!({"statuses": [{"code": format!("PowerState/{power}")}]})).unwrap();
        assert_eq!(is_shut_down(&machine), down, "{power} {provisioning}");
    }
}

fn interfaces_of() -> Vec<NetworkInterface> {
    serde_json::from_value(json!([
        {"properties": {"primary": false, "ipConfigurations": [{"properties": {"privateIPAddress": "10.9.9.9"}}]}},
        {"properties": {"primary": true, "ipConfigurations": [
            {"properties": {"primary": false, "privateIPAddress": "10.0.0.5"}},
            {"properties": {"primary": true, "privateIPAddress": "10.0.0.4",
                "publicIPAddress": {"id": cluster().public_ip_id("rg", "p"), "properties": {"ipAddress": "20.0.0.4"}}}},
        ]}},
    ]))
    .unwrap()
}

/// NODE-052.
#[test]
fn node_052_zones_of_instances() {
    let mut machine = instance("vmssee6c2", 0);
    machine.zones = Some(vec!["2".into()]);
    let zone = |machine: &ScaleSetInstance| describe(&cluster(), "n", machine, &[]).map(|facts| facts.zone);
    assert_eq!(zone(&machine).unwrap(), "westus-2");
    machine.location = None;
    let spelled = cluster_with(json!({"location": "WestUS"}));
    assert_eq!(describe(&spelled, "n", &machine, &[]).unwrap().zone, "westus-2");
    machine.location = Some("WestUS".into());
    assert_eq!(zone(&machine).unwrap(), "westus-2");
    machine.zones = None;
    assert_eq!(zone(&machine).unwrap(), "3");
    machine.zones = Some(vec!["a".into()]);
    assert!(zone(&machine).unwrap_err().to_string().contains("failed to parse zone `a`"));
    machine.zones = None;
    machine.properties.as_mut().unwrap().instance_view = None;
    assert!(matches!(zone(&machine), Err(DescribeError::NoZone { .. })));
}

/// NODE-049.
#[test]
fn node_049_a_zone_is_told_in_lower_case() {
    let mut machine = instance("alpha", 0);
    (machine.location, machine.zones) = (Some("EASTUS".into()), Some(vec!["2".into()]));
    let facts = describe(&cluster(), "n", &machine, &[]).unwrap();
    assert_eq!((facts.zone.as_str(), facts.region.as_str()), ("eastus-2", "eastus"));
}

/// A dual-stack kubelet asks for both addresses (`alpha.kubernetes.io/provided-node-ip`): with one of them alone
/// its node could never be initialised.
#[test]
fn a_dual_stack_machine_reports_one_address_of_each_family() {
    let interfaces: Vec<NetworkInterface> = serde_json::from_value(json!([
        {"properties": {"primary": true, "ipConfigurations": [
            {"properties": {"primary": false, "privateIPAddress": "fd00::4",
                "publicIPAddress": {"properties": {"ipAddress": "2001:db8::4"}}}},
            {"properties": {"primary": true, "privateIPAddress": "10.0.0.4",
                "publicIPAddress": {"properties": {"ipAddress": "20.0.0.4"}}}},
            {"properties": {"primary": false, "privateIPAddress": "10.0.0.5"}},
            {"properties": {"primary": false, "privateIPAddress": "fd00::5"}},
        ]}},
    ]))
    .unwrap();
    let facts = describe(&cluster(), "n1", &instance("alpha", 0), &interfaces).unwrap();
    let addresses: Vec<String> =
        facts.addresses.iter().map(|a| format!("{} {}", a.kind, a.address)).collect();
    let expected = [
        "InternalIP 10.0.0.4",
        "InternalIP fd00::4",
        "Hostname n1",
        "ExternalIP 20.0.0.4",
        "ExternalIP 2001:db8::4",
    ];
    assert_eq!(addresses, expected);
}

#[test]
fn an_instance_describes_its_node() {
    let facts = describe(&cluster(), "alpha000000", &instance("alpha", 0), &interfaces_of()).unwrap();
    let addresses: Vec<String> =
        facts.addresses.iter().map(|a| format!("{} {}", a.kind, a.address)).collect();
    assert_eq!(addresses, ["InternalIP 10.0.0.4", "Hostname alpha000000", "ExternalIP 20.0.0.4"]);
    assert_eq!(facts.instance_type, "Standard_D4s_v5");
    assert_eq!((facts.zone.as_str(), facts.region.as_str()), ("westus-1", "westus"));
    assert_eq!(facts.provider_id, format!("azure://{}/virtualMachines/0", scale_set_id("alpha")));
}
