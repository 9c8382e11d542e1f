//! Where the security group is in force (LB-490).

use std::sync::Arc;

use azure_types::{NetworkInterface, SecurityGroup};
use serde_json::{Value, json};

use crate::order::tests::Azure;
use crate::order::tests::{cluster, labelled, machine_node, network_interface, node, nodes, svc};
use crate::resources::security_group::in_force::problem;

fn group(members: Value) -> SecurityGroup {
    let mut properties = json!({"securityRules": []});
    for (member, value) in members.as_object().unwrap() {
        properties[member] = value.clone();
    }
    let document = json!({"id": cluster().security_group_id(), "name": "nsg", "properties": properties});
    serde_json::from_value(document).unwrap()
}

/// The interface of a virtual machine, in a subnet and with a security group of its own.
fn interface(machine: &str, subnet: Option<&str>, group: Option<&str>) -> Arc<NetworkInterface> {
    let mut document = serde_json::to_value(network_interface(machine)).unwrap();
    if let Some(subnet) = subnet {
        let properties = &mut document["properties"]["ipConfigurations"][0]["properties"];
        properties["subnet"] = json!({"id": cluster().subnet_id(subnet)});
    }
    if let Some(group) = group {
        let id = cluster().security_group_id().unwrap().parent().unwrap();
        let id = id.resource("Microsoft.Network", "networkSecurityGroups", group);
        document["properties"]["networkSecurityGroup"] = json!({"id": id});
    }
    Arc::new(serde_json::from_value(document).unwrap())
}

fn one(id: impl ToString) -> Value {
    json!([{"id": id.to_string()}])
}

/// LB-490: a group that is assigned nowhere allows nothing; if it guards some nodes, the others are named. Unknown
/// interfaces are not judged.
#[test]
fn a_security_group_that_is_not_in_force_is_told() {
    let (nodes_subnet, other_subnet) = (cluster().subnet_id("subnet"), cluster().subnet_id("other"));
    let nic = network_interface("a").id.unwrap();
    let all = nodes([machine_node("a"), machine_node("b"), node("alpha", 0)]);
    let bare = |machine: &str| interface(machine, Some("subnet"), None);
    let with = |machine: &str, group: &str| interface(machine, Some("subnet"), Some(group));
    let rows = [
        ("nothing has it", group(json!({})), vec![], Some("in force nowhere")),
        (
            "an empty list",
            group(json!({"subnets": [], "networkInterfaces": []})),
            vec![],
            Some("in force nowhere"),
        ),
        (
            "the nodes' subnet",
            group(json!({"subnets": one(&nodes_subnet)})),
            vec![bare("a"), bare("b")],
            None,
        ),
        (
            "in any case",
            group(json!({"subnets": one(nodes_subnet.to_string().to_uppercase())})),
            vec![bare("a")],
            None,
        ),
        (
            "another subnet",
            group(json!({"subnets": one(&other_subnet)})),
            vec![bare("a")],
            Some("at nodes a, because"),
        ),
        (
            "nodes in another subnet",
            group(json!({"subnets": one(&other_subnet)})),
            vec![interface("a", Some("other"), None)],
            None,
        ),
        (
            "an interface each",
            group(json!({"networkInterfaces": one(&nic)})),
            vec![with("a", "nsg"), with("b", "b-nsg")],
            Some("at nodes b, because"),
        ),
        ("interfaces that are not known", group(json!({"networkInterfaces": one(&nic)})), vec![], None),
        (
            "a subnet that is not shown",
            group(json!({"networkInterfaces": one(&nic)})),
            vec![interface("b", None, Some("x"))],
            None,
        ),
    ];
    for (name, group, interfaces, expected) in rows {
        let found = problem(&cluster(), &group, &all, &interfaces);
        match expected {
            None => assert_eq!(found, None, "{name}"),
            Some(part) => {
                let text = found.unwrap_or_default();
                let parts = [part, "security group nsg", "securityGroupName", "subnet subnet"];
                assert!(parts.iter().all(|part| text.contains(part)), "{name}: {text}");
            }
        }
    }
    let excluded = labelled(machine_node("b"), k8s::names::LABEL_EXCLUDE_FROM_LOAD_BALANCERS, "true");
    let guarded = group(json!({"networkInterfaces": one(&nic)}));
    let known = [with("a", "nsg"), with("b", "b-nsg")];
    assert_eq!(problem(&cluster(), &guarded, &nodes([machine_node("a"), excluded]), &known), None);
}

/// LB-490: the plan warns once, whatever the number of Services, and not for Services without security rules.
#[test]
fn a_plan_warns_of_a_security_group_that_is_in_force_nowhere() {
    let mut azure = Azure::new();
    let without_rules = svc("c").tcp(82).annotate("azure-disable-load-balancer-nsg-rule", "true").arc();
    let services = [svc("a").tcp(80).arc(), svc("b").tcp(81).arc()];
    azure.observed.security_group = Some(group(json!({})));
    let told = |azure: &Azure, services: &[Arc<k8s::Service>]| azure.plan(services, &[]).warnings;
    let warnings = told(&azure, &services);
    assert!(warnings.len() == 1 && warnings[0].contains("in force nowhere"), "{warnings:?}");
    assert_eq!(told(&azure, &[without_rules]), Vec::<String>::new());
    azure.observed.security_group = Some(group(json!({"subnets": one(cluster().subnet_id("subnet"))})));
    assert_eq!(told(&azure, &services), Vec::<String>::new());
}
