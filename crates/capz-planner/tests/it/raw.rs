//! Raw resources of managed clusters: what other objects decide about them.

use capz_api::azure_aso_managed::RawResource;
use capz_planner::raw::{ControlPlane, Pool, ReplicasManager, read_back, replicas_manager};
use serde_json::{Map, Value, json};

fn raw(kind: &str, spec: Value) -> RawResource {
    let object = json!({ "apiVersion": "containerservice.azure.com/v1api20240901", "kind": kind, "metadata": { "name": "aks" }, "spec": spec });
    RawResource(object.as_object().unwrap().clone())
}

fn object(raw: RawResource) -> Map<String, Value> {
    raw.0
}

/// The managed cluster, or the refusal.
fn cluster(control_plane: &ControlPlane<'_>, spec: Value) -> Result<Value, String> {
    let mutated = control_plane.mutated(&[raw("ManagedCluster", spec)]);
    mutated.map(|all| all[0]["spec"].clone()).map_err(|terminal| terminal.message)
}

/// CAPZ-202.
#[test]
fn resources_without_a_managed_cluster_are_refused() {
    let words = ControlPlane::default().mutated(&[raw("Fleet", json!({}))]).unwrap_err().message;
    assert!(words.contains("has no ManagedCluster"), "{words}");
    let words = Pool::default().mutated(&[raw("ManagedCluster", json!({}))]).unwrap_err().message;
    assert!(words.contains("has no ManagedClustersAgentPool"), "{words}");
}

/// CAPZ-203: the version of the control plane, and the ranges of the Cluster.
#[test]
fn what_other_objects_decide_is_not_declared_otherwise() {
    let ranges = ["10.0.0.0/16".to_owned(), "fd00::/108".to_owned()];
    let versioned = |version| ControlPlane { cluster: "c", version, ..ControlPlane::default() };
    let ranged = ControlPlane {
        cluster: "c",
        service_ranges: &ranges,
        pod_ranges: &ranges,
        ..ControlPlane::default()
    };
    for (control_plane, spec, member, expected) in [
        (versioned(Some("v1.30.2")), json!({}), "/kubernetesVersion", Ok(json!("1.30.2"))),
        (
            versioned(Some("v1.30.2")),
            json!({ "kubernetesVersion": "1.30.2" }),
            "/kubernetesVersion",
            Ok(json!("1.30.2")),
        ),
        (
            versioned(Some("v1.30.2")),
            json!({ "kubernetesVersion": "1.29.0" }),
            "",
            Err("spec.kubernetesVersion"),
        ),
        (
            versioned(None),
            json!({ "kubernetesVersion": "1.29.0" }),
            "/kubernetesVersion",
            Ok(json!("1.29.0")),
        ),
        (
            versioned(Some("")),
            json!({ "kubernetesVersion": "1.29.0" }),
            "/kubernetesVersion",
            Ok(json!("1.29.0")),
        ),
        (ranged.clone(), json!({}), "/networkProfile/serviceCidr", Ok(json!("10.0.0.0/16"))),
        (ranged.clone(), json!({}), "/networkProfile/podCidr", Ok(json!("10.0.0.0/16"))),
        (
            ranged,
            json!({ "networkProfile": { "podCidr": "10.9.0.0/16" } }),
            "",
            Err("spec.networkProfile.podCidr"),
        ),
    ] {
        match (cluster(&control_plane, spec.clone()), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found.pointer(member), Some(&expected), "{spec}"),
            (Err(words), Err(path)) => {
                assert!(words.contains("incompatible") && words.contains(path), "{words}");
            }
            (found, _) => panic!("{spec}: {found:?}"),
        }
    }
}

/// CAPZ-204: the pools of a new cluster come from their objects, and from nowhere else.
#[test]
fn the_pools_of_a_cluster_come_from_their_objects() {
    let pool = raw(
        "ManagedClustersAgentPool",
        json!({ "azureName": "pool0", "owner": { "name": "aks" }, "mode": "System", "count": 2 }),
    );
    let with_pools = ControlPlane { cluster: "c", pools: vec![object(pool)], ..ControlPlane::default() };
    let profiles = cluster(&with_pools, json!({})).unwrap()["agentPoolProfiles"].clone();
    assert_eq!(profiles, json!([{ "name": "pool0", "mode": "System", "count": 2 }]));
    assert_eq!(cluster(&ControlPlane::default(), json!({})).unwrap().get("agentPoolProfiles"), None);
    for stated in [json!([]), json!([{ "name": "x" }]), Value::Null] {
        let words = cluster(&with_pools, json!({ "agentPoolProfiles": stated })).unwrap_err();
        assert!(words.contains("agentPoolProfiles") && words.contains("incompatible"), "{words}");
    }
}

/// The kubeconfig is exported unless the user exports one.
#[test]
fn a_kubeconfig_is_exported_unless_the_user_does() {
    let control_plane = ControlPlane { cluster: "c", ..ControlPlane::default() };
    let secrets = |declared: Value| {
        cluster(&control_plane, json!({ "operatorSpec": { "secrets": declared } })).unwrap()["operatorSpec"]["secrets"].clone()
    };
    let own = json!({ "name": "c-kubeconfig", "key": "value" });
    assert_eq!(secrets(json!({})), json!({ "adminCredentials": own }));
    let other = json!({ "name": "mine", "key": "k" });
    for member in ["adminCredentials", "userCredentials"] {
        assert_eq!(secrets(json!({ member: other })), json!({ member: other }));
    }
}

/// CAPZ-208: a private name comes first.
#[test]
fn the_endpoint_is_the_private_name_if_there_is_one() {
    for (names, expected) in [
        (json!({ "fqdn": "a", "privateFQDN": "b" }), Some("b")),
        (json!({ "fqdn": "a", "privateFQDN": "" }), Some("a")),
        (json!({ "privateFQDN": "b" }), Some("b")),
        (json!({}), None),
    ] {
        let endpoint = read_back(&json!({ "properties": names })).endpoint;
        assert_eq!(endpoint.as_ref().and_then(|it| it.host.as_deref()), expected, "{names}");
        assert_eq!(endpoint.and_then(|it| it.port), expected.map(|_| 443));
    }
}

/// CAPZ-209: who decides the number of machines.
#[test]
fn the_autoscaler_has_no_other_beside_it() {
    for (is_on, annotation, expected) in [
        (Some(true), None, Ok(ReplicasManager::Aks)),
        (Some(true), Some("aks"), Ok(ReplicasManager::Stays)),
        (Some(true), Some("foo"), Err(())),
        (Some(false), Some("aks"), Ok(ReplicasManager::Nobody)),
        (None, Some("aks"), Ok(ReplicasManager::Nobody)),
        (None, Some("foo"), Ok(ReplicasManager::Stays)),
        (None, None, Ok(ReplicasManager::Stays)),
    ] {
        let spec = is_on.map_or(json!({}), |on| json!({ "enableAutoScaling": on }));
        let found = replicas_manager(&[raw("ManagedClustersAgentPool", spec)], annotation);
        assert_eq!(found.map_err(drop), expected, "{is_on:?} {annotation:?}");
    }
}

/// The version and the size of a pool are those of its MachinePool.
#[test]
fn the_machine_pool_decides_version_and_size() {
    let declared =
        |decided_elsewhere| Pool { version: Some("v1.30.2"), replicas: Some(3), decided_elsewhere };
    let mutated = |pool: Pool<'_>, spec: Value| {
        let mutated = pool.mutated(&[raw("ManagedClustersAgentPool", spec)]);
        mutated.map(|all| all[0]["spec"].clone()).map_err(|terminal| terminal.message)
    };
    assert_eq!(
        mutated(declared(None), json!({})).unwrap(),
        json!({ "orchestratorVersion": "1.30.2", "count": 3 })
    );
    assert_eq!(mutated(declared(Some(7)), json!({})).unwrap(), json!({ "orchestratorVersion": "1.30.2" }));
    assert_eq!(mutated(Pool::default(), json!({ "count": 1 })).unwrap(), json!({ "count": 1 }));
    for stated in [json!({ "count": 4 }), json!({ "orchestratorVersion": "1.29.0" })] {
        assert!(mutated(declared(None), stated).unwrap_err().contains("incompatible"));
    }
}
