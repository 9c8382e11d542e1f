//! The acts: manifests become a cluster, a Service gets its address, workers become more, everything goes.

use std::collections::BTreeSet;

use anyhow::ensure;
use azure_simulator::packet::{Packet, Protocol, Source, trace};
use k8s::{Node, Service};
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use simulated_cluster::manifests;

use super::stage::{CLUSTER, Stage};
use crate::manifests::Manifest;

/// The manifests of the cluster, in the order of their names.
const EXAMPLES: [(&str, &str); 4] = [
    ("examples/clusters/cluster.yaml", include_str!("../../../../examples/clusters/cluster.yaml")),
    (
        "examples/clusters/control-plane.yaml",
        include_str!("../../../../examples/clusters/control-plane.yaml"),
    ),
    ("examples/clusters/identity.yaml", include_str!("../../../../examples/clusters/identity.yaml")),
    ("examples/clusters/workers.yaml", include_str!("../../../../examples/clusters/workers.yaml")),
];
/// What is applied to the cluster once it is there.
const SHOP: (&str, &str) = ("examples/shop.yaml", include_str!("../../../../examples/shop.yaml"));

/// How many machines the examples have in the control plane, and how many workers.
const CONTROL_PLANE: usize = 3;
const WORKERS: usize = 3;

/// The manifests of the cluster.
pub fn examples() -> anyhow::Result<Vec<Manifest>> {
    let mut all = Vec::new();
    for (source, text) in EXAMPLES {
        let objects = manifests::read(source, text)?.into_iter();
        all.extend(objects.map(|object| Manifest { source: source.to_owned(), object }));
    }
    Ok(all)
}

/// Says whether something is as the demo says, and ends it if not.
fn claim(stage: &Stage, holds: bool, text: &str) -> anyhow::Result<()> {
    stage.screen.verdict(holds, text);
    ensure!(holds, "this is not so: {text}");
    Ok(())
}

/// Applies the examples, and waits until the nodes of the cluster are ready.
pub async fn apply(stage: &mut Stage, examples: &[Manifest]) -> anyhow::Result<()> {
    stage.screen.heading("Applying examples/clusters/");
    for Manifest { source, object } in examples {
        let kind = object["kind"].as_str().unwrap_or_default();
        for applied in manifests::apply(&stage.management.client, std::slice::from_ref(object)).await? {
            let name = applied.metadata.name.unwrap_or_default();
            stage.screen.line(format_args!("  {source}: {kind} {name}"));
        }
    }
    stage.screen.heading("The cluster comes into being");
    stage
        .until("the API server answers", async |stage: &mut Stage| {
            Ok((!stage.nodes()?.is_empty()).then_some(()))
        })
        .await?;
    stage.start_cloud_controller_manager().await?;
    let since = stage.elapsed();
    let text = "azure-cloud-controller-manager runs, with the azure.json of the control plane's machines";
    stage.screen.moment(since, text);
    ready(stage, CONTROL_PLANE + WORKERS).await?;
    show(stage);

    let zones = zones_of_machines(stage, "control-plane");
    let text = format!("the control plane is spread over the zones {}", list(&zones));
    claim(stage, zones.len() == CONTROL_PLANE, &text)?;
    let zones = zones_of_machines(stage, "workers");
    let text = format!("each worker is in the zone of its MachineDeployment: {}", list(&zones));
    let as_declared = stage.list("Machine").iter().all(|machine| is_where_declared(stage, machine));
    claim(stage, zones.len() == WORKERS && as_declared, &text)?;
    let labelled = stage.nodes()?.iter().all(|node| {
        let zone = node.label(k8s::names::LABEL_ZONE).unwrap_or_default();
        zone.starts_with("westeurope-") && node.label(k8s::names::LABEL_INSTANCE_TYPE).is_some()
    });
    claim(stage, labelled, "the nodes have their zones and sizes as labels")
}

/// Waits until there are so many nodes, all of them ready, and every Machine has its own.
async fn ready(stage: &mut Stage, count: usize) -> anyhow::Result<()> {
    stage
        .until(&format!("{count} nodes are ready"), async |stage: &mut Stage| {
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
    stage.screen.heading("The cluster");
    for line in stage.draw(&stage.tree()) {
        stage.screen.line(format_args!("  {line}"));
    }
}

/// The zones of virtual machines in Azure whose names begin like this after that of the cluster.
fn zones_of_machines(stage: &Stage, name: &str) -> BTreeSet<String> {
    let prefix = format!("{CLUSTER}-{name}-");
    let machines = stage.management.azure.azure.documents_of_type("Microsoft.Compute/virtualMachines");
    let ours = machines.iter().filter(|vm| vm["name"].as_str().is_some_and(|it| it.starts_with(&prefix)));
    ours.filter_map(|vm| vm["zones"][0].as_str().map(str::to_owned)).collect()
}

/// Whether a Machine that names a failure domain has its virtual machine there.
fn is_where_declared(stage: &Stage, machine: &Value) -> bool {
    let zone = &machine["spec"]["failureDomain"];
    let name = &machine["spec"]["infrastructureRef"]["name"];
    let machines = stage.management.azure.azure.documents_of_type("Microsoft.Compute/virtualMachines");
    machines.iter().any(|vm| vm["name"] == *name && vm["zones"][0] == *zone)
}

fn list(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// A Service of the cluster gets an address, and packets arrive.
pub async fn serve(stage: &mut Stage) -> anyhow::Result<()> {
    stage.screen.heading("A Service of type LoadBalancer in the new cluster: examples/shop.yaml");
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
    claim(stage, true, &format!("shop/web has the address {address}"))?;
    let from = Source::Internet { address: "203.0.113.8".parse()? };
    let packet = Packet::new(from, address.parse()?, 80, Protocol::Tcp);
    let verdict = stage
        .until("a packet arrives", async |stage: &mut Stage| {
            let verdict = trace(&stage.management.azure.azure, &stage.management.workloads, &packet);
            Ok(verdict.arrives.then_some(verdict))
        })
        .await?;
    let sentence = verdict.sentence();
    let (fate, _) = sentence.split_once(" Way: ").unwrap_or((sentence, ""));
    claim(stage, verdict.arrives, fate)
}

/// One more worker, and one less.
pub async fn scale(stage: &mut Stage) -> anyhow::Result<()> {
    stage.screen.heading("kubectl scale machinedeployment harbour-workers-2 --replicas 2");
    let name = "harbour-workers-2";
    stage.change("MachineDeployment", name, json!({ "spec": { "replicas": 2 } })).await?;
    ready(stage, CONTROL_PLANE + WORKERS + 1).await?;
    claim(stage, true, "a fourth worker is a node, and ready")?;
    stage.screen.heading("kubectl scale machinedeployment harbour-workers-2 --replicas 1");
    stage.change("MachineDeployment", name, json!({ "spec": { "replicas": 1 } })).await?;
    ready(stage, CONTROL_PLANE + WORKERS).await?;
    let disks = stage.management.azure.azure.documents_of_type("Microsoft.Compute/disks").len();
    let interfaces =
        stage.management.azure.azure.documents_of_type("Microsoft.Network/networkInterfaces").len();
    let tidy = interfaces == CONTROL_PLANE + WORKERS && disks == 2 * CONTROL_PLANE + WORKERS;
    claim(stage, tidy, "its node is gone, and so are its virtual machine, interface and disk")
}

/// Everything goes.
pub async fn delete(stage: &mut Stage) -> anyhow::Result<()> {
    stage.screen.heading("kubectl delete cluster harbour");
    let services: Api<Service> = Api::namespaced(stage.workload()?, "shop");
    services.delete("web", &DeleteParams::default()).await?;
    stage
        .until("the Service is gone", async |_: &mut Stage| {
            Ok(services.get_opt("web").await?.is_none().then_some(()))
        })
        .await?;
    stage.end_cloud_controller_manager().await?;
    stage.api("Cluster").delete(CLUSTER, &DeleteParams::default()).await?;
    stage
        .until("the cluster is gone", async |stage: &mut Stage| {
            Ok(stage.list("Cluster").is_empty().then_some(()))
        })
        .await?;
    let left: usize =
        ["AzureCluster", "AzureMachine", "Machine"].map(|kind| stage.list(kind).len()).iter().sum();
    claim(stage, left == 0, "no object of the cluster is left in the management cluster")?;
    let left = stage.left_in_azure();
    let text = match left.first() {
        None => "Azure holds what it held before".to_owned(),
        Some(first) => format!("Azure holds what it held before; it holds {first}, too"),
    };
    claim(stage, stage.azure_is_as_before(), &text)
}

/// How long it took, and how many calls to Azure.
pub fn sum_up(stage: &Stage) {
    stage.screen.heading("Calls to Azure");
    let counts = stage.management.azure.azure.journal().counts;
    let rows = [
        ["reads".to_owned(), counts.reads.to_string()],
        ["operation polls".to_owned(), counts.polls.to_string()],
        ["deletions".to_owned(), counts.deletes.to_string()],
        ["writes".to_owned(), counts.writes.to_string()],
    ];
    stage.screen.table(["CALLS", "NUMBER"], &rows);
    stage.screen.line(format_args!("  all of it in {} s", stage.elapsed().as_secs()));
}
