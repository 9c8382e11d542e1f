//! Clusters of the established provider are taken over, with their machine pools: `tests/corpus/takeover-clusters`
//! holds, for each flavor of `deploy/capz/templates`, what its manager and Azure Service Operator left in Kubernetes
//! and in Azure.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::operator;
use crate::world::{NAMESPACE, SUBSCRIPTION, World};

/// How long a manager is observed: its first round and, ten minutes later, the next.
const WATCHED: Duration = Duration::from_secs(12 * 60);

/// Foreign kinds for which a world needs a definition.
pub const OTHERS: [&str; 3] = ["Cluster", "Machine", "MachinePool"];

/// Annotations of ours that the established provider does not have.
const MEMORY: [&str; 8] = [
    "sigs.k8s.io/cluster-api-provider-azure-last-applied-owner-tags",
    "sigs.k8s.io/cluster-api-provider-azure-cluster-id",
    "sigs.k8s.io/cluster-api-provider-azure-last-applied-resources",
    "sigs.k8s.io/cluster-api-provider-azure-last-applied-raw-members",
    "sigs.k8s.io/cluster-api-provider-azure-last-applied-raw-resources",
    "sigs.k8s.io/cluster-api-provider-azure-last-applied-ssh-port",
    "sigs.k8s.io/cluster-api-provider-azure-last-applied-subscription",
    "sigs.k8s.io/cluster-api-provider-azure-last-applied-tags-rg",
];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/takeover-clusters")
}

/// The lines of a flavor: `{"put": id, "body": document}` is a resource, `{"object": …}` an object, in an order in
/// which they can be created. `principalOf` names the machine whose identity a role is assigned to, `instances` are
/// the machines that a flexible scale set brought along, and `drawn` are names that Azure drew for a managed cluster.
fn lines(flavor: &str) -> Vec<Value> {
    let path = folder().join(format!("{flavor}.jsonl"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines()
        .map(|line| serde_json::from_str(&line.replace("SUBSCRIPTION", SUBSCRIPTION)).unwrap())
        .collect()
}

/// Loads everything into the world as it was left.
pub fn load(world: &World, flavor: &str) {
    let identities = ResourceId::group(SUBSCRIPTION, "capz-ci");
    world.azure.put(&identities, json!({ "location": "eastus" })).unwrap();
    let identity = ResourceId::parse(&format!(
        "{identities}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/cloud-provider-user-identity"
    ));
    world.azure.put(&identity.unwrap(), json!({ "location": "eastus" })).unwrap();
    world.put_secret("cluster-identity-secret", &[("clientSecret", "s")]);
    crate::raw::named_credential(world, "aso-credential");
    let mut uids: BTreeMap<(String, String), Value> = BTreeMap::new();
    let mut names: Vec<(String, String)> = Vec::new();
    for line in lines(flavor) {
        let line = renamed(&line, &names);
        if let Some(id) = line["put"].as_str() {
            let resource = ResourceId::parse(id).unwrap();
            let mut body = line["body"].clone();
            if let Some(machine) = line["principalOf"].as_str() {
                let machine = world.azure.document(&ResourceId::parse(machine).unwrap()).unwrap();
                body["properties"]["principalId"] = machine["identity"]["principalId"].clone();
            }
            world.azure.put(&resource, body).unwrap_or_else(|refusal| panic!("{flavor}: {id}: {refusal:?}"));
            if let Some(instances) = line["instances"].as_array() {
                names.extend(drawn(world, instances));
            }
            let recorded = line["drawn"].as_array().into_iter().flatten().map(text);
            names.extend(recorded.zip(drawn_for_managed(world, &resource)));
            continue;
        }
        let mut object = line["object"].clone();
        if let Some(owners) = object["metadata"]["ownerReferences"].as_array_mut() {
            for owner in owners {
                let uid = uids.get(&(text(&owner["kind"]), text(&owner["name"])));
                owner["uid"] =
                    uid.cloned().unwrap_or_else(|| panic!("{flavor}: {owner} was not made before"));
            }
        }
        let status = object.as_object_mut().unwrap().remove("status");
        let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
        let made = world.create(object);
        uids.insert((kind.clone(), name.clone()), made["metadata"]["uid"].clone());
        if let Some(status) = status {
            world.kubernetes.merge_status(&kind, NAMESPACE, &name, &json!({ "status": status })).unwrap();
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The hosts and the issuer of a managed cluster, or the scale set of a pool.
fn drawn_for_managed(world: &World, id: &ResourceId) -> Vec<String> {
    let document = world.azure.document(id).unwrap();
    let properties = &document["properties"];
    let of_cluster =
        [&properties["fqdn"], &properties["privateFQDN"], &properties["oidcIssuerProfile"]["issuerURL"]];
    let pool = json!(id.name());
    let sets = world.azure.documents_of_type("Microsoft.Compute/virtualMachineScaleSets");
    let sets = sets.iter().filter(|set| set["tags"]["aks-managed-poolName"] == pool);
    let sets: Vec<String> = sets.map(|set| text(&set["name"])).collect();
    of_cluster.into_iter().filter(|name| name.is_string()).map(text).chain(sets).collect()
}

/// The names of a flexible scale set's machines have a random part after an underscore: that of a recorded machine, and
/// that of the one here.
fn drawn(world: &World, recorded: &[Value]) -> Vec<(String, String)> {
    let suffix = |name: &Value| name.as_str().unwrap().rsplit_once('_').unwrap().1.to_owned();
    let machines = world.azure.documents_of_type("Microsoft.Compute/virtualMachines");
    let of_sets: Vec<&Value> =
        machines.iter().filter(|it| it["properties"]["virtualMachineScaleSet"].is_object()).collect();
    assert_eq!(of_sets.len(), recorded.len());
    recorded.iter().zip(of_sets).map(|(then, now)| (suffix(then), suffix(&now["name"]))).collect()
}

fn renamed(line: &Value, names: &[(String, String)]) -> Value {
    let text = names.iter().fold(line.to_string(), |text, (from, to)| text.replace(from, to));
    serde_json::from_str(&text).unwrap()
}

/// The parts of a kind's objects that others depend on: spec, status without times, and owners.
fn said(world: &World, kind: &str) -> BTreeMap<String, Value> {
    let all = world.kubernetes.list(kind);
    all.iter()
        .map(|object| {
            let mut said = object.value().clone();
            if let Some(conditions) = said["status"]["conditions"].as_array_mut() {
                for condition in conditions.iter_mut() {
                    condition.as_object_mut().unwrap().remove("lastTransitionTime");
                }
                conditions.sort_by_key(|condition| condition["type"].to_string());
                // The established provider does not report that the instance of such an object runs, nor its name. Both
                // are reported here at the next event that wakes the object.
                if kind == "AzureMachinePoolMachine" {
                    conditions.retain(|it| it["type"] != "VMRunning" || it["status"] != "True");
                }
            }
            if kind == "AzureMachinePoolMachine"
                && let Some(status) = said["status"].as_object_mut()
            {
                status.remove("instanceName");
            }
            for member in ["managedFields", "resourceVersion", "generation"] {
                said["metadata"].as_object_mut().unwrap().remove(member);
            }
            if let Some(annotations) = said["metadata"]["annotations"].as_object_mut() {
                annotations.retain(|name, _| !MEMORY.iter().any(|memory| name == memory));
                // The order of these kinds has no meaning.
                if let Some(kinds) = annotations.get_mut(capz_planner::raw::OWNED_KINDS) {
                    let mut sorted: Vec<String> = text(kinds).split(';').map(str::to_owned).collect();
                    sorted.sort_unstable();
                    *kinds = sorted.join(";").into();
                }
                // The established provider writes it for AzureClusters alone.
                if kind == "AzureManagedControlPlane" {
                    annotations.remove(capz_planner::cluster::SECURITY_RULES);
                }
            }
            (said["metadata"]["name"].as_str().unwrap().to_owned(), said)
        })
        .collect()
}

/// Members that differ, with both values.
fn differences(path: &str, before: &Value, after: &Value, found: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: std::collections::BTreeSet<_> = one.keys().chain(other.keys()).collect();
            for key in keys {
                let at = |map: &serde_json::Map<String, Value>| map.get(key).cloned().unwrap_or_default();
                differences(&format!("{path}/{key}"), &at(one), &at(other), found);
            }
        }
        _ if before == after => {}
        _ => found.push(format!("{path}: {before} became {after}")),
    }
}

/// Our manager starts on what the established provider left, and rests: nothing is written to Azure but the ID of the
/// cluster on its group, the objects are unchanged, and those of the operator are gone.
async fn taken_over(flavor: &str) {
    let mut world = World::bare(1, |_| {});
    world.settings.gates.edge_zone = true;
    world.settings.gates.api_server_ilb = flavor.ends_with("apiserver-ilb");
    for kind in OTHERS {
        world.kubernetes.create(crate::world::definition(kind)).unwrap();
    }
    let objects: Vec<Value> = lines(flavor).into_iter().map(|line| line["object"].clone()).collect();
    operator::define_kinds_of(&world, &objects);
    load(&world, flavor);
    put_nodes(&world);
    let kinds = [
        "AzureCluster",
        "AzureClusterTemplate",
        "AzureMachine",
        "AzureMachineTemplate",
        "AzureMachinePool",
        "AzureMachinePoolMachine",
        "AzureManagedCluster",
        "AzureManagedControlPlane",
        "AzureManagedMachinePool",
        "AzureASOManagedCluster",
        "AzureASOManagedControlPlane",
        "AzureASOManagedMachinePool",
        "Machine",
        "MachinePool",
    ];
    let before: Vec<_> = kinds.iter().map(|kind| said(&world, kind)).collect();
    let documents = world.azure.documents();
    let loaded = world.sequence();
    world.start();
    tokio::time::sleep(WATCHED).await;
    world.kill().await;

    let journal = world.azure.journal_after(loaded);
    let writes: Vec<String> = journal
        .entries
        .iter()
        .filter(|entry| entry.method != "GET" && !entry.path.contains("/listCluster"))
        .map(|entry| format!("{} {} {:?}", entry.method, entry.path, entry.changes))
        .collect();
    // S1: the ID of the cluster is written on its group, and on nothing else; raw resources get no tags.
    let marks = usize::from(!flavor.starts_with("aks-aso"));
    assert_eq!(writes.len(), marks, "{flavor}: Azure is written to: {writes:?}");
    assert!(
        writes.iter().all(|it| it.to_lowercase().contains("/resourcegroups/") && !it.contains("/providers/")),
        "{writes:?}"
    );
    let mut after = world.azure.documents();
    let mut marked = 0;
    for document in &mut after {
        let tags = document.get_mut("tags").and_then(Value::as_object_mut);
        marked += usize::from(tags.is_some_and(|tags| tags.remove(capz_planner::tags::ID).is_some()));
    }
    assert_eq!(marked, marks, "{flavor}");
    assert_eq!(after, documents, "{flavor}: Azure is as it was but for that tag");
    let is_managed = flavor.starts_with("aks");
    assert!(journal.entries.len() > if is_managed { 4 } else { 8 }, "{flavor}: Azure was looked at");

    let mut changed = Vec::new();
    for (kind, before) in kinds.iter().zip(&before) {
        let after = said(&world, kind);
        assert!(after.keys().eq(before.keys()), "{flavor}: {kind}: {:?}", after.keys());
        for (name, before) in before {
            differences(&format!("{kind} {name}"), before, &after[name], &mut changed);
        }
    }
    // The established provider does not serve the contract v1beta2 yet, and gives raw kinds no conditions.
    let is_of_v1beta2 = |change: &String| {
        let is_raw = change.starts_with("AzureASOManaged");
        ["/status/initialization: null", "/status/v1beta2: null"].iter().any(|it| change.contains(it))
            || (is_raw && change.contains("/status/conditions: null"))
    };
    let (of_v1beta2, others): (Vec<String>, Vec<String>) = changed.into_iter().partition(is_of_v1beta2);
    assert_eq!(others, Vec::<String>::new(), "{flavor}: objects say something else");
    assert!(!of_v1beta2.is_empty(), "{flavor}");
    assert_eq!(operator::objects(&world.kubernetes).len(), 0, "{flavor}");
    let all = |kind: &str| said(&world, kind).len();
    let ready =
        |kind: &str| said(&world, kind).into_values().filter(|it| it["status"]["ready"] == true).count();
    let (infrastructure, members) = match (is_managed, flavor.starts_with("aks-aso")) {
        (false, _) => ("AzureCluster", "AzureMachine"),
        (true, false) => ("AzureManagedCluster", "AzureManagedMachinePool"),
        (true, true) => ("AzureASOManagedCluster", "AzureASOManagedMachinePool"),
    };
    assert_eq!(ready(infrastructure), 1, "{flavor}");
    assert!(all(members) > 0, "{flavor}");
    for kind in [members, "AzureMachinePool", "AzureMachinePoolMachine"] {
        assert_eq!(ready(kind), all(kind), "{flavor}");
    }
    assert_eq!(all("AzureMachinePool") > 0, flavor.starts_with("machinepool"), "{flavor}");
}

/// The nodes of managed clusters, as AKS registers them.
fn put_nodes(world: &World) {
    let sets = world.azure.documents_of_type("Microsoft.Compute/virtualMachineScaleSets/virtualMachines");
    for machine in sets.iter().filter(|machine| machine["tags"]["aks-managed-poolName"].is_string()) {
        let id = ResourceId::parse(machine["id"].as_str().unwrap()).unwrap();
        let group = id.group_name().unwrap();
        let provider_id = format!("azure://{id}").replace(group, &group.to_lowercase());
        world.create(json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": { "name": machine["properties"]["osProfile"]["computerName"], "labels": {
                "kubernetes.azure.com/agentpool": machine["tags"]["aks-managed-poolName"],
                "kubernetes.azure.com/cluster": group } },
            "spec": { "providerID": provider_id },
        }));
    }
}

macro_rules! flavors {
    ($($test:ident: $flavor:literal,)*) => {
        $(
            #[tokio::test(start_paused = true)]
            async fn $test() {
                taken_over($flavor).await;
            }
        )*

        /// A flavor whose machines are declared one by one, or in pools, is taken over by name. That of `topology` is
        /// covered by `clusterclass`, and those of `aks-topology` and `aks-aso-topology` by their classes; no stand-in
        /// plays the control plane of `clusterclass-rke2`.
        #[test]
        fn every_flavor_is_taken_over() {
            let known = [$($flavor),*];
            let templates = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy/capz/templates");
            let classes = ["clusterclass", "clusterclass-rke2", "aks-clusterclass", "aks-aso-clusterclass"];
            let missing: Vec<String> = std::fs::read_dir(templates)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .map(|name| name.trim_start_matches("cluster-template").trim_end_matches(".yaml").to_owned())
                .map(|name| if name.is_empty() { "default".to_owned() } else { name.trim_start_matches('-').to_owned() })
                .filter(|name| !known.contains(&name.as_str()) && !classes.contains(&name.as_str()))
                .collect();
            assert!(missing.is_empty(), "{missing:?}");
        }
    };
}

flavors! {
    aad: "aad",
    aks: "aks",
    aks_aso: "aks-aso",
    aks_aso_maintenance: "aks-aso-maintenance",
    aks_aso_topology: "aks-aso-topology",
    aks_multi_tenancy: "aks-multi-tenancy",
    aks_topology: "aks-topology",
    apiserver_ilb: "apiserver-ilb",
    azure_bastion: "azure-bastion",
    azure_cni_v1: "azure-cni-v1",
    default: "default",
    dual_stack: "dual-stack",
    edgezone: "edgezone",
    ephemeral: "ephemeral",
    external_cloud_provider: "external-cloud-provider",
    flatcar: "flatcar",
    flatcar_sysext: "flatcar-sysext",
    ipv6: "ipv6",
    machinepool: "machinepool",
    machinepool_flexible: "machinepool-flexible",
    machinepool_windows: "machinepool-windows",
    multi_tenancy: "multi-tenancy",
    nvidia_gpu: "nvidia-gpu",
    private: "private",
    system_assigned_identity: "system-assigned-identity",
    topology: "topology",
    user_assigned_identity: "user-assigned-identity",
    windows: "windows",
    windows_apiserver_ilb: "windows-apiserver-ilb",
}

/// A cluster that was stored without an identity, before webhooks required one: nothing is done in Azure, and it
/// reports why. The manager's environment is not used (`docs/clusters/identities.md`).
#[tokio::test(start_paused = true)]
async fn an_old_cluster_without_an_identity_says_what_it_lacks() {
    let mut world = World::new();
    world.cluster("my-cluster", json!({}));
    let taken_away = json!({ "spec": { "identityRef": null } });
    world.merge("AzureCluster", "my-cluster", taken_away);
    let before = world.azure.documents();
    world.start();
    let words = "spec.identityRef: name an AzureClusterIdentity";
    let says = |world: &World| {
        let network = world.condition("AzureCluster", "my-cluster", "NetworkInfrastructureReady");
        network == Some(("False".to_owned(), "CreateClusterScopeFailed".to_owned()))
    };
    world.until("it says what it lacks", says).await;
    tokio::time::sleep(WATCHED).await;
    let cluster = world.get("AzureCluster", "my-cluster").unwrap();
    assert!(cluster["status"]["conditions"].to_string().contains(words), "{cluster:#}");
    let events = world.events("AzureCluster", "my-cluster");
    assert!(events.iter().all(|reason| reason == "CreateClusterScopeFailed"), "{events:?}");
    assert!(!events.is_empty());
    assert_eq!(world.azure.documents(), before);

    let named = json!({ "spec": { "identityRef": { "kind": "AzureClusterIdentity", "name": "identity" } } });
    world.merge("AzureCluster", "my-cluster", named);
    let is_ready =
        |world: &World| world.get("AzureCluster", "my-cluster").unwrap()["status"]["ready"] == true;
    world.until("it goes on", is_ready).await;
}
