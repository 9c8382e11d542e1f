//! Brings all load balancers in line with a changed set of nodes: one call to the cloud for each relevant change,
//! however many Services and node events there are (NODE-087).
//!
//! The members of pools are common to all Services, and updated here. Services whose rules contain nodes' addresses go
//! through the queue of Services like any other change of them: a Service that has to wait keeps no node out of the
//! pools, and no Service is reconciled twice at a time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cloud::{ClusterState, LoadBalancers, LogicalTime, ServiceError, UpdateError};
use freshness::{AgeLimits, Due, Pauses, Schedule};
use k8s::{Node, ObjectKey, Service};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::node_set::{NodeSetChanges, NodeSetVersion, is_member, no_available_nodes};
use crate::observer::Observer;
use crate::queue::{Next, Queue};
use crate::service::ServiceController;

/// Maximum number of node names in an event: an event's message holds 1,024 bytes, of which 20 usual names fill half.
const MAX_NAMES_IN_EVENT: usize = 20;

/// How often to check whether machines wait for traffic, while none does. The check makes no call.
const IDLE_INTERVAL: Duration = Duration::from_secs(60);
/// The pauses between lookups of waiting machines. A machine that boots gets traffic soon after it runs; one that is
/// started after a day gets traffic about a minute later, as for the machines of dead nodes.
const LOOKUP_PAUSES: Pauses = Pauses { first: Duration::from_secs(10), longest: Duration::from_secs(60) };
/// How much younger than the pause before the lookup an answer must be. With less, a lookup without other readers would
/// reuse the data of the previous one; with more, it would miss the lists that are read for dead nodes, and cost a
/// second list a minute.
const ANSWER_MARGIN: Duration = Duration::from_secs(5);

/// Brings load balancers in line with the set of nodes.
pub(crate) struct NodeSync {
    cloud: Arc<dyn LoadBalancers>,
    state: ClusterState,
    services: Arc<ServiceController>,
    observer: Arc<dyn Observer>,
    changes: Arc<NodeSetChanges>,
    /// The set that all load balancers have; `None` while a change of them is in flight, or after a failed one.
    synced: Mutex<Option<NodeSetVersion>>,
    /// The Services that got the event that their load balancer has a set of nodes while others had not.
    reported: Mutex<Option<(NodeSetVersion, BTreeSet<ObjectKey>)>>,
    /// The set for which the Services that follow nodes were last queued.
    followed: Mutex<Option<NodeSetVersion>>,
    /// The queue of Services.
    queue: Queue<ObjectKey>,
    age_limits: Arc<AgeLimits>,
    /// The lookups of waiting machines, since the first of them began to wait.
    lookups: Schedule<(), ()>,
}

impl NodeSync {
    pub fn new(
        cloud: Arc<dyn LoadBalancers>,
        state: ClusterState,
        changes: Arc<NodeSetChanges>,
        services: Arc<ServiceController>,
        queue: Queue<ObjectKey>,
        age_limits: Arc<AgeLimits>,
        observer: Arc<dyn Observer>,
    ) -> Self {
        let (synced, reported, followed) = (Mutex::default(), Mutex::default(), Mutex::default());
        let lookups = Schedule::new(LOOKUP_PAUSES);
        Self {
            cloud,
            state,
            changes,
            services,
            observer,
            synced,
            reported,
            followed,
            queue,
            age_limits,
            lookups,
        }
    }

    /// Takes the current nodes as synced: every Service is ensured with them when this program starts, so that no load
    /// balancer needs another update.
    pub fn start_with_current(&self) {
        let version = self.changes.latest();
        *self.followed.lock() = Some(version);
        *self.synced.lock() = Some(version);
    }

    /// Compares the sets, and calls the cloud if they differ.
    pub async fn reconcile(&self) -> Next {
        let version = self.changes.latest();
        if self.synced.lock().as_ref() == Some(&version) {
            return self.look_up_waiting_machines().await;
        }
        let served = self.services.served();
        if self.followed.lock().replace(version).as_ref() != Some(&version) {
            // All current ones: a Service that is being reconciled may have been planned with the previous nodes.
            for service in self.state.services().iter().filter(|service| self.cloud.follows_nodes(service)) {
                self.queue.add(service.key());
            }
        }
        if !self.services.serves_any() {
            *self.synced.lock() = Some(version);
            return Next::After(IDLE_INTERVAL);
        }
        *self.synced.lock() = None;
        let nodes = &version.nodes;
        let start = Instant::now();
        let outcome = self.update(|cloud| cloud.update_nodes(LogicalTime::now())).await;
        self.observer.nodes_synced(start.elapsed(), outcome.is_ok());
        let failure = outcome.err();
        self.report(&served, &version, failure.as_ref());
        match failure.map(|failure| failure.error) {
            None => {
                *self.synced.lock() = Some(version);
                self.look_up_waiting_machines().await
            }
            Some(error) => {
                tracing::warn!(%error, nodes = nodes.len(), "failed to update load balancers with new nodes");
                match error {
                    ServiceError::Retry { after: Some(wait), .. } if !wait.is_zero() => Next::After(wait),
                    ServiceError::Retry { .. } | ServiceError::Refused { .. } => Next::Retry,
                }
            }
        }
    }

    /// Records an event for each Service once about its own load balancer, and again only if that failed.
    fn report(&self, served: &[Arc<Service>], version: &NodeSetVersion, failure: Option<&UpdateError>) {
        let recorder = self.services.recorder();
        let no_nodes = no_available_nodes(&*self.cloud, &self.state.nodes());
        let mut reported = self.reported.lock();
        let before =
            reported.take().filter(|(of, _)| of == version).map(|(_, services)| services).unwrap_or_default();
        let mut done = BTreeSet::new();
        let seen = self.cloud.seen_on_load_balancers();
        for service in served {
            let key = service.key();
            let why = failure.and_then(|failure| match &failure.services {
                None => Some(failure.error.to_string()),
                Some(concerned) => concerned.get(&key).cloned(),
            });
            if let Some(why) = why {
                let message = format!(
                    "Error updating load balancer with new hosts {}, error: {why}",
                    named(&self.state.nodes())
                );
                recorder.warning(service.as_ref(), "UpdateLoadBalancerFailed", message);
                continue;
            }
            if !seen.contains(&key) {
                // It has no load balancer to report on. The cause is reported where it is found (D2).
                continue;
            }
            let is_reported = before.contains(&key);
            done.insert(key);
            match &no_nodes {
                _ if is_reported => {}
                Some(message) => {
                    recorder.warning(service.as_ref(), "UnAvailableLoadBalancer", message.clone());
                }
                None => {
                    let message = "Updated load balancer with new hosts";
                    recorder.normal(service.as_ref(), "UpdatedLoadBalancer", message);
                }
            }
        }
        *reported = failure.map(|_| (*version, done));
    }

    /// The nodes are the same; machines among them that did not run may have started.
    async fn look_up_waiting_machines(&self) -> Next {
        if !self.cloud.waits_for_machines() {
            self.lookups.forget(&());
            return Next::After(IDLE_INTERVAL);
        }
        let pause = match self.lookups.due(&(), &()) {
            // The machines are known to wait from a lookup a moment ago.
            Due::First => return Next::After(self.lookups.looked((), ())),
            Due::In(wait) => return Next::After(wait),
            Due::Now(pause) => pause,
        };
        self.lookups.looked((), ());
        let newer_than = self.age_limits.within(pause.saturating_sub(ANSWER_MARGIN));
        if let Err(error) = self.update(|cloud| cloud.update_waiting_machines(newer_than)).await {
            tracing::warn!(%error, "failed to update load balancers with waiting machines");
        }
        match self.lookups.due(&(), &()) {
            Due::In(wait) => Next::After(wait),
            Due::First | Due::Now(_) => Next::After(Duration::ZERO),
        }
    }

    async fn update<'a, F, E>(&'a self, work: impl FnOnce(&'a dyn LoadBalancers) -> F) -> Result<(), E>
    where
        F: Future<Output = Result<(), E>>,
        E: From<ServiceError>,
    {
        let _guard = match self.services.lease() {
            Some(lease) => Some(lease.hold("update load balancer nodes").await?),
            None => None,
        };
        work(&*self.cloud).await
    }
}

fn named(nodes: &[Arc<Node>]) -> String {
    let members = || nodes.iter().filter(|node| is_member(node));
    let names: Vec<_> = members().take(MAX_NAMES_IN_EVENT).map(|node| node.name()).collect();
    let list = format!("[{}]", names.join(" "));
    let all = members().count();
    if all > MAX_NAMES_IN_EVENT {
        format!("{list} [node names limited, total number of nodes: {all}]")
    } else {
        list
    }
}
