//! Drift is repaired or reported: tags that change later, machines that fail or are stopped, peerings whose remote
//! peering is gone, and resources that others delete at rest.

use std::time::Duration;

use azure_simulator::{Fault, FaultAction, PowerState};
use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::cluster_change::{CLUSTER, change, is_ready, made, network};
use crate::world::{SUBSCRIPTION, World};

const MACHINE: &str = "AzureMachine";
/// The interval at which all objects are reconciled if nothing happens, and a minute for the reconcile.
const LOOKED_AT: Duration = Duration::from_secs(660);

fn vm(world: &World, name: &str) -> ResourceId {
    world.group("my-cluster").resource("Microsoft.Compute", "virtualMachines", name)
}

fn message(world: &World, name: &str, condition: &str) -> String {
    let status = world.get(MACHINE, name).unwrap()["status"].clone();
    let all = status["conditions"].as_array().cloned().unwrap_or_default();
    let found = all.iter().find(|it| it["type"] == condition);
    found.and_then(|it| it["message"].as_str()).unwrap_or_default().to_owned()
}

/// A cluster with a worker and a machine of the control plane.
async fn with_machines(spec: Value) -> World {
    let mut world = World::new();
    world.cluster("my-cluster", spec);
    world.start_with_network().await;
    let control_plane = json!({ "cluster.x-k8s.io/control-plane": "" });
    world.machine("my-cluster", "cp-1", control_plane, json!({}));
    world.machine("my-cluster", "worker", json!({}), json!({}));
    for name in ["cp-1", "worker"] {
        world.until(name, |world| world.is_ready(MACHINE, name)).await;
    }
    world
}

/// D7: tags that are declared later reach all resources of ours, those that are no longer declared are removed
/// everywhere, and tags that others added or changed stay.
#[tokio::test(start_paused = true)]
async fn tags_that_change_later_reach_all_that_is_ours() {
    let spec = json!({ "additionalTags": { "gone": "1", "kept": "1" }, "networkSpec": { "apiServerLB": { "type": "Internal" } } });
    let world = with_machines(spec).await;
    let tagged = |world: &World| -> Vec<(String, Value)> {
        let documents = world.azure.documents();
        let ours = documents.iter().filter(|it| it["tags"][crate::cluster_change::OWNER] == "owned");
        ours.map(|it| (it["id"].as_str().unwrap().to_owned(), it["tags"].clone())).collect()
    };
    let before = tagged(&world);
    let of =
        |kind: &str| before.iter().filter(|(id, _)| id.to_lowercase().contains(&kind.to_lowercase())).count();
    for kind in [
        "virtualNetworks/",
        "networkSecurityGroups/",
        "routeTables/",
        "publicIPAddresses/",
        "natGateways/",
        "loadBalancers/",
        "networkInterfaces/",
        "virtualMachines/",
        "privateDnsZones/",
        "virtualNetworkLinks/",
    ] {
        assert!(of(kind) > 0, "{kind}: {before:#?}");
    }
    for (id, tags) in &before {
        assert_eq!((&tags["gone"], &tags["kept"]), (&json!("1"), &json!("1")), "{id}");
        let id = ResourceId::parse(id).unwrap();
        // One resource has a value that another writer has set.
        let theirs = if id.name() == "worker-nic" { json!("theirs") } else { json!("1") };
        world
            .azure
            .edit(&id, |document| {
                document["tags"]["policy"] = json!("p");
                document["tags"]["gone"] = theirs.clone();
            })
            .unwrap();
    }
    change(&world, json!({ "additionalTags": { "gone": null, "new": "2" } }));
    let reached = |world: &World| {
        tagged(world).iter().all(|(id, tags)| {
            let gone =
                if id.ends_with("worker-nic") { tags["gone"] == "theirs" } else { tags["gone"].is_null() };
            gone && tags["new"] == "2" && tags["kept"] == "1" && tags["policy"] == "p"
        })
    };
    let took = world.until("the tags", reached).await;
    assert!(took < Duration::from_secs(60), "{took:?}");
    assert_eq!(tagged(&world).len(), before.len());
    // Machines are not created again for it, and nothing is written at rest.
    let sequence = world.sequence();
    tokio::time::sleep(LOOKED_AT).await;
    assert_eq!(world.requests_after(sequence).1, 0);
}

/// D5: Azure's reason for a failed machine stays, in the condition and where Cluster API's health checks and
/// autoscalers read it, also after a restart.
#[tokio::test(start_paused = true)]
async fn the_first_cause_of_a_failed_machine_stays() {
    let mut world = World::new();
    world.cluster("my-cluster", json!({}));
    world.start_with_network().await;
    let words = "We do not have sufficient capacity for the requested VM size in this region.";
    let fails = FaultAction::FailOperation { code: "AllocationFailed".into(), message: words.into() };
    world.azure.inject(Fault::new(fails).on_method("PUT").on_resource("worker").times(1));
    world.machine("my-cluster", "worker", json!({}), json!({ "failureDomain": "1" }));
    world.until("reported", |world| message(world, "worker", "VMRunning").contains(words)).await;
    for restart in [false, true] {
        if restart {
            world.kill().await;
            world.start();
        }
        tokio::time::sleep(LOOKED_AT).await;
        let status = world.get(MACHINE, "worker").unwrap()["status"].clone();
        assert_eq!(status["failureReason"], "CreateError", "{status:#}");
        for said in [
            message(&world, "worker", "VMRunning"),
            message(&world, "worker", "Ready"),
            status["failureMessage"].as_str().unwrap().to_owned(),
        ] {
            assert!(said.contains("AllocationFailed") && said.contains(words), "{said}");
        }
        assert_eq!((&status["ready"], &status["vmState"]), (&json!(false), &json!("Failed")));
    }
    world.delete(MACHINE, "worker");
    world.until("gone", |world| world.get(MACHINE, "worker").is_none()).await;
    assert!(world.azure.document(&vm(&world, "worker")).is_none());
}

/// D5: a manager that is killed during the creation of the machine reports the cause as well.
#[tokio::test(start_paused = true)]
async fn the_cause_is_found_by_a_manager_that_did_not_see_it() {
    let mut world = World::with(
        azure_simulator::LatencyProfile::instant().with(
            "CREATE",
            "Microsoft.Compute/virtualMachines",
            Duration::from_secs(60),
        ),
        1,
    );
    world.cluster("my-cluster", json!({}));
    world.start_with_network().await;
    let fails = FaultAction::FailOperation {
        code: "OverconstrainedZonalAllocationRequest".into(),
        message: "no room".into(),
    };
    world.azure.inject(Fault::new(fails).on_method("PUT").on_resource("worker").times(1));
    world.machine("my-cluster", "worker", json!({}), json!({ "failureDomain": "1" }));
    world.until("begun", |world| world.azure.document(&vm(world, "worker")).is_some()).await;
    world.kill().await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    let status = json!({ "status": { "longRunningOperationStates": null } });
    world.kubernetes.merge_status(MACHINE, "default", "worker", &status).unwrap();
    world.start();
    world
        .until("reported", |world| {
            world.get(MACHINE, "worker").unwrap()["status"]["failureReason"] == "CreateError"
        })
        .await;
    let said = message(&world, "worker", "VMRunning");
    assert!(said.contains("OverconstrainedZonalAllocationRequest: no room"), "{said}");
}

/// D5: if Azure lacks capacity for a machine without a chosen zone, each zone of its size is tried once. Another
/// machine whose failure domain is set stays in its zone.
#[tokio::test(start_paused = true)]
async fn a_machine_without_a_zone_is_tried_in_others() {
    let fails = |code: &str| FaultAction::FailOperation { code: code.into(), message: "no room".into() };
    let writes = |world: &World, name: &str| {
        let journal = world.azure.journal();
        let end = format!("/virtualmachines/{name}");
        let is_one = |path: &str| path.to_lowercase().split('?').next().unwrap().ends_with(&end);
        journal.entries.iter().filter(|it| it.method == "PUT" && is_one(&it.path)).count()
    };
    for (failures, refusal, expected) in
        [(1, false, Some("1")), (2, false, Some("2")), (2, true, Some("2")), (9, false, None)]
    {
        let mut world = World::new();
        world.cluster("my-cluster", json!({}));
        world.start_with_network().await;
        let action = if refusal {
            FaultAction::Fail { status: 409, code: "SkuNotAvailable".into(), message: "no room".into() }
        } else {
            fails("AllocationFailed")
        };
        world.azure.inject(Fault::new(action).on_method("PUT").on_resource("worker").times(failures));
        let chosen = fails("OverconstrainedZonalAllocationRequest");
        world.azure.inject(Fault::new(chosen).on_method("PUT").on_resource("chosen").times(1));
        world.machine("my-cluster", "worker", json!({}), json!({}));
        world.machine("my-cluster", "chosen", json!({}), json!({ "failureDomain": "3" }));
        world
            .until("tried again", |world| {
                world.events(MACHINE, "worker").contains(&"NoRoomForMachine".to_owned())
            })
            .await;
        world.kill().await;
        world.start();
        match expected {
            Some(zone) => {
                world.until("ready", |world| world.is_ready(MACHINE, "worker")).await;
                let made = world.azure.document(&vm(&world, "worker")).unwrap();
                assert_eq!(made["zones"], json!([zone]));
                let disk =
                    made["properties"]["storageProfile"]["osDisk"]["managedDisk"]["id"].as_str().unwrap();
                let disk = world.azure.document(&ResourceId::parse(disk).unwrap()).unwrap();
                assert_eq!(disk["zones"], json!([zone]), "the disk is that of this attempt");
                let status = world.get(MACHINE, "worker").unwrap()["status"].clone();
                assert_eq!(status["failureReason"], Value::Null, "{status:#}");
                tokio::time::sleep(LOOKED_AT).await;
                assert!(world.is_ready(MACHINE, "worker"));
                assert_eq!(writes(&world, "worker"), failures as usize + 1);
            }
            None => {
                let failed = |world: &World| {
                    world.get(MACHINE, "worker").unwrap()["status"]["failureReason"] == "CreateError"
                };
                world.until("reported", failed).await;
                assert!(message(&world, "worker", "VMRunning").contains("AllocationFailed: no room"));
                tokio::time::sleep(LOOKED_AT).await;
                assert_eq!(writes(&world, "worker"), 4, "no zone and each of three, once");
            }
        }
        let status = world.get(MACHINE, "chosen").unwrap()["status"].clone();
        assert_eq!(status["failureReason"], "CreateError", "{status:#}");
        assert_eq!(writes(&world, "chosen"), 1);
        world.delete(MACHINE, "worker");
        world.until("gone", |world| world.get(MACHINE, "worker").is_none()).await;
        assert!(
            world.azure.documents().iter().all(|it| !it["id"]
                .as_str()
                .unwrap()
                .to_lowercase()
                .contains("/worker"))
        );
    }
}

/// A foreign disk stays, whatever its name is, when a machine is tried in another zone.
#[tokio::test(start_paused = true)]
async fn a_disk_of_another_hand_outlives_attempts_in_other_zones() {
    let mut world = World::new();
    world.cluster("my-cluster", json!({}));
    world.start_with_network().await;
    let disk = world.group("my-cluster").resource("Microsoft.Compute", "disks", "worker_OSDisk");
    let document = json!({ "location": "eastus", "sku": { "name": "Premium_LRS" },
        "properties": { "creationData": { "createOption": "Empty" }, "diskSizeGB": 8 } });
    world.azure.put(&disk, document).unwrap();
    let refuse = FaultAction::Fail { status: 409, code: "SkuNotAvailable".into(), message: "no room".into() };
    world.azure.inject(Fault::new(refuse).on_method("PUT").on_resource("worker").times(2));
    world.machine("my-cluster", "worker", json!({}), json!({}));
    let tried = |world: &World| world.events(MACHINE, "worker").iter().any(|it| it == "NoRoomForMachine");
    world.until("tried again", tried).await;
    tokio::time::sleep(LOOKED_AT).await;
    assert!(world.azure.document(&disk).is_some());
}

/// D6: a machine that is stopped or deallocated is not ready, and reports why; after its start it is ready again. This
/// takes no call for each machine.
#[tokio::test(start_paused = true)]
async fn a_machine_that_does_not_run_is_not_ready() {
    let world = with_machines(json!({})).await;
    for (power, state) in [(PowerState::Deallocated, "Deallocated"), (PowerState::Stopped, "Stopped")] {
        world.azure.set_power_state(&vm(&world, "worker"), power).unwrap();
        let told = world
            .until("reported", |world| {
                world.condition(MACHINE, "worker", "VMRunning")
                    == Some(("False".into(), format!("VM{state}")))
            })
            .await;
        assert!(told < LOOKED_AT, "{told:?}");
        let status = world.get(MACHINE, "worker").unwrap()["status"].clone();
        assert_eq!((&status["ready"], &status["vmState"]), (&json!(false), &json!(state)));
        let words = message(&world, "worker", "VMRunning");
        assert!(words.contains("az vm start") && words.contains(&state.to_lowercase()), "{words}");
        world
            .until("an event", |world| world.events(MACHINE, "worker").contains(&"VMStopped".to_owned()))
            .await;
        assert!(world.is_ready(MACHINE, "cp-1"));
        let sequence = world.sequence();
        tokio::time::sleep(Duration::from_secs(600)).await;
        let journal = world.azure.journal_after(sequence);
        assert!(journal.entries.iter().all(|entry| entry.method == "GET"));
        world.azure.set_power_state(&vm(&world, "worker"), PowerState::Running).unwrap();
        let again = world.until("ready again", |world| world.is_ready(MACHINE, "worker")).await;
        assert!(again < Duration::from_secs(120), "{again:?}");
        assert_eq!(world.get(MACHINE, "worker").unwrap()["status"]["vmState"], "Succeeded");
        assert_eq!(world.condition(MACHINE, "worker", "VMRunning"), Some(("True".into(), String::new())));
    }
}

/// D10: a peering whose remote peering is gone is created again: until then Azure accepts writes of neither.
#[tokio::test(start_paused = true)]
async fn a_peering_that_lost_its_other_half_is_made_anew() {
    let mut world = World::new();
    let group = ResourceId::group(SUBSCRIPTION, "hub");
    world.azure.put(&group, json!({ "location": "eastus" })).unwrap();
    let hub = group.resource("Microsoft.Network", "virtualNetworks", "hub");
    let space = json!({ "location": "eastus", "properties": { "addressSpace": { "addressPrefixes": ["172.16.0.0/16"] } } });
    world.azure.put(&hub, space).unwrap();
    world.cluster("my-cluster", json!({ "networkSpec": { "vnet": { "peerings": [{ "remoteVnetName": "hub", "resourceGroup": "hub" }] } } }));
    world.start();
    world.until("ready", is_ready).await;
    let own = network(&world, "virtualNetworks", "my-cluster-vnet")
        .child("virtualNetworkPeerings", "my-cluster-vnet-To-hub");
    let theirs = hub.child("virtualNetworkPeerings", "hub-To-my-cluster-vnet");
    let connected = |world: &World| {
        [&own, &theirs].iter().all(|id| {
            world.azure.document(id).is_some_and(|it| it["properties"]["peeringState"] == "Connected")
        })
    };
    assert!(connected(&world));
    for lost in [&own, &theirs] {
        world.azure.delete(lost).unwrap();
        assert!(!connected(&world));
        let took = world.until("connected", connected).await;
        assert!(took < LOOKED_AT, "{took:?}");
    }
    // The cluster's whole network was deleted, and is created again: the peering in the hub is left alone meanwhile.
    assert!(!world.events(CLUSTER, "my-cluster").contains(&"ClusterReconcilerNormalFailed".to_owned()));
}

/// D8: in a foreign network no NAT gateway is created for existing subnets; outbound traffic uses the declared load
/// balancer.
#[tokio::test(start_paused = true)]
async fn no_way_out_is_made_for_subnets_of_others() {
    let mut world = World::new();
    let group = ResourceId::group(SUBSCRIPTION, "corp");
    world.azure.put(&group, json!({ "location": "eastus" })).unwrap();
    let corp = group.resource("Microsoft.Network", "virtualNetworks", "corp");
    let space = json!({ "location": "eastus", "properties": { "addressSpace": { "addressPrefixes": ["10.241.0.0/16"] },
        "subnets": [{ "name": "cps", "properties": { "addressPrefix": "10.241.3.0/26" } },
            { "name": "nodes", "properties": { "addressPrefix": "10.241.4.0/26" } }] } });
    world.azure.put(&corp, space).unwrap();
    let subnet =
        |name: &str, role: &str, range: &str| json!({ "name": name, "role": role, "cidrBlocks": [range] });
    world.cluster("my-cluster", json!({ "networkSpec": {
        "vnet": { "name": "corp", "resourceGroup": "corp", "cidrBlocks": ["10.241.0.0/16"] },
        "nodeOutboundLB": { "frontendIPsCount": 1 },
        "subnets": [subnet("cps", "control-plane", "10.241.3.0/26"), subnet("nodes", "node", "10.241.4.0/26")],
    } }));
    world.start_with_network().await;
    world.machine("my-cluster", "worker", json!({}), json!({}));
    world.until("worker", |world| world.is_ready(MACHINE, "worker")).await;
    assert_eq!(world.azure.documents_of_type("Microsoft.Network/natGateways"), Vec::<Value>::new());
    let addresses = world.azure.documents_of_type("Microsoft.Network/publicIPAddresses");
    assert!(addresses.iter().all(|it| it["properties"]["ipConfiguration"].is_object()), "{addresses:#?}");
    let nic = world.azure.document(&network(&world, "networkInterfaces", "worker-nic")).unwrap();
    let pools = &nic["properties"]["ipConfigurations"][0]["properties"]["loadBalancerBackendAddressPools"];
    assert!(pools[0]["id"].as_str().unwrap().ends_with("my-cluster-outboundBackendPool"), "{nic:#}");
}

/// A foreign network that is peered with the cluster's.
fn hub(world: &World) -> ResourceId {
    let group = ResourceId::group(SUBSCRIPTION, "hub");
    world.azure.put(&group, json!({ "location": "eastus" })).unwrap();
    let hub = group.resource("Microsoft.Network", "virtualNetworks", "hub");
    let space = json!({ "location": "eastus", "properties": { "addressSpace": { "addressPrefixes": ["172.16.0.0/16"] } } });
    world.azure.put(&hub, space).unwrap();
    hub
}

/// A cluster with a machine of the control plane and a worker with a public address, and its network peered with a hub.
async fn with_all_kinds(api_server: &str) -> World {
    let mut world = World::new();
    hub(&world);
    let peering = json!({ "remoteVnetName": "hub", "resourceGroup": "hub",
        "forwardPeeringProperties": { "allowForwardedTraffic": true, "allowVirtualNetworkAccess": true } });
    world.cluster(
        "my-cluster",
        json!({ "additionalTags": { "team": "a" }, "networkSpec": {
        "apiServerLB": { "type": api_server }, "vnet": { "peerings": [peering] } } }),
    );
    world.start_with_network().await;
    let control_plane = json!({ "cluster.x-k8s.io/control-plane": "" });
    for name in ["cp-1", "cp-2"] {
        world.machine("my-cluster", name, control_plane.clone(), json!({}));
        world.until(name, |world| world.is_ready(MACHINE, name)).await;
    }
    world.machine(
        "my-cluster",
        "worker",
        json!({}),
        json!({ "allocatePublicIP": true, "dnsServers": ["10.0.0.4"] }),
    );
    world.until("worker", |world| world.is_ready(MACHINE, "worker")).await;
    world
}

/// Changes by a third party to members of a document: the path, and the value; null removes the member.
type Edits<'a> = &'a [(&'a str, Value)];

/// D1, D10: changes of others to interfaces, public IPs, inbound NAT rules, peerings, zones, links, records, route
/// tables and frontends are reverted within the sync period, and their additions stay. Nothing is written without a
/// difference.
#[tokio::test(start_paused = true)]
async fn what_another_hand_changes_is_repaired_and_what_it_adds_stays() {
    const CONFIGURATION: &str = "/properties/ipConfigurations/0/properties";
    let member = |name: &str| format!("{CONFIGURATION}/{name}");
    let pools = member("loadBalancerBackendAddressPools");
    let rules = member("loadBalancerInboundNatRules");
    let address = member("publicIPAddress");
    let route = json!([{ "name": "pods", "properties": { "addressPrefix": "10.244.0.0/24",
        "nextHopType": "VirtualAppliance", "nextHopIpAddress": "10.1.0.4" } }]);
    let public: &[(&str, &str, Edits<'_>, Edits<'_>)] = &[
        ("networkInterfaces", "cp-1-nic", &[("/properties/enableIPForwarding", json!(true))], &[]),
        (
            "networkInterfaces",
            "cp-1-nic",
            &[(&pools, json!([])), (&rules, json!([]))],
            &[("/tags/theirs", json!("1"))],
        ),
        ("networkInterfaces", "worker-nic", &[(&address, Value::Null)], &[]),
        (
            "networkInterfaces",
            "worker-nic",
            &[("/properties/dnsSettings/dnsServers", json!(["1.1.1.1"]))],
            &[],
        ),
        (
            "loadBalancers",
            "my-cluster-public-lb/inboundNatRules/cp-1",
            &[("/properties/idleTimeoutInMinutes", json!(9)), ("/properties/frontendPort", json!(2300))],
            &[],
        ),
        // Another machine may have this port, too.
        (
            "loadBalancers",
            "my-cluster-public-lb/inboundNatRules/cp-2",
            &[("/properties/frontendPort", json!(2205))],
            &[("/properties/enableTcpReset", json!(true))],
        ),
        (
            "publicIPAddresses",
            "pip-my-cluster-apiserver",
            &[("/properties/dnsSettings", Value::Null)],
            &[("/properties/idleTimeoutInMinutes", json!(7))],
        ),
        (
            "publicIPAddresses",
            "pip-worker",
            &[("/tags/Name", json!("other"))],
            &[("/tags/theirs", json!("1"))],
        ),
        (
            "routeTables",
            "my-cluster-node-routetable",
            &[("/tags/Name", Value::Null)],
            &[("/properties/routes", route)],
        ),
        (
            "virtualNetworks",
            "my-cluster-vnet/virtualNetworkPeerings/my-cluster-vnet-To-hub",
            &[
                ("/properties/allowForwardedTraffic", json!(false)),
                ("/properties/allowVirtualNetworkAccess", json!(false)),
            ],
            &[("/properties/allowGatewayTransit", json!(true))],
        ),
        (
            "loadBalancers",
            "my-cluster-public-lb",
            &[("/properties/outboundRules/0/properties/idleTimeoutInMinutes", json!(30))],
            &[],
        ),
    ];
    let private: &[(&str, &str, Edits<'_>, Edits<'_>)] = &[
        ("privateDnsZones", "my-cluster.capz.io", &[("/tags/team", json!("b"))], &[]),
        (
            "privateDnsZones",
            "my-cluster.capz.io/virtualNetworkLinks/my-cluster-vnet-link",
            &[("/properties/registrationEnabled", json!(true))],
            &[("/tags/theirs", json!("1"))],
        ),
        (
            "privateDnsZones",
            "my-cluster.capz.io/A/apiserver",
            &[("/properties/aRecords", json!([{ "ipv4Address": "10.0.0.9" }]))],
            &[],
        ),
        ("networkInterfaces", "cp-2-nic", &[(&pools, json!([]))], &[]),
    ];
    for (api_server, edits) in [("Public", public), ("Internal", private)] {
        let world = with_all_kinds(api_server).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        let sequence = world.sequence();
        tokio::time::sleep(LOOKED_AT).await;
        assert_eq!(world.requests_after(sequence).1, 0, "nothing differs");
        for (kind, name, changed, added) in edits {
            let mut path = name.split('/');
            let mut id = network(&world, kind, path.next().unwrap());
            while let (Some(kind), Some(name)) = (path.next(), path.next()) {
                id = id.child(kind, name);
            }
            let before = world.azure.document(&id).unwrap();
            let edit = |edits: Edits<'_>| {
                world.azure.edit(&id, |document| {
                    for (pointer, value) in edits {
                        let (parent, member) = pointer.rsplit_once('/').unwrap();
                        document.pointer_mut(parent).unwrap()[member] = value.clone();
                    }
                })
            };
            edit(added).unwrap_or_else(|refusal| panic!("{id}: {refusal:?}"));
            edit(changed).unwrap_or_else(|refusal| panic!("{id}: {refusal:?}"));
            let is_back = |world: &World| {
                let document = world.azure.document(&id).unwrap_or_default();
                changed.iter().all(|(pointer, _)| document.pointer(pointer) == before.pointer(pointer))
            };
            assert!(!is_back(&world), "{id}: {changed:?}");
            let took = world.until(id.as_str(), is_back).await;
            assert!(took < LOOKED_AT, "{id}: {took:?}");
            tokio::time::sleep(Duration::from_secs(30)).await;
            let after = world.azure.document(&id).unwrap();
            for (pointer, value) in *added {
                let kept = after.pointer(pointer);
                let stays = match value.as_array() {
                    Some(items) => kept.and_then(Value::as_array).is_some_and(|kept| {
                        items.iter().all(|item| kept.iter().any(|it| it["name"] == item["name"]))
                    }),
                    None => kept == Some(value),
                };
                assert!(stays, "{id}: {pointer}: {after:#}");
            }
        }
        let sequence = world.sequence();
        tokio::time::sleep(LOOKED_AT).await;
        assert_eq!(world.requests_after(sequence).1, 0, "nothing differs any more");
    }
}

/// D10: owner tags that others remove, one of them or both, are written again. Additions of others stay. The ID of
/// another cluster is a claim of that cluster, and the value `shared` gives the resource up. The network of a user
/// bears no tags of ours, and gets none.
#[tokio::test(start_paused = true)]
async fn tags_that_say_whose_it_is_come_back() {
    const OWNER: &str = crate::cluster_change::OWNER;
    let world = with_all_kinds("Internal").await;
    // A neighbour in a user's network.
    let group = ResourceId::group(SUBSCRIPTION, "corp");
    world.azure.put(&group, json!({ "location": "eastus" })).unwrap();
    let corp = group.resource("Microsoft.Network", "virtualNetworks", "corp");
    let space = json!({ "location": "eastus", "properties": { "addressSpace": { "addressPrefixes": ["10.8.0.0/13"] },
        "subnets": [{ "name": "cps", "properties": { "addressPrefix": "10.8.0.0/16" } },
            { "name": "nodes", "properties": { "addressPrefix": "10.9.0.0/16" } }] } });
    world.azure.put(&corp, space).unwrap();
    let subnet =
        |name: &str, role: &str, range: &str| json!({ "name": name, "role": role, "cidrBlocks": [range] });
    world.cluster("beside", json!({ "networkSpec": { "vnet": { "name": "corp", "resourceGroup": "corp", "cidrBlocks": ["10.8.0.0/13"] },
        "subnets": [subnet("cps", "control-plane", "10.8.0.0/16"), subnet("nodes", "node", "10.9.0.0/16")] } }));
    world.until("beside", |world| world.is_ready(CLUSTER, "beside")).await;
    tokio::time::sleep(LOOKED_AT).await;
    let id_tag = capz_planner::tags::ID;
    let ours: Vec<Value> =
        world.azure.documents().into_iter().filter(|it| it["tags"][OWNER] == "owned").collect();
    for kind in [
        "networkSecurityGroups",
        "natGateways",
        "loadBalancers",
        "routeTables",
        "virtualNetworks",
        "publicIPAddresses",
        "networkInterfaces",
        "virtualMachines",
        "privateDnsZones",
        "virtualNetworkLinks",
    ] {
        assert!(ours.iter().any(|it| it["id"].as_str().unwrap().contains(kind)), "{kind}");
    }
    for gone in [&[OWNER][..], &[id_tag], &[OWNER, id_tag]] {
        for document in &ours {
            let id = ResourceId::parse(document["id"].as_str().unwrap()).unwrap();
            world
                .azure
                .edit(&id, |document| {
                    let tags = document["tags"].as_object_mut().unwrap();
                    tags.retain(|key, _| !gone.contains(&key.as_str()));
                    tags.insert("policy".into(), json!("p"));
                })
                .unwrap();
        }
        let are_back = |world: &World| {
            ours.iter().all(|was| {
                let id = ResourceId::parse(was["id"].as_str().unwrap()).unwrap();
                let is = world.azure.document(&id).unwrap_or_default();
                [OWNER, id_tag].iter().all(|key| is["tags"][key] == was["tags"][key])
                    && is["tags"]["policy"] == "p"
            })
        };
        assert!(!are_back(&world));
        let took = world.until("the tags", are_back).await;
        assert!(took < LOOKED_AT, "{gone:?}: {took:?}");
    }
    let sequence = world.sequence();
    tokio::time::sleep(LOOKED_AT).await;
    assert_eq!(world.requests_after(sequence).1, 0, "nothing differs any more");
    assert_eq!(world.azure.document(&corp).unwrap()["tags"].as_object().map_or(0, |tags| tags.len()), 0);

    let table = network(&world, "routeTables", "my-cluster-node-routetable");
    let tag = |tags: Value| world.azure.edit(&table, |document| document["tags"] = tags.clone()).unwrap();
    tag(json!({ id_tag: "another" }));
    let says = |world: &World| world.get(CLUSTER, "my-cluster").unwrap()["status"]["conditions"].to_string();
    world.until("reported", |world| says(world).contains("belongs to another cluster")).await;
    assert_eq!(world.azure.document(&table).unwrap()["tags"], json!({ id_tag: "another" }));
    tag(json!({ OWNER: "shared", id_tag: ours[0]["tags"][id_tag] }));
    world
        .until("served again", |world| {
            world
                .condition(CLUSTER, "my-cluster", "NetworkInfrastructureReady")
                .is_some_and(|it| it.0 == "True")
        })
        .await;
    tokio::time::sleep(LOOKED_AT).await;
    assert_eq!(world.azure.document(&table).unwrap()["tags"][OWNER], "shared");
}

/// D7, D10, and design rule 6: resources that are deleted at rest are created again within minutes, or the reason is
/// reported to their owner.
#[tokio::test(start_paused = true)]
async fn what_another_hand_deletes_at_rest_comes_back() {
    let world = made(json!({ "networkSpec": { "apiServerLB": { "type": "Internal" } } })).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let sequence = world.sequence();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let (calls, writes) = world.requests_after(sequence);
    assert_eq!(writes, 0);
    assert!(calls <= 6 * 20, "{calls} reads in an hour");
    let ids: Vec<ResourceId> = world
        .azure
        .documents()
        .iter()
        .map(|it| ResourceId::parse(it["id"].as_str().unwrap()).unwrap())
        .filter(|id| id.namespace().is_some())
        .collect();
    assert!(ids.len() > 8, "{ids:?}");
    for id in &ids {
        // A resource that others refer to cannot be deleted.
        if world.azure.delete(id).is_err() {
            continue;
        }
        let took = world.until(id.as_str(), |world| world.azure.document(id).is_some()).await;
        assert!(took < LOOKED_AT, "{id}: {took:?}");
    }
}

/// Design rule 6: a resource that is deleted again and again is created ever more rarely, and the reason is reported to
/// its owner.
#[tokio::test(start_paused = true)]
async fn what_is_deleted_again_and_again_is_reported_and_seldom_made() {
    let world = made(json!({})).await;
    let group = world.group("my-cluster");
    let balancer = world
        .azure
        .documents()
        .iter()
        .filter_map(|it| ResourceId::parse(it["id"].as_str()?).ok())
        .find(|id| {
            id.is_within(&group) && id.resource_type().eq_ignore_ascii_case("Microsoft.Network/loadBalancers")
        })
        .unwrap();
    let sequence = world.sequence();
    for _ in 0..3 * 180 {
        let _refused = world.azure.delete(&balancer);
        tokio::time::sleep(Duration::from_secs(20)).await;
    }
    let journal = world.azure.journal_after(sequence);
    let made = journal
        .entries
        .iter()
        .filter(|it| it.method == "PUT" && it.path.ends_with(balancer.as_str()))
        .count();
    assert!((3..=14).contains(&made), "made {made} times in three hours");
    let words = world.get(CLUSTER, "my-cluster").unwrap()["status"]["conditions"].to_string();
    assert!(words.contains("is gone each time after it was made"), "{words}");
}

/// A machine is not written again: changes of others to it stay, and are reported for as long as they last.
#[tokio::test(start_paused = true)]
async fn a_change_of_a_machine_is_reported_while_it_lasts() {
    let world = with_machines(json!({})).await;
    let reported =
        |world: &World, name: &str| world.events(MACHINE, name).iter().any(|it| it == "ChangedByOthers");
    tokio::time::sleep(LOOKED_AT).await;
    assert!(!reported(&world, "worker") && !reported(&world, "cp-1"));
    let set = |size: &str| {
        let edit = |document: &mut Value| document["properties"]["hardwareProfile"]["vmSize"] = json!(size);
        world.azure.edit(&vm(&world, "worker"), edit).unwrap();
    };
    set("Standard_D4s_v3");
    let sequence = world.sequence();
    tokio::time::sleep(LOOKED_AT).await;
    assert!(reported(&world, "worker") && !reported(&world, "cp-1"));
    assert_eq!(world.requests_after(sequence).1, 0, "a machine is not written again");
}
