//! Descriptions of machines of every kind.

use azure_types::{InstanceView, NetworkInterface, SubResource};
use serde_json::{Value, json};

use super::*;
use crate::{
    DescribeError, InstanceFacts, MachineDocument, describe, described_interfaces, is_inactive, is_shut_down,
    needs_fault_domain, power_state,
};

const PUBLIC_IP: &str =
    "/subscriptions/subscription/resourceGroups/rg/providers/Microsoft.Network/publicIPAddresses/p";

fn view(codes: &[&str], fault_domain: Option<i32>) -> InstanceView {
    let statuses: Vec<Value> = codes.iter().map(|code| json!({"code": code})).collect();
    let mut view: InstanceView = serde_json::from_value(json!({"statuses": statuses})).unwrap();
    view.platform_fault_domain = fault_domain;
    view
}

/// A machine of each kind (uniform, flexible, of no set) with this view and this provisioning state.
fn each(view: Option<&InstanceView>, provisioning: Option<&str>) -> (ScaleSetInstance, [VirtualMachine; 2]) {
    let mut instance = instance("ss", 0);
    let properties = instance.properties.as_mut().unwrap();
    properties.instance_view = view.cloned().map(Into::into);
    properties.provisioning_state = provisioning.map(Into::into);
    let machines = [Some("flex"), None].map(|set| {
        let mut machine = virtual_machine("vm", set);
        let properties = machine.properties.as_mut().unwrap();
        (properties.instance_view, properties.provisioning_state) =
            (view.cloned(), provisioning.map(Into::into));
        machine
    });
    (instance, machines)
}

/// NODE-035. NODE-074, NODE-075: of virtual machines as well, and without a provisioning state.
#[test]
fn node_035_node_074_node_075_power_and_provisioning_states() {
    for (codes, expected, provisioning) in [
        (Some(&["foo", "PowerState/Running"][..]), "Running", ""),
        (Some(&["ProvisioningState/succeeded", "powerstate/running"]), "running", "succeeded"),
        (Some(&["foo"]), "unknown", ""),
        (Some(&[]), "unknown", ""),
        (None, "unknown", ""),
    ] {
        let (instance, machines) = each(codes.map(|codes| view(codes, None)).as_ref(), None);
        assert_eq!((power_state(&instance), instance.provisioning_state()), (expected, ""), "{codes:?}");
        for machine in machines {
            let said = (power_state(&machine), machine.provisioning_state());
            assert_eq!(said, (expected, provisioning), "{codes:?}: lists of views hold nothing else");
        }
    }
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
        let view = view(&[&format!("PowerState/{power}")], None);
        let (instance, machines) = each(Some(&view), Some(provisioning));
        assert_eq!(is_shut_down(&instance), down, "{power} {provisioning}");
        assert!(machines.iter().all(|machine| is_shut_down(machine) == down), "{power} {provisioning}");
    }
}

#[test]
fn a_machine_without_a_view_is_inactive_unless_views_are_not_asked_for() {
    let (instance, [flexible, alone]) = each(None, Some("Succeeded"));
    assert!(is_inactive(&instance, false) && is_inactive(&flexible, false) && is_inactive(&alone, false));
    assert!(!is_inactive(&instance, true) && !is_inactive(&flexible, true) && !is_inactive(&alone, true));
    let (deleted, _) = each(None, Some("Deleting"));
    assert!(is_inactive(&deleted, true));
}

fn facts(
    machine: &impl MachineDocument,
    interfaces: &[NetworkInterface],
) -> Result<InstanceFacts, DescribeError> {
    let interfaces: Vec<&NetworkInterface> = interfaces.iter().collect();
    let address = |id: &ResourceId| match id.name() {
        "p" => Some("20.0.0.4".to_owned()),
        "p6" => Some("2001:db8::4".to_owned()),
        _ => None,
    };
    describe("n", machine, None, &interfaces, &address, "WestUS")
}

/// NODE-052: of uniform scale sets. NODE-053: of flexible ones. NODE-054: of no set.
#[test]
fn node_052_node_053_node_054_zones_and_fault_domains() {
    let (mut instance, [mut flexible, mut alone]) = each(Some(&view(&[], Some(3))), None);
    let zone = |result: Result<InstanceFacts, DescribeError>| result.map(|facts| facts.zone);
    instance.zones = Some(["2".to_owned()].into());
    assert_eq!(zone(facts(&instance, &[])).as_deref(), Ok("westus-2"));
    instance.location = None;
    assert_eq!(zone(facts(&instance, &[])).as_deref(), Ok("westus-2"), "as azure.json spells it");
    instance.location = Some("WestUS".into());
    assert_eq!(zone(facts(&instance, &[])).as_deref(), Ok("westus-2"));
    let odd = Some(vec!["a".to_owned()]);
    (instance.zones, flexible.zones, alone.zones) = (odd.clone().map(Into::into), odd.clone(), odd);
    for error in [facts(&instance, &[]), facts(&flexible, &[]), facts(&alone, &[])] {
        assert!(error.unwrap_err().to_string().contains("failed to parse zone `a`"));
    }
    (instance.zones, flexible.zones, alone.zones) = (None, None, None);
    for facts in [facts(&instance, &[]), facts(&flexible, &[]), facts(&alone, &[])] {
        assert_eq!(zone(facts).as_deref(), Ok("3"));
    }
    let (mut instance, [mut flexible, mut alone]) = each(None, None);
    (instance.zones, flexible.zones, alone.zones) = (None, None, None);
    for error in [facts(&instance, &[]), facts(&flexible, &[])] {
        assert!(error.unwrap_err().to_string().contains("failed to get zone info"));
    }
    assert_eq!(zone(facts(&alone, &[])).as_deref(), Ok("0"));
    let mut placed = alone.clone();
    placed.properties.as_mut().unwrap().availability_set =
        Some(SubResource::to(compute("availabilitySets", "a")));
    for (machine, needs) in [(&flexible, true), (&placed, true), (&alone, false)] {
        assert_eq!(needs_fault_domain(machine), needs);
        let described = describe("n", machine, Some(2), &[], &|_| None, "WestUS");
        assert_eq!(zone(described).as_deref(), Ok("2"), "its view was read by itself");
    }
}

/// The document of a machine marks its primary interface; without a mark, all its interfaces describe it.
#[test]
fn a_machine_is_described_by_its_primary_interface() {
    let named = |name: &str, primary: Option<bool>| json!({"id": compute("x", name), "properties": {"primary": primary}});
    for (interfaces, expected) in [
        (json!([named("a", None)]), vec!["a"]),
        (json!([named("a", Some(false)), named("b", Some(true))]), vec!["b"]),
        (json!([named("a", Some(false)), named("b", None)]), vec!["a", "b"]),
        (json!([]), vec![]),
    ] {
        let mut machine = virtual_machine("vm", None);
        let profile = json!({"networkInterfaces": interfaces});
        machine.properties.as_mut().unwrap().network_profile = serde_json::from_value(profile).unwrap();
        let names: Vec<&str> = described_interfaces(&machine).into_iter().map(ResourceId::name).collect();
        assert_eq!(names, expected, "{interfaces}");
    }
}

fn interfaces(configurations: &Value) -> Vec<NetworkInterface> {
    serde_json::from_value(json!([
        {"properties": {"primary": false, "ipConfigurations": [{"properties": {"privateIPAddress": "10.9.9.9"}}]}},
        {"properties": {"primary": true, "ipConfigurations": configurations}},
    ]))
    .unwrap()
}

fn addresses(facts: &InstanceFacts) -> Vec<String> {
    facts.addresses.iter().map(|one| format!("{} {}", one.kind, one.address)).collect()
}

/// A dual-stack kubelet requests both addresses (`alpha.kubernetes.io/provided-node-ip`): with only one of them its
/// node could never be initialised.
#[test]
fn a_dual_stack_machine_reports_one_address_of_each_family() {
    let interfaces = interfaces(&json!([
        {"properties": {"primary": false, "privateIPAddress": "fd00::4",
            "publicIPAddress": {"id": format!("{PUBLIC_IP}6")}}},
        {"properties": {"primary": true, "privateIPAddress": "10.0.0.4", "publicIPAddress": {"id": PUBLIC_IP}}},
        {"properties": {"primary": false, "privateIPAddress": "10.0.0.5"}},
        {"properties": {"primary": false, "privateIPAddress": "fd00::5"}},
    ]));
    let expected = [
        "InternalIP 10.0.0.4",
        "InternalIP fd00::4",
        "Hostname n",
        "ExternalIP 20.0.0.4",
        "ExternalIP 2001:db8::4",
    ];
    assert_eq!(addresses(&facts(&instance("alpha", 0), &interfaces).unwrap()), expected);
    assert_eq!(addresses(&facts(&virtual_machine("vm", None), &interfaces).unwrap()), expected);
}

#[test]
fn a_machine_of_each_kind_describes_its_node() {
    let interfaces = interfaces(&json!([
        {"properties": {"primary": false, "privateIPAddress": "10.0.0.5"}},
        {"properties": {"primary": true, "privateIPAddress": "10.0.0.4", "publicIPAddress": {"id": PUBLIC_IP}}},
    ]));
    let uniform = facts(&instance("alpha", 0), &interfaces).unwrap();
    assert_eq!(addresses(&uniform), ["InternalIP 10.0.0.4", "Hostname n", "ExternalIP 20.0.0.4"]);
    assert_eq!(uniform.instance_type, "Standard_D4s_v5");
    assert_eq!((uniform.zone.as_str(), uniform.region.as_str()), ("westus-1", "westus"));
    assert_eq!(uniform.provider_id, format!("azure://{}/virtualMachines/0", scale_set_id("alpha")));
    let alone = facts(&virtual_machine("vm", None), &interfaces).unwrap();
    assert_eq!(addresses(&alone), addresses(&uniform));
    assert_eq!(alone.instance_type, "Basic_A0");
    assert_eq!((alone.zone.as_str(), alone.region.as_str()), ("westus2-1", "westus2"));
    assert_eq!(alone.provider_id, format!("azure://{}", compute("virtualMachines", "vm")));
}

/// NODE-043: only the resource group of an id is in lower case; the rest keeps Azure's spelling.
#[test]
fn node_043_an_id_keeps_its_casing_but_for_the_group() {
    let spelled =
        "/subscriptions/Subscription/resourceGroups/RG/providers/Microsoft.Compute/VirtualMachines/VM";
    let group =
        "/subscriptions/Subscription/resourceGroups/rg/providers/Microsoft.Compute/VirtualMachines/VM";
    let interfaces = interfaces(&json!([
        {"properties": {"primary": true, "privateIPAddress": "1.2.3.4", "publicIPAddress": {"id": PUBLIC_IP}}},
    ]));
    let mut machine = virtual_machine("VM", None);
    machine.id = Some(spelled.parse().unwrap());
    let node = facts(&machine, &interfaces).unwrap();
    assert_eq!(node.provider_id, format!("azure://{group}"));
    assert_eq!(node.instance_type, "Basic_A0");
    assert_eq!((node.zone.as_str(), node.region.as_str()), ("westus2-1", "westus2"));
    assert_eq!(addresses(&node), ["InternalIP 1.2.3.4", "Hostname n", "ExternalIP 20.0.0.4"]);
}
