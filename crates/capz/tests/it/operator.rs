//! S3, S4: objects of Azure Service Operator, which the established provider has created for a cluster. The operator
//! deletes the Azure resources of its objects; a stand-in here does only that.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use azure_types::ResourceId;
use capz_planner::operator::{KEPT, OperatorKind, kinds};
use kubernetes_simulator::{Fault, Kubernetes};
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::takeover::{OTHERS, load};
use crate::world::{NAMESPACE, SUBSCRIPTION, World, definition};

const FLAVOR: &str = "azure-bastion";
const CLUSTER: &str = "AzureCluster";
pub const POLICY: &str = "serviceoperator.azure.com/reconcile-policy";
pub const POLICY_BEFORE: &str = "sigs.k8s.io/cluster-api-provider-azure-pre-pause-reconcile-policy";
pub const FINALIZER: &str = "serviceoperator.azure.com/finalizer";
pub const BLOCK_MOVE: &str = "clusterctl.cluster.x-k8s.io/block-move";
/// Longer than the sync period.
pub const SYNC: Duration = Duration::from_secs(660);

/// The definition of a kind: users use the first version, and objects are stored in `storage`.
fn defined(kind: &OperatorKind, storage: &str, conversion: Value) -> Value {
    defined_in(kind, &VERSIONS, storage, conversion)
}

/// The same, with these versions.
pub fn defined_in(kind: &OperatorKind, versions: &[&str], storage: &str, conversion: Value) -> Value {
    let version = |name: &str| {
        json!({ "name": name, "served": true, "storage": name == storage, "subresources": { "status": {} },
            "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } } })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": kind.definition() },
        "spec": {
            "group": kind.group, "scope": "Namespaced", "conversion": conversion,
            "names": { "kind": kind.kind, "listKind": format!("{}List", kind.kind), "plural": kind.plural,
                "singular": kind.kind.to_lowercase() },
            "versions": Value::from(versions.iter().map(|name| version(name)).collect::<Vec<_>>()),
        },
    })
}

const OLD: &str = "v1api20201101storage";
pub const NEW: &str = "v1api20240301storage";
const VERSIONS: [&str; 3] = ["v1api20201101", OLD, NEW];

/// Conversion by a Service of the operator's.
fn by_service() -> Value {
    let service = json!({ "namespace": "capz-system", "name": "azureserviceoperator-webhook-service", "path": "/convert" });
    json!({ "strategy": "Webhook", "webhook": { "conversionReviewVersions": ["v1"], "clientConfig": { "service": service } } })
}

fn put_service(world: &World) {
    world.create(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "capz-system" } }));
    world.create(json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": "azureserviceoperator-webhook-service", "namespace": "capz-system" },
        "spec": { "ports": [{ "port": 443, "targetPort": 9443 }], "selector": { "app": "operator" } },
    }));
}

pub fn define(world: &World, storage: &str, conversion: &Value) {
    for kind in kinds() {
        world.create(defined(kind, storage, conversion.clone()));
    }
}

/// Defines the kinds of these objects in the versions in which they are stored.
pub fn define_kinds_of(world: &World, objects: &[Value]) {
    for kind in kinds() {
        let version = objects.iter().filter(|object| object["kind"] == kind.kind).find_map(|object| {
            let (group, version) = object["apiVersion"].as_str()?.split_once('/')?;
            (group == kind.group).then_some(version)
        });
        if let Some(version) = version {
            world.create(defined_in(kind, &[version], version, json!({ "strategy": "None" })));
        }
    }
}

/// The kind of the objects for a resource.
pub fn kind_of(id: &ResourceId) -> Option<&'static OperatorKind> {
    let own = match id.namespace() {
        None => "Microsoft.Resources/resourceGroups".to_owned(),
        Some(_) => id.resource_type(),
    };
    kinds().iter().find(|kind| {
        let resource_type = match operator_resources::find(kind.group, kind.kind) {
            Some(served) => served.resource_type,
            None => "Microsoft.Network/bastionHosts",
        };
        resource_type.eq_ignore_ascii_case(&own)
    })
}

/// An object for a resource, as the operator leaves it, with its owner.
pub fn object(id: &ResourceId, storage: &str, namespace: &str, owner: Option<&Value>) -> Value {
    let kind = kind_of(id).unwrap();
    let mut object = json!({
        "apiVersion": format!("{}/{storage}", kind.group), "kind": kind.kind,
        "metadata": {
            "name": id.name().to_lowercase(), "namespace": namespace, "finalizers": [FINALIZER],
            "annotations": { POLICY: "manage", "serviceoperator.azure.com/resource-id": id.as_str() },
        },
        "spec": { "azureName": id.name() },
        "status": { "id": id.as_str(), "conditions": [{ "type": "Ready", "status": "True", "reason": "Succeeded" }] },
    });
    if let Some(owner) = owner {
        object["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": owner["kind"],
            "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "controller": true,
        }]);
    }
    object
}

/// Creates an object with its status.
pub fn put(world: &World, object: Value) {
    let made = world.create(object.clone());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let (kind, namespace) = (text(&made["kind"]), text(&made["metadata"]["namespace"]));
    let status = json!({ "status": object["status"] });
    world.kubernetes.merge_status(&kind, &namespace, &text(&made["metadata"]["name"]), &status).unwrap();
}

/// The resources in Azure for which the established provider has objects.
fn resources(world: &World) -> Vec<ResourceId> {
    let mut found = BTreeSet::new();
    for document in world.azure.documents() {
        let id = |value: &Value| ResourceId::parse(value["id"].as_str().unwrap()).unwrap();
        let subnets = document["properties"]["subnets"].as_array().cloned().unwrap_or_default();
        for id in std::iter::once(id(&document)).chain(subnets.iter().map(id)) {
            if kind_of(&id).is_some_and(|kind| kinds()[..6].contains(kind))
                && !id.as_str().to_lowercase().contains("/resourcegroups/capz-ci")
            {
                found.insert(id);
            }
        }
    }
    found.into_iter().collect()
}

/// Objects of all kinds, by kind, namespace and name.
pub fn objects(kubernetes: &Kubernetes) -> BTreeMap<String, Value> {
    let text = |object: &Value, member: &str| object["metadata"][member].as_str().unwrap().to_owned();
    let all = kinds().iter().flat_map(|kind| kubernetes.list(kind.kind)).map(|object| object.value().clone());
    all.map(|it| {
        let kind = it["kind"].as_str().unwrap();
        (format!("{kind} {}/{}", text(&it, "namespace"), text(&it, "name")), it)
    })
    .collect()
}

pub fn policies(world: &World, namespace: &str) -> BTreeSet<String> {
    let all = objects(&world.kubernetes);
    let own = all.values().filter(|it| it["metadata"]["namespace"] == namespace);
    own.map(|it| it["metadata"]["annotations"][POLICY].as_str().unwrap_or_default().to_owned()).collect()
}

/// The operator, as far as it can do harm: it deletes the Azure resource of a deleted object, unless the object's
/// policy forbids it.
pub fn operator(world: &World) -> DropGuard {
    let stop = CancellationToken::new();
    let guard = stop.clone().drop_guard();
    let (azure, kubernetes) = (world.azure.clone(), world.kubernetes.clone());
    tokio::spawn(async move {
        while !stop.is_cancelled() {
            for mut object in objects(&kubernetes).into_values() {
                let metadata = object["metadata"].clone();
                let held =
                    metadata["finalizers"].as_array().is_some_and(|all| all.contains(&json!(FINALIZER)));
                if metadata["deletionTimestamp"].is_null() || !held {
                    continue;
                }
                let policy = metadata["annotations"][POLICY].as_str().unwrap_or("manage");
                if !["skip", "detach-on-delete"].contains(&policy) {
                    let id = ResourceId::parse(object["status"]["id"].as_str().unwrap()).unwrap();
                    let _ = azure.delete(&id);
                }
                object["metadata"]["finalizers"].as_array_mut().unwrap().retain(|it| *it != FINALIZER);
                let _ = kubernetes.update(object);
            }
            tokio::time::sleep(Duration::from_millis(700)).await;
        }
    });
    guard
}

/// A cluster as the established provider left it, with objects of the operator; and foreign objects beside them.
fn left(storage: &str, conversion: &Value) -> World {
    let world = World::bare(1, |_| {});
    for kind in OTHERS {
        world.kubernetes.create(definition(kind)).unwrap();
    }
    define(&world, storage, conversion);
    load(&world, FLAVOR);
    let cluster = world.get(CLUSTER, FLAVOR).unwrap();
    for id in resources(&world) {
        let mut object = object(&id, storage, NAMESPACE, Some(&cluster));
        // The operator sets the owner references between them.
        let owner = id.parent().filter(|_| id.namespace().is_some());
        if let Some(owner) = owner.and_then(|owner| {
            world
                .kubernetes
                .get(kind_of(&owner)?.kind, NAMESPACE, &owner.name().to_lowercase())
                .map(|it| it.value().clone())
        }) {
            object["metadata"]["ownerReferences"].as_array_mut().unwrap().push(json!({
                "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"],
            }));
        }
        put(&world, object);
    }
    world
}

/// Objects that are not the cluster's: a user's own, which one of ours owns, and objects of another manager's cluster
/// in another namespace.
fn neighbours(world: &mut World, storage: &str) -> Vec<String> {
    let group = ResourceId::group(SUBSCRIPTION, "theirs");
    world.azure.put(&group, json!({ "location": "eastus" })).unwrap();
    world.create(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "elsewhere" } }));
    let mut cluster = world.get(CLUSTER, FLAVOR).unwrap();
    world.settings.watch_filter = Some("ours".to_owned());
    world.merge(
        CLUSTER,
        FLAVOR,
        json!({ "metadata": { "labels": { "cluster.x-k8s.io/watch-filter": "ours" } } }),
    );
    cluster["metadata"] = json!({ "name": FLAVOR, "namespace": "elsewhere" });
    let cluster = world.create(cluster);
    put(world, object(&group, storage, "elsewhere", Some(cluster.value())));
    let gateway =
        ResourceId::group(SUBSCRIPTION, FLAVOR).resource("Microsoft.Network", "natGateways", "of-a-user");
    world
        .azure
        .put(&gateway, json!({ "location": "eastus", "sku": { "name": "Standard" }, "properties": {} }))
        .unwrap();
    let mut own = object(&gateway, storage, NAMESPACE, None);
    let ours = objects(&world.kubernetes)[&format!("ResourceGroup {NAMESPACE}/{FLAVOR}")].clone();
    own["metadata"]["ownerReferences"] = json!([{ "apiVersion": ours["apiVersion"], "kind": "ResourceGroup",
        "name": FLAVOR, "uid": ours["metadata"]["uid"] }]);
    put(world, own);
    vec![
        format!("NatGateway {NAMESPACE}/of-a-user"),
        format!("ResourceGroup elsewhere/{FLAVOR}").replace(FLAVOR, "theirs"),
    ]
}

/// Refuses these requests from now on.
fn refuse(world: &World, status: u16, verb: &str, resource: &str) {
    world.kubernetes.inject(Fault { count: None, ..Fault::status(status).verb(verb).resource(resource) });
}

pub fn writes(world: &World, loaded: u64) -> Vec<String> {
    let entries = world.azure.journal_after(loaded).entries;
    let writes = entries.iter().filter(|entry| entry.method != "GET");
    writes.map(|entry| format!("{} {}", entry.method, entry.path)).collect()
}

fn is_ready(world: &World) -> bool {
    world.is_ready(CLUSTER, FLAVOR)
}

fn all_gone(world: &World) -> bool {
    policies(world, NAMESPACE).is_empty()
}

fn blocks_move(world: &World) -> bool {
    world.get(CLUSTER, FLAVOR).unwrap()["metadata"]["annotations"][BLOCK_MOVE] == "true"
}

fn pause(world: &World, paused: bool) {
    world.merge("Cluster", FLAVOR, json!({ "spec": { "paused": paused } }));
}

/// S3: whether the operator runs or is gone, its objects for the cluster are deleted, and no resource in Azure is;
/// foreign objects are unchanged.
#[tokio::test(start_paused = true)]
async fn objects_of_the_operator_go_and_azure_stays() {
    for runs in [true, false] {
        let mut world = left(NEW, &json!({ "strategy": "None" }));
        let others = neighbours(&mut world, NEW);
        let before = objects(&world.kubernetes);
        assert!(before.len() > 7, "{:?}", before.keys());
        let documents = world.azure.documents().len();
        let loaded = world.sequence();
        let _operator = runs.then(|| operator(&world));
        world.start();
        world.until("gone", |world| objects(&world.kubernetes).len() == others.len()).await;
        tokio::time::sleep(SYNC).await;
        let after = objects(&world.kubernetes);
        assert!(after.keys().eq(&others), "{:?}", after.keys());
        for name in &others {
            assert_eq!(after[name]["metadata"]["annotations"], before[name]["metadata"]["annotations"]);
            assert_eq!(after[name]["metadata"]["deletionTimestamp"], Value::Null);
        }
        assert_eq!(world.azure.documents().len(), documents);
        let writes = writes(&world, loaded);
        assert_eq!(writes.len(), 1, "the id of the cluster, and nothing else: {writes:?}");
        assert!(is_ready(&world));
        assert!(world.events(CLUSTER, FLAVOR).contains(&"TakenOver".to_owned()));
        assert_eq!(world.get(CLUSTER, FLAVOR).unwrap()["metadata"]["annotations"][KEPT], Value::Null);
    }
}

/// S3: a paused cluster may be moved once the operator does nothing for it, whatever others restore; the established
/// provider finds what it needs to continue.
#[tokio::test(start_paused = true)]
async fn a_move_waits_until_the_operator_does_nothing() {
    let mut world = left(NEW, &json!({ "strategy": "None" }));
    world.merge(CLUSTER, FLAVOR, json!({ "metadata": { "annotations": { BLOCK_MOVE: "true" } } }));
    pause(&world, true);
    refuse(&world, 500, "patch", "bastionhosts");
    world.start();
    world
        .until("reported", |world| world.events(CLUSTER, FLAVOR).contains(&"OperatorObjectsLeft".to_owned()))
        .await;
    tokio::time::sleep(SYNC).await;
    assert!(blocks_move(&world) && policies(&world, NAMESPACE).contains("manage"));
    world.kubernetes.clear_faults();
    world.until("may be moved", |world| !blocks_move(world)).await;
    let is_paused = |world: &World| {
        let all = objects(&world.kubernetes);
        assert!(all.len() > 5);
        all.values().all(|it| {
            let annotations = &it["metadata"]["annotations"];
            annotations[POLICY] == "skip" && annotations[POLICY_BEFORE] == "manage"
        })
    };
    assert!(is_paused(&world), "{:#?}", objects(&world.kubernetes));
    tokio::time::sleep(SYNC).await;
    assert!(is_paused(&world), "they stay while it is paused");

    // Another writer restores it.
    world.merge(
        "VirtualNetwork",
        &format!("{FLAVOR}-vnet"),
        json!({ "metadata": { "annotations": { POLICY: "manage" } } }),
    );
    world.until("level, not edge", is_paused).await;
    // A cluster with an object that cannot be made harmless is not moved, although a move was possible before.
    refuse(&world, 403, "patch", "virtualnetworks");
    world.merge(
        "VirtualNetwork",
        &format!("{FLAVOR}-vnet"),
        json!({ "metadata": { "annotations": { POLICY: "manage" } } }),
    );
    world.until("blocked", blocks_move).await;
    world.kubernetes.clear_faults();
    world.until("may be moved", |world| !blocks_move(world) && is_paused(world)).await;

    pause(&world, false);
    world.until("gone", all_gone).await;
    world.until("works", |world| blocks_move(world) && is_ready(world)).await;
}

/// S3: a resource that the operator was configured not to delete is neither written nor deleted, whatever its tags say,
/// and neither is its group.
#[tokio::test(start_paused = true)]
async fn what_the_operator_was_not_to_delete_outlives_the_cluster() {
    for (policy, before) in [("detach-on-delete", None), ("skip", None), ("skip", Some("detach-on-delete"))] {
        let mut world = left(NEW, &json!({ "strategy": "None" }));
        let gateway = format!("{FLAVOR}-node-natgw-1");
        let id =
            ResourceId::group(SUBSCRIPTION, FLAVOR).resource("Microsoft.Network", "natGateways", &gateway);
        let annotations = json!({ POLICY: policy, POLICY_BEFORE: before });
        world.merge("NatGateway", &gateway, json!({ "metadata": { "annotations": annotations } }));
        let held = world.azure.document(&id).unwrap();
        world.start();
        world.until("gone", all_gone).await;
        let kept = world.get(CLUSTER, FLAVOR).unwrap()["metadata"]["annotations"][KEPT].clone();
        let kept: Value = serde_json::from_str(kept.as_str().unwrap()).unwrap();
        assert_eq!(kept, json!({ id.as_str(): before.unwrap_or(policy) }));
        assert!(world.events(CLUSTER, FLAVOR).contains(&"ResourcesKept".to_owned()));
        world.merge(CLUSTER, FLAVOR, json!({ "spec": { "additionalTags": { "a": "b" } } }));
        tokio::time::sleep(SYNC).await;
        assert!(is_ready(&world));
        assert_eq!(world.azure.document(&id).unwrap(), held, "it is not written");

        end(&world).await;
        assert!(world.azure.document(&id).is_some(), "{policy}");
        let left: Vec<String> = world
            .azure
            .documents()
            .iter()
            .map(|it| it["id"].as_str().unwrap().to_owned())
            .filter(|id| id.contains(&format!("/resourceGroups/{FLAVOR}/")))
            .filter(|id| !id.contains("natGateways") && !id.contains("publicIPAddresses"))
            .collect();
        assert_eq!(left, Vec::<String>::new(), "all else goes, but for what it uses");
        assert!(world.events(CLUSTER, FLAVOR).contains(&"ResourcesLeft".to_owned()));
    }
}

async fn end(world: &World) {
    for kind in ["AzureMachine", "Machine"] {
        for object in world.kubernetes.list(kind) {
            world.delete(kind, object["metadata"]["name"].as_str().unwrap());
        }
        world.until("machines are gone", |world| world.kubernetes.list(kind).is_empty()).await;
    }
    world.delete_cluster(FLAVOR);
    world.delete(CLUSTER, FLAVOR);
    world.until("gone", |world| world.get(CLUSTER, FLAVOR).is_none()).await;
}

/// S3: a cluster that is deleted while the operator still manages its objects is deleted by our manager, and the
/// operator no longer takes part.
#[tokio::test(start_paused = true)]
async fn a_cluster_is_deleted_that_was_not_taken_over_yet() {
    for runs in [true, false] {
        let mut world = left(NEW, &json!({ "strategy": "None" }));
        let _operator = runs.then(|| operator(&world));
        world.start();
        end(&world).await;
        assert!(all_gone(&world), "{:?}", objects(&world.kubernetes).keys());
        assert!(world.azure.document(&ResourceId::group(SUBSCRIPTION, FLAVOR)).is_none());
    }
}

/// S4: the operator is gone and with it the conversion webhook of its objects, which are stored in an older version:
/// they are read without it.
#[tokio::test(start_paused = true)]
async fn objects_go_whose_converter_is_gone() {
    let mut world = left(OLD, &json!({ "strategy": "None" }));
    for kind in kinds() {
        let mut new = defined(kind, NEW, by_service());
        let old = world.kubernetes.get("CustomResourceDefinition", "", &kind.definition()).unwrap();
        new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
        world.kubernetes.update(new).unwrap();
    }
    put_service(&world);
    let loaded = world.sequence();
    let documents = world.azure.documents().len();
    world.start();
    world
        .until("reported", |world| world.events(CLUSTER, FLAVOR).contains(&"OperatorObjectsLeft".to_owned()))
        .await;
    tokio::time::sleep(SYNC).await;
    assert_eq!(writes(&world, loaded), Vec::<String>::new(), "nothing is done before");
    let all = world.kubernetes.list("Event");
    let event = all.iter().find(|it| it["reason"] == "OperatorObjectsLeft").unwrap();
    let note = event["note"].as_str().or(event["message"].as_str()).unwrap();
    assert!(note.contains("or delete that Service"), "{note}");

    world.kubernetes.delete("Service", "capz-system", "azureserviceoperator-webhook-service").unwrap();
    world.until("gone", all_gone).await;
    tokio::time::sleep(SYNC).await;
    assert!(is_ready(&world));
    assert_eq!(world.azure.documents().len(), documents);
    assert_eq!(writes(&world, loaded).len(), 1);
}

/// S4: even if all objects are stored in the newest version, the converter is not used: the garbage collector reads
/// another version.
#[tokio::test(start_paused = true)]
async fn no_definition_with_objects_keeps_a_converter_that_is_gone() {
    let mut world = left(NEW, &by_service());
    world.start();
    world.until("gone", all_gone).await;
    for kind in kinds() {
        let definition = world.kubernetes.get("CustomResourceDefinition", "", &kind.definition()).unwrap();
        let is_used = kinds()[..5].contains(kind);
        let expected = if is_used { "None" } else { "Webhook" };
        assert_eq!(definition["spec"]["conversion"]["strategy"], expected, "{}", kind.kind);
    }
}

/// S4: the established provider's role does not allow a look at the converter's Service. While objects are converted the right is not
/// needed; where they are not, an event names the missing right.
#[tokio::test(start_paused = true)]
async fn who_may_not_see_the_converter_says_so_where_it_matters() {
    let mut world = left(NEW, &json!({ "strategy": "None" }));
    refuse(&world, 403, "get", "services");
    world.start();
    world.until("gone", all_gone).await;
    assert!(!world.events(CLUSTER, FLAVOR).contains(&"OperatorObjectsLeft".to_owned()));

    let mut world = left(NEW, &by_service());
    refuse(&world, 403, "get", "services");
    let loaded = world.sequence();
    world.start();
    world
        .until("an event", |world| world.events(CLUSTER, FLAVOR).contains(&"OperatorObjectsLeft".to_owned()))
        .await;
    let all = world.kubernetes.list("Event");
    let event = all.iter().find(|it| it["reason"] == "OperatorObjectsLeft").unwrap();
    let note = event["note"].as_str().or(event["message"].as_str()).unwrap();
    assert!(note.contains("Service capz-system/azureserviceoperator-webhook-service"), "{note}");
    assert!(note.contains("deploy/capz/parts/40-rights.yaml"), "{note}");
    assert_eq!(writes(&world, loaded), Vec::<String>::new(), "nothing is done before");
    world.kubernetes.clear_faults();
    world.until("gone", all_gone).await;
}

/// S3: neither a cluster nor a machine begins before the operator has stopped acting.
#[tokio::test(start_paused = true)]
async fn nothing_begins_before_the_operator_is_known_to_do_nothing() {
    let mut world = World::new();
    define(&world, NEW, &json!({ "strategy": "None" }));
    refuse(&world, 403, "list", "natgateways");
    world.cluster("my-cluster", json!({}));
    world.provisioned("my-cluster");
    world.machine("my-cluster", "worker", json!({}), json!({}));
    world.start();
    tokio::time::sleep(SYNC).await;
    assert_eq!(world.azure.documents().len(), 0, "{:?}", world.azure.documents());
    assert!(world.events(CLUSTER, "my-cluster").contains(&"OperatorObjectsLeft".to_owned()));
    world.kubernetes.clear_faults();
    world.until("a machine", |world| world.is_ready("AzureMachine", "worker")).await;
}

/// A management cluster that never had the operator is asked for its kinds once in a sync period.
#[tokio::test(start_paused = true)]
async fn without_the_operator_nothing_is_asked_again_and_again() {
    let mut world = World::new();
    for name in ["my-cluster", "another"] {
        world.cluster(name, json!({}));
    }
    world.start();
    world
        .until("ready", |world| ["my-cluster", "another"].iter().all(|it| world.is_ready(CLUSTER, it)))
        .await;
    tokio::time::sleep(3 * SYNC).await;
    let asked = world.kubernetes.requests("list", "customresourcedefinitions");
    assert!((1..=4).contains(&asked), "{asked}");
}
