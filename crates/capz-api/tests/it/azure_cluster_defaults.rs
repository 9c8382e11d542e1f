//! Section A of the acceptance list: defaults of a minimal AzureCluster.

use capz_api::{Context, Gates};
use serde_json::{Value, json};

use super::{admitted, with};

const KIND: &str = "AzureCluster";

fn base() -> Value {
    json!({
        "metadata": { "name": "my-cluster" },
        "spec": { "location": "eastus", "identityRef": { "kind": "AzureClusterIdentity", "name": "id" } }
    })
}

fn defaulted(changes: &[(&str, Value)]) -> Value {
    admitted(KIND, with(&base(), changes), &Context::default())
}

fn network(changes: &[(&str, Value)]) -> Value {
    defaulted(changes)["spec"]["networkSpec"].clone()
}

/// CAPZ-001
#[test]
fn a_location_and_an_identity_are_enough() {
    let cluster = defaulted(&[]);
    assert_eq!(cluster["spec"]["resourceGroup"], "my-cluster");
    assert_eq!(cluster["spec"]["azureEnvironment"], "AzurePublicCloud");
    assert_eq!(
        cluster["spec"]["networkSpec"]["vnet"],
        json!({ "name": "my-cluster-vnet", "resourceGroup": "my-cluster", "cidrBlocks": ["10.0.0.0/8"] })
    );
}

/// CAPZ-002
#[test]
fn there_is_a_subnet_for_the_control_plane_and_one_for_nodes() {
    assert_eq!(
        network(&[])["subnets"],
        json!([
            {
                "name": "my-cluster-controlplane-subnet", "role": "control-plane", "cidrBlocks": ["10.0.0.0/16"],
                "securityGroup": { "name": "my-cluster-controlplane-nsg" },
                "routeTable": { "name": "my-cluster-node-routetable" }
            },
            {
                "name": "my-cluster-node-subnet", "role": "node", "cidrBlocks": ["10.1.0.0/16"],
                "securityGroup": { "name": "my-cluster-node-nsg" },
                "routeTable": { "name": "my-cluster-node-routetable" },
                "natGateway": { "name": "my-cluster-node-natgw", "ip": { "name": "pip-my-cluster-node-natgw" } }
            }
        ])
    );
}

/// CAPZ-003
#[test]
fn the_api_server_has_a_public_load_balancer() {
    assert_eq!(
        network(&[])["apiServerLB"],
        json!({
            "type": "Public", "sku": "Standard", "idleTimeoutInMinutes": 4, "name": "my-cluster-public-lb",
            "frontendIPs": [{ "name": "my-cluster-public-lb-frontEnd", "publicIP": { "name": "pip-my-cluster-apiserver" } }],
            "backendPool": { "name": "my-cluster-public-lb-backendPool" }
        })
    );
}

/// CAPZ-004
#[test]
fn an_internal_load_balancer_has_an_address_of_the_network() {
    let network = network(&[("spec.networkSpec.apiServerLB.type", json!("Internal"))]);
    assert_eq!(network["apiServerLB"]["name"], "my-cluster-internal-lb");
    assert_eq!(
        network["apiServerLB"]["frontendIPs"],
        json!([{ "name": "my-cluster-internal-lb-frontEnd", "privateIP": "10.0.0.100" }])
    );
    assert!(network.get("nodeOutboundLB").is_none() && network.get("controlPlaneOutboundLB").is_none());
}

/// CAPZ-005
#[test]
fn subnets_for_nodes_are_numbered() {
    let network = network(&[("spec.networkSpec.subnets", json!([{ "role": "node" }, { "role": "node" }]))]);
    let found: Vec<Value> = network["subnets"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|subnet| subnet["role"] == "node")
        .map(|subnet| {
            json!([
                subnet["name"],
                subnet["cidrBlocks"],
                subnet["natGateway"]["name"],
                subnet["natGateway"]["ip"]["name"]
            ])
        })
        .collect();
    assert_eq!(
        found,
        [1, 2].map(|number| json!([
            format!("my-cluster-node-subnet-{number}"),
            [format!("10.{number}.0.0/16")],
            format!("my-cluster-node-natgw-{number}"),
            format!("pip-my-cluster-node-natgw-{number}")
        ]))
    );
}

/// CAPZ-006
#[test]
fn nodes_with_ipv6_go_out_by_a_load_balancer() {
    let subnets =
        json!([{ "role": "node", "name": "n", "cidrBlocks": ["10.1.0.0/16", "2001:1234:5678:9abd::/64"] }]);
    let network = network(&[("spec.networkSpec.subnets", subnets)]);
    assert!(network["subnets"][0].get("natGateway").is_none());
    assert_eq!(
        network["nodeOutboundLB"],
        json!({
            "type": "Public", "sku": "Standard", "idleTimeoutInMinutes": 4, "name": "my-cluster", "frontendIPsCount": 1,
            "frontendIPs": [{ "name": "my-cluster-frontEnd", "publicIP": { "name": "pip-my-cluster-node-outbound" } }],
            "backendPool": { "name": "my-cluster-outboundBackendPool" }
        })
    );
}

/// CAPZ-007, CAPZ-008
#[test]
fn frontends_for_what_goes_out_are_counted() {
    let names = |count: i32| -> Vec<(String, String)> {
        let network = network(&[("spec.networkSpec.nodeOutboundLB.frontendIPsCount", json!(count))]);
        let frontends = network["nodeOutboundLB"]["frontendIPs"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        frontends.iter().map(|one| (text(&one["name"]), text(&one["publicIP"]["name"]))).collect()
    };
    let expected =
        [1, 2, 3].map(|n| (format!("my-cluster-frontEnd-{n}"), format!("pip-my-cluster-node-outbound-{n}")));
    assert_eq!(names(3), expected);
    assert!(names(0).is_empty());
}

/// CAPZ-009
#[test]
fn a_control_plane_behind_an_internal_load_balancer_may_have_another_for_what_goes_out() {
    let network = network(&[
        ("spec.networkSpec.apiServerLB.type", json!("Internal")),
        ("spec.networkSpec.controlPlaneOutboundLB", json!({ "frontendIPsCount": 1 })),
    ]);
    let balancer = &network["controlPlaneOutboundLB"];
    assert_eq!(balancer["name"], "my-cluster-outbound-lb");
    assert_eq!(balancer["frontendIPs"][0]["publicIP"]["name"], "pip-my-cluster-controlplane-outbound");
    assert_eq!(balancer["backendPool"]["name"], "my-cluster-outbound-lb-outboundBackendPool");
}

/// CAPZ-010, CAPZ-011
#[test]
fn a_bastion_is_there_where_it_is_asked_for() {
    assert!(defaulted(&[])["spec"].get("bastionSpec").is_none());
    let cluster = defaulted(&[("spec.bastionSpec.azureBastion", json!({}))]);
    assert_eq!(
        cluster["spec"]["bastionSpec"]["azureBastion"],
        json!({
            "name": "my-cluster-azure-bastion", "sku": "Basic", "enableTunneling": false,
            "subnet": { "name": "AzureBastionSubnet", "cidrBlocks": ["10.255.255.224/27"], "role": "bastion" },
            "publicIP": { "name": "my-cluster-azure-bastion-pip" }
        })
    );
}

/// CAPZ-012
#[test]
fn one_subnet_can_be_for_the_whole_cluster() {
    assert_eq!(
        network(&[("spec.networkSpec.subnets", json!([{ "role": "cluster" }]))])["subnets"],
        json!([{
            "name": "my-cluster-subnet", "role": "cluster", "cidrBlocks": ["10.0.0.0/16"],
            "securityGroup": { "name": "my-cluster-nsg" }, "routeTable": { "name": "my-cluster-routetable" },
            "natGateway": { "name": "my-cluster-natgw", "ip": { "name": "pip-my-cluster-natgw" } }
        }])
    );
}

/// CAPZ-013
#[test]
fn a_control_plane_elsewhere_needs_no_load_balancer() {
    let network = network(&[("spec.controlPlaneEnabled", json!(false))]);
    assert!(network.get("apiServerLB").is_none());
    assert!(network["subnets"].as_array().unwrap().iter().all(|subnet| subnet["role"] == "node"));
}

/// CAPZ-014, CAPZ-015
#[test]
fn peerings_and_rules_are_completed() {
    let cluster = defaulted(&[
        ("spec.resourceGroup", json!("rg")),
        ("spec.networkSpec.vnet.peerings", json!([{ "remoteVnetName": "vnet2" }])),
        (
            "spec.networkSpec.subnets",
            json!([{ "role": "node", "name": "n", "securityGroup": { "securityRules": [{ "name": "a" }] } }]),
        ),
    ]);
    let network = &cluster["spec"]["networkSpec"];
    assert_eq!(network["vnet"]["peerings"][0]["resourceGroup"], "rg");
    assert_eq!(network["subnets"][0]["securityGroup"]["securityRules"][0]["direction"], "Inbound");
}

/// CAPZ-016, CAPZ-018
#[test]
fn a_subnet_that_exists_keeps_its_way_out_and_its_route_table() {
    let network = network(&[(
        "spec.networkSpec.subnets",
        json!([
            { "role": "control-plane", "name": "cp" },
            { "role": "node", "name": "n", "id": "/subscriptions/1/x", "routeTable": { "name": "rt-1" } }
        ]),
    )]);
    assert!(network["subnets"][1].get("natGateway").is_none());
    assert_eq!(network["subnets"][0]["routeTable"]["name"], "rt-1");
}

/// CAPZ-017
#[test]
fn with_its_gate_a_public_load_balancer_has_a_private_frontend_too() {
    let context = Context { gates: Gates { api_server_ilb: true, ..Gates::default() }, ..Context::default() };
    let cluster = admitted(KIND, base(), &context);
    assert_eq!(
        cluster["spec"]["networkSpec"]["apiServerLB"]["frontendIPs"][1],
        json!({ "name": "my-cluster-public-lb-frontEnd-internal-ip", "privateIP": "10.0.0.100" })
    );
}

#[test]
fn defaults_stay_as_they_are_when_they_are_set_again() {
    for changes in [
        vec![],
        vec![("spec.networkSpec.apiServerLB.type", json!("Internal"))],
        vec![("spec.networkSpec.subnets", json!([{ "role": "cluster" }]))],
        vec![(
            "spec.networkSpec.subnets",
            json!([{ "role": "cluster", "cidrBlocks": ["10.1.0.0/16", "fd00::/64"] }]),
        )],
        vec![("spec.bastionSpec.azureBastion", json!({}))],
        vec![("spec.controlPlaneEnabled", json!(false))],
    ] {
        let once = defaulted(&changes);
        assert_eq!(admitted(KIND, once.clone(), &Context::default()), once, "{changes:?}");
    }
}

#[test]
fn members_that_nobody_knows_stay() {
    let cluster = defaulted(&[
        ("spec.newMember", json!({ "a": 1 })),
        ("spec.networkSpec.subnets", json!([{ "role": "node", "name": "n", "newMember": [1, 2] }])),
    ]);
    assert_eq!(cluster["spec"]["newMember"], json!({ "a": 1 }));
    assert_eq!(cluster["spec"]["networkSpec"]["subnets"][0]["newMember"], json!([1, 2]));
}
