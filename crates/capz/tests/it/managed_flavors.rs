//! The flavors of clusters that Azure manages: the templates of `deploy/capz/templates`, and what Cluster API makes of
//! their classes, become clusters in Azure.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use crate::docs::stage::{Made, apply};
use crate::world::{SUBSCRIPTION, World};

const VERSION: &str = "v1.33.2";
/// The variables that a user sets. All others have defaults.
const VARIABLES: [(&str, &str); 12] = [
    ("ASO_CREDENTIAL_SECRET_NAME", "credential"),
    ("AZURE_CLIENT_ID", "c"),
    ("AZURE_CLIENT_ID_USER_ASSIGNED_IDENTITY", "c"),
    ("AZURE_CLUSTER_IDENTITY_SECRET_NAME", "secret"),
    ("AZURE_LOCATION", "eastus"),
    ("AZURE_NODE_MACHINE_TYPE", "Standard_D2s_v3"),
    ("AZURE_SUBSCRIPTION_ID", SUBSCRIPTION),
    ("AZURE_TENANT_ID", "t"),
    ("CLUSTER_CLASS_NAME", "class"),
    ("CLUSTER_IDENTITY_NAME", "cluster-identity"),
    ("CLUSTER_NAME", "blue"),
    ("KUBERNETES_VERSION", VERSION),
];
const CLUSTERS: &str = "Microsoft.ContainerService/managedClusters";
const POOLS: &str = "Microsoft.ContainerService/managedClusters/agentPools";
const WINDOWS: &str = "Microsoft.ContainerService/managedClusters/maintenanceConfigurations";

/// The objects of a flavor, for the cluster `blue`.
fn objects(flavor: &str) -> Vec<Value> {
    let path = format!("../../deploy/capz/templates/cluster-template-{flavor}.yaml");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let mut text = std::fs::read_to_string(path).unwrap();
    for (name, value) in VARIABLES {
        text = text.replace(&format!("${{{name}}}"), value);
    }
    while let Some((before, rest)) = text.split_once("${") {
        let (variable, after) = rest.split_once('}').unwrap();
        let (_, default) = variable.split_once(":=").unwrap_or_else(|| panic!("{variable} has no default"));
        text = format!("{before}{default}{after}");
    }
    serde_saphyr::from_multiple(&text).unwrap()
}

/// A world with these objects, in which all that can be ready is so.
async fn running(objects: &[Value]) -> World {
    let mut world = World::new();
    world.put_secret("secret", &[("clientSecret", "s")]);
    world.put_secret(
        "credential",
        &[
            ("AZURE_SUBSCRIPTION_ID", SUBSCRIPTION),
            ("AZURE_TENANT_ID", "t"),
            ("AZURE_CLIENT_ID", "c"),
            ("AZURE_CLIENT_SECRET", "s"),
        ],
    );
    let all: Vec<&Value> = objects.iter().collect();
    let mut made = Made::default();
    for object in objects {
        apply(&world, object, &all, capz_api::Gates::default(), &mut made)
            .unwrap_or_else(|words| panic!("{words}: {object:#}"));
    }
    assert_eq!(made.actors.len(), 4, "{:?}", made.actors);
    world.start();
    world
        .until("all objects are ready", |world| {
            made.actors.iter().all(|actor| world.is_ready(&actor.kind, &actor.name))
        })
        .await;
    world
}

/// The names in Azure of the resources of a type.
fn names(world: &World, resource_type: &str) -> BTreeSet<String> {
    let documents = world.azure.documents_of_type(resource_type);
    documents.iter().map(|document| document["name"].as_str().unwrap().to_owned()).collect()
}

/// Checks what all flavors make: a cluster with a System pool and a User pool, in a group of their own.
fn check(world: &World, cluster_name: &str, machines: u64) {
    let [cluster] = &world.azure.documents_of_type(CLUSTERS)[..] else { panic!("there is one cluster") };
    assert_eq!(cluster["name"], cluster_name);
    assert!(
        cluster["id"].as_str().unwrap().to_lowercase().contains("/resourcegroups/blue/"),
        "{}",
        cluster["id"]
    );
    assert_eq!(cluster["properties"]["kubernetesVersion"], VERSION.trim_start_matches('v'));
    assert!(world.secret("blue-kubeconfig", "value").is_some());
    assert_eq!(names(world, POOLS), ["pool0", "pool1"].map(str::to_owned).into());
    for pool in world.azure.documents_of_type(POOLS) {
        let mode = if pool["name"] == "pool0" { "System" } else { "User" };
        assert_eq!(pool["properties"]["mode"], mode);
        assert_eq!(pool["properties"]["count"], machines);
        assert_eq!(pool["properties"]["vmSize"], "Standard_D2s_v3");
    }
}

#[tokio::test(start_paused = true)]
async fn the_flavor_aks_becomes_ready() {
    let world = running(&objects("aks")).await;
    check(&world, "blue", 2);
    let cluster = world.azure.documents_of_type(CLUSTERS).remove(0);
    assert_eq!(cluster["properties"]["oidcIssuerProfile"]["enabled"], true);
    assert_eq!(cluster["properties"]["networkProfile"]["serviceCidr"], "192.168.0.0/16");
    assert!(world.client_secrets.lock().is_empty());
}

/// The older name of the flavor, with the variables of then: a service principal's.
#[tokio::test(start_paused = true)]
async fn the_flavor_aks_multi_tenancy_becomes_ready() {
    let world = running(&objects("aks-multi-tenancy")).await;
    check(&world, "blue", 2);
    assert!(world.client_secrets.lock().iter().all(|secret| secret == "s"));
    assert!(!world.client_secrets.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_flavor_aks_aso_becomes_ready() {
    let world = running(&objects("aks-aso")).await;
    check(&world, "blue", 2);
    assert!(names(&world, WINDOWS).is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_flavor_aks_aso_maintenance_becomes_ready() {
    let world = running(&objects("aks-aso-maintenance")).await;
    check(&world, "blue", 2);
    let windows = ["default", "aksManagedAutoUpgradeSchedule", "aksManagedNodeOSUpgradeSchedule"];
    assert_eq!(names(&world, WINDOWS), windows.map(str::to_owned).into());
    for window in world.azure.documents_of_type(WINDOWS) {
        let of_upgrades = &window["properties"]["maintenanceWindow"];
        match window["name"].as_str().unwrap() {
            "default" => assert_eq!(
                window["properties"]["timeInWeek"],
                json!([{ "day": "Sunday", "hourSlots": [0, 1, 2, 3] }])
            ),
            name => {
                assert_eq!(of_upgrades["schedule"]["weekly"]["dayOfWeek"], "Sunday");
                assert_eq!(of_upgrades["durationHours"], 4);
                let excluded = of_upgrades["notAllowedDates"].as_array().map_or(0, Vec::len);
                assert_eq!(excluded, usize::from(name == "aksManagedAutoUpgradeSchedule"), "{of_upgrades}");
            }
        }
    }
}

/// The names that Cluster API's topology controller generates end in random letters.
const RANDOM: &str = "x7k2p";

/// The objects that Cluster API's topology controller makes of a class for a Cluster.
fn of_class(class_flavor: &str, topology_flavor: &str) -> Vec<Value> {
    let class_objects = objects(class_flavor);
    let [declared] = &objects(topology_flavor)[..] else { panic!("{topology_flavor} is one Cluster") };
    let named = |kind: &Value, name: &Value| {
        class_objects.iter().find(|it| it["kind"] == *kind && it["metadata"]["name"] == *name).unwrap()
    };
    let topology = &declared["spec"]["topology"];
    let class = named(&json!("ClusterClass"), &topology["class"]);
    let name = declared["metadata"]["name"].as_str().unwrap();
    let filled_in = |template: &str| {
        let text = template
            .replace("{{ .builtin.cluster.name }}", name)
            .replace("{{ .builtin.controlPlane.version }}", topology["version"].as_str().unwrap());
        assert!(!text.contains("{{"), "{text}");
        serde_saphyr::from_str::<Value>(&text).unwrap()
    };
    let spec_of = |reference: &Value, is_matched: &dyn Fn(&Value) -> bool| {
        let mut template = named(&reference["kind"], &reference["name"]).clone();
        let patches = class["spec"]["patches"].as_array().into_iter().flatten();
        for definition in patches.flat_map(|patch| patch["definitions"].as_array().unwrap()) {
            let selector = &definition["selector"];
            if selector["kind"] != reference["kind"] || !is_matched(&selector["matchResources"]) {
                continue;
            }
            for patch in definition["jsonPatches"].as_array().unwrap() {
                assert_eq!(patch["op"], "replace");
                let place = template.pointer_mut(patch["path"].as_str().unwrap()).unwrap();
                *place = filled_in(patch["valueFrom"]["template"].as_str().unwrap());
            }
        }
        (
            reference["kind"].as_str().unwrap().trim_end_matches("Template").to_owned(),
            template["spec"]["template"]["spec"].clone(),
        )
    };
    let object = |kind: &str, name: &str, spec: Value| {
        json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": kind,
            "metadata": { "name": name, "namespace": "default" }, "spec": spec })
    };
    let reference = |object: &Value| json!({ "apiVersion": object["apiVersion"], "kind": object["kind"], "name": object["metadata"]["name"] });

    let generated = format!("{name}-{RANDOM}");
    let infrastructure = &class["spec"]["infrastructure"]["ref"];
    let (kind, spec) = spec_of(infrastructure, &|matched| matched["infrastructureCluster"] == true);
    let infrastructure = object(&kind, &generated, spec);
    let (kind, mut spec) =
        spec_of(&class["spec"]["controlPlane"]["ref"], &|matched| matched["controlPlane"] == true);
    spec["version"] = topology["version"].clone();
    let control_plane = object(&kind, &generated, spec);
    let mut cluster = declared.clone();
    cluster["spec"]["infrastructureRef"] = reference(&infrastructure);
    cluster["spec"]["controlPlaneRef"] = reference(&control_plane);
    let mut made = vec![cluster, infrastructure, control_plane];
    for pool in topology["workers"]["machinePools"].as_array().unwrap() {
        let classes = class["spec"]["workers"]["machinePools"].as_array().unwrap();
        let of_class = classes.iter().find(|it| it["class"] == pool["class"]).unwrap();
        let (kind, spec) = spec_of(&of_class["template"]["infrastructure"]["ref"], &|matched| {
            matched["machinePoolClass"]["names"]
                .as_array()
                .is_some_and(|names| names.contains(&pool["class"]))
        });
        let pool_name = format!("{name}-{}-{RANDOM}", pool["name"].as_str().unwrap());
        let infrastructure = object(&kind, &pool_name, spec);
        made.push(json!({ "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachinePool",
            "metadata": { "name": pool_name, "namespace": "default" },
            "spec": { "clusterName": name, "replicas": pool["replicas"], "template": { "spec": {
                "clusterName": name, "version": topology["version"], "infrastructureRef": reference(&infrastructure) } } } }));
        made.push(infrastructure);
    }
    // The class itself, with its templates, and the identity.
    made.extend(
        class_objects
            .into_iter()
            .filter(|it| it["apiVersion"].as_str().unwrap().starts_with("infrastructure")),
    );
    made
}

/// A managed cluster is called like its control plane, whose name Cluster API generates; of the operator's objects, the
/// class decides the names.
#[tokio::test(start_paused = true)]
async fn clusters_of_classes_become_ready() {
    let world = running(&of_class("aks-clusterclass", "aks-topology")).await;
    check(&world, &format!("blue-{RANDOM}"), 1);
    let world = running(&of_class("aks-aso-clusterclass", "aks-aso-topology")).await;
    check(&world, "blue", 1);
}
