//! Roles in the simulated Azure, and what it refused.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use arm::Credential;
use azure_simulator::typical_latency;
use azure_types::ResourceId;
use serde_json::{Value, json};
use testkit::{World, service};

/// A token with the identity of the controllers; its signature is not checked here.
const TOKEN: &str = "eyJhbGciOiJub25lIn0.eyJvaWQiOiIwYjFlYzcwMC0wMDAwLTQwMDAtODAwMC0wMDAwMDAwMDAwMDQiLCJhcHBpZCI6ImMxMWU0NzAwLTAwMDAtNDAwMC04MDAwLTAwMDAwMDAwMDAwMyJ9.";

pub const MINUTE: Duration = Duration::from_secs(60);

/// Actions that are allowed at a scope.
pub type Allowed = (ResourceId, BTreeSet<String>);

/// The actions of a file in `deploy/rights/azure`.
pub fn shipped(program: &str, part: &str) -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/rights/azure");
    let text = std::fs::read_to_string(folder.join(program).join(format!("{part}.json"))).unwrap();
    let role: Value = serde_json::from_str(&text).unwrap();
    serde_json::from_value(role["Actions"].clone()).unwrap()
}

pub fn credential() -> Credential {
    Credential::fixed(TOKEN)
}

/// A world whose Azure takes as long as Azure, whose controllers have the identity that roles are assigned to.
pub fn builder() -> testkit::WorldBuilder {
    World::builder().nodes(1).latency(typical_latency()).budgets(None).credential(credential())
}

/// Allows the controllers only this.
pub fn allow(world: &World, allowed: &[Allowed]) {
    let subscription = ResourceId::subscription(&world.shape.subscription);
    for (number, (scope, actions)) in allowed.iter().enumerate() {
        let name = format!("cccccccc-0000-4000-8000-{number:012}");
        let role = subscription.resource("Microsoft.Authorization", "roleDefinitions", &name);
        let body = json!({"properties": {"roleName": format!("role {number}"), "assignableScopes": [scope],
            "permissions": [{"actions": actions}]}});
        world.azure.put(&role, body).unwrap();
        world.azure.assign_role(scope, &name, &world.shape.object_id).unwrap();
    }
    world.azure.enforce_authorization(true);
}

/// The same without an action, at one scope or everywhere.
pub fn without(allowed: &[Allowed], action: &str, at: Option<&ResourceId>) -> Vec<Allowed> {
    let mut rest = allowed.to_vec();
    for (scope, actions) in &mut rest {
        if at.is_none_or(|at| at == scope) {
            actions.remove(action);
        }
    }
    rest
}

/// The refused actions in lower case, each with the scope that Azure named.
pub fn refused(world: &World) -> BTreeSet<(String, String)> {
    let journal = world.azure.journal();
    let refused = journal.entries.iter().filter(|entry| entry.status == 403);
    let quoted = |message: &str, after: &str| {
        let rest = message.split(after).nth(1).and_then(|rest| rest.split('\'').next());
        rest.unwrap_or_default().to_ascii_lowercase()
    };
    refused
        .map(|entry| {
            let message = entry.message.as_deref().unwrap_or_default();
            match entry.code.as_deref() {
                Some("LinkedAuthorizationFailed") => {
                    (quoted(message, "perform action(s) '"), quoted(message, "on the linked scope(s) '"))
                }
                _ => (quoted(message, "perform action '"), quoted(message, "over scope '")),
            }
        })
        .collect()
}

/// The refused actions alone.
pub fn refused_actions(world: &World) -> BTreeSet<String> {
    refused(world).into_iter().map(|(action, _)| action).collect()
}

/// A Service with a private link service in the subnet `links`.
pub fn linked(key: &str) -> testkit::ServiceBuilder {
    let linked = service(key).tcp(83).internal().annotation("azure-pls-create", "true");
    linked.annotation("azure-pls-name", "shop").annotation("azure-pls-ip-configuration-subnet", "links")
}

/// Connects a customer to the private link service `shop` of a group, if it is there.
pub fn connect_customer(world: &World, group: &ResourceId) {
    let link = group.resource("Microsoft.Network", "privateLinkServices", "shop");
    if world.azure.document(&link).is_none() {
        return;
    }
    let far = world.network("virtualNetworks", "far");
    let subnets = json!([{"name": "s", "properties": {"addressPrefix": "172.16.0.0/24"}}]);
    let network = json!({"location": "westeurope", "properties": {
        "addressSpace": {"addressPrefixes": ["172.16.0.0/16"]}, "subnets": subnets}});
    world.azure.put(&far, network).unwrap();
    let way = json!({"name": "way", "properties": {"privateLinkServiceId": link}});
    let endpoint = json!({"location": "westeurope", "properties": {
        "subnet": {"id": far.child("subnets", "s")}, "privateLinkServiceConnections": [way]}});
    world.azure.put(&world.network("privateEndpoints", "customer"), endpoint).unwrap();
}

/// Gives the interface of a standalone machine a public address, in the group of the machine.
pub fn give_public_address(world: &World, name: &str) {
    let machine = world.shape.machines.iter().find(|machine| machine.name == name).unwrap();
    let interface = world.shape.interface(machine);
    let address = interface.parent().unwrap().resource("Microsoft.Network", "publicIPAddresses", name);
    let body = json!({"location": "westeurope", "sku": {"name": "Standard"},
        "properties": {"publicIPAllocationMethod": "Static"}});
    world.azure.put(&address, body).unwrap();
    let edit = |document: &mut Value| {
        document["properties"]["ipConfigurations"][0]["properties"]["publicIPAddress"] =
            json!({"id": address});
    };
    world.azure.edit(&interface, edit).unwrap();
}

/// Registers the nodes of all machines as real kubelets do: without a provider ID.
pub fn register_nodes(world: &World) {
    let of_type = |kind: &str| world.azure.documents_of_type(&format!("Microsoft.Compute/{kind}"));
    let machines =
        of_type("virtualMachines").into_iter().chain(of_type("virtualMachineScaleSets/virtualMachines"));
    let mut count = 0;
    for machine in machines {
        let name = machine["properties"]["osProfile"]["computerName"].as_str().unwrap().to_lowercase();
        let taint = json!({"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true",
            "effect": "NoSchedule"});
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
            "spec": {"taints": [taint]}});
        world.kubernetes.create(node).unwrap();
        count += 1;
    }
    assert!(count > 0, "there are machines");
}
