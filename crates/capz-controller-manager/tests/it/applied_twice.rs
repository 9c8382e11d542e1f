//! D9: applying twice changes nothing, for every kind and every flavor, with client-side apply, with server-side apply,
//! and as a dry run; also for a bundle of objects that refer to each other and do not exist yet.

use serde_json::{Map, Value, json};

use super::place::{Place, core, infrastructure};
use super::simulated::{World, world};
use super::templates::{files, manifests, objects};

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The patch that `kubectl apply` sends for an unchanged file: what the file contains and the object lacks, lists as a
/// whole. `None` if there is no difference.
fn patch(file: &Value, live: &Value) -> Option<Value> {
    match (file, live) {
        (Value::Object(file), Value::Object(live)) => {
            let differing = file.iter().filter_map(|(name, value)| {
                let live = live.get(name).unwrap_or(&Value::Null);
                patch(value, live).map(|value| (name.clone(), value))
            });
            let differing: Map<String, Value> = differing.collect();
            (!differing.is_empty()).then_some(Value::Object(differing))
        }
        (file, live) => (file != live).then(|| file.clone()),
    }
}

/// The object that `kubectl apply` creates from the file.
fn annotated(file: &Value) -> Value {
    let mut object = file.clone();
    object["metadata"]["annotations"][LAST_APPLIED] = json!(file.to_string());
    object
}

fn version(object: &Value) -> (Value, Value) {
    (object["metadata"]["generation"].clone(), object["metadata"]["resourceVersion"].clone())
}

async fn twice_by_kubectl(place: &Place, file: &Value) -> Result<(), String> {
    let text = |error: kube::Error| error.to_string();
    let file = &annotated(file);
    let live = place.create(file.clone()).await.map_err(text)?;
    for _ in 0..2 {
        let Some(mut patch) = patch(file, &live) else { continue };
        for (member, value) in [("apiVersion", &file["apiVersion"]), ("kind", &file["kind"])] {
            patch[member] = value.clone();
        }
        for member in ["name", "namespace"] {
            patch["metadata"][member] = file["metadata"][member].clone();
        }
        let tried = place.try_merge(patch.clone()).await.map_err(text)?;
        let again = place.merge(patch.clone()).await.map_err(text)?;
        if version(&again) != version(&live) || tried["spec"] != live["spec"] {
            return Err(format!("{patch} changes {:#} into {:#}", live["spec"], again["spec"]));
        }
    }
    Ok(())
}

async fn twice_at_the_server(place: &Place, file: &Value) -> Result<(), String> {
    let text = |error: kube::Error| error.to_string();
    let live = place.apply(file.clone()).await.map_err(text)?;
    for _ in 0..2 {
        let tried = place.try_apply(file.clone()).await.map_err(text)?;
        let again = place.apply(file.clone()).await.map_err(text)?;
        if version(&again) != version(&live) || tried["spec"] != live["spec"] {
            return Err(format!("{:#} becomes {:#}", live["spec"], again["spec"]));
        }
    }
    Ok(())
}

/// A line of `authorized_keys` in base64. Generating a key takes a second or more without optimisation.
const KEY: &str = "c3NoLWVkMjU1MTkgQUFBQUMzTnphQzFsWkRJMU5URTVBQUFBSUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUEgbWU=";

/// The objects, with a key where they have none.
fn with_keys(mut objects: Vec<Value>) -> Vec<Value> {
    for object in &mut objects {
        for parent in ["/spec", "/spec/template", "/spec/template/spec"] {
            if let Some(machine) = object.pointer_mut(parent).filter(|it| it.get("vmSize").is_some())
                && machine["sshPublicKey"].as_str().unwrap_or_default().is_empty()
            {
                machine["sshPublicKey"] = json!(KEY);
            }
        }
    }
    objects
}

/// Deprecated members, and identities that depend on objects of the same bundle.
fn forms() -> Vec<Value> {
    let disk = json!({ "osType": "Linux", "diskSizeGB": 64 });
    let machine = |more: Value| {
        let mut spec = json!({ "vmSize": "Standard_D2s_v3", "osDisk": disk, "sshPublicKey": KEY });
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        spec
    };
    let former = json!({ "subnetName": "nodes", "acceleratedNetworking": true, "spotVMOptions": { "maxPrice": "-1" } });
    let disks = json!({ "dataDisks": [{ "nameSuffix": "a", "diskSizeGB": 10 }, { "nameSuffix": "b", "diskSizeGB": 20 }] });
    let mut own = machine(json!({ "identity": "SystemAssigned", "subnetName": "nodes",
        "roleAssignmentName": "6d4f2b8a-0c1e-4f5a-9b3c-7d8e9f0a1b2c" }));
    let template = |spec: Value| json!({ "template": { "spec": spec } });
    let pool = |mode: &str, identity: &str, more: Value| json!({ "location": "eastus", "orchestrationMode": mode, "identity": identity, "template": machine(more) });
    let mut machine_of_its_own = infrastructure("AzureMachine", "f-own", own.take());
    machine_of_its_own["metadata"]["labels"] = json!({ "cluster.x-k8s.io/cluster-name": "f-1" });
    let subnets = json!([{ "name": "cp", "role": "control-plane" }, { "name": "nodes", "role": "node" }]);
    let mut spec = super::place::cluster("f-1")["spec"].clone();
    spec["networkSpec"] = json!({ "subnets": subnets });
    vec![
        infrastructure("AzureCluster", "f-1", spec),
        infrastructure("AzureMachineTemplate", "f-former", template(machine(former.clone()))),
        infrastructure("AzureMachineTemplate", "f-disks", template(machine(disks.clone()))),
        infrastructure(
            "AzureMachineTemplate",
            "f-own",
            template(machine(json!({ "identity": "SystemAssigned" }))),
        ),
        machine_of_its_own,
        infrastructure("AzureMachine", "f-former", machine(former.clone())),
        infrastructure("AzureMachinePool", "f-former", pool("Uniform", "None", former)),
        infrastructure("AzureMachinePool", "f-own", pool("Uniform", "SystemAssigned", disks)),
        infrastructure("AzureMachinePool", "f-flexible", pool("Flexible", "None", json!({}))),
        infrastructure(
            "AzureClusterTemplate",
            "f-1",
            template(json!({ "location": "eastus", "networkSpec": { "subnets": subnets } })),
        ),
    ]
}

/// Objects of Cluster API for the look-ups.
fn others() -> Vec<Value> {
    let mut others = vec![core(
        "Cluster",
        "f-1",
        json!({ "infrastructureRef": { "kind": "AzureCluster", "name": "f-1" } }),
    )];
    for name in ["f-own", "f-flexible"] {
        let reference = json!({ "kind": "AzureMachinePool", "name": name });
        let template = json!({ "spec": { "infrastructureRef": reference, "version": "v1.31.0" } });
        others.push(core("MachinePool", name, json!({ "clusterName": "f-1", "template": template })));
    }
    others
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn applying_twice_is_nothing() {
    let gates = "--feature-gates=EdgeZone=true,APIServerILB=true";
    let World { place, manager: _manager, folder: _folder, _stop } = world(&[gates]).await;
    let mut bundles = vec![("forms".to_owned(), forms())];
    for (name, template) in files() {
        let cluster = name.replace("cluster-template", "c-0");
        bundles.push((name, with_keys(objects(&template, &cluster))));
    }
    let folders = ["../../examples/clusters", "../../examples/clusters/managed"];
    for (name, text) in folders.into_iter().flat_map(manifests) {
        bundles.push((name, with_keys(serde_saphyr::from_multiple(&text).unwrap())));
    }
    let (mut wrong, mut count) = (String::new(), 0);
    let ours = |object: &&Value| object["apiVersion"] == "infrastructure.cluster.x-k8s.io/v1beta1";
    // During a dry run no object of a bundle exists.
    for (bundle, objects) in &bundles {
        for object in objects.iter().filter(ours) {
            for tried in [place.try_create(object.clone()).await, place.try_apply(object.clone()).await] {
                if let Err(error) = tried {
                    wrong += &format!(
                        "{bundle}, tried: {} {}: {error}\n",
                        object["kind"], object["metadata"]["name"]
                    );
                }
            }
        }
    }
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "server" } });
    place.create(namespace).await.unwrap();
    for (at_the_server, namespace) in [(false, "default"), (true, "server")] {
        for mut object in others() {
            object["metadata"]["namespace"] = json!(namespace);
            place.create(object).await.unwrap();
        }
        for (bundle, objects) in &bundles {
            for object in objects.iter().filter(ours) {
                let mut object = object.clone();
                object["metadata"]["namespace"] = json!(namespace);
                let applied = if at_the_server {
                    twice_at_the_server(&place, &object).await
                } else {
                    twice_by_kubectl(&place, &object).await
                };
                count += 1;
                if let Err(error) = applied {
                    let way = if at_the_server { "at the server" } else { "by kubectl" };
                    wrong += &format!(
                        "{bundle}, {way}: {} {}: {error}\n",
                        object["kind"], object["metadata"]["name"]
                    );
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count > 180, "{count}");
}
