//! The scenarios, and the one runner that measures all of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use azure_simulator::view::Topology;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use kubernetes_simulator::Object;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::calls::Calls;
use super::critical_path::CriticalPath;
use super::report::{Row, Time};
use super::stage::Stage;
use crate::bench::process::Manager;
use crate::bench::simulators::is_initialised;
use crate::bench::statistics::{median, percentile};

/// An event, and the time until a program has handled it.
pub struct Scenario {
    /// Its name in JSON.
    pub name: &'static str,
    /// Whether the program is started for it, replacing a running one.
    starts: bool,
    /// The number of writes that it should need.
    goal_writes: Option<u64>,
    act: Act,
}

type Act = for<'a> fn(&'a mut Stage) -> BoxFuture<'a, anyhow::Result<Outcome>>;

/// The result of a scenario.
#[derive(Default)]
struct Outcome {
    times: Vec<Time>,
    /// The time from each Service's creation to its address.
    served: Vec<Duration>,
}

/// Services that are created and deleted one after the other.
pub const CHAIN: &str = "chain";

/// The scenarios of every program, in order. Each begins with the result of the previous one.
pub const SCENARIOS: [Scenario; 7] = [
    Scenario { name: "start", starts: true, goal_writes: None, act: |stage| start(stage).boxed() },
    Scenario { name: "services", starts: false, goal_writes: None, act: |stage| services(stage).boxed() },
    Scenario {
        name: "oneMore",
        starts: false,
        goal_writes: None,
        act: |stage| serve(stage, vec!["one-more".to_owned()]).boxed(),
    },
    Scenario { name: CHAIN, starts: false, goal_writes: None, act: |stage| chain(stage).boxed() },
    Scenario { name: "nodeJoins", starts: false, goal_writes: None, act: |stage| node_joins(stage).boxed() },
    Scenario { name: "nodeDies", starts: false, goal_writes: None, act: |stage| node_dies(stage).boxed() },
    Scenario { name: "restart", starts: true, goal_writes: Some(0), act: |stage| takes_stock(stage).boxed() },
];

/// Another program is started on what the previous one has built.
pub const TAKEOVER: Scenario = Scenario {
    name: "takeover",
    starts: true,
    goal_writes: Some(0),
    act: |stage| takes_stock(stage).boxed(),
};

impl Scenario {
    /// Runs it with a program: journal, processor time and memory are read before, and after the program has become
    /// idle.
    ///
    /// # Errors
    /// The program fails.
    pub async fn run(&self, stage: &mut Stage, manager: &Manager) -> anyhow::Result<Row> {
        stage.tell(format!("{}: {}", manager.name, self.name));
        if self.starts {
            stage.end();
        }
        stage.begin();
        if self.starts {
            stage.start(manager)?;
        }
        let before = stage.processor_time()?;
        let in_words = || format!("{}, {}", manager.name, self.name);
        let outcome = (self.act)(stage).await.with_context(in_words)?;
        stage.rest().await.with_context(in_words)?;
        let journal = stage.cluster.azure.journal();
        let mut times = outcome.times;
        let (last_call, last_write) = stage.last_call_and_write(&journal);
        times.extend(last_write.map(|after| Time::new("last write done", after)));
        times.extend(last_call.map(|after| Time::new("last call to Azure", after)));
        Ok(Row {
            scenario: self.name,
            program: manager.name,
            times,
            calls: Calls::of(&journal),
            goal_writes: self.goal_writes,
            processor_seconds: stage.processor_time()?.saturating_sub(before).as_secs_f64(),
            memory: stage.memory()?,
            critical_path: (!outcome.served.is_empty()).then(|| CriticalPath::of(&journal.entries)),
            served: outcome.served.iter().map(Duration::as_secs_f64).collect(),
        })
    }
}

/// The program starts with nodes that wait for it.
async fn start(stage: &mut Stage) -> anyhow::Result<Outcome> {
    let kubernetes = stage.kubernetes.clone();
    let before = kubernetes.requests("watch", "nodes");
    let watches = async {
        while kubernetes.requests("watch", "nodes") == before {
            sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    };
    stage.until("the first watch of nodes", watches).await?;
    let watched = stage.elapsed();
    let initialised = async {
        Ok(kubernetes
            .until("Node", |nodes| nodes.iter().all(|node| is_initialised(node)).then_some(()))
            .await?)
    };
    stage.until("all nodes to be initialised", initialised).await?;
    let times =
        vec![Time::new("first watch of nodes", watched), Time::new("all nodes initialised", stage.elapsed())];
    Ok(Outcome { times, ..Outcome::default() })
}

async fn services(stage: &mut Stage) -> anyhow::Result<Outcome> {
    let names = (0..stage.services).map(|number| format!("service-{number}")).collect();
    serve(stage, names).await
}

/// Services are created one after the other, and then deleted one after the other: each waits for the previous one.
/// Azure does not count requests meanwhile: its limit would be ten writes a second, and each Service takes three to be
/// created and three to be deleted.
async fn chain(stage: &mut Stage) -> anyhow::Result<Outcome> {
    stage.cluster.azure.set_budgets(None);
    let outcome = chain_without_budgets(stage).await;
    stage.cluster.azure.set_budgets(stage.cluster.azure.options().budgets.clone());
    outcome
}

async fn chain_without_budgets(stage: &mut Stage) -> anyhow::Result<Outcome> {
    let names: Vec<String> = (0..stage.chain).map(|number| format!("chain-{number}")).collect();
    let (mut created, mut deleted) = (Vec::new(), Vec::new());
    for name in &names {
        created.extend(serve(stage, vec![name.clone()]).await?.served);
    }
    let kubernetes = stage.kubernetes.clone();
    for name in &names {
        let begun = Instant::now();
        kubernetes.delete("Service", "default", name)?;
        let is_there = |service: &Arc<Object>| service.name() == name;
        let gone =
            async { Ok(kubernetes.until("Service", |all| (!all.iter().any(is_there)).then_some(())).await?) };
        stage.until("a Service to be gone", gone).await?;
        deleted.push(begun.elapsed());
    }
    created.sort();
    deleted.sort();
    let times = vec![
        Time::new("created: time to an address, median", median(&created)),
        Time::new("created: time to an address, p90", percentile(&created, 90)),
        Time::new("created: time to an address, longest", percentile(&created, 100)),
        Time::new("deleted: time until it is gone, median", median(&deleted)),
        Time::new("deleted: time until it is gone, p90", percentile(&deleted, 90)),
        Time::new("deleted: time until it is gone, longest", percentile(&deleted, 100)),
    ];
    Ok(Outcome { times, ..Outcome::default() })
}

/// Services are created at once, and each gets its address. They are watched, so that polling does not round the times.
async fn serve(stage: &mut Stage, names: Vec<String>) -> anyhow::Result<Outcome> {
    let kubernetes = stage.kubernetes.clone();
    let mut created = BTreeMap::new();
    for name in names {
        kubernetes.create(json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"},
            "spec": {"type": "LoadBalancer", "selector": {"app": "any"}, "ports": [{"port": 80}]},
        }))?;
        created.insert(name, Instant::now());
    }
    let mut served = BTreeMap::new();
    let all = created.len();
    let has_address = |service: &Object| {
        let ingress = service.value()["status"]["loadBalancer"]["ingress"].as_array();
        ingress.is_some_and(|ingress| !ingress.is_empty())
    };
    let every_address = async {
        let look = |services: &[Arc<Object>]| {
            let now = Instant::now();
            for service in services.iter().filter(|service| has_address(service)) {
                if let Some(begun) = created.remove(service.name()) {
                    served.insert(service.name().to_owned(), now - begun);
                }
            }
            (served.len() == all).then_some(())
        };
        Ok(kubernetes.until("Service", look).await?)
    };
    stage.until("every Service to have its address", every_address).await?;
    let mut served: Vec<Duration> = served.into_values().collect();
    served.sort();
    let times = vec![
        Time::new("time to an address, median", median(&served)),
        Time::new("time to an address, p95", percentile(&served, 95)),
        Time::new("time to an address, last", percentile(&served, 100)),
    ];
    Ok(Outcome { times, served })
}

/// An autoscaler adds a machine: its node is initialised, and every rule delivers to it, too.
async fn node_joins(stage: &mut Stage) -> anyhow::Result<Outcome> {
    let before = stage.machines();
    let refused = |refusal| anyhow::anyhow!("the scale set does not grow: {refusal}");
    stage.cluster.azure.scale(&stage.scale_set, stage.nodes + 1).map_err(refused)?;
    let new = stage.machines().into_iter().find(|machine| !before.contains(machine));
    let (_, name) = new.context("the scale set has no new machine")?;
    let kubernetes = stage.kubernetes.clone();
    let registered = async { Ok(kubernetes.until("Node", |nodes| node(nodes, &name).map(|_| ())).await?) };
    stage.until("the new node to register", registered).await?;
    let mut times = vec![Time::new("node registered", stage.elapsed())];
    let initialised = async {
        let found =
            |nodes: &[Arc<Object>]| node(nodes, &name).is_some_and(|node| is_initialised(node)).then_some(());
        Ok(kubernetes.until("Node", found).await?)
    };
    stage.until("the new node to be initialised", initialised).await?;
    times.extend(stage.initialises_nodes.then(|| Time::new("node initialised", stage.elapsed())));
    let mut changed = stage.cluster.azure.subscribe();
    let (azure, answers) = (stage.cluster.azure.clone(), stage.cluster.answers.clone());
    let machines = stage.machines().len();
    let in_pools = async {
        while !is_everywhere(&Topology::read(&azure, &answers), machines) {
            changed.changed().await?;
        }
        Ok(())
    };
    stage.until("the new machine to be in every pool", in_pools).await?;
    times.push(Time::new("machine in every pool", stage.elapsed()));
    Ok(Outcome { times, ..Outcome::default() })
}

/// The maximum wait for a dead node's Node. The established provider caches scale sets for up to ten minutes, which is
/// too long to wait for. The time is left out then, and tables show `-`.
const DELETION_TIMEOUT: Duration = Duration::from_secs(45);

/// A machine is deleted: after its kubelet is missed, its Node is deleted.
async fn node_dies(stage: &mut Stage) -> anyhow::Result<Outcome> {
    let (instance, name) = stage.machines().into_iter().next().context("the scale set has no machine")?;
    let refused = |refusal| anyhow::anyhow!("the machine cannot be deleted: {refusal}");
    stage.cluster.azure.remove_instance(&stage.scale_set, &instance).map_err(refused)?;
    let kubernetes = stage.kubernetes.clone();
    let missed = async {
        let found =
            |nodes: &[Arc<Object>]| node(nodes, &name).is_none_or(|node| !is_ready(node)).then_some(());
        Ok(kubernetes.until("Node", found).await?)
    };
    stage.until("the dead node to be missed", missed).await?;
    let mut times = vec![Time::new("kubelet missed", stage.elapsed())];
    let gone = async {
        anyhow::Ok(kubernetes.until("Node", |nodes| node(nodes, &name).is_none().then_some(())).await?)
    };
    let gone = async { Ok(timeout(DELETION_TIMEOUT, gone).await) };
    if let Ok(gone) = stage.until("the dead node to be deleted", gone).await? {
        gone?;
        times.push(Time::new("Node deleted", stage.elapsed()));
    }
    Ok(Outcome { times, ..Outcome::default() })
}

/// A program that finds everything done checks it, and becomes idle.
async fn takes_stock(stage: &mut Stage) -> anyhow::Result<Outcome> {
    let azure = stage.cluster.azure.clone();
    let mut changed = azure.subscribe();
    let asks = async {
        while azure.journal_after(u64::MAX).counts.requests == 0 {
            changed.changed().await?;
        }
        Ok(())
    };
    stage.until("the first call to Azure", asks).await?;
    let times = vec![Time::new("first call to Azure", stage.elapsed())];
    Ok(Outcome { times, ..Outcome::default() })
}

fn node<'a>(nodes: &'a [Arc<Object>], name: &str) -> Option<&'a Object> {
    nodes.iter().find(|node| node.name() == name).map(Arc::as_ref)
}

fn is_ready(node: &Object) -> bool {
    let conditions = node.value()["status"]["conditions"].as_array();
    let says = |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
    conditions.is_some_and(|conditions| conditions.iter().any(says))
}

/// Whether every rule of every load balancer delivers to this number of machines, healthy or not.
fn is_everywhere(topology: &Topology, machines: usize) -> bool {
    topology.addresses.iter().flat_map(|address| &address.rules).all(|rule| rule.total == machines)
}
