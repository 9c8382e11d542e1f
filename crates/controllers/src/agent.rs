//! The cloud-node controller of one node, on that node.
//!
//! The same controller also initialises all nodes from one place. Here its watch contains only its own node, and its
//! cloud knows only its own machine.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cloud::{ClusterState, Machines};
use freshness::AgeLimits;
use k8s::Node;
use kube::{Api, Client};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::events::recorder;
use crate::index::NodeIndex;
use crate::machine_events::{MachineEventOptions, Watch};
use crate::node::{NodeController, OlderLabels, Policy};
use crate::observer::NoObserver;
use crate::queue::{Backoff, Queue};
use crate::run::Error;
use crate::watch::{Selector, watch as watch_objects, with_answer_timeout};
use clock::Clock;

/// The field manager of writes in `managedFields`.
const MANAGER: &str = "cloud-node-manager";

/// How long a write that has begun may take to end after a stop.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// The node, and the tasks for it.
#[derive(Clone)]
pub struct AgentOptions {
    /// The name of the node.
    pub node: String,
    /// Interval between comparisons of the machine's addresses (`--node-status-update-frequency`).
    pub node_status_update_frequency: Duration,
    /// Whether labels are written in their older forms, too (`--enable-deprecated-beta-topology-labels`).
    pub older_labels: bool,
    /// Whether a new node is marked as having no network until its routes exist (`--wait-routes`).
    pub wait_routes: bool,
    /// Whether the machine's scheduled events are watched, and how to react; `None` if not.
    pub events: Option<MachineEventOptions>,
    /// The wall clock.
    pub clock: Clock,
}

impl fmt::Debug for AgentOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentOptions")
            .field("node", &self.node)
            .field("node_status_update_frequency", &self.node_status_update_frequency)
            .field("older_labels", &self.older_labels)
            .field("wait_routes", &self.wait_routes)
            .finish_non_exhaustive()
    }
}

impl AgentOptions {
    /// The agent runs on the machine itself, so its description replaces existing labels.
    fn policy(&self) -> Policy {
        Policy {
            manager: MANAGER,
            overwrites_labels: true,
            older_labels: if self.older_labels { OlderLabels::Follow } else { OlderLabels::Unused },
            waits_for_routes: self.wait_routes,
        }
    }
}

/// Initialises a node and follows its machine's addresses and scheduled events, until `stop`. It writes Events only
/// about scheduled events: it has no right to write others.
///
/// # Errors
/// An option is invalid.
pub async fn run_agent(
    client: Client,
    machines: Arc<dyn Machines>,
    options: AgentOptions,
    stop: CancellationToken,
) -> Result<(), Error> {
    let AgentOptions { node: name, node_status_update_frequency: period, events, .. } = options.clone();
    if period.is_zero() {
        let text = "--node-status-update-frequency=0s would never rest; give a longer time";
        return Err(Error::Options(text.to_owned()));
    }
    let state = ClusterState::default();
    let policy = options.policy();
    let clock = options.clock.clone();
    let announcing = {
        let (client, state, stop) = (client.clone(), state.clone(), stop.clone());
        async move {
            let Some(options) = events else { return };
            let observer = Arc::new(NoObserver);
            let (recorder, writer) =
                recorder(client.clone(), clock.clone(), name.as_str(), MANAGER, observer);
            let api = Api::all(client);
            let watch = Watch { api, state, node: name, manager: MANAGER, recorder, clock, options };
            tokio::join!(watch.run(stop.clone()), writer.run(stop));
        }
    };
    let controller = Arc::new(NodeController::new(
        client.clone(),
        machines,
        state.clone(),
        Arc::new(AgeLimits::default()),
        None,
        Arc::new(NoObserver),
        options.clock.clone(),
        policy,
    ));
    let queue = Queue::new("Nodes", Backoff::NODES, Arc::new(NoObserver));
    let seen = watch::Sender::new(false);
    // A node that registers after its machine's programs have started is handled when it appears.
    let mut comes = seen.subscribe();
    let known = async move { _ = comes.wait_for(|seen| *seen).await };
    let watching = {
        let api: Api<Node> = Api::all(with_answer_timeout(&client));
        let selector =
            Selector { fields: Some(format!("metadata.name={}", options.node)), ..Selector::default() };
        let mut index = NodeIndex::new(state, Arc::default());
        let (queue, stop) = (queue.clone(), stop.clone());
        let on = move |event| {
            for node in index.on(event).touched {
                seen.send_replace(true);
                if policy.needs_work(&node) {
                    queue.add(node.name().to_owned());
                }
            }
        };
        async move { watch_objects(api, selector, "node", stop, on).await }
    };
    let working = {
        let controller = Arc::clone(&controller);
        queue.work(1, stop.clone(), DRAIN_TIMEOUT, move |name: String| {
            let controller = Arc::clone(&controller);
            async move { controller.reconcile(&name).await }
        })
    };
    tokio::join!(watching, working, controller.follow_addresses(known, period, stop), announcing);
    Ok(())
}
