//! Benchmark of the controller manager in a large cluster: its memory, and its reads of Azure for thousands of nodes.
//!
//! It runs the release binary next to this one, over TLS, against the simulators. Nodes look as a kubelet writes them,
//! with images, annotations and everything else: part of the measurement is what the program drops of them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use azure_simulator::{Azure, Journal};
use azure_types::ResourceId;
use indicatif::ProgressBar;
use k8s::names::TAINT_UNINITIALIZED;
use kubernetes_simulator::Kubernetes;
use serde_json::{Value, json};
use simulated_cluster::{HostedAzure, HostedKubernetes, NodePool, Shape};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::process::{Files, Manager, Running};
use super::resident::{Memory, megabytes, processor_time};
use super::simulators::{INSTANCES, Idle, is_initialised, start_azure, start_kubernetes};
use super::statistics::percentile;
use crate::runtime::{TWO_THREADS, runtime};
use crate::screen::{Screen, row};

/// The sizes of the benchmark.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Binary of the controller manager; by default the one next to this program.
    #[arg(long)]
    manager: Option<PathBuf>,
    /// Number of uniform scale sets.
    #[arg(long, default_value_t = 5)]
    scale_sets: u64,
    /// Number of machines of each scale set, each of them a node. Azure allows 1,000.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    instances: u64,
    /// Number of Services of type LoadBalancer: every other one is internal, every fourth has source ranges of its own.
    #[arg(long, default_value_t = 1_000)]
    services: usize,
    /// Let load balancers hold the nodes' addresses instead of their network interfaces.
    #[arg(long)]
    by_address: bool,
    /// Number of nodes of each scale set that fall silent.
    #[arg(long, default_value_t = 10)]
    silent: usize,
    /// Seconds for which they are silent.
    #[arg(long, value_name = "SECONDS", default_value_t = 45)]
    silence: u64,
    /// Seconds without work before the program's memory is read.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    rest: u64,
}

/// The maximum time without any progress.
const STALL_TIMEOUT: Duration = Duration::from_secs(180);
/// The interval at which the progress of thousands of objects is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The same for one object.
const SHORT_POLL_INTERVAL: Duration = Duration::from_millis(2);
/// The idle time after a single object.
const SHORT_REST: Duration = Duration::from_secs(2);
/// The number of Services that come one after the other.
const SINGLE_SERVICES: usize = 10;
/// Lists of one scale set that begin within this time belong to one round.
const ROUND: Duration = Duration::from_secs(10);

const CLIENT_SECRET: &str = "bench";

/// Measures and prints tables.
///
/// # Errors
/// The binary is missing or fails.
pub fn run(screen: Screen, arguments: Arguments) -> anyhow::Result<()> {
    let manager = Manager::ours(arguments.manager.clone())?;
    runtime(TWO_THREADS)?.block_on(measure(screen, &manager, &arguments))
}

async fn measure(screen: Screen, manager: &Manager, arguments: &Arguments) -> anyhow::Result<()> {
    let directory = tempfile::Builder::new().prefix("cerulean-bench-").tempdir()?;
    let stop = CancellationToken::new();
    let bar = screen.waiting("laying out");
    let rest = Duration::from_secs(arguments.rest);
    let bench = Bench::start(directory.path(), arguments, &stop).await?;
    let machines = machines(&bench.azure.azure)?;
    let (count, services) = (machines.len(), arguments.services);
    let mut report = Report::new(&bench, arguments);

    bar.set_message("idle");
    let program = bench.start_manager(manager)?;
    sleep(rest).await;
    report.memory.push(MemoryUse::by(&program, "idle".to_owned(), "10 MB")?);

    report.begin(&program)?;
    let all = bench.register(&machines, &bar).await?;
    sleep(rest).await;
    report.note(format!("{count} nodes join"), &all, &program)?;
    report.hold(format!("with {count} nodes"), &program)?;

    report.begin(&program)?;
    let all = bench.apply_services(0..services, &bar).await?;
    sleep(rest).await;
    report.note(format!("{services} Services come"), &all, &program)?;
    report.hold(format!("with {count} nodes, {services} Services"), &program)?;

    report.begin(&program)?;
    let mut took = Vec::new();
    for number in services..services + SINGLE_SERVICES {
        took.extend(bench.apply_services(number..number + 1, &bar).await?);
        sleep(SHORT_REST).await;
    }
    report.note(format!("{SINGLE_SERVICES} more Services, one by one"), &took, &program)?;

    let lost: Vec<&Machine> = (0..arguments.scale_sets)
        .filter_map(|set| machines.iter().find(|machine| machine.name.starts_with(&prefix(set))))
        .collect();
    report.begin(&program)?;
    let mut took = Vec::new();
    for machine in &lost {
        took.push(bench.lose(machine, &bar).await?);
        sleep(SHORT_REST).await;
    }
    let each = format!("{} machines of silent nodes go, one by one", lost.len());
    report.note(each, &took, &program)?;

    let mut known: HashSet<String> = machines.iter().map(|machine| machine.name.clone()).collect();
    report.begin(&program)?;
    let mut took = Vec::new();
    for machine in &lost {
        took.extend(bench.replace(machine, arguments.instances, &mut known, &bar).await?);
        sleep(SHORT_REST).await;
    }
    report.note(format!("{} more nodes, one by one", lost.len()), &took, &program)?;

    bar.set_message("silent nodes");
    let machines = self::machines(&bench.azure.azure)?;
    report.begin(&program)?;
    let silent = bench.silence(&machines, arguments)?;
    sleep(Duration::from_secs(arguments.silence)).await;
    report.note(format!("{silent} nodes silent for {} s", arguments.silence), &[], &program)?;
    report.hold(format!("and {silent} of them silent"), &program)?;

    bar.set_message("restart");
    drop(program);
    bench.azure.azure.clear_journal();
    let program = bench.start_manager(manager)?;
    report.worked = Duration::ZERO;
    report.simulated = processor_time(std::process::id())?;
    bench.rest(rest).await;
    report.note("restart".to_owned(), &[], &program)?;
    report.hold("the same, after a restart".to_owned(), &program)?;
    drop(program);
    stop.cancel();
    bar.finish_and_clear();
    report.print(screen);
    Ok(())
}

/// The measurements, phase by phase.
struct Report<'a> {
    azure: &'a Azure,
    /// The number of pages of a scale set's list.
    pages: usize,
    memory: Vec<MemoryUse>,
    calls: Vec<Calls>,
    times: Vec<[String; 6]>,
    /// The processor time of the program at the beginning of the phase.
    worked: Duration,
    /// The same of this process, which is the simulators'.
    simulated: Duration,
}

impl<'a> Report<'a> {
    fn new(bench: &'a Bench, arguments: &Arguments) -> Self {
        let azure = &bench.azure.azure;
        let pages =
            usize::try_from(arguments.instances).unwrap_or(usize::MAX).div_ceil(azure.options().page_size);
        let (memory, calls, times) = (Vec::new(), Vec::new(), Vec::new());
        let (worked, simulated) = (Duration::ZERO, Duration::ZERO);
        Self { azure, pages, memory, calls, times, worked, simulated }
    }

    /// Begins a phase.
    fn begin(&mut self, program: &Running) -> anyhow::Result<()> {
        self.azure.clear_journal();
        self.worked = processor_time(program.id())?;
        self.simulated = processor_time(std::process::id())?;
        Ok(())
    }

    /// Ends a phase; `took` has the duration for each of its objects.
    fn note(&mut self, phase: String, took: &[Duration], program: &Running) -> anyhow::Result<()> {
        let seconds = |time: Duration| format!("{:.2} s", time.as_secs_f64());
        let mut sorted = took.to_vec();
        sorted.sort();
        let after = |hundredths| {
            if sorted.is_empty() { String::new() } else { seconds(percentile(&sorted, hundredths)) }
        };
        let worked = processor_time(program.id())?.saturating_sub(self.worked);
        let simulated = processor_time(std::process::id())?.saturating_sub(self.simulated);
        let (worked, simulated) = (seconds(worked), seconds(simulated));
        self.times.push([phase.clone(), after(50), after(95), after(100), worked, simulated]);
        self.calls.push(Calls::of(phase, &self.azure.journal(), self.pages));
        Ok(())
    }

    /// Records the program's memory.
    fn hold(&mut self, state: String, program: &Running) -> anyhow::Result<()> {
        self.memory.push(MemoryUse::by(program, state, "40 MB")?);
        Ok(())
    }

    fn print(&self, screen: Screen) {
        screen.heading("Times");
        let heads = ["WHILE", "MEDIAN", "P95", "LAST", "PROCESSOR TIME", "OF THE SIMULATORS"];
        screen.table(heads, &self.times);
        screen.heading("Memory");
        let rows: Vec<_> = self.memory.iter().map(MemoryUse::row).collect();
        screen.table(["CONTROLLER MANAGER", "GOAL", "RESIDENT", "PRIVATE", "PEAK"], &rows);
        screen.heading("Calls to Azure");
        let rows: Vec<_> = self.calls.iter().map(Calls::row).collect();
        let in_round = format!("WITHIN {} S", ROUND.as_secs());
        let heads =
            ["WHILE", "CALLS", "WRITES", "LISTS OF A SCALE SET", "OF ITS INTERFACES", &in_round, "GOAL"];
        screen.table(heads, &rows);
    }
}

/// The simulators.
struct Bench {
    azure: HostedAzure,
    kubernetes: HostedKubernetes,
    cloud_config: PathBuf,
    directory: PathBuf,
}

impl Bench {
    async fn start(
        directory: &Path,
        arguments: &Arguments,
        stop: &CancellationToken,
    ) -> anyhow::Result<Self> {
        let pool = |number: u64| NodePool::new(&set_name(number), &prefix(number), arguments.instances);
        let shape = Shape { pools: (0..arguments.scale_sets).map(pool).collect(), ..Shape::default() };
        // The benchmark measures our own work, not Azure's throttling.
        let options = azure_simulator::Options { budgets: None, ..azure_simulator::Options::default() };
        let azure = start_azure(&shape, CLIENT_SECRET, options, directory, stop).await?;
        shape
            .lay_out(&azure.azure)
            .map_err(|refusal| anyhow::anyhow!("the cluster is refused: {refusal}"))?;
        let kubernetes = start_kubernetes(directory, stop).await?;
        let mut config = shape.azure_json(&azure.https, CLIENT_SECRET);
        if arguments.by_address {
            config["loadBalancerBackendPoolConfigurationType"] = "nodeIP".into();
        }
        let cloud_config = directory.join("azure.json");
        std::fs::write(&cloud_config, config.to_string())?;
        Ok(Self { azure, kubernetes, cloud_config, directory: directory.to_owned() })
    }

    fn start_manager(&self, manager: &Manager) -> anyhow::Result<Running> {
        let files = Files {
            cloud_config: &self.cloud_config,
            kubeconfig: &self.kubernetes.kubeconfig,
            certificate_authority: &self.azure.certificate_authority,
            logs: &self.directory,
        };
        Running::start(manager, &files)
    }

    /// Lets kubelets register their nodes, and waits until all are initialised. Returns the duration for each.
    async fn register(&self, machines: &[Machine], bar: &ProgressBar) -> anyhow::Result<Vec<Duration>> {
        let nodes =
            machines.iter().map(|machine| node(&machine.name, &machine.address, &machine.system_uuid));
        self.create("Node", nodes, is_initialised, bar).await
    }

    /// Applies Services, and waits until all have their addresses. Returns the duration for each.
    async fn apply_services(
        &self,
        numbers: Range<usize>,
        bar: &ProgressBar,
    ) -> anyhow::Result<Vec<Duration>> {
        self.create("Service", numbers.map(service), is_served, bar).await
    }

    /// Creates objects of a kind, and waits until each is in its desired state. Returns the duration for each.
    async fn create(
        &self,
        kind: &str,
        objects: impl Iterator<Item = Value>,
        is_done: impl Fn(&Value) -> bool,
        bar: &ProgressBar,
    ) -> anyhow::Result<Vec<Duration>> {
        let kubernetes = &self.kubernetes.kubernetes;
        let (mut open, mut took) = (HashMap::new(), Vec::new());
        let mut namespace = String::new();
        for object in objects {
            object["metadata"]["namespace"].as_str().unwrap_or_default().clone_into(&mut namespace);
            open.insert(kubernetes.create(object)?.name().to_owned(), Instant::now());
        }
        let all = open.len();
        let (mut latest, mut since) = (0, Instant::now());
        while !open.is_empty() {
            sleep(if all == 1 { SHORT_POLL_INTERVAL } else { POLL_INTERVAL }).await;
            // A list of thousands every two milliseconds would be most of the simulators' work.
            let objects = match open.keys().next() {
                Some(name) if all == 1 => kubernetes.get(kind, &namespace, name).into_iter().collect(),
                _ => kubernetes.list(kind),
            };
            let open_ones = objects.iter().filter(|object| open.contains_key(object.name()));
            let done: Vec<_> = open_ones.filter(|object| is_done(object.value())).cloned().collect();
            took.extend(
                done.iter().filter_map(|object| open.remove(object.name())).map(|begun| begun.elapsed()),
            );
            bar.set_message(format!("{kind}: {} of {all}", took.len()));
            if took.len() > latest {
                (latest, since) = (took.len(), Instant::now());
            }
            ensure!(
                since.elapsed() < STALL_TIMEOUT,
                "{kind}: {latest} of {all}, and no further for {} s",
                STALL_TIMEOUT.as_secs()
            );
        }
        Ok(took)
    }

    /// Deletes a machine so that its kubelet falls silent; returns the time until its Node is deleted.
    async fn lose(&self, machine: &Machine, bar: &ProgressBar) -> anyhow::Result<Duration> {
        bar.set_message("a machine is deleted");
        let refused = |refusal| anyhow::anyhow!("the machine cannot be deleted: {refusal}");
        self.azure.azure.remove_instance(&machine.scale_set, &machine.instance).map_err(refused)?;
        let begun = Instant::now();
        let kubernetes = &self.kubernetes.kubernetes;
        fall_silent(kubernetes, &machine.name)?;
        while kubernetes.get("Node", "", &machine.name).is_some() {
            ensure!(begun.elapsed() < STALL_TIMEOUT, "the Node of a deleted machine stays");
            sleep(SHORT_POLL_INTERVAL).await;
        }
        Ok(begun.elapsed())
    }

    /// Restores the size that a scale set had before it lost a machine; returns the time until the node of the machine
    /// that is not `known` yet is initialised.
    async fn replace(
        &self,
        lost: &Machine,
        instances: u64,
        known: &mut HashSet<String>,
        bar: &ProgressBar,
    ) -> anyhow::Result<Vec<Duration>> {
        let refused = |refusal| anyhow::anyhow!("the scale set does not grow: {refusal}");
        self.azure.azure.scale(&lost.scale_set, instances).map_err(refused)?;
        let mut new = machines(&self.azure.azure)?;
        new.retain(|machine| known.insert(machine.name.clone()));
        self.register(&new, bar).await
    }

    /// Lets some kubelets of each scale set fall silent; returns their number.
    fn silence(&self, machines: &[Machine], arguments: &Arguments) -> anyhow::Result<usize> {
        let mut silent = 0;
        for prefix in (0..arguments.scale_sets).map(prefix) {
            let of_set = machines.iter().filter(|machine| machine.name.starts_with(&prefix));
            for machine in of_set.take(arguments.silent) {
                fall_silent(&self.kubernetes.kubernetes, &machine.name)?;
                silent += 1;
            }
        }
        Ok(silent)
    }

    /// Waits until there are no more requests to Azure.
    async fn rest(&self, rest: Duration) {
        let mut idle = Idle::begin();
        while idle.time(&self.azure.azure) < rest {
            sleep(POLL_INTERVAL).await;
        }
    }
}

fn set_name(number: u64) -> String {
    format!("workers-{number}")
}

/// The prefix of the host names of a scale set's machines.
fn prefix(number: u64) -> String {
    format!("worker{number}-")
}

/// A machine, as far as its kubelet knows it.
struct Machine {
    name: String,
    address: String,
    system_uuid: String,
    scale_set: ResourceId,
    instance: String,
}

fn machines(azure: &Azure) -> anyhow::Result<Vec<Machine>> {
    let machine = |machine: &Value| {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let name = text(&machine["properties"]["osProfile"]["computerName"])?;
        let interface = machine.pointer("/properties/networkProfile/networkInterfaces/0/id")?;
        let interface = azure.document(&interface.as_str()?.parse().ok()?)?;
        let address = text(interface.pointer("/properties/ipConfigurations/0/properties/privateIPAddress")?)?;
        let id: ResourceId = machine["id"].as_str()?.parse().ok()?;
        let (scale_set, instance) = (id.parent()?, text(&machine["instanceId"])?);
        let system_uuid = text(&machine["properties"]["vmId"])?;
        Some(Machine { name, address, system_uuid, scale_set, instance })
    };
    let documents = azure.documents_of_type(INSTANCES);
    documents.iter().map(|one| machine(one).context("a machine has a name and an address")).collect()
}

/// The program's memory in one state of the cluster.
struct MemoryUse {
    state: String,
    goal: &'static str,
    memory: Memory,
}

impl MemoryUse {
    fn by(process: &Running, state: String, goal: &'static str) -> anyhow::Result<Self> {
        Ok(Self { state, goal, memory: Memory::of(process.id())? })
    }

    fn row(&self) -> [String; 5] {
        let Memory { resident, private, peak, .. } = self.memory;
        row![self.state, self.goal, megabytes(resident), megabytes(private), megabytes(peak)]
    }
}

/// The requests to Azure during a phase.
struct Calls {
    phase: String,
    all: u64,
    writes: u64,
    instances: Lists,
    interfaces: Lists,
}

impl Calls {
    /// Counts requests; a list of a scale set has `pages` pages.
    fn of(phase: String, journal: &Journal, pages: usize) -> Self {
        Self {
            phase,
            all: journal.counts.requests,
            writes: journal.counts.writes,
            instances: Lists::of(journal, "/virtualmachines", pages),
            interfaces: Lists::of(journal, "/networkinterfaces", pages),
        }
    }

    fn row(&self) -> [String; 7] {
        let (instances, interfaces) = (&self.instances, &self.interfaces);
        let in_round = instances.most_in_round.max(interfaces.most_in_round);
        row![self.phase, self.all, self.writes, instances.most, interfaces.most, in_round, "1"]
    }
}

/// The number of lists of scale sets.
struct Lists {
    /// The maximum for one set.
    most: usize,
    /// The maximum for one set within a round.
    most_in_round: usize,
}

impl Lists {
    fn of(journal: &Journal, ending: &str, pages: usize) -> Self {
        let mut polls: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        for entry in journal.entries.iter().filter(|entry| entry.method == "GET") {
            let path = entry.path.to_ascii_lowercase();
            if path.contains("/virtualmachinescalesets/") && path.ends_with(ending) {
                polls.entry(path).or_default().push(entry.time.as_millisecond());
            }
        }
        // The pages of a list are requested one after the other, and a list begins after the previous one has ended.
        let begun: Vec<Vec<i64>> =
            polls.into_values().map(|times| times.into_iter().step_by(pages.max(1)).collect()).collect();
        let round = i64::try_from(ROUND.as_millis()).unwrap_or(i64::MAX);
        let in_round = |times: &Vec<i64>| {
            let from =
                |first: &i64| times.iter().filter(|time| (0..round).contains(&(*time - first))).count();
            times.iter().map(from).max().unwrap_or_default()
        };
        Self {
            most: begun.iter().map(Vec::len).max().unwrap_or_default(),
            most_in_round: begun.iter().map(in_round).max().unwrap_or_default(),
        }
    }
}

fn is_served(service: &Value) -> bool {
    service["status"]["loadBalancer"]["ingress"].as_array().is_some_and(|ingress| !ingress.is_empty())
}

/// A kubelet falls silent: what kube-controller-manager does then.
fn fall_silent(kubernetes: &Kubernetes, name: &str) -> anyhow::Result<()> {
    let node = kubernetes.get("Node", "", name).with_context(|| format!("node {name} is not there"))?;
    let mut conditions = node.value()["status"]["conditions"].clone();
    let Some(conditions) = conditions.as_array_mut() else { bail!("node {name} has no conditions") };
    for condition in conditions.iter_mut() {
        condition["status"] = "Unknown".into();
        condition["reason"] = "NodeStatusUnknown".into();
        condition["message"] = "Kubelet stopped posting node status.".into();
    }
    kubernetes.merge_status("Node", "", name, &json!({"status": {"conditions": conditions}}))?;
    Ok(())
}

/// The number of container images that a kubelet reports (`--node-status-max-images`).
const IMAGES: usize = 50;

/// A node as its kubelet registers it, before a cloud has described it.
pub(super) fn node(name: &str, address: &str, system_uuid: &str) -> Value {
    let image = |number: usize| {
        let repository = format!("registry.example/platform/component-{number:02}");
        json!({"names": [
            format!("{repository}@sha256:{number:064x}"), format!("{repository}:v1.{number}.0"),
        ], "sizeBytes": 40_000_000 + number})
    };
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let resources = json!({
        "cpu": "2", "memory": "8148420Ki", "pods": "110", "ephemeral-storage": "129886128Ki",
        "hugepages-1Gi": "0", "hugepages-2Mi": "0",
    });
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "agentpool": "workers",
                "beta.kubernetes.io/arch": "amd64",
                "beta.kubernetes.io/os": "linux",
                "kubernetes.azure.com/agentpool": "workers",
                "kubernetes.azure.com/cluster": "bench",
                "kubernetes.azure.com/mode": "user",
                "kubernetes.azure.com/node-image-version": "AKSUbuntu-2204gen2containerd-202601.01.0",
                "kubernetes.azure.com/os-sku": "Ubuntu",
                "kubernetes.azure.com/role": "agent",
                "kubernetes.azure.com/storageprofile": "managed",
                "kubernetes.azure.com/storagetier": "Premium_LRS",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/role": "agent",
                "node-role.kubernetes.io/agent": "",
                "storageprofile": "managed",
                "storagetier": "Premium_LRS",
            },
            "annotations": {
                "alpha.kubernetes.io/provided-node-ip": address,
                "csi.volume.kubernetes.io/nodeid":
                    json!({"disk.csi.azure.com": name, "file.csi.azure.com": name}).to_string(),
                "node.alpha.kubernetes.io/ttl": "0",
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            },
        },
        "spec": {"taints": [{"key": TAINT_UNINITIALIZED, "value": "true", "effect": "NoSchedule"}]},
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": address},
                {"type": "Hostname", "address": name},
            ],
            "capacity": resources, "allocatable": resources,
            "conditions": [
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory",
                    "kubelet has sufficient memory available"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID",
                    "kubelet has sufficient PID available"),
                condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10_250}},
            "images": (0..IMAGES).map(image).collect::<Vec<_>>(),
            "nodeInfo": {
                "architecture": "amd64", "bootID": "3c4ba1a7-8f3f-4f2c-8a86-0f3c7e2b7f11",
                "containerRuntimeVersion": "containerd://1.7.27", "kernelVersion": "5.15.0-1096-azure",
                "kubeProxyVersion": "", "kubeletVersion": "v1.33.5", "machineID": "b7b5c0c64a5d4c7b8bbd0c7a6d6c5f3e",
                "operatingSystem": "linux", "osImage": "Ubuntu 22.04.5 LTS",
                "systemUUID": system_uuid,
            },
        },
    })
}

/// A Service of type LoadBalancer: every other one is internal, every fourth has source ranges.
pub(super) fn service(number: usize) -> Value {
    let ranges = if number.is_multiple_of(4) {
        json!([format!("10.{}.{}.0/24", number / 256 % 256, number % 256)])
    } else {
        json!([])
    };
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": format!("service-{number}"), "namespace": "default",
            "labels": {"app.kubernetes.io/name": format!("app-{number}"), "app.kubernetes.io/managed-by": "Helm"},
            "annotations": {
                "service.beta.kubernetes.io/azure-load-balancer-internal": (number % 2 == 1).to_string(),
                "meta.helm.sh/release-name": format!("release-{number}"),
                "meta.helm.sh/release-namespace": "default",
            },
        },
        "spec": {
            "type": "LoadBalancer", "selector": {"app": format!("app-{number}")}, "loadBalancerSourceRanges": ranges,
            "ports": [{"name": "http", "protocol": "TCP", "port": 80, "targetPort": 8080}],
        },
    })
}
