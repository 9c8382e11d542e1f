//! The world of a page: the resources in Azure that the examples assume, and Cluster API's core, as far as examples
//! need it.

use azure_types::ResourceId;
use serde_json::{Map, Value, json};

use super::managed;
use super::page::Place;
use crate::world::{Fixed, NAMESPACE, SSH_KEY, SUBSCRIPTION, World};

pub const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";
pub const DEFAULT_CLUSTER: &str = "my-cluster";
/// Cluster-scoped kinds.
const CLUSTER_SCOPED: [&str; 4] = ["ClusterRole", "Namespace", "RuntimeClass", "StorageClass"];
const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
pub const VERSION: &str = "v1.33.1";

/// The resources in Azure that the examples assume, according to `docs/clusters/README.md`.
pub fn azure(world: &World, zones: bool) {
    let put = |id: &ResourceId, document: Value| {
        world.azure.put(id, document).unwrap_or_else(|refusal| panic!("{id}: {refusal:?}"));
    };
    let subnet =
        |name: &str, prefix: &str| json!({ "name": name, "properties": { "addressPrefix": prefix } });
    let network = |range: &str, subnets: Vec<Value>| {
        json!({ "location": "eastus", "properties": {
            "addressSpace": { "addressPrefixes": [range] }, "subnets": subnets } })
    };
    let group = |name: &str| {
        let id = ResourceId::group(SUBSCRIPTION, name);
        put(&id, json!({ "location": "eastus" }));
        id
    };
    let shared = group("shared");
    let vnet = |name: &str| shared.resource("Microsoft.Network", "virtualNetworks", name);
    put(&vnet("hub"), network("172.16.0.0/16", vec![subnet("default", "172.16.0.0/24")]));
    let subnets = vec![subnet("control-planes", "10.0.0.0/16"), subnet("workers", "10.1.0.0/16")];
    put(&vnet("custom"), network("10.0.0.0/8", subnets));
    let id = shared.resource("Microsoft.Network", "privateDnsZones", "corp.example.com");
    put(&id, json!({ "location": "global" }));
    let id = shared.resource("Microsoft.ManagedIdentity", "userAssignedIdentities", "nodes");
    put(&id, json!({ "location": "eastus" }));
    let id = shared.resource("Microsoft.Storage", "storageAccounts", "sharedfiles");
    put(&id, json!({ "location": "eastus", "kind": "StorageV2", "sku": { "name": "Standard_LRS" } }));
    let gallery = shared.resource("Microsoft.Compute", "galleries", "ours");
    put(&gallery, json!({ "location": "eastus" }));
    let image = gallery.child("images", "ubuntu");
    let identifier = json!({ "publisher": "contoso", "offer": "linux", "sku": "pro" });
    put(
        &image,
        json!({ "location": "eastus", "properties": { "osType": "Linux", "osState": "Generalized", "identifier": identifier } }),
    );
    put(
        &image.child("versions", "1.2.3"),
        json!({ "location": "eastus", "properties": { "storageProfile": { "osDiskImage": {} } } }),
    );
    let id = shared.resource("Microsoft.Compute", "images", "golden");
    put(&id, json!({ "location": "eastus", "properties": {} }));
    let id = group("addresses").resource("Microsoft.Network", "publicIPAddresses", "my-api");
    let mut document = json!({ "location": "eastus", "sku": { "name": "Standard" }, "properties": {
        "publicIPAllocationMethod": "Static", "dnsSettings": { "domainNameLabel": "my-api" } } });
    if zones {
        document["zones"] = json!(["1", "2", "3"]);
    }
    put(&id, document);
}

/// The result of applying an object.
#[derive(Debug, Default)]
pub struct Made {
    /// The objects that are to become ready.
    pub actors: Vec<Place>,
}

/// Applies an object as the API server and Cluster API's core do. `all` are the objects of the section.
///
/// # Errors
/// It is refused with this message.
pub fn apply(
    world: &World,
    object: &Value,
    all: &[&Value],
    gates: capz_api::Gates,
    made: &mut Made,
) -> Result<(), String> {
    let mut object = object.clone();
    let kind = object["kind"].as_str().unwrap().to_owned();
    let group = object["apiVersion"].as_str().unwrap().split('/').next().unwrap().to_owned();
    if !CLUSTER_SCOPED.contains(&kind.as_str()) {
        object["metadata"].as_object_mut().unwrap().entry("namespace").or_insert(json!(NAMESPACE));
        let name = &object["metadata"]["namespace"];
        once(world, json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } }));
    }
    let is_it = |old: &Value| {
        group == INFRASTRUCTURE && old["metadata"]["namespace"] == object["metadata"]["namespace"]
    };
    if let Some(old) = world.get(&kind, &text(&object["metadata"]["name"])).filter(is_it) {
        return change(world, &kind, object, &old, gates);
    }
    match kind.as_str() {
        "AzureCluster" => {
            let mut place = cluster(world, &mut object, all);
            admit(world, &kind, object, gates)?;
            made.actors.append(&mut place);
        }
        "AzureMachineTemplate" => {
            let owner = machine_owner(&object, all);
            label(&mut object, &owner.cluster);
            own(&mut object, &world.get("Cluster", &owner.cluster).ok_or("no such Cluster")?);
            complete_machine(&mut object["spec"]["template"]["spec"]);
            let template = admit(world, &kind, object, gates)?;
            let name = owner.name.clone();
            let mut spec = template["spec"]["template"]["spec"].clone();
            // As the core does: a template has a key already, and the machine gets it.
            spec["sshPublicKey"] = json!(SSH_KEY);
            let from = json!({ "cluster.x-k8s.io/cloned-from-groupkind": format!("{kind}.{INFRASTRUCTURE}"),
                "cluster.x-k8s.io/cloned-from-name": template["metadata"]["name"] });
            let annotations = merged(&template["spec"]["template"]["metadata"]["annotations"], &from);
            machine(world, &owner, annotations, spec, gates)?;
            made.actors.push(Place { kind: "AzureMachine".to_owned(), name });
        }
        "AzureMachine" => {
            let owner = machine_owner(&object, all);
            complete_machine(&mut object["spec"]);
            let annotations = object["metadata"]["annotations"].clone();
            machine(world, &owner, annotations, object["spec"].clone(), gates)?;
            made.actors.push(Place { kind, name: owner.name });
        }
        "AzureMachinePool" => {
            let owner = machine_owner(&object, all);
            label(&mut object, &owner.cluster);
            let template = object["spec"]["template"].as_object_mut().unwrap();
            template.entry("sshPublicKey").or_insert(json!(SSH_KEY));
            own(&mut object, &machine_pool(world, &kind, &owner));
            admit(world, &kind, object, gates)?;
            made.actors.push(Place { kind, name: owner.name });
        }
        kind if group == INFRASTRUCTURE && managed::is_part(kind) => {
            managed::apply(world, object, all, gates, made)?;
        }
        _ if group == INFRASTRUCTURE => {
            admit(world, &kind, object, gates)?;
        }
        // These configure our objects, and are created with them.
        "Cluster" | "Machine" | "MachinePool" => {}
        _ => {
            if group.ends_with("cluster.x-k8s.io") {
                once(world, definition(&object));
            }
            // A namespace may exist already.
            once(world, object);
        }
    }
    Ok(())
}

/// Creates an object; a cluster-scoped one only if it does not exist.
fn once(world: &World, object: Value) {
    let is_it = |it: &Value| it["metadata"]["name"] == object["metadata"]["name"];
    let is_plain = object["metadata"]["namespace"].is_null();
    let there = world.kubernetes.list(&text(&object["kind"]));
    if !is_plain || !there.iter().any(|it| is_it(it.value())) {
        world.create(object);
    }
}

/// A definition without a schema, for a kind that no controller of ours reads.
fn definition(object: &Value) -> Value {
    let kind = text(&object["kind"]);
    let version = text(&object["apiVersion"]);
    let (group, version) = version.split_once('/').unwrap();
    let mut definition = crate::world::definition(&kind);
    let plural = definition["spec"]["names"]["plural"].clone();
    definition["metadata"]["name"] = json!(format!("{}.{group}", text(&plural)));
    definition["spec"]["group"] = json!(group);
    definition["spec"]["versions"][0]["name"] = json!(version);
    definition
}

/// Changes an existing object, as `kubectl apply` does.
///
/// # Errors
/// It is refused with this message.
fn change(
    world: &World,
    kind: &str,
    mut object: Value,
    old: &Value,
    gates: capz_api::Gates,
) -> Result<(), String> {
    object["metadata"] = old["metadata"].clone();
    managed::complete(&mut object);
    if kind == "AzureMachineTemplate" {
        complete_machine(&mut object["spec"]["template"]["spec"]);
    }
    let object = admitted(world, kind, object, Some(old), gates)?;
    world.kubernetes.update(object).map(|_| ()).map_err(|error| format!("{error:?}"))
}

/// The Cluster that owns an AzureCluster, from the section or by default.
fn cluster(world: &World, object: &mut Value, all: &[&Value]) -> Vec<Place> {
    let name = text(&object["metadata"]["name"]);
    let declared = all.iter().find(|it| it["kind"] == "Cluster" && it["metadata"]["name"] == name.as_str());
    let declared = declared.map(|it| (*it).clone()).unwrap_or_default();
    let mut spec = merged(
        &declared["spec"],
        &json!({
            "infrastructureRef": { "apiGroup": INFRASTRUCTURE, "kind": "AzureCluster", "name": name },
        }),
    );
    if let Some(reference) = spec.get_mut("controlPlaneRef") {
        *reference = Value::Null;
    }
    let namespace = object["metadata"]["namespace"].clone();
    let cluster = world.create(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": { "name": name, "namespace": namespace }, "spec": spec,
    }));
    label(object, &name);
    own(object, cluster.value());
    let spec = object["spec"].as_object_mut().unwrap();
    spec.entry("location").or_insert(json!("eastus"));
    spec.entry("identityRef").or_insert(json!({ "kind": "AzureClusterIdentity", "name": "identity" }));
    vec![Place { kind: "AzureCluster".to_owned(), name }]
}

/// The owner of a machine: its name, its cluster, its labels, and the spec of its Machine.
pub struct MachineOwner {
    pub name: String,
    pub cluster: String,
    labels: Value,
    pub machine: Value,
}

/// The owner of an AzureMachine, or of the first one of a template: from the Machine, MachineDeployment or control
/// plane that refers to it, otherwise a worker of the section's cluster.
pub fn machine_owner(object: &Value, all: &[&Value]) -> MachineOwner {
    let (kind, name) = (&object["kind"], text(&object["metadata"]["name"]));
    let refers = |reference: &Value| reference["kind"] == *kind && reference["name"] == name.as_str();
    let own_cluster =
        all.iter().find(|it| it["kind"] == "AzureCluster").map(|it| text(&it["metadata"]["name"]));
    let cluster = object["metadata"]["labels"][CLUSTER_NAME].as_str().map(str::to_owned);
    let cluster = cluster.or(own_cluster).unwrap_or_else(|| DEFAULT_CLUSTER.to_owned());
    let mut owner = MachineOwner { name: name.clone(), cluster, labels: json!({}), machine: json!({}) };
    for other in all {
        let other_name = text(&other["metadata"]["name"]);
        match other["kind"].as_str().unwrap() {
            "Machine" if refers(&other["spec"]["infrastructureRef"]) => {
                owner.labels = other["metadata"]["labels"].clone();
                owner.machine = other["spec"].clone();
            }
            "MachinePool" if refers(&other["spec"]["template"]["spec"]["infrastructureRef"]) => {
                owner.machine = other["spec"].clone();
            }
            "MachineDeployment" if refers(&other["spec"]["template"]["spec"]["infrastructureRef"]) => {
                owner.labels = json!({ "cluster.x-k8s.io/deployment-name": other_name });
                owner.machine = other["spec"]["template"]["spec"].clone();
                owner.name = format!("{other_name}-0");
            }
            "KubeadmControlPlane" if refers(&other["spec"]["machineTemplate"]["infrastructureRef"]) => {
                owner.labels = json!({ "cluster.x-k8s.io/control-plane": "" });
                owner.machine = json!({ "version": other["spec"]["version"] });
                owner.name = format!("{other_name}-0");
            }
            _ => {}
        }
    }
    owner
}

fn machine(
    world: &World,
    owner: &MachineOwner,
    annotations: Value,
    spec: Value,
    gates: capz_api::Gates,
) -> Result<(), String> {
    let MachineOwner { name, cluster, labels, machine } = owner;
    world.put_secret(&format!("{name}-data"), &[("value", "#cloud-config")]);
    let labels = merged(labels, &json!({ CLUSTER_NAME: cluster }));
    let defaults = json!({ "version": VERSION });
    let mut says = merged(&defaults, machine);
    if says["version"].is_null() {
        says["version"] = json!(VERSION);
    }
    let says = merged(
        &says,
        &json!({ "clusterName": cluster, "bootstrap": { "dataSecretName": format!("{name}-data") },
        "infrastructureRef": { "apiGroup": INFRASTRUCTURE, "kind": "AzureMachine", "name": name } }),
    );
    let machine = world.create(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": { "name": name, "namespace": NAMESPACE, "labels": labels }, "spec": says,
    }));
    let mut object = json!({
        "apiVersion": format!("{INFRASTRUCTURE}/v1beta1"), "kind": "AzureMachine",
        "metadata": { "name": name, "namespace": NAMESPACE, "labels": labels, "annotations": annotations },
        "spec": spec,
    });
    own(&mut object, machine.value());
    admit(world, "AzureMachine", object, gates)?;
    Ok(())
}

/// The MachinePool that owns a pool of this kind: from the section, with bootstrap data.
pub fn machine_pool(world: &World, kind: &str, owner: &MachineOwner) -> Value {
    let MachineOwner { name, cluster, machine, .. } = owner;
    let data = match managed::is_part(kind) {
        // Azure's own machines need none.
        true => String::new(),
        false => format!("{name}-data"),
    };
    if !data.is_empty() {
        world.put_secret(&data, &[("value", "#cloud-config")]);
    }
    let template = merged(
        &merged(&json!({ "version": VERSION }), &machine["template"]["spec"]),
        &json!({ "clusterName": cluster, "bootstrap": { "dataSecretName": data },
            "infrastructureRef": { "apiGroup": INFRASTRUCTURE, "kind": kind, "name": name } }),
    );
    let spec = merged(machine, &json!({ "clusterName": cluster, "template": { "spec": template } }));
    let pool = world.create(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachinePool",
        "metadata": { "name": name, "namespace": NAMESPACE, "labels": { CLUSTER_NAME: cluster } },
        "spec": spec,
    }));
    pool.value().clone()
}

fn complete_machine(spec: &mut Value) {
    let spec = spec.as_object_mut().unwrap();
    spec.entry("vmSize").or_insert(json!("Standard_D2s_v3"));
    spec.entry("osDisk").or_insert(json!({ "osType": "Linux" }));
    spec.entry("sshPublicKey").or_insert(json!(SSH_KEY));
}

/// The other System pools of a node pool's cluster, if admission needs them.
fn system_pools(
    world: &World,
    kind: &str,
    object: &Value,
    old: Option<&Value>,
) -> capz_api::Lookup<capz_api::SystemPools> {
    if !capz_api::admission::needs(kind, object, old).system_pools {
        return capz_api::Lookup::NotNeeded;
    }
    let is_other = |pool: &Value| {
        pool["spec"]["mode"] == "System" && pool["metadata"]["name"] != object["metadata"]["name"]
    };
    let others = world.kubernetes.list(kind).iter().filter(|pool| is_other(pool.value())).count();
    capz_api::Lookup::Found(capz_api::SystemPools { cluster_goes: false, others })
}

/// Admits an object, of which `old` is the previous version.
fn admitted(
    world: &World,
    kind: &str,
    mut object: Value,
    old: Option<&Value>,
    gates: capz_api::Gates,
) -> Result<Value, String> {
    capz_api::crd::fill_defaults(kind, &mut object);
    let context = capz_api::Context {
        gates,
        system_pools: system_pools(world, kind, &object, old),
        subscription: capz_api::Lookup::Found(SUBSCRIPTION.to_owned()),
        pool_version: capz_api::Lookup::Found(VERSION.to_owned()),
        ..Default::default()
    };
    let object =
        capz_api::admission::set_defaults(kind, object, &context, &mut Fixed).map_err(|it| it.to_string())?;
    capz_api::admission::validate(kind, &object, old, &context).map_err(|it| it.to_string())?;
    Ok(object)
}

pub fn admit(world: &World, kind: &str, object: Value, gates: capz_api::Gates) -> Result<Value, String> {
    let object = admitted(world, kind, object, None, gates)?;
    // The API server would drop members that the schema does not define: a page must not contain any.
    let made = world.kubernetes.create(object.clone()).map_err(|error| format!("{error:?}"))?;
    assert_eq!(said(&object["spec"]), said(&made.value()["spec"]), "unknown members");
    Ok(made.value().clone())
}

/// A value without members that are null.
fn said(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members: Map<String, Value> = members
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| (name.clone(), said(value)))
                .collect();
            members.into()
        }
        Value::Array(entries) => entries.iter().map(said).collect(),
        value => value.clone(),
    }
}

pub fn label(object: &mut Value, cluster: &str) {
    object["metadata"]["labels"] = merged(&object["metadata"]["labels"], &json!({ CLUSTER_NAME: cluster }));
}

pub fn own(object: &mut Value, owner: &Value) {
    object["metadata"]["ownerReferences"] = json!([{ "apiVersion": owner["apiVersion"], "kind": owner["kind"],
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"] }]);
}

pub fn merged(one: &Value, other: &Value) -> Value {
    let mut all = one.as_object().cloned().unwrap_or_default();
    all.extend(other.as_object().cloned().unwrap_or_default());
    all.into()
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
