//! Benchmark of planning: the cost of one change in a cluster with many Services and nodes.
//!
//! Everything runs in this process, and the simulated Azure answers at once: the benchmark measures our own work.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use arm::{Client, Clock, Cloud, Credential, Transport};
use azure_simulator::Azure;
use cloud::{ClusterState, LoadBalancers as _, LogicalTime};
use k8s::{Node, Service};
use parking_lot::Mutex;
use planner::{Cluster, ClusterObservation, plan_cluster};
use provider::{Options, Provider};
use serde_json::json;
use simulated_cluster::{NodePool, Shape};
use tokio::time::Instant;

use super::statistics::{fine_milliseconds, middle};
use crate::runtime::{TWO_THREADS, runtime};
use crate::screen::{Screen, row};

/// The sizes of the benchmark.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Number of Services: every other one is internal, every fourth has source ranges of its own.
    #[arg(long, default_value_t = 1_000)]
    services: usize,
    /// Number of nodes.
    #[arg(long, default_value_t = 1_000)]
    nodes: usize,
    /// Let load balancers hold the nodes' addresses instead of their network interfaces.
    #[arg(long)]
    by_address: bool,
}

/// The number of repetitions; the median counts.
const ROUNDS: usize = 11;

/// The simulated Azure has one subscription.
const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000000";

const INSTANCES: &str = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines";

/// Measures and prints a table.
///
/// # Errors
/// A Service is not served.
pub fn run(screen: Screen, arguments: &Arguments) -> anyhow::Result<()> {
    runtime(TWO_THREADS)?.block_on(measure(screen, arguments))
}

async fn measure(screen: Screen, arguments: &Arguments) -> anyhow::Result<()> {
    let bar = screen.waiting("laying out");
    let size = u64::try_from(arguments.nodes)?;
    let shape = Shape {
        subscription: SUBSCRIPTION.to_owned(),
        pools: vec![NodePool::new("workers", "worker", size)],
        ..Shape::default()
    };
    let azure = Azure::new(azure_simulator::Options::default());
    shape.lay_out(&azure).map_err(|error| anyhow::anyhow!("{error:?}"))?;
    let cluster = cluster(&shape, arguments)?;
    let nodes = nodes(&azure)?;
    let service = |number| service(number, arguments.by_address);
    let services = (0..arguments.services).map(service).collect::<Result<Vec<_>, _>>()?;
    let state = ClusterState::default();
    services.iter().for_each(|service| state.apply_service(Arc::clone(service)));
    nodes.iter().for_each(|node| state.apply_node(Arc::clone(node)));
    state.services_are_synced();
    state.nodes_are_synced();
    let writes = FirstWrite::default();
    let noted = writes.clone();
    let note = move |request: http::Request<_>| {
        noted.note(request.method());
        request
    };
    let transport =
        Transport::in_process(tower::ServiceBuilder::new().map_request(note).service(azure.router()));
    let client =
        Client::builder(Cloud::built_in(&cloud_config::PUBLIC)?, transport, Credential::fixed("token"));
    let client = client.clock(Clock::system()).build();
    let provider = Provider::new(cluster.clone(), client, state.clone(), Options::default());

    let empty = provider.observe().await?;
    let from_nothing = median(|| {
        let planned = plan_cluster(&cluster, &services, &nodes, &empty);
        ensure!(planned.refused.is_empty(), "{planned}");
        Ok(())
    })?;

    bar.set_message("serving");
    let begun = Instant::now();
    let served = services.iter().map(|service| provider.ensure(service, LogicalTime::BEGINNING));
    for (service, served) in services.iter().zip(futures::future::join_all(served).await) {
        let published = published(service, &served?.addresses)?;
        state.apply_service(Arc::new(published));
    }
    let served = begun.elapsed();
    let services = state.services();

    bar.set_message("planning");
    let observed: ClusterObservation = provider.observe().await?;
    let at_rest = median(|| {
        let planned = plan_cluster(&cluster, &services, &nodes, &observed);
        ensure!(planned.plan.is_empty(), "{planned}");
        Ok(())
    })?;
    let mut again = Vec::new();
    for service in services.iter().take(ROUNDS) {
        let begun = Instant::now();
        provider.ensure(service, LogicalTime::BEGINNING).await?;
        again.push(begun.elapsed());
    }
    let mut more = Vec::new();
    for number in 0..ROUNDS {
        let service = service(arguments.services + number)?;
        state.apply_service(Arc::clone(&service));
        let begun = Instant::now();
        provider.ensure(&service, LogicalTime::BEGINNING).await?;
        more.push(begun.elapsed());
    }
    let mut changes = Vec::new();
    for node in nodes.iter().take(ROUNDS) {
        state.remove_node(node.name());
        let begun = Instant::now();
        provider.update_nodes(LogicalTime::BEGINNING).await?;
        changes.push(begun.elapsed());
    }
    let mut drained = Vec::new();
    for node in nodes.iter().skip(ROUNDS).take(ROUNDS) {
        state.apply_node(Arc::new(draining(node)?));
        let begun = Instant::now();
        writes.clear();
        provider.update_draining_nodes().await?;
        drained.push(writes.get().context("a node that drains is a write")?.duration_since(begun));
    }
    bar.finish_and_clear();
    let (services, nodes) = (arguments.services, arguments.nodes);
    let what = format!("plan {services} Services on {nodes} nodes");
    let rows = [
        row![format!("{what}, nothing is there"), fine_milliseconds(from_nothing)],
        row![format!("{what}, all is there"), fine_milliseconds(at_rest)],
        row![format!("serve {services} Services at once"), fine_milliseconds(served)],
        row![format!("look at one of {services} Services again"), fine_milliseconds(middle(again))],
        row!["serve one more", fine_milliseconds(middle(more))],
        row!["follow one node that goes", fine_milliseconds(middle(changes))],
        row!["a node drains: until the first write to Azure", fine_milliseconds(middle(drained))],
    ];
    screen.table(["WHAT", "MEASURED"], &rows);
    Ok(())
}

fn cluster(shape: &Shape, arguments: &Arguments) -> anyhow::Result<Cluster> {
    let mut config = shape.azure_json("", "secret");
    if arguments.by_address {
        config["loadBalancerBackendPoolConfigurationType"] = "nodeIP".into();
    }
    config["enableLoadBalancerAdminState"] = true.into();
    let config = cloud_config::CloudConfig::parse(&config.to_string())?;
    Ok(Cluster {
        config,
        name: "bench".to_owned(),
        region_zones: ["1", "2", "3"].map(str::to_owned).to_vec(),
    })
}

/// All machines as initialised nodes.
fn nodes(azure: &Azure) -> anyhow::Result<Vec<Arc<Node>>> {
    let address_of = |machine: &serde_json::Value| {
        let own = machine.pointer("/properties/networkProfile/networkInterfaces/0/id")?;
        let own = azure.document(&own.as_str()?.parse().ok()?)?;
        own.pointer("/properties/ipConfigurations/0/properties/privateIPAddress").cloned()
    };
    let node = |machine: &serde_json::Value| {
        let id = machine["id"].as_str().context("a machine has an id")?;
        Ok(Arc::new(serde_json::from_value(json!({
            "metadata": {"name": machine["properties"]["osProfile"]["computerName"]},
            "spec": {"providerID": format!("azure://{id}")},
            "status": {"addresses": [{"type": "InternalIP", "address": address_of(machine)}]},
        }))?))
    };
    azure.documents_of_type(INSTANCES).iter().map(node).collect()
}

/// The node with the taint for an imminent eviction.
fn draining(node: &Node) -> anyhow::Result<Node> {
    let mut node = node.clone();
    node.spec.taints.push(serde_json::from_value(json!({
        "key": "cloudprovider.azure.microsoft.com/draining", "value": "spot-eviction", "effect": "NoSchedule",
    }))?);
    Ok(node)
}

/// The time of the first write to Azure.
#[derive(Debug, Clone, Default)]
struct FirstWrite(Arc<Mutex<Option<Instant>>>);

impl FirstWrite {
    fn note(&self, method: &http::Method) {
        if method == http::Method::PUT {
            self.0.lock().get_or_insert_with(Instant::now);
        }
    }

    fn get(&self) -> Option<Instant> {
        *self.0.lock()
    }

    fn clear(&self) {
        *self.0.lock() = None;
    }
}

/// One of many Services. Azure accepts 1,500 rules for each network interface: if interfaces are the members of pools,
/// each Service has only one port.
fn service(number: usize, two_ports: bool) -> anyhow::Result<Arc<Service>> {
    let ranges = if number.is_multiple_of(4) {
        json!([format!("10.{}.{}.0/24", number / 256 % 256, number % 256)])
    } else {
        json!([])
    };
    let port = 30_000 + number * 2 % 2_768;
    let mut ports = vec![json!({"name": "http", "protocol": "TCP", "port": 80, "nodePort": port})];
    if two_ports {
        ports.push(json!({"name": "https", "protocol": "TCP", "port": 443, "nodePort": port + 1}));
    }
    Ok(Arc::new(serde_json::from_value(json!({
        "metadata": {
            "namespace": "bench", "name": format!("service-{number}"), "uid": format!("{number:08x}-0000-4000-8000-000000000000"),
            "finalizers": ["service.kubernetes.io/load-balancer-cleanup"],
            "annotations": {"service.beta.kubernetes.io/azure-load-balancer-internal": (number % 2 == 1).to_string()},
        },
        "spec": {
            "type": "LoadBalancer", "ipFamilies": ["IPv4"], "loadBalancerSourceRanges": ranges,
            "ports": ports,
        },
    }))?))
}

fn published(service: &Service, addresses: &[std::net::IpAddr]) -> anyhow::Result<Service> {
    let mut service = service.clone();
    let ingress = addresses.iter().map(|address| serde_json::from_value(json!({ "ip": address })));
    service.status.load_balancer.ingress = ingress.collect::<Result<_, _>>()?;
    Ok(service)
}

fn median(work: impl Fn() -> anyhow::Result<()>) -> anyhow::Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        work()?;
        times.push(begun.elapsed());
    }
    Ok(middle(times))
}
