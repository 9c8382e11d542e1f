//! What managed clusters and node pools of Azure Service Operator become when users give them to Cluster API.

use std::collections::BTreeMap;

use capz_api::azure_aso_managed::RawResource;
use capz_planner::raw::{
    Adoptable, Adoption, around, group_kind, handed_over, is_current, lists, refers, unknown_version,
};
use serde_json::{Value, json};

const ADOPT: &str = "sigs.k8s.io/cluster-api-provider-azure-adopt";
const POLICY: &str = "serviceoperator.azure.com/reconcile-policy";
const POLICY_BEFORE: &str = "sigs.k8s.io/cluster-api-provider-azure-pre-pause-reconcile-policy";
const CREDENTIAL: &str = "serviceoperator.azure.com/credential-from";
const OWNED_KINDS: &str = "sigs.k8s.io/cluster-api-provider-azure-owned-aso-kinds";
const OURS: &str = "infrastructure.cluster.x-k8s.io/v1beta1";

fn object(api: &str, kind: &str, annotations: Value, spec: Value) -> Value {
    json!({
        "apiVersion": api, "kind": kind,
        "metadata": { "name": "aks", "namespace": "team", "uid": "u", "resourceVersion": "7", "annotations": annotations },
        "spec": spec,
    })
}

fn cluster(annotations: Value) -> Value {
    let spec = json!({
        "azureName": "aks", "owner": { "name": "rg" }, "originalVersion": "v1api20240901", "location": "eastus",
        "kubernetesVersion": "1.33.2",
        "agentPoolProfiles": [{ "name": "pool0", "count": 1 }],
        "networkProfile": { "networkPlugin": "azure", "$propertyBag": { "x": "1" } },
        "operatorSpec": { "secrets": { "adminCredentials": { "name": "mine", "key": "value" } } },
    });
    object("containerservice.azure.com/v1api20240901storage", "ManagedCluster", annotations, spec)
}

fn group(annotations: Value) -> Value {
    let spec = json!({ "azureName": "rg", "location": "eastus", "originalVersion": "v1api20200601", "tags": { "a": "b" } });
    let mut group = object("resources.azure.com/v1api20200601storage", "ResourceGroup", annotations, spec);
    group["metadata"]["name"] = json!("rg");
    group
}

fn adopted(
    core_version: &str,
    labels: &[(&str, &str)],
    of: impl Fn(&Adoption<'_>) -> Vec<Value>,
) -> Vec<Value> {
    let labels: BTreeMap<String, String> =
        labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    of(&Adoption { core_version, version: "v1beta1", labels: &labels })
}

/// CAPZ-211: a managed cluster becomes three objects of its name and namespace.
#[test]
fn a_managed_cluster_becomes_the_objects_of_a_cluster() {
    let annotations = json!({ ADOPT: "true", CREDENTIAL: "team-red", POLICY: "manage", "kubectl": "x" });
    let objects =
        adopted("v1beta2", &[], |it| it.cluster(&cluster(annotations.clone()), &group(json!({}))).to_vec());
    let reference =
        |kind: &str| json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": kind, "name": "aks" });
    let metadata = json!({ "name": "aks", "namespace": "team" });
    assert_eq!(
        objects[0],
        json!({ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": metadata, "spec": {
            "infrastructureRef": reference("AzureASOManagedCluster"),
            "controlPlaneRef": reference("AzureASOManagedControlPlane") } })
    );
    assert_eq!(
        objects[1],
        json!({ "apiVersion": OURS, "kind": "AzureASOManagedCluster", "metadata": metadata, "spec": { "resources": [{
            "apiVersion": "resources.azure.com/v1api20200601", "kind": "ResourceGroup",
            "metadata": { "name": "rg", "annotations": { ADOPT: "true" } },
            "spec": { "azureName": "rg", "location": "eastus", "tags": { "a": "b" } } }] } })
    );
    assert_eq!(
        objects[2],
        json!({ "apiVersion": OURS, "kind": "AzureASOManagedControlPlane",
            "metadata": { "name": "aks", "namespace": "team",
                "annotations": { OWNED_KINDS: "ManagedCluster.v1api20240901.containerservice.azure.com" } },
            "spec": { "resources": [{
                "apiVersion": "containerservice.azure.com/v1api20240901", "kind": "ManagedCluster",
                "metadata": { "name": "aks", "annotations": { ADOPT: "true", CREDENTIAL: "team-red" } },
                "spec": {
                    "azureName": "aks", "owner": { "name": "rg" }, "location": "eastus", "kubernetesVersion": "1.33.2",
                    "networkProfile": { "networkPlugin": "azure" },
                    "operatorSpec": { "secrets": { "adminCredentials": { "name": "mine", "key": "value" } } },
                } }] } })
    );
    let older =
        adopted("v1beta1", &[("w", "f")], |it| it.cluster(&cluster(json!({})), &group(json!({}))).to_vec());
    let reference = json!({ "apiVersion": OURS, "kind": "AzureASOManagedControlPlane", "name": "aks" });
    assert_eq!(older[0]["spec"]["controlPlaneRef"], reference);
    assert!(older.iter().all(|it| it["metadata"]["labels"] == json!({ "w": "f" })));
}

/// The operator's policies stay, also once the object has been made harmless.
#[test]
fn what_the_operator_must_not_delete_is_declared_so() {
    for (annotations, policy) in [
        (json!({}), Value::Null),
        (json!({ POLICY: "manage" }), Value::Null),
        (json!({ POLICY: "skip" }), json!("skip")),
        (json!({ POLICY: "detach-on-delete" }), json!("detach-on-delete")),
        (json!({ POLICY: "skip", POLICY_BEFORE: "" }), Value::Null),
        (json!({ POLICY: "skip", POLICY_BEFORE: "manage" }), Value::Null),
        (json!({ POLICY: "skip", POLICY_BEFORE: "detach-on-delete" }), json!("detach-on-delete")),
        (json!({ POLICY: "manage", POLICY_BEFORE: "skip" }), Value::Null),
    ] {
        let objects = adopted("v1beta2", &[], |it| {
            it.cluster(&cluster(annotations.clone()), &group(annotations.clone())).to_vec()
        });
        for object in &objects[1..] {
            let declared = &object["spec"]["resources"][0]["metadata"]["annotations"][POLICY];
            assert_eq!(declared, &policy, "{annotations}");
        }
    }
}

/// CAPZ-211: a node pool becomes a MachinePool and what it refers to.
#[test]
fn a_node_pool_becomes_a_machine_pool() {
    let pool = |more: Value| {
        let mut spec = json!({ "azureName": "pool0", "owner": { "name": "aks" }, "mode": "System", "orchestratorVersion": "1.33.2" });
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        object(
            "containerservice.azure.com/v1api20240901storage",
            "ManagedClustersAgentPool",
            json!({ ADOPT: "true" }),
            spec,
        )
    };
    for (more, replicas, annotations) in [
        (json!({ "count": 3 }), json!(3), Value::Null),
        (
            json!({ "count": 3, "enableAutoScaling": true, "minCount": 1, "maxCount": 5 }),
            json!(3),
            json!({ "cluster.x-k8s.io/replicas-managed-by": "aks" }),
        ),
        (json!({}), Value::Null, Value::Null),
    ] {
        let objects = adopted("v1beta2", &[], |it| it.pool(&pool(more.clone()), "my-cluster").to_vec());
        let [owner, pool] = &objects[..] else { panic!() };
        assert_eq!((&owner["kind"], &owner["metadata"]["name"]), (&json!("MachinePool"), &json!("aks")));
        assert_eq!(owner["spec"]["replicas"], replicas);
        assert_eq!(owner["metadata"]["annotations"], annotations);
        assert_eq!(owner["spec"]["clusterName"], "my-cluster");
        assert_eq!(
            owner["spec"]["template"]["spec"],
            json!({ "clusterName": "my-cluster", "bootstrap": { "dataSecretName": "" }, "infrastructureRef": {
                "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AzureASOManagedMachinePool", "name": "aks" } })
        );
        let resource = &pool["spec"]["resources"][0];
        assert_eq!(resource["spec"]["count"], Value::Null);
        assert_eq!(resource["spec"]["orchestratorVersion"], "1.33.2");
        assert_eq!(
            pool["metadata"]["annotations"][OWNED_KINDS],
            "ManagedClustersAgentPool.v1api20240901.containerservice.azure.com"
        );
    }
}

/// CAPZ-211: only what has the annotation is adopted, and what an object of ours owns is already.
#[test]
fn what_is_owned_is_not_offered() {
    let owner =
        |api: &str, kind: &str| json!([{ "apiVersion": api, "kind": kind, "name": "aks", "uid": "x" }]);
    for (annotation, owners, deleted, is_offered) in [
        (json!("true"), json!([]), Value::Null, true),
        (json!("false"), json!([]), Value::Null, false),
        (Value::Null, json!([]), Value::Null, false),
        (json!("true"), owner(OURS, "AzureASOManagedControlPlane"), Value::Null, false),
        (
            json!("true"),
            owner("infrastructure.cluster.x-k8s.io/v1alpha1", "AzureASOManagedControlPlane"),
            Value::Null,
            false,
        ),
        (json!("true"), owner("example.com/v1", "AzureASOManagedControlPlane"), Value::Null, true),
        (json!("true"), owner("resources.azure.com/v1", "ResourceGroup"), Value::Null, true),
        (json!("true"), json!([]), json!("2026-11-29T12:00:00Z"), false),
    ] {
        let metadata = json!({ "annotations": { ADOPT: annotation }, "ownerReferences": owners, "deletionTimestamp": deleted });
        assert_eq!(Adoptable::Cluster.is_offered(&metadata), is_offered, "{metadata}");
    }
    let metadata = json!({ "annotations": { ADOPT: "true" }, "ownerReferences": owner(OURS, "AzureASOManagedMachinePool") });
    assert!(!Adoptable::Pool.is_offered(&metadata));
    let raw = |object: &Value| vec![RawResource(object.as_object().unwrap().clone())];
    let (kind, mut object) = (Adoptable::Cluster.kind().unwrap(), cluster(json!({})));
    assert!(lists(&raw(&object), kind, "aks"));
    assert!(!lists(&raw(&object), kind, "other") && !lists(&raw(&object), group_kind().unwrap(), "aks"));
    object["apiVersion"] = json!("example.com/v1");
    assert!(!lists(&raw(&object), kind, "aks"));
    assert_eq!(around(&object), Some("rg"));
}

/// What a raw resource of that version would be refused for is known before anything is made.
#[test]
fn an_unknown_version_is_not_adopted() {
    for (api, unknown) in [
        ("containerservice.azure.com/v1api20240901storage", None),
        ("containerservice.azure.com/v20250801storage", None),
        ("containerservice.azure.com/v1api19990101storage", Some("containerservice.azure.com/v1api19990101")),
        ("example.com/v1api20240901storage", Some("example.com/v1api20240901")),
        ("", Some("")),
    ] {
        let mut object = cluster(json!({}));
        object["apiVersion"] = json!(api);
        assert_eq!(unknown_version(&object).as_deref(), unknown, "{api}");
    }
}

/// CAPZ-207: a condition that is older than the declaration says nothing of it.
#[test]
fn readiness_of_an_earlier_generation_does_not_count() {
    for (status, observed, generation, expected) in [
        ("True", json!(3), 3, true),
        ("True", json!(4), 3, true),
        ("True", json!(2), 3, false),
        ("True", Value::Null, 3, false),
        ("False", json!(3), 3, false),
    ] {
        let mut object = cluster(json!({}));
        object["metadata"]["generation"] = json!(generation);
        object["status"] = json!({ "conditions": [
            { "type": "Other", "status": "True", "observedGeneration": 9 },
            { "type": "Ready", "status": status, "observedGeneration": observed }] });
        assert_eq!(is_current(&object), expected, "{status} {observed} {generation}");
    }
    assert!(!is_current(&cluster(json!({}))));
}

/// An object of the operator's is harmless before it has an owner, and is changed only where it has to be.
#[test]
fn an_object_is_handed_over_without_harm() {
    let owner = json!({ "apiVersion": OURS, "kind": "AzureASOManagedControlPlane", "name": "aks", "uid": "o", "controller": true });
    let group = json!({ "apiVersion": "resources.azure.com/v1api20200601", "kind": "ResourceGroup", "name": "rg", "uid": "g" });
    let with = |annotations: Value, owners: Value| {
        let mut object = cluster(annotations);
        object["metadata"]["ownerReferences"] = owners;
        object
    };
    let patch = |members: Value| {
        let mut metadata = members;
        metadata["resourceVersion"] = json!("7");
        metadata["managedFields"] = json!([{}]);
        Ok(Some(json!({ "metadata": metadata })))
    };
    let skip = |before: &str| json!({ POLICY: "skip", POLICY_BEFORE: before });
    for (object, owner, expected) in [
        (with(json!({}), json!([group])), None, patch(json!({ "annotations": skip("") }))),
        (with(json!({ POLICY: "manage" }), json!([])), None, patch(json!({ "annotations": skip("manage") }))),
        (with(json!({ POLICY: "skip" }), json!([group])), None, Ok(None)),
        (
            with(json!({ POLICY: "skip" }), json!([group])),
            Some(&owner),
            patch(json!({ "ownerReferences": [group, owner] })),
        ),
        (
            with(json!({}), json!([])),
            Some(&owner),
            patch(json!({ "annotations": skip(""), "ownerReferences": [owner] })),
        ),
        (with(json!({ POLICY: "skip" }), json!([owner])), Some(&owner), Ok(None)),
        (
            with(json!({}), json!([{ "kind": "Composition", "name": "c", "uid": "x", "controller": true }])),
            None,
            Err("Composition c".to_owned()),
        ),
    ] {
        assert_eq!(handed_over(&object, owner), expected, "{object}");
    }
}

/// An existing object of another cluster is not taken for the one that adoption makes.
#[test]
fn existing_objects_belong_together_by_their_references() {
    let objects = adopted("v1beta2", &[], |it| it.cluster(&cluster(json!({})), &group(json!({}))).to_vec());
    assert!(refers(&objects[0], &objects[0]));
    let mut older = objects[0].clone();
    older["spec"]["controlPlaneRef"] =
        json!({ "apiVersion": OURS, "kind": "AzureASOManagedControlPlane", "name": "aks" });
    assert!(refers(&older, &objects[0]));
    for (path, value) in [
        ("/spec/controlPlaneRef/kind", json!("KubeadmControlPlane")),
        ("/spec/infrastructureRef/name", json!("other")),
        ("/spec/infrastructureRef", Value::Null),
    ] {
        let mut other = objects[0].clone();
        *other.pointer_mut(path).unwrap() = value;
        assert!(!refers(&other, &objects[0]), "{path}");
    }
}
