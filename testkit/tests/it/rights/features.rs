//! Each feature with the role of the base and its own, and without each of its actions.

use std::collections::BTreeSet;
use std::time::Duration;

use azure_types::ResourceId;
use serde_json::{Value, json};
use testkit::{NodePool, ServiceBuilder, StandaloneMachine, World, WorldBuilder, run, service};

use super::stage::{
    Allowed, MINUTE, allow, builder, connect_customer, give_public_address, linked, refused_actions,
    register_nodes, shipped, without,
};

const PROGRAM: &str = "cloud-controller-manager";

/// A feature as its file in `deploy/rights/azure/cloud-controller-manager` has it, and a cluster that uses it.
struct Feature {
    part: &'static str,
    /// The cluster.
    build: fn(WorldBuilder) -> WorldBuilder,
    /// Changes Azure before the controllers start.
    prepare: fn(&World),
    /// Services beside a public and an internal one.
    services: fn(&World) -> Vec<ServiceBuilder>,
    /// A patch of azure.json for a second start.
    second: Option<Value>,
    /// Actions that this cluster does not need, and what needs them.
    elsewhere: &'static [(&'static str, &'static str)],
}

fn feature(part: &'static str) -> Feature {
    Feature { part, build: |it| it, prepare: |_| (), services: |_| Vec::new(), second: None, elsewhere: &[] }
}

fn features() -> [Feature; 10] {
    [
        Feature {
            elsewhere: &[(
                "Microsoft.Resources/subscriptions/providers/read",
                "the program alone reads zones",
            )],
            ..feature("subscription")
        },
        Feature {
            build: |it| it.pool(NodePool::new("public", "public", 1).with_public_addresses()),
            prepare: guard_interfaces,
            elsewhere: &[(
                "Microsoft.Network/locations/operationResults/read",
                "deletions are followed by their status",
            )],
            ..feature("base")
        },
        Feature {
            build: |it| {
                let flexible = NodePool::new("flexible", "flexible", 1).flexible();
                it.pool(flexible).machine(StandaloneMachine::new("alone"))
            },
            prepare: |world| give_public_address(world, "alone"),
            ..feature("virtual-machines")
        },
        Feature {
            build: |it| it.config(&json!({"loadBalancerBackendPoolConfigurationType": "nodeIP"})),
            ..feature("node-ip")
        },
        Feature {
            second: Some(json!({
                "loadBalancerBackendPoolConfigurationType": "nodeIP",
                "enableMigrateToIPBasedBackendPoolAPI": true,
            })),
            ..feature("migration")
        },
        Feature {
            prepare: |world| {
                let body = json!({"location": "westeurope", "sku": {"name": "Standard"},
                    "properties": {"prefixLength": 30}});
                world.azure.put(&world.network("publicIPPrefixes", "prefix"), body).unwrap();
            },
            services: |world| {
                let prefix = world.network("publicIPPrefixes", "prefix");
                vec![service("shop/prefix").tcp(81).annotation("azure-pip-prefix-id", prefix.as_str())]
            },
            ..feature("public-ip-prefixes")
        },
        Feature { prepare: foreign_rule, ..feature("application-security-groups") },
        Feature {
            build: |it| it.subnet("links", &["10.241.0.0/24"]),
            services: |_| vec![linked("shop/linked")],
            ..feature("private-link")
        },
        Feature { build: WorldBuilder::routes, ..feature("routes") },
        Feature {
            build: |it| {
                let cluster = vec!["10.244.0.0/16".parse().unwrap()];
                let ranges = controllers::RangeOptions { cluster, reserved: Vec::new(), masks: None };
                it.machine(StandaloneMachine::new("alone").in_availability_set("set"))
                    .options(controllers::Options { ranges: Some(ranges), ..Default::default() })
            },
            ..feature("pod-ranges-by-tags")
        },
    ]
}

/// Interfaces of the scale set name the security group, and the set has an identity.
fn guard_interfaces(world: &World) {
    let identity =
        world.shape.group().resource("Microsoft.ManagedIdentity", "userAssignedIdentities", "nodes");
    world.azure.put(&identity, json!({"location": "westeurope"})).unwrap();
    let guard = world.network("networkSecurityGroups", &world.shape.security_group);
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
}

/// A rule of another client names an application security group.
fn foreign_rule(world: &World) {
    let asg = world.network("applicationSecurityGroups", "asg");
    world.azure.put(&asg, json!({"location": "westeurope"})).unwrap();
    let guard = world.network("networkSecurityGroups", &world.shape.security_group);
    let rule = json!({"properties": {
        "protocol": "Tcp", "access": "Allow", "direction": "Inbound", "priority": 4000,
        "sourceAddressPrefix": "10.0.0.0/8", "sourcePortRange": "*", "destinationPortRange": "22",
        "destinationApplicationSecurityGroups": [{"id": asg}],
    }});
    world.azure.put(&guard.child("securityRules", "foreign"), rule).unwrap();
}

impl Feature {
    fn world(&self) -> World {
        let world = (self.build)(builder()).build();
        (self.prepare)(&world);
        register_nodes(&world);
        world
    }

    /// Creates and deletes Services, with a pause after each.
    async fn live(&self, world: &mut World, pause: Duration) {
        world.create(service("shop/web"));
        world.create(service("shop/inside").tcp(82).internal());
        for service in (self.services)(world) {
            world.create(service);
        }
        world.start();
        tokio::time::sleep(pause).await;
        if let Some(patch) = &self.second {
            world.stop().await;
            world.patch_config(patch);
            world.start();
            tokio::time::sleep(pause).await;
        }
        connect_customer(world, &world.shape.group());
        for key in keys(world) {
            world.delete(&key);
        }
        tokio::time::sleep(pause).await;
    }

    /// The roles of the feature: those of the subscription and of the base, and its own.
    fn roles(&self, world: &World) -> Vec<Allowed> {
        let group = world.shape.group();
        let subscription = ResourceId::subscription(&world.shape.subscription);
        let beside: &[&str] = match self.part {
            "subscription" | "base" => &[],
            // Azure turns pools into pools of addresses.
            "migration" => &["node-ip", "migration"],
            // The machine of the availability set.
            "pod-ranges-by-tags" => &["virtual-machines", "pod-ranges-by-tags"],
            part => &[part],
        };
        let of_group = ["base"].iter().chain(beside).map(|part| (group.clone(), shipped(PROGRAM, part)));
        std::iter::once((subscription, shipped(PROGRAM, "subscription"))).chain(of_group).collect()
    }
}

/// The Services that are left.
fn keys(world: &World) -> Vec<String> {
    let services = world.kubernetes.list("Service");
    let ours = services.iter().filter(|it| it["metadata"]["namespace"] == "shop");
    ours.map(|it| format!("shop/{}", it["metadata"]["name"].as_str().unwrap())).collect()
}

#[test]
fn each_feature_has_the_roles_that_it_needs() {
    run(async || {
        for feature in features() {
            let (part, mut world) = (feature.part, feature.world());
            allow(&world, &feature.roles(&world));
            feature.live(&mut world, 20 * MINUTE).await;
            assert_eq!(refused_actions(&world), BTreeSet::new(), "{part}");
            for node in world.node_names() {
                let id = world.node(&node)["spec"]["providerID"].clone();
                assert!(id.is_string(), "{part}: {node} has no machine");
            }
            let left = world.azure.documents_of_type("Microsoft.Network/loadBalancers");
            assert_eq!((left, keys(&world)), (Vec::<Value>::new(), Vec::new()), "{part}");
        }
    });
}

#[test]
fn each_action_of_each_role_is_needed() {
    run(async || {
        let mut idle = Vec::new();
        for feature in features() {
            let (part, elsewhere) = (feature.part, feature.elsewhere);
            let all = shipped(PROGRAM, part);
            assert!(elsewhere.iter().all(|(action, _)| all.contains(*action)), "{part}");
            for action in all.iter().filter(|it| elsewhere.iter().all(|(other, _)| other != it)) {
                let mut world = feature.world();
                let subscription = ResourceId::subscription(&world.shape.subscription);
                let at = (part == "subscription").then_some(&subscription);
                allow(&world, &without(&feature.roles(&world), action, at));
                feature.live(&mut world, 6 * MINUTE).await;
                if !refused_actions(&world).contains(&action.to_ascii_lowercase()) {
                    idle.push(format!("{part}: {action}"));
                }
            }
        }
        assert_eq!(idle, Vec::<String>::new(), "nothing was refused without these");
    });
}

/// Every file of the folder is tried above.
#[test]
fn every_role_is_that_of_a_feature() {
    let folder =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/rights/azure").join(PROGRAM);
    let files = std::fs::read_dir(folder).unwrap();
    let parts: BTreeSet<String> =
        files.map(|it| it.unwrap().file_name().to_str().unwrap().replace(".json", "")).collect();
    let tried: BTreeSet<String> =
        features().iter().map(|it| it.part.to_owned()).chain(["all".to_owned()]).collect();
    assert_eq!(parts, tried);
}

/// The role for images has the actions of Azure's own role AcrPull.
#[test]
fn the_role_for_images_is_that_of_azure() {
    const ACR_PULL: &str = "7f951dda-4ed3-4680-a7ca-43fe172d538d";
    run(async || {
        let world = builder().build();
        let subscription = ResourceId::subscription(&world.shape.subscription);
        let role = subscription.resource("Microsoft.Authorization", "roleDefinitions", ACR_PULL);
        let document = world.azure.document(&role).unwrap();
        let actions: BTreeSet<String> =
            serde_json::from_value(document["properties"]["permissions"][0]["actions"].clone()).unwrap();
        assert_eq!(actions, shipped("acr-credential-provider", "pull"));
    });
}
