//! `docs/rights.md` is correct: with the role on that page the controllers can do everything, and without any of its
//! actions Azure refuses something.

use std::collections::BTreeSet;
use std::time::Duration;

use arm::Credential;
use azure_simulator::typical_latency;
use azure_types::ResourceId;
use serde_json::{Value, json};
use testkit::{NodePool, StandaloneMachine, World, run, service};

const PAGE: &str = include_str!("../../../docs/rights.md");

/// A token with the identity of the controllers; its signature is not checked here.
const TOKEN: &str = "eyJhbGciOiJub25lIn0.eyJvaWQiOiIwYjFlYzcwMC0wMDAwLTQwMDAtODAwMC0wMDAwMDAwMDAwMDQiLCJhcHBpZCI6ImMxMWU0NzAwLTAwMDAtNDAwMC04MDAwLTAwMDAwMDAwMDAwMyJ9.";
const ROLE: &str = "cccccccc-0000-4000-8000-000000000001";

/// Actions that these worlds do not need, and what needs them.
const ELSEWHERE: [(&str, &str); 4] = [
    ("Microsoft.Resources/subscriptions/providers/read", "the program alone reads zones"),
    (
        "Microsoft.Compute/availabilitySets/read",
        "ranges of pods by tags of sets: --cidr-allocator-type=CloudAllocator",
    ),
    ("Microsoft.Network/locations/operationResults/read", "deletions are followed by their status"),
    (
        "Microsoft.Network/loadBalancers/migrateToIpBased/action",
        "enableMigrateToIPBasedBackendPoolAPI, in a second start",
    ),
];

/// The actions of the role on the page.
fn documented() -> Vec<String> {
    let blocks = PAGE.split("```json").skip(1).filter_map(|rest| rest.split("```").next());
    let role = blocks
        .map(|block| serde_json::from_str::<Value>(block).unwrap())
        .find(|role| role["Actions"].is_array());
    let actions = role.expect("the page shows a role")["Actions"].clone();
    serde_json::from_value(actions).unwrap()
}

/// Allows the controllers only these actions.
fn allow(world: &World, actions: &[String]) {
    let subscription = ResourceId::subscription(&world.shape.subscription);
    let role = subscription.resource("Microsoft.Authorization", "roleDefinitions", ROLE);
    let body = json!({"properties": {"roleName": "Cloud controller manager", "assignableScopes": [subscription],
        "permissions": [{"actions": actions}]}});
    world.azure.put(&role, body).unwrap();
    world.azure.assign_role(&subscription, ROLE, &world.shape.object_id).unwrap();
    world.azure.enforce_authorization(true);
}

/// A cluster that covers all features.
fn cluster(config: &Value) -> World {
    let world = World::builder()
        .nodes(1)
        .pool(NodePool::new("flexible", "flexible", 1).flexible())
        .pool(NodePool::new("public", "public", 1).with_public_addresses())
        .machine(StandaloneMachine::new("alone"))
        .subnet("links", &["10.241.0.0/24"])
        .routes()
        .config(config)
        .latency(typical_latency())
        .budgets(None)
        .credential(Credential::fixed(TOKEN))
        .build();
    let location = "westeurope";
    let identity =
        world.shape.group().resource("Microsoft.ManagedIdentity", "userAssignedIdentities", "nodes");
    world.azure.put(&identity, json!({"location": location})).unwrap();
    let asg = world.network("applicationSecurityGroups", "asg");
    world.azure.put(&asg, json!({"location": location})).unwrap();
    let prefix = world.network("publicIPPrefixes", "prefix");
    let body = json!({"location": location, "sku": {"name": "Standard"}, "properties": {"prefixLength": 30}});
    world.azure.put(&prefix, body).unwrap();
    let guard = world.network("networkSecurityGroups", &world.shape.security_group);
    let rule = json!({"properties": {
        "protocol": "Tcp", "access": "Allow", "direction": "Inbound", "priority": 4000,
        "sourceAddressPrefix": "10.0.0.0/8", "sourcePortRange": "*", "destinationPortRange": "22",
        "destinationApplicationSecurityGroups": [{"id": asg}],
    }});
    world.azure.put(&guard.child("securityRules", "foreign"), rule).unwrap();
    world
        .azure
        .edit(&world.shape.scale_set("workers"), |set| {
            set["identity"] =
                json!({"type": "UserAssigned", "userAssignedIdentities": {(identity.as_str()): {}}});
            let profile = &mut set["properties"]["virtualMachineProfile"]["networkProfile"];
            profile["networkInterfaceConfigurations"][0]["properties"]["networkSecurityGroup"] =
                json!({"id": guard});
        })
        .unwrap();
    world
}

/// Creates and deletes Services of all kinds.
async fn live(world: &mut World, pause: Duration) {
    world.start();
    let pause = || tokio::time::sleep(pause);
    let prefix = world.network("publicIPPrefixes", "prefix");
    world.create(service("shop/web"));
    world.create(service("shop/prefix").tcp(81).annotation("azure-pip-prefix-id", prefix.as_str()));
    world.create(service("shop/inside").tcp(82).internal());
    let linked = service("shop/linked").tcp(83).internal().annotation("azure-pls-create", "true");
    let linked = linked.annotation("azure-pls-name", "shop");
    world.create(linked.annotation("azure-pls-ip-configuration-subnet", "links"));
    pause().await;
    let link = world.network("privateLinkServices", "shop");
    if world.azure.document(&link).is_some() {
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
    for key in KEYS {
        world.delete(key);
    }
    pause().await;
}

const MINUTE: Duration = Duration::from_secs(60);
const KEYS: [&str; 4] = ["shop/web", "shop/prefix", "shop/inside", "shop/linked"];

/// The actions that Azure refused.
fn refused(world: &World) -> BTreeSet<String> {
    let journal = world.azure.journal();
    let refused = journal.entries.iter().filter(|entry| entry.status == 403);
    let quoted = |message: &str, after: &str| {
        message
            .split(after)
            .nth(1)
            .and_then(|rest| rest.split('\'').next())
            .unwrap_or_default()
            .to_ascii_lowercase()
    };
    refused
        .map(|entry| {
            let message = entry.message.as_deref().unwrap_or_default();
            match entry.code.as_deref() {
                Some("LinkedAuthorizationFailed") => quoted(message, "perform action(s) '"),
                _ => quoted(message, "perform action '"),
            }
        })
        .collect()
}

fn configurations() -> [Value; 2] {
    [json!({}), json!({"loadBalancerBackendPoolConfigurationType": "nodeIP"})]
}

#[test]
fn the_documented_role_is_enough() {
    run(async || {
        for config in configurations() {
            let mut world = cluster(&config);
            allow(&world, &documented());
            live(&mut world, 20 * MINUTE).await;
            assert_eq!(refused(&world), BTreeSet::new(), "{config}");
            let left = world.azure.documents_of_type("Microsoft.Network/loadBalancers");
            assert_eq!(left, Vec::<Value>::new(), "{config}");
            for key in KEYS {
                assert_eq!(world.service(key), Value::Null, "{key} {config}");
            }
        }
    });
}

#[test]
fn each_action_of_the_documented_role_is_needed() {
    run(async || {
        let all = documented();
        let mut idle = Vec::new();
        for action in all.iter().filter(|action| ELSEWHERE.iter().all(|(other, _)| other != action)) {
            let rest: Vec<String> = all.iter().filter(|other| *other != action).cloned().collect();
            let mut seen = BTreeSet::new();
            for config in configurations() {
                let mut world = cluster(&config);
                allow(&world, &rest);
                live(&mut world, 6 * MINUTE).await;
                seen.extend(refused(&world));
                if seen.contains(&action.to_ascii_lowercase()) {
                    break;
                }
            }
            if !seen.contains(&action.to_ascii_lowercase()) {
                idle.push(action);
            }
        }
        assert_eq!(idle, Vec::<&String>::new(), "nothing was refused without these");
        assert!(ELSEWHERE.iter().all(|(action, _)| all.iter().any(|known| known == action)));
    });
}
