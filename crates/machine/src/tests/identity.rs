//! The machines that provider IDs, names of nodes and ids of interfaces name.

use super::*;
use crate::{
    InstanceName, MachineName, ProviderId, candidates_for_node_name, instance_id_of_node_name, is_called,
    names_machine, of_interface, parse_provider_id, provider_id, zone_label, zone_number,
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

/// NODE-070, NODE-282: in any case.
#[test]
fn node_070_provider_ids() {
    let name = instance_of(&format!("{SET}/virtualMachines/12"));
    assert_eq!((name.scale_set.name(), name.instance_id.as_str()), ("ss", "12"));
    assert_eq!(provider_id(&name.id()), format!("{SET}/virtualMachines/12"));
    assert_eq!(instance_of(&format!("{SET}/virtualMachines/SS_12")), name);
    assert_eq!(instance_of(&format!("{SET}/VIRTUALMACHINES/12")), name);
    for id in [
        VM,
        &VM.replace("virtualMachines", "VirtualMachines"),
        &VM.replace("/resourceGroups", "/resourcegroups"),
    ] {
        assert!(matches!(parse_provider_id(id), ProviderId::Machine(id) if id.name() == "vm1"), "{id}");
    }
    for other in
        ["", "azure://", "aws:///x/y", &VM[8..], "azure:///subscriptions/s/resourceGroups/g", "azure://vm1"]
    {
        assert_eq!(parse_provider_id(other), ProviderId::Other, "{other}");
    }
    let machine = parse_provider_id(&format!("{SET}/virtualMachines/12")).machine().unwrap();
    assert_eq!((machine.id(), machine.group()), (name.id(), ResourceId::group("subscription", "rg")));
    assert_eq!(parse_provider_id(VM).machine().unwrap().group(), machine.group());
}

/// NODE-012, NODE-033: ids that start like those of Azure machines but name none.
#[test]
fn node_012_node_033_ids_of_azures_that_name_no_machine() {
    for id in [
        VM.replace("virtualMachines/vm1", "virtualMachine/vm3"),
        VM.replace("virtualMachines/vm1", "VM/vm9"),
        VM.replace("virtualMachines/vm1", "virtualMachines"),
        VM.replace("virtualMachines/vm1", ""),
        format!("{VM}/extensions/x"),
        SET.to_owned(),
        format!("{SET}/virtualMachines"),
        format!("{SET}/virtualMachines/1/networkInterfaces/nic"),
    ] {
        assert_eq!(parse_provider_id(&id), ProviderId::Unreadable, "{id}");
        assert!(!names_machine(&id) && parse_provider_id(&id).machine().is_none(), "{id}");
    }
}

/// NODE-282.
#[test]
fn node_282_the_resource_group_of_a_provider_id_is_in_lower_case_and_nothing_else() {
    let id = "/subscriptions/RG/resourceGroups/RG/providers/Microsoft.Compute/virtualMachineScaleSets/RG/virtualMachines/0";
    let expected = "azure:///subscriptions/RG/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/RG/virtualMachines/0";
    assert_eq!(provider_id(&id.parse().unwrap()), expected);
}

/// NODE-060: the machine of an interface, and of an interface's children.
#[test]
fn node_060_the_machine_of_an_interface() {
    let path = &SET["azure://".len()..];
    let of = |text: String| of_interface(&text.parse().unwrap());
    let name = InstanceName { scale_set: scale_set_id("ss"), instance_id: "0".into() };
    for tail in ["", "/ipConfigurations/ip", "/ipConfigurations/ip/publicIPAddresses/p"] {
        let id = format!("{path}/virtualMachines/0/networkInterfaces/nic{tail}");
        assert_eq!(of(id), Some(MachineName::Instance(name.clone())), "{tail}");
    }
    let alone =
        VM["azure://".len()..].replace("Compute/virtualMachines/vm1", "Network/networkInterfaces/nic");
    for other in [format!("{path}/virtualMachines/0"), alone.clone(), format!("{alone}/ipConfigurations/ip")]
    {
        assert_eq!(of(other.clone()), None, "{other}");
    }
}

/// NODE-056, NODE-057, NODE-058.
#[test]
fn node_056_node_057_node_058_a_nodes_name_tells_scale_set_and_instance() {
    let set = scale_set("ss", "vmssee6c2");
    assert_eq!(instance_id_of_node_name("vmvm", &set), None);
    assert_eq!(instance_id_of_node_name("vm00000Z", &scale_set("ss", "vm")).as_deref(), Some("35"));
    for name in ["vmssee6c2000001", "VMSSEE6C2000001"] {
        assert_eq!(instance_id_of_node_name(name, &set).as_deref(), Some("1"));
    }
    let own_name = scale_set("vmssee6c2", "");
    assert_eq!(instance_id_of_node_name("vmssee6c2000010", &own_name).as_deref(), Some("36"));
    let sets = [scale_set("other", "xyz"), set];
    let found = candidates_for_node_name("vmssee6c2000001", &sets);
    assert_eq!(found, [InstanceName { scale_set: scale_set_id("ss"), instance_id: "1".into() }]);
    assert_eq!(candidates_for_node_name("agente6c2000005", &sets), []);
    assert_eq!(instance_id_of_node_name("vmssee6c2é0001", &sets[1]), None, "no character is cut");
}

/// NODE-059.
#[test]
fn node_059_a_nodes_name_gives_the_id_of_its_machine() {
    let found = candidates_for_node_name("vmssee6c2000001", &[scale_set("ss", "vmssee6c2")]);
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
    let mut flexible = scale_set("vm", "vm");
    flexible.properties.as_mut().unwrap().orchestration_mode = Some("Flexible".into());
    let sets = [scale_set("ss", "vm"), flexible];
    for name in ["", "v", "vm", "vm1", "vm001", "000001"] {
        assert_eq!(candidates_for_node_name(name, &sets), [], "{name}");
    }
}

#[test]
fn scale_sets_with_one_prefix_are_told_apart_by_the_machines_host_names() {
    let sets = [scale_set("b", "worker"), scale_set("a", "worker"), scale_set("c", "work")];
    let found = candidates_for_node_name("worker000002", &sets);
    let sets: Vec<_> = found.iter().map(|name| name.scale_set.name()).collect();
    assert_eq!(sets, ["a", "b"]);
    let mut machine = instance("a", 2);
    assert!(!is_called(&machine, "worker000002"), "it does not say what it is called");
    let properties = machine.properties.as_mut().unwrap();
    properties.os_profile = serde_json::from_value(json!({"computerName": "Worker000002"})).unwrap();
    assert!(is_called(&machine, "worker000002"));
    assert!(!is_called(&machine, "worker000003"));
    assert!(is_called(&virtual_machine("AKSNPWIN000000", Some("npwin")), "aksnpwin000000"));
}

/// NODE-046: zones of a region in labels. NODE-049: how to recognise one.
#[test]
fn node_046_node_049_zones_in_labels() {
    for (label, number) in [
        ("", None),
        ("123", None),
        ("chinanorth-1", None),
        ("eastus", None),
        ("eastus-", None),
        ("eastus2-1", None),
        ("eastus-a", None),
        ("eastus-1", Some(1)),
    ] {
        assert_eq!(zone_number("eastus", label), number, "{label}");
    }
    assert_eq!(zone_label("EASTUS", 2), "eastus-2");
}
