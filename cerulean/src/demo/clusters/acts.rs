//! The acts: manifests become clusters, a Service gets its address, workers are added, everything is deleted.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::time::Duration;

use azure_simulator::packet::{Packet, Protocol, Source, trace};
use azure_simulator::{Actor, ActorAction};
use k8s::{Node, Service};
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use simulated_cluster::manifests;

use super::managed::{self, MANAGED};
use super::stage::{CLUSTER, Stage};
use crate::manifests::Manifest;

/// The manifests of the clusters, sorted by name.
pub const EXAMPLES: [(&str, &str); 7] = [
    ("examples/clusters/cluster.yaml", include_str!("../../../../examples/clusters/cluster.yaml")),
    (
        "examples/clusters/control-plane.yaml",
        include_str!("../../../../examples/clusters/control-plane.yaml"),
    ),
    ("examples/clusters/identity.yaml", include_str!("../../../../examples/clusters/identity.yaml")),
    ("examples/clusters/machine-pool.yaml", include_str!("../../../../examples/clusters/machine-pool.yaml")),
    (
        "examples/clusters/managed/cluster.yaml",
        include_str!("../../../../examples/clusters/managed/cluster.yaml"),
    ),
    (
        "examples/clusters/managed/pools.yaml",
        include_str!("../../../../examples/clusters/managed/pools.yaml"),
    ),
    ("examples/clusters/workers.yaml", include_str!("../../../../examples/clusters/workers.yaml")),
];
/// The manifest for the cluster once it is ready.
const SHOP: (&str, &str) = ("examples/shop.yaml", include_str!("../../../../examples/shop.yaml"));

/// The numbers of machines in the examples: in the control plane, standalone workers, and in the pool.
const CONTROL_PLANE: usize = 3;
const WORKERS: usize = 3;
const POOLED: usize = 3;
const NODES: usize = CONTROL_PLANE + WORKERS + POOLED;
/// The pool of the examples.
const POOL: &str = "harbour-spot";
/// The label of Machines with the name of their pool.
const POOL_NAME: &str = "cluster.x-k8s.io/pool-name";

/// Kinds of objects that go with their cluster.
const OF_CLUSTERS: [&str; 7] = [
    "AzureCluster",
    "AzureMachine",
    "AzureManagedCluster",
    "AzureManagedControlPlane",
    "AzureManagedMachinePool",
    "Machine",
    "MachinePool",
];

const MACHINES: &str = "Microsoft.Compute/virtualMachines";
const INSTANCES: &str = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines";
const SETS: &str = "Microsoft.Compute/virtualMachineScaleSets";

/// Applies the examples, and waits until the clusters' nodes are ready.
pub async fn apply(stage: &mut Stage, examples: &[Manifest]) -> anyhow::Result<()> {
    stage.screen.heading("Applying examples/clusters/");
    for Manifest { source, object } in examples {
        let kind = object["kind"].as_str().unwrap_or_default();
        for applied in manifests::apply(&stage.management.hosted.client, std::slice::from_ref(object)).await?
        {
            let name = applied.metadata.name.unwrap_or_default();
            stage.screen.line(format_args!("  {source}: {kind} {name}"));
        }
    }
    stage.screen.heading("The clusters come into being");
    stage
        .until(&format!("the API server of {CLUSTER} answers"), async |stage: &mut Stage| {
            Ok((!stage.nodes()?.is_empty()).then_some(()))
        })
        .await?;
    stage.start_cloud_controller_manager().await?;
    let since = stage.elapsed();
    let text = "azure-cloud-controller-manager runs, with the azure.json of the control plane's machines";
    stage.screen.moment(since, text);
    ready(stage, NODES).await?;
    managed::ready(stage).await?;
    show(stage);

    let zones = zones_of_machines(stage, "control-plane");
    let text = format!("the control plane is spread over the zones {}", list(&zones));
    stage.screen.claim(zones.len() == CONTROL_PLANE, &text)?;
    let zones = zones_of_machines(stage, "workers");
    let text = format!("each worker is in the zone of its MachineDeployment: {}", list(&zones));
    let mut machines = stage.list("Machine");
    machines.retain(|machine| machine["spec"]["infrastructureRef"]["kind"] == "AzureMachine");
    let as_declared = machines.iter().all(|machine| is_where_declared(stage, machine));
    stage.screen.claim(zones.len() == WORKERS && as_declared, &text)?;
    claim_pool_zones(stage)?;
    let labelled = stage.nodes()?.iter().all(|node| {
        let zone = node.label(k8s::names::LABEL_ZONE).unwrap_or_default();
        zone.starts_with("westeurope-") && node.label(k8s::names::LABEL_INSTANCE_TYPE).is_some()
    });
    stage.screen.claim(labelled, "the nodes have their zones and sizes as labels")?;
    managed::claim(stage)
}

/// Waits until there is this number of nodes, all of them ready, and every Machine has its own.
async fn ready(stage: &mut Stage, count: usize) -> anyhow::Result<()> {
    stage
        .until(&format!("{count} nodes of {CLUSTER} are ready"), async |stage: &mut Stage| {
            let (nodes, machines) = (stage.nodes()?, stage.list("Machine"));
            let all_ready = nodes.len() == count && nodes.iter().all(is_ready);
            let found = machines.iter().filter(|machine| machine["status"]["phase"] == "Running").count();
            Ok((all_ready && machines.len() == count && found == count).then_some(()))
        })
        .await
}

/// Whether a node is ready, and has been initialised by the cloud controller manager.
fn is_ready(node: &Node) -> bool {
    let is_uninitialized = |taint: &k8s::Taint| taint.key == k8s::names::TAINT_UNINITIALIZED;
    node.is_ready() && !node.spec.provider_id.is_empty() && !node.spec.taints.iter().any(is_uninitialized)
}

fn show(stage: &Stage) {
    stage.screen.heading("The clusters");
    for line in stage.draw(&stage.tree()) {
        stage.screen.line(format_args!("  {line}"));
    }
}

/// The zones of virtual machines in Azure whose names begin with the cluster's and this one.
fn zones_of_machines(stage: &Stage, name: &str) -> BTreeSet<String> {
    let prefix = format!("{CLUSTER}-{name}-");
    let machines = stage.in_azure(MACHINES);
    let ours = machines.iter().filter(|vm| vm["name"].as_str().is_some_and(|it| it.starts_with(&prefix)));
    ours.filter_map(|vm| vm["zones"][0].as_str().map(str::to_owned)).collect()
}

/// Whether the virtual machine of a Machine with a failure domain is there.
fn is_where_declared(stage: &Stage, machine: &Value) -> bool {
    let zone = &machine["spec"]["failureDomain"];
    let name = &machine["spec"]["infrastructureRef"]["name"];
    let machines = stage.in_azure(MACHINES);
    machines.iter().any(|vm| vm["name"] == *name && vm["zones"][0] == *zone)
}

fn list(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// A Service of the cluster gets an address, and packets arrive.
pub async fn serve(stage: &mut Stage) -> anyhow::Result<()> {
    stage.screen.heading(format_args!("A Service of type LoadBalancer in {CLUSTER}: examples/shop.yaml"));
    let client = stage.workload()?;
    let objects = manifests::read(SHOP.0, SHOP.1)?;
    manifests::apply(&client, &objects).await?;
    let services: Api<Service> = Api::namespaced(client, "shop");
    let address = stage
        .until("shop/web has its address", async |_: &mut Stage| {
            let service = services.get("web").await?;
            Ok(service.status.load_balancer.ingress.first().map(|ingress| ingress.ip.clone()))
        })
        .await?;
    stage.screen.claim(true, format!("shop/web has the address {address}"))?;
    let from = Source::Internet { address: "203.0.113.8".parse()? };
    let packet = Packet::new(from, address.parse()?, 80, Protocol::Tcp);
    let verdict = stage
        .until("a packet arrives", async |stage: &mut Stage| {
            let verdict =
                trace(&stage.management.hosted.azure.azure, &stage.management.hosted.workloads, &packet);
            Ok(verdict.arrives.then_some(verdict))
        })
        .await?;
    let sentence = verdict.sentence();
    let (fate, _) = sentence.split_once(" Way: ").unwrap_or((sentence, ""));
    stage.screen.claim(verdict.arrives, fate)
}

/// Adds a worker, and removes one.
pub async fn scale(stage: &mut Stage) -> anyhow::Result<()> {
    let before = resources(stage);
    stage.screen.heading("kubectl scale machinedeployment harbour-workers-2 --replicas 2");
    let name = "harbour-workers-2";
    stage.change("MachineDeployment", name, json!({ "spec": { "replicas": 2 } })).await?;
    ready(stage, NODES + 1).await?;
    stage.screen.claim(true, "a fourth worker is a node, and ready")?;
    stage.screen.heading("kubectl scale machinedeployment harbour-workers-2 --replicas 1");
    stage.change("MachineDeployment", name, json!({ "spec": { "replicas": 1 } })).await?;
    ready(stage, NODES).await?;
    // Cluster API chooses which of the two is deleted.
    let tidy = resources(stage).len() == before.len();
    stage.screen.claim(tidy, "its node is gone, and so are its virtual machine, interface and disk")
}

/// The Azure resources of machines.
fn resources(stage: &Stage) -> BTreeSet<String> {
    let types = [MACHINES, "Microsoft.Compute/disks", "Microsoft.Network/networkInterfaces"];
    let all = types.iter().flat_map(|kind| stage.in_azure(kind)).chain(instances_of_pool(stage));
    ids(&all.collect::<Vec<_>>())
}

/// The instances of the pool: other scale sets are those of the cluster that Azure manages.
fn instances_of_pool(stage: &Stage) -> Vec<Value> {
    let mut instances = stage.in_azure(INSTANCES);
    let set = format!("/virtualMachineScaleSets/{POOL}/");
    instances.retain(|one| one["id"].as_str().is_some_and(|id| id.contains(&set)));
    instances
}

fn ids(documents: &[Value]) -> BTreeSet<String> {
    documents.iter().filter_map(|document| document["id"].as_str().map(str::to_owned)).collect()
}

/// Replaces the machines of the pool with another version, one by one.
pub async fn replace(stage: &mut Stage) -> anyhow::Result<()> {
    let version = "v1.33.2";
    stage.screen.heading(format_args!("kubectl patch machinepool {POOL}: version becomes {version}"));
    let before = ids(&instances_of_pool(stage));
    let patch = json!({ "spec": { "template": { "spec": { "version": version } } } });
    stage.change("MachinePool", POOL, patch).await?;
    let fewest = Cell::new(usize::MAX);
    stage
        .until("all machines of the pool are replaced", async |stage: &mut Stage| {
            let ready = ready_in_pool(stage)?;
            fewest.set(fewest.get().min(ready));
            let now = ids(&instances_of_pool(stage));
            Ok((now.is_disjoint(&before) && now.len() == POOLED && ready == POOLED).then_some(()))
        })
        .await?;
    ready(stage, NODES).await?;
    let instances = instances_of_pool(stage);
    let image = |one: &Value| one["properties"]["storageProfile"]["imageReference"].to_string();
    let images = instances.iter().all(|one| image(one).contains(version.trim_start_matches('v')));
    stage.screen.claim(images, format!("each of them has the image of {version}"))?;
    let text = format!("never fewer than {POOLED} machines of the pool were ready");
    stage.screen.claim(fewest.get() >= POOLED, &text)
}

fn claim_pool_zones(stage: &Stage) -> anyhow::Result<()> {
    let instances = instances_of_pool(stage);
    let zones: BTreeSet<String> =
        instances.iter().filter_map(|one| one["zones"][0].as_str().map(str::to_owned)).collect();
    stage.screen.claim(zones.len() == POOLED, format!("the pool is spread over the zones {}", list(&zones)))
}

/// The number of the pool's machines that are not being deleted and have a ready node.
fn ready_in_pool(stage: &Stage) -> anyhow::Result<usize> {
    let nodes = stage.nodes()?;
    let machines = stage.list("Machine");
    let stay = machines.iter().filter(|machine| {
        machine["metadata"]["labels"][POOL_NAME] == POOL && machine["metadata"]["deletionTimestamp"].is_null()
    });
    let ready = stay.filter(|machine| {
        nodes.iter().any(|node| machine["status"]["nodeRef"]["name"] == node.name() && is_ready(node))
    });
    Ok(ready.count())
}

/// Azure evicts a spot machine, and the pool is restored.
pub async fn evict(stage: &mut Stage) -> anyhow::Result<()> {
    const MARKET: &str = "market";
    stage.screen.heading("Azure takes a spot machine back");
    let before = ids(&instances_of_pool(stage));
    let market = Actor::new(MARKET, ActorAction::Evict { share: 0.1, notice_seconds: 0 });
    stage
        .management
        .hosted
        .azure
        .azure
        .set_actor(market.on_type(SETS).every(Duration::from_millis(200)).times(1));
    let taken = stage
        .until("Azure has deleted a machine of the pool", async |stage: &mut Stage| {
            let now = ids(&instances_of_pool(stage));
            Ok(before.difference(&now).next().cloned())
        })
        .await?;
    stage.management.hosted.azure.azure.remove_actor(MARKET);
    let taken = taken.rsplit('/').next().unwrap_or_default().to_owned();
    stage
        .until("the pool has another machine for it", async |stage: &mut Stage| {
            let now = ids(&instances_of_pool(stage));
            let others = now.difference(&before).count();
            Ok((others == 1 && now.len() == POOLED && ready_in_pool(stage)? == POOLED).then_some(()))
        })
        .await?;
    ready(stage, NODES).await?;
    let text = format!("instance {taken} is gone with its Machine and its node, and another one is ready");
    stage.screen.claim(ready_in_pool(stage)? == POOLED, &text)
}

/// Deletes everything.
pub async fn delete(stage: &mut Stage) -> anyhow::Result<()> {
    stage.screen.heading(format_args!("kubectl delete cluster {CLUSTER} {MANAGED}"));
    let services: Api<Service> = Api::namespaced(stage.workload()?, "shop");
    services.delete("web", &DeleteParams::default()).await?;
    stage
        .until("the Service is gone", async |_: &mut Stage| {
            Ok(services.get_opt("web").await?.is_none().then_some(()))
        })
        .await?;
    stage.end_cloud_controller_manager().await?;
    for cluster in [CLUSTER, MANAGED] {
        stage.api("Cluster").delete(cluster, &DeleteParams::default()).await?;
    }
    stage
        .until("both clusters are gone", async |stage: &mut Stage| {
            Ok(stage.list("Cluster").is_empty().then_some(()))
        })
        .await?;
    let left: usize = OF_CLUSTERS.map(|kind| stage.list(kind).len()).iter().sum();
    stage.screen.claim(left == 0, "no object of the clusters is left in the management cluster")?;
    let left = stage.left_in_azure();
    let text = match left.first() {
        None => "Azure holds what it held before".to_owned(),
        Some(first) => format!("Azure holds what it held before; it holds {first}, too"),
    };
    stage.screen.claim(stage.azure_is_as_before(), &text)
}

/// Prints the total time, and the number of calls to Azure.
pub fn sum_up(stage: &Stage) {
    stage.screen.heading("Calls to Azure");
    let counts = stage.management.hosted.azure.azure.journal().counts;
    let rows = [
        ["reads".to_owned(), counts.reads.to_string()],
        ["operation polls".to_owned(), counts.polls.to_string()],
        ["deletions".to_owned(), counts.deletes.to_string()],
        ["writes".to_owned(), counts.writes.to_string()],
    ];
    stage.screen.table(["CALLS", "NUMBER"], &rows);
    stage.screen.line(format_args!("  all of it in {} s", stage.elapsed().as_secs()));
}
