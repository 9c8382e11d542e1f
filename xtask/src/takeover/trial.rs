//! One cluster is taken over: a first program serves the corpus, a second one takes over.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use azure_simulator::{Options, RequestKind};
use azure_types::ResourceId;
use clock::Clock;
use explorer::stage::{InitialResource, OTHER_GROUP};
use k8s::names::CONDITION_NETWORK_UNAVAILABLE;
use kubernetes_simulator::Kubernetes;
use serde_json::{Value, json};
use simulated_cluster::{HostedCluster, HostedOptions, Shape, manifests};
use testkit::AzureState;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::cases::{Case, Change};
use super::manager::Manager;
use super::shapes::Kind;
use crate::program::Program;

/// The maximum time for a program to reconcile all Services. The replaced program reconciles one at a time.
const PASS_TIMEOUT: Duration = Duration::from_secs(1_800);
/// A pass is over after this time without requests to Azure: both programs update the nodes once after they have
/// reconciled the Services.
const MIN_QUIET: Duration = Duration::from_secs(6);
/// The maximum time for a Service to be served after all have been reconciled.
const RETRY_TIMEOUT: Duration = Duration::from_secs(60);
/// The time limit for a program to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);

/// Events that end the reconcile of a Service.
const RESULTS: [&str; 2] = ["EnsuredLoadBalancer", "SyncLoadBalancerFailed"];

/// The result of a takeover.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The number of Services that the first program served.
    pub services: usize,
    /// Services that the first program did not serve, with its message.
    pub not_served: Vec<String>,
    /// Writes that the second program sent, accepted or not.
    pub writes: Vec<String>,
    /// Accepted writes of the second program that changed nothing.
    pub needless: Vec<String>,
    /// The differences in Azure afterwards.
    pub documents: Vec<String>,
    /// The differences of Services afterwards, and the second program's messages about those that it does not serve.
    pub statuses: Vec<String>,
    /// The durations of the first and the second program.
    pub took: [Duration; 2],
}

impl Outcome {
    /// Whether all Services are served as before, whatever was written.
    pub fn serves_on(&self) -> bool {
        self.not_served.is_empty() && self.statuses.is_empty()
    }

    /// Whether nothing was written or changed.
    pub fn is_good(&self) -> bool {
        let lists = [&self.not_served, &self.writes, &self.documents, &self.statuses];
        lists.iter().all(|list| list.is_empty())
    }
}

/// A cluster with the Services of the corpus, and no running program yet.
pub struct Trial {
    cluster: HostedCluster,
    kubernetes: Kubernetes,
    directory: PathBuf,
    azure_json: PathBuf,
    /// The ranges of all pods, if there are routes to those of nodes.
    pod_ranges: Vec<&'static str>,
    services: BTreeMap<String, usize>,
    /// The changes of Services after they are served: the first change of each case, then the second one, and so on.
    changes: Vec<Vec<Change>>,
    stop: CancellationToken,
}

impl Drop for Trial {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Trial {
    /// Creates the cluster in this folder and applies the Services.
    pub async fn prepare(kind: Kind, cases: &[&Case], directory: &Path) -> anyhow::Result<Self> {
        let stop = CancellationToken::new();
        let shape = kind.shape();
        let azure = Options { start: Clock::system().now(), ..Options::default() };
        let options = HostedOptions::of(shape.clone(), azure, directory);
        let cluster = HostedCluster::start(options, &stop).await?;
        // Throttling is not tested here.
        cluster.azure.set_budgets(None);
        let kubernetes = cluster.kubernetes.clone().context("the simulated Kubernetes was asked for")?;
        let azure_json = directory.join("azure-of-kind.json");
        let mut settings: Value = serde_json::from_str(&std::fs::read_to_string(&cluster.files.azure_json)?)?;
        if let (Some(settings), Value::Object(more)) = (settings.as_object_mut(), kind.configuration()) {
            settings.extend(more);
        }
        std::fs::write(&azure_json, format!("{settings:#}\n"))?;

        let mut trial = Self {
            cluster,
            kubernetes,
            directory: directory.to_owned(),
            azure_json,
            pod_ranges: if kind.routes { shape.pod_ranges() } else { Vec::new() },
            services: BTreeMap::new(),
            changes: Vec::new(),
            stop,
        };
        trial.initialise_nodes(&shape).await?;
        let group = ResourceId::group(&shape.subscription, OTHER_GROUP);
        trial.put(&group, json!({"location": shape.region}))?;
        for case in cases {
            for given in &case.given {
                trial.put(&id_of(&shape, given), given.document.clone())?;
            }
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": case.name}});
            trial
                .kubernetes
                .create(namespace)
                .map_err(|error| anyhow::anyhow!("{}: {error:?}", case.name))?;
            let text = trial.fill_in(&serde_json::to_string(&case.objects)?);
            let objects: Vec<Value> = serde_json::from_str(&text)?;
            manifests::apply(&trial.cluster.client, &objects).await.with_context(|| case.name.clone())?;
            trial.services.extend(case.services.clone());
            for (round, change) in case.then.iter().enumerate() {
                trial.changes.resize_with(trial.changes.len().max(round + 1), Vec::new);
                trial.changes[round].push(change.clone());
            }
        }
        Ok(trial)
    }

    fn put(&self, id: &ResourceId, document: Value) -> anyhow::Result<()> {
        if self.cluster.azure.document(id).is_none() {
            self.cluster.azure.put(id, document).map_err(|refusal| anyhow::anyhow!("{id}: {refusal}"))?;
        }
        Ok(())
    }

    /// Initialises nodes as a node manager does on each machine: neither program is one.
    async fn initialise_nodes(&self, shape: &Shape) -> anyhow::Result<()> {
        let machines = || {
            let kinds = ["virtualMachineScaleSets/virtualMachines", "virtualMachines"];
            kinds
                .map(|kind| self.cluster.azure.documents_of_type(&format!("Microsoft.Compute/{kind}")))
                .concat()
        };
        let deadline = Instant::now() + Duration::from_secs(30);
        while self.kubernetes.list("Node").len() < machines().len() {
            if Instant::now() > deadline {
                bail!("not every machine became a node");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        for (number, machine) in machines().into_iter().enumerate() {
            let name = machine.pointer("/properties/osProfile/computerName").and_then(Value::as_str);
            let name = name.context("a machine without a name")?.to_ascii_lowercase();
            let zone = match machine.pointer("/zones/0").and_then(Value::as_str) {
                Some(zone) => format!("{}-{zone}", shape.region),
                None => "0".to_owned(),
            };
            let id = machine["id"].as_str().context("a machine without an id")?;
            let node = self.kubernetes.get("Node", "", &name).with_context(|| format!("no node {name}"))?;
            let mut taints = node.value()["spec"]["taints"].as_array().cloned().unwrap_or_default();
            taints.retain(|taint| taint["key"] != k8s::names::TAINT_UNINITIALIZED);
            let mut patch = json!({
                "metadata": {"labels": {
                    "topology.kubernetes.io/region": shape.region, "topology.kubernetes.io/zone": zone}},
                "spec": {"providerID": format!("azure://{id}"), "taints": taints},
            });
            if !self.pod_ranges.is_empty() {
                let ranges = [format!("10.244.{number}.0/24"), format!("fd00:10:244:{number}::/64")];
                patch["spec"]["podCIDRs"] = ranges[..self.pod_ranges.len()].into();
            }
            let patched = self.kubernetes.merge("Node", "", &name, &patch);
            patched.map_err(|error| anyhow::anyhow!("node {name}: {error:?}"))?;
        }
        Ok(())
    }

    /// Replaces `<address of NAME>` and `<id of NAME>` by their values in this Azure.
    fn fill_in(&self, text: &str) -> String {
        let mut filled = text.to_owned();
        for kind in ["publicIPAddresses", "publicIPPrefixes"] {
            for document in self.cluster.azure.documents_of_type(&format!("Microsoft.Network/{kind}")) {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let name = text(&document["name"]);
                filled = filled.replace(&format!("<id of {name}>"), &text(&document["id"]));
                filled = filled
                    .replace(&format!("<address of {name}>"), &text(&document["properties"]["ipAddress"]));
            }
        }
        filled
    }

    /// Lets the first program serve all Services and the second one take over.
    pub async fn hand_over(
        &mut self,
        first: &Manager,
        second: &Manager,
        mut tell: impl FnMut(String),
    ) -> anyhow::Result<Outcome> {
        let mut outcome = Outcome::default();
        let begun = Instant::now();
        let looks = self.looks();
        let mut program = self.start(first, "first")?;
        self.pass(&mut program, &looks, |text| tell(format!("{} serves {text}", first.name))).await?;
        outcome.not_served = self.drop_unserved(&mut program).await?;
        for round in std::mem::take(&mut self.changes) {
            tell(format!("{} follows {} changes", first.name, round.len()));
            self.change(&mut program, round).await?;
        }
        outcome.not_served.extend(self.drop_unserved(&mut program).await?);
        outcome.services = self.services.len();
        self.end(&mut program).await?;
        outcome.took[0] = begun.elapsed();

        let azure = AzureState::of(&self.cluster.azure, &self.kubernetes);
        let statuses = self.statuses();
        self.keep("before.json")?;
        self.cluster.azure.clear_journal();
        let begun = Instant::now();
        let looks = self.looks();
        let mut program = self.start(second, "second")?;
        self.pass(&mut program, &looks, |text| tell(format!("{} looks at {text}", second.name))).await?;
        self.end(&mut program).await?;
        outcome.took[1] = begun.elapsed();

        self.keep("after.json")?;
        (outcome.needless, outcome.writes) = self.writes();
        if !second.is_peer {
            outcome.writes.append(&mut outcome.needless);
        }
        outcome.documents = azure.differences(&AzureState::of(&self.cluster.azure, &self.kubernetes));
        let after = self.statuses();
        for (key, before) in &statuses {
            if after.get(key) != Some(before) {
                let after = after.get(key).unwrap_or(&Value::Null);
                outcome.statuses.push(format!("{key}: {before} became {after}"));
            }
        }
        let failed = |key: &&String| self.last_result(key).is_some_and(|(reason, _)| reason == RESULTS[1]);
        for key in self.services.keys().filter(failed) {
            let said = self.last_result(key).map(|(_, text)| text).unwrap_or_default();
            outcome.statuses.push(format!("{key}: {} says {said}", second.name));
        }
        Ok(outcome)
    }

    /// Starts a program. The nodes' route conditions are reset: it has to report them itself.
    fn start(&self, manager: &Manager, log: &str) -> anyhow::Result<Program> {
        for node in self.kubernetes.list("Node").iter().filter(|_| !self.pod_ranges.is_empty()) {
            let mut conditions = node.value()["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.retain(|condition| condition["type"] != CONDITION_NETWORK_UNAVAILABLE);
            let patch = json!({"status": {"conditions": conditions}});
            let patched = self.kubernetes.merge_status("Node", "", node.name(), &patch);
            patched.map_err(|error| anyhow::anyhow!("node {}: {error:?}", node.name()))?;
        }
        manager.start(&self.directory, log, &self.cluster, &self.azure_json, &self.pod_ranges)
    }

    /// Whether every node with routes reports that its pods are reachable.
    fn is_routed(&self) -> bool {
        let says = |node: &Value| {
            let mut conditions = node["status"]["conditions"].as_array().into_iter().flatten();
            conditions.any(|c| c["type"] == CONDITION_NETWORK_UNAVAILABLE && c["status"] == "False")
        };
        self.pod_ranges.is_empty() || self.kubernetes.list("Node").iter().all(|node| says(node.value()))
    }

    /// Changes Services and waits until the program has followed.
    async fn change(&mut self, program: &mut Program, round: Vec<Change>) -> anyhow::Result<()> {
        for Change { patches, delete, services } in round {
            for (key, patch) in patches {
                let patch: Value = serde_json::from_str(&self.fill_in(&patch.to_string()))?;
                let (namespace, name) = key.split_once('/').unwrap_or_default();
                let patched = self.kubernetes.merge("Service", namespace, name, &patch);
                patched.map_err(|error| anyhow::anyhow!("{key}: {error:?}"))?;
                self.services.remove(&key);
            }
            for key in delete {
                let (namespace, name) = key.split_once('/').unwrap_or_default();
                let _gone = self.kubernetes.delete("Service", namespace, name);
                self.services.remove(&key);
            }
            self.services.extend(services);
        }
        let mut quiet = (u64::MAX, Instant::now());
        // Not every change concerns the program: a round is over when there is no more activity.
        while quiet.1.elapsed() < 2 * MIN_QUIET {
            program.must_run()?;
            let asked = self.cluster.azure.journal_after(u64::MAX).counts.requests;
            if asked != quiet.0 {
                quiet = (asked, Instant::now());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        Ok(())
    }

    async fn end(&self, program: &mut Program) -> anyhow::Result<()> {
        program.terminate(STOP_TIMEOUT).await?;
        while self.cluster.azure.running_operations() > 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Waits until a program has reconciled every Service once and sends no more requests to Azure.
    async fn pass(
        &self,
        program: &mut Program,
        before: &BTreeMap<String, u64>,
        mut tell: impl FnMut(String),
    ) -> anyhow::Result<()> {
        let deadline = Instant::now() + PASS_TIMEOUT;
        let mut requests = u64::MAX;
        let mut since = Instant::now();
        loop {
            program.must_run()?;
            let looks = self.looks();
            let count = |of: &BTreeMap<String, u64>, key: &String| of.get(key).copied().unwrap_or_default();
            let open = self.services.keys().filter(|key| count(&looks, key) <= count(before, key));
            let open: Vec<&String> = open.collect();
            let asked = self.cluster.azure.journal_after(u64::MAX).counts.requests;
            if asked != requests || self.cluster.azure.running_operations() > 0 {
                (requests, since) = (asked, Instant::now());
            }
            tell(format!("{} of {} Services", self.services.len() - open.len(), self.services.len()));
            if open.is_empty() && self.is_routed() && since.elapsed() >= MIN_QUIET {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!(
                    "after {} s {open:?} are not reconciled, or not all routes are:\n{}",
                    PASS_TIMEOUT.as_secs(),
                    program.last_words()
                );
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// The number of reconciles of each Service, as counted by its events.
    fn looks(&self) -> BTreeMap<String, u64> {
        let mut looks: BTreeMap<String, u64> = BTreeMap::new();
        for event in self.kubernetes.list("Event") {
            let event = event.value();
            if RESULTS.iter().any(|reason| event["reason"] == *reason) {
                *looks.entry(about(event)).or_default() += event["count"].as_u64().unwrap_or(1);
            }
        }
        looks
    }

    /// The reason and message of the newest event that ends a reconcile of a Service.
    fn last_result(&self, key: &str) -> Option<(String, String)> {
        let events = self.kubernetes.list("Event");
        let events = events.iter().filter(|event| {
            about(event.value()) == key && RESULTS.iter().any(|reason| event.value()["reason"] == *reason)
        });
        let last = events.max_by_key(|event| event.version())?;
        let text = |member: &str| last.value()[member].as_str().unwrap_or_default().to_owned();
        Some((text("reason"), text("message")))
    }

    /// Deletes the Services that are not served, and returns them with the reasons.
    async fn drop_unserved(&mut self, program: &mut Program) -> anyhow::Result<Vec<String>> {
        let deadline = Instant::now() + RETRY_TIMEOUT;
        let mut unserved = self.unserved();
        while !unserved.is_empty() && Instant::now() < deadline {
            program.must_run()?;
            tokio::time::sleep(Duration::from_millis(500)).await;
            unserved = self.unserved();
        }
        let mut said = Vec::new();
        for key in &unserved {
            let text = self.last_result(key).map(|(_, text)| text).unwrap_or_default();
            said.push(format!("{key}: {text}"));
            let (namespace, name) = key.split_once('/').unwrap_or_default();
            let _gone = self.kubernetes.delete("Service", namespace, name);
            self.services.remove(key);
        }
        let deadline = Instant::now() + RETRY_TIMEOUT;
        while unserved.iter().any(|key| self.service(key).is_some()) && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        for key in unserved.iter().filter(|key| self.service(key).is_some()) {
            said.push(format!("{key} cannot be deleted"));
        }
        if !unserved.is_empty() {
            self.pass(program, &BTreeMap::new(), |_| ()).await?;
        }
        Ok(said)
    }

    fn unserved(&self) -> BTreeSet<String> {
        let lacks = |(key, addresses): (&String, &usize)| {
            let service = self.service(key);
            let has = service.map_or(0, |service| {
                let ingress = service.pointer("/status/loadBalancer/ingress").and_then(Value::as_array);
                ingress.map_or(0, Vec::len)
            });
            (has < *addresses).then(|| key.clone())
        };
        self.services.iter().filter_map(lacks).collect()
    }

    fn service(&self, key: &str) -> Option<Value> {
        let (namespace, name) = key.split_once('/')?;
        Some(self.kubernetes.get("Service", namespace, name)?.value().clone())
    }

    /// The state that a takeover must leave unchanged: the status, and the metadata that programs write to Services.
    fn statuses(&self) -> BTreeMap<String, Value> {
        let of = |key: &String| {
            let service = self.service(key).unwrap_or_default();
            let metadata = &service["metadata"];
            let kept = json!({"status": service["status"], "finalizers": metadata["finalizers"],
                "annotations": metadata["annotations"], "labels": metadata["labels"]});
            (key.clone(), kept)
        };
        self.services.keys().map(of).collect()
    }

    /// Every request since the journal was cleared that could have changed something: first those that were accepted
    /// and changed nothing.
    fn writes(&self) -> (Vec<String>, Vec<String>) {
        let journal = self.cluster.azure.journal();
        let writes =
            journal.entries.iter().filter(|e| matches!(e.kind, RequestKind::Write | RequestKind::Delete));
        let words = |entry: &azure_simulator::JournalEntry| {
            let path = entry.path.rsplit_once("/providers/").map_or(entry.path.as_str(), |(_, rest)| rest);
            let changes = if entry.changes.is_empty() {
                String::new()
            } else {
                format!(": {}", entry.changes.join(", "))
            };
            format!("{} {path} {}{changes}", entry.method, entry.status)
        };
        let (needless, rest): (Vec<_>, Vec<_>) = writes.partition(|entry| entry.is_needless_write());
        (needless.into_iter().map(words).collect(), rest.into_iter().map(words).collect())
    }

    /// Writes Azure's documents to a file, for finding the cause of a difference.
    fn keep(&self, name: &str) -> anyhow::Result<()> {
        let documents = self.cluster.azure.documents();
        Ok(std::fs::write(self.directory.join(name), serde_json::to_string_pretty(&documents)?)?)
    }
}

fn id_of(shape: &Shape, given: &InitialResource) -> ResourceId {
    let group = given.group.unwrap_or(&shape.resource_group);
    ResourceId::group(&shape.subscription, group).resource("Microsoft.Network", given.kind, &given.name)
}

/// `namespace/name` of an event's object.
fn about(event: &Value) -> String {
    let text = |member: &str| event["involvedObject"][member].as_str().unwrap_or_default();
    format!("{}/{}", text("namespace"), text("name"))
}
