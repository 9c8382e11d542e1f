//! S3 for managed clusters of both generations: the established provider has created them through objects of Azure
//! Service Operator, which are taken over, and handed back.

use std::collections::BTreeMap;

use azure_types::ResourceId;
use capz_planner::raw::{OWNED_KINDS, RAW_RESOURCES};
use serde_json::{Value, json};

use crate::operator::{
    BLOCK_MOVE, FINALIZER, NEW, POLICY, POLICY_BEFORE, SYNC, define, kind_of, object, objects, operator,
    policies, put, writes,
};
use crate::world::{NAMESPACE, SUBSCRIPTION, World};
use crate::{managed, raw};

const CLUSTERS: &str = "Microsoft.ContainerService/managedClusters";
/// The annotations of both providers begin so.
const ANNOTATIONS: &str = "sigs.k8s.io/cluster-api-provider-azure-";

/// The kinds of one generation.
struct Generation {
    infrastructure: &'static str,
    control_plane: &'static str,
    pool: &'static str,
    /// The names of the pools: of our object, and in Azure.
    pools: [(&'static str, &'static str); 2],
    is_raw: bool,
}

const MANAGED: Generation = Generation {
    infrastructure: "AzureManagedCluster",
    control_plane: "AzureManagedControlPlane",
    pool: "AzureManagedMachinePool",
    pools: [("pool0", "pool0"), ("pool1", "pool1")],
    is_raw: false,
};

const RAW: Generation = Generation {
    infrastructure: "AzureASOManagedCluster",
    control_plane: "AzureASOManagedControlPlane",
    pool: "AzureASOManagedMachinePool",
    pools: [("aks-pool0", "pool0"), ("aks-pool1", "pool1")],
    is_raw: true,
};

impl Generation {
    /// The objects of ours.
    fn own(&self) -> Vec<(&'static str, &'static str)> {
        let pools = self.pools.iter().map(|(name, _)| (self.pool, *name));
        [(self.infrastructure, "aks"), (self.control_plane, "aks")].into_iter().chain(pools).collect()
    }

    /// The object of ours that owns the operator's object for a resource.
    fn owner(&self, id: &ResourceId) -> (&'static str, &'static str) {
        match id.resource_type().as_str() {
            "Microsoft.ContainerService/managedClusters/agentPools" => {
                let (name, _) = self.pools.iter().find(|(_, name)| id.name() == *name).unwrap();
                (self.pool, name)
            }
            _ if id.namespace().is_none() && self.is_raw => (self.infrastructure, "aks"),
            _ => (self.control_plane, "aks"),
        }
    }

    fn is_ready(&self, world: &World) -> bool {
        self.own().iter().all(|(kind, name)| world.is_ready(kind, name))
    }
}

/// The operator's objects for everything in the cluster's group.
fn put_objects(world: &World, generation: &Generation) {
    let mut ids = vec![world.group("aks")];
    for document in world.azure.documents() {
        let id = |value: &Value| ResourceId::parse(value["id"].as_str().unwrap()).unwrap();
        ids.push(id(&document));
        ids.extend(document["properties"]["subnets"].as_array().into_iter().flatten().map(id));
    }
    ids.retain(|id| kind_of(id).is_some() && id.is_within(&world.group("aks")) && id.name() != "of-a-user");
    ids.sort();
    ids.dedup();
    assert!(ids.len() >= 4, "{ids:?}");
    for id in ids {
        let (kind, name) = generation.owner(&id);
        let owner = world.get(kind, name).unwrap();
        let mut object = object(&id, NEW, NAMESPACE, Some(&owner));
        if kind == generation.pool {
            object["metadata"]["name"] = json!(name);
        }
        if id.resource_type() == CLUSTERS {
            object["spec"]["operatorSpec"] =
                json!({ "secrets": { "adminCredentials": { "name": EXPORTED, "key": "value" } } });
        }
        put(world, object);
    }
    // The operator owns what it exports.
    let cluster = world.get("ManagedCluster", "aks").unwrap();
    world.put_secret(EXPORTED, &[("value", "kubeconfig")]);
    let owner = json!([{ "apiVersion": cluster["apiVersion"], "kind": "ManagedCluster", "name": "aks",
        "uid": cluster["metadata"]["uid"] }]);
    world.merge("Secret", EXPORTED, json!({ "metadata": { "ownerReferences": owner, "labels": null } }));
}

const EXPORTED: &str = "aks-aso-kubeconfig";
/// The label by which exports are deleted before the operator writes them again.
const EXPORT: &str = "sigs.k8s.io/cluster-api-provider-azure-export";

/// A cluster as the established provider leaves it.
async fn left(generation: &Generation) -> World {
    let mut world = if generation.is_raw { raw::running().await } else { managed::running().await };
    world.until("ready", |world| generation.is_ready(world)).await;
    world.kill().await;
    for (kind, name) in generation.own() {
        let annotations = world.get(kind, name).unwrap()["metadata"]["annotations"].clone();
        let ours = annotations.as_object().into_iter().flatten().map(|(key, _)| key.clone());
        let ours = ours.filter(|key| key.starts_with(ANNOTATIONS) && key != OWNED_KINDS);
        let gone: BTreeMap<String, Value> = ours.map(|key| (key, Value::Null)).collect();
        world.merge(kind, name, json!({ "metadata": { "annotations": gone } }));
    }
    let mut group = world.azure.document(&world.group("aks")).unwrap();
    if let Some(tags) = group["tags"].as_object_mut() {
        tags.remove(capz_planner::tags::ID);
    }
    world.azure.put(&world.group("aks"), group).unwrap();
    // The established provider writes the certificate authority without a label.
    if !generation.is_raw {
        world.merge("Secret", "aks-ca", json!({ "metadata": { "labels": null } }));
    }
    define(&world, NEW, &json!({ "strategy": "None" }));
    put_objects(&world, generation);
    world
}

/// The warnings about a cluster's objects.
fn warnings(world: &World) -> Vec<String> {
    let events = world.kubernetes.list("Event").into_iter();
    let warnings = events.filter(|event| event.value()["type"] == "Warning");
    warnings.map(|event| format!("{}: {}", event.value()["reason"], event.value()["note"])).collect()
}

/// What the established provider applies again when it comes back: specs, finalizers, and the kinds in use.
fn applied(world: &World, generation: &Generation) -> Vec<Value> {
    let of = |(kind, name): (&str, &str)| {
        let object = world.get(kind, name).unwrap();
        let owned = object["metadata"]["annotations"][OWNED_KINDS].as_str().unwrap_or_default();
        let mut kinds: Vec<&str> = owned.split(';').collect();
        kinds.sort_unstable();
        json!([
            object["spec"],
            object["metadata"]["finalizers"],
            kinds,
            object["metadata"]["ownerReferences"]
        ])
    };
    generation.own().into_iter().map(of).collect()
}

/// Azure's documents, without the tag with the cluster's ID.
fn documents(world: &World) -> Vec<Value> {
    let mut all = world.azure.documents();
    for document in &mut all {
        if let Some(tags) = document.get_mut("tags").and_then(Value::as_object_mut) {
            tags.remove(capz_planner::tags::ID);
        }
    }
    all
}

/// The writes but the one of the cluster's ID, and those that answer with credentials.
fn changes(world: &World, loaded: u64) -> Vec<String> {
    let group = "/resourcegroups/aks?";
    let all = writes(world, loaded).into_iter();
    all.filter(|call| !call.contains("listCluster"))
        .filter(|call| {
            let call = format!("{}?", call.to_lowercase());
            !(call.starts_with("put") || call.starts_with("patch")) || !call.contains(group)
        })
        .collect()
}

async fn is_taken_over(generation: &Generation, runs: bool) {
    let mut world = left(generation).await;
    // A resource of a user's own operator, in the same group.
    let gateway = world.group("aks").resource("Microsoft.Network", "natGateways", "of-a-user");
    let sku = json!({ "location": "eastus", "sku": { "name": "Standard" }, "properties": {} });
    world.azure.put(&gateway, sku).unwrap();
    put(&world, object(&gateway, NEW, NAMESPACE, None));
    let foreign = objects(&world.kubernetes)[&format!("NatGateway {NAMESPACE}/of-a-user")].clone();
    let (before, in_azure, loaded) = (applied(&world, generation), documents(&world), world.sequence());
    let warned = warnings(&world);
    let guard = runs.then(|| operator(&world));
    world.start();
    world.until("gone", |world| objects(&world.kubernetes).len() == 1).await;
    tokio::time::sleep(2 * SYNC).await;
    assert_eq!(objects(&world.kubernetes)[&format!("NatGateway {NAMESPACE}/of-a-user")], foreign);
    assert_eq!(changes(&world, loaded), Vec::<String>::new());
    assert_eq!(documents(&world), in_azure);
    assert!(generation.is_ready(&world));
    assert_eq!(warnings(&world), warned);
    for (kind, name) in generation.own().into_iter().skip(usize::from(!generation.is_raw)) {
        assert!(world.events(kind, name).contains(&"TakenOver".to_owned()), "{kind} {name}");
    }
    // The operator writes no Secret that its new object does not own.
    match generation.is_raw {
        true => assert_eq!(
            world.get("Secret", EXPORTED).unwrap()["metadata"]["labels"],
            json!({ "cluster.x-k8s.io/cluster-name": "aks", EXPORT: "" })
        ),
        false => assert_eq!(world.get("Secret", EXPORTED), None),
    }

    // Handed back: it finds what it applies, and its operator deletes nothing.
    world.kill().await;
    assert_eq!(applied(&world, generation), before);
    put_objects(&world, generation);
    tokio::time::sleep(SYNC).await;
    assert_eq!(documents(&world), in_azure);

    // And back again, to be deleted.
    world.start();
    world.until("gone", |world| objects(&world.kubernetes).len() == 1).await;
    world.azure.delete(&gateway).unwrap();
    let begin = world.sequence();
    world.delete_cluster("aks");
    let mut own = generation.own();
    own.reverse();
    for (kind, name) in own {
        world.delete(kind, name);
        world.until("the object is gone", |world| world.get(kind, name).is_none()).await;
    }
    let deletions: Vec<String> =
        world.calls_after(begin).into_iter().filter(|call| call.starts_with("DELETE")).collect();
    assert_eq!(deletions.len(), 2, "{deletions:#?}");
    assert!(deletions[0].contains("/managedClusters/aks"), "{deletions:#?}");
    assert!(world.azure.document(&world.group("aks")).is_none());
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn a_managed_cluster_is_taken_over_and_handed_back() {
    is_taken_over(&MANAGED, true).await;
}

#[tokio::test(start_paused = true)]
async fn a_managed_cluster_is_taken_over_without_a_running_operator() {
    is_taken_over(&MANAGED, false).await;
}

#[tokio::test(start_paused = true)]
async fn a_raw_cluster_is_taken_over_and_handed_back() {
    is_taken_over(&RAW, true).await;
}

#[tokio::test(start_paused = true)]
async fn a_raw_cluster_is_taken_over_without_a_running_operator() {
    is_taken_over(&RAW, false).await;
}

/// A paused cluster is moved: the operator does nothing for it, and the objects that arrive elsewhere, without those of
/// the operator, know what is theirs.
async fn can_be_moved(generation: &Generation) {
    let mut world = left(generation).await;
    for (kind, name) in generation.own() {
        world.merge(kind, name, json!({ "metadata": { "annotations": { BLOCK_MOVE: "true" } } }));
    }
    world.merge("Cluster", "aks", json!({ "spec": { "paused": true } }));
    let (in_azure, loaded) = (documents(&world), world.sequence());
    world.start();
    let blocks = |world: &World, (kind, name): (&str, &str)| {
        world.get(kind, name).unwrap()["metadata"]["annotations"][BLOCK_MOVE] == "true"
    };
    let movable = |world: &World| generation.own().iter().skip(1).all(|own| !blocks(world, *own));
    world.until("may be moved", movable).await;
    assert_eq!(policies(&world, NAMESPACE).into_iter().collect::<Vec<_>>(), ["skip"]);
    let all = objects(&world.kubernetes);
    assert!(all.values().all(|it| it["metadata"]["annotations"][POLICY_BEFORE] == "manage"), "{all:#?}");
    // The established provider applies the objects of raw owners: it removes a policy that only it manages.
    for object in all.values().filter(|_| generation.is_raw) {
        let entries = object["metadata"]["managedFields"].as_array().unwrap();
        let member = format!("f:{POLICY}");
        let mut managers =
            entries.iter().filter(|it| it["fieldsV1"]["f:metadata"]["f:annotations"].get(&member).is_some());
        let only = managers.next().unwrap();
        assert_eq!((&only["manager"], &only["operation"]), (&json!("capz-manager"), &json!("Apply")));
        assert_eq!(managers.next(), None);
    }
    tokio::time::sleep(SYNC).await;
    assert_eq!(objects(&world.kubernetes).len(), all.len(), "they stay while it is paused");

    world.kill().await;
    for (key, mut object) in objects(&world.kubernetes) {
        let kind = key.split(' ').next().unwrap().to_owned();
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        object["metadata"]["finalizers"].as_array_mut().unwrap().retain(|it| *it != FINALIZER);
        world.kubernetes.update(object).unwrap();
        world.delete(&kind, &name);
    }
    world.merge("Cluster", "aks", json!({ "spec": { "paused": false } }));
    world.start();
    world.until("works", |world| blocks(world, (generation.control_plane, "aks"))).await;
    tokio::time::sleep(SYNC).await;
    assert!(generation.is_ready(&world));
    assert_eq!(changes(&world, loaded), Vec::<String>::new());
    assert_eq!(documents(&world), in_azure);
    for (kind, name) in generation.own().into_iter().filter(|_| generation.is_raw) {
        let annotations = &world.get(kind, name).unwrap()["metadata"]["annotations"];
        assert!(annotations[RAW_RESOURCES].as_str().unwrap().contains(SUBSCRIPTION), "{annotations}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_paused_managed_cluster_can_be_moved() {
    can_be_moved(&MANAGED).await;
}

#[tokio::test(start_paused = true)]
async fn a_paused_raw_cluster_can_be_moved() {
    can_be_moved(&RAW).await;
}

/// Resources that the operator was not to delete outlive our objects, although these do not declare a policy.
#[tokio::test(start_paused = true)]
async fn what_the_operator_was_not_to_delete_outlives_a_raw_cluster() {
    for policy in ["skip", "detach-on-delete"] {
        let mut world = left(&RAW).await;
        world.merge("ManagedCluster", "aks", json!({ "metadata": { "annotations": { POLICY: policy } } }));
        world.merge("ResourceGroup", "aks", json!({ "metadata": { "annotations": { POLICY: policy } } }));
        let loaded = world.sequence();
        world.start();
        world.until("gone", |world| objects(&world.kubernetes).is_empty()).await;
        tokio::time::sleep(SYNC).await;
        assert!(RAW.is_ready(&world));
        assert_eq!(changes(&world, loaded), Vec::<String>::new());
        world.delete_cluster("aks");
        let mut own = RAW.own();
        own.reverse();
        for (kind, name) in own {
            world.delete(kind, name);
            world.until("the object is gone", |world| world.get(kind, name).is_none()).await;
        }
        assert_eq!(changes(&world, loaded), Vec::<String>::new(), "{policy}");
        assert_eq!(world.azure.documents_of_type(CLUSTERS).len(), 1);
    }
}

/// A kind that cannot be listed stops the owners that may have objects of it, and no others.
#[tokio::test(start_paused = true)]
async fn a_kind_that_may_not_be_listed_matters_where_it_is_used() {
    use kubernetes_simulator::Fault;

    let mut world = left(&RAW).await;
    let forbid = |world: &World, resource: &str| {
        let fault = Fault::status(403).verb("list").resource(resource);
        world.kubernetes.inject(Fault { count: None, ..fault });
    };
    forbid(&world, "registries");
    forbid(&world, "managedclusters");
    world.start();
    let reports = |world: &World, kind: &str, name: &str| {
        world.events(kind, name).contains(&"OperatorObjectsLeft".to_owned())
    };
    world.until("reported", |world| reports(world, RAW.control_plane, "aks")).await;
    tokio::time::sleep(SYNC).await;
    assert!(!reports(&world, RAW.infrastructure, "aks") && !reports(&world, RAW.pool, "aks-pool0"));
    assert_eq!(objects(&world.kubernetes).len(), 1);
    world.kubernetes.clear_faults();
    forbid(&world, "registries");
    world.until("gone", |world| objects(&world.kubernetes).is_empty()).await;
}
