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
use k8s::{Node, ObjectKey, Service};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::freshness::Freshness;
use crate::node_set::{NodeSetChanges, NodeSetVersion, is_member, no_available_nodes};
use crate::observer::Observer;
use crate::queue::{Next, Queue};
use crate::service::ServiceController;

/// Maximum number of node names in an event: an event's message holds 1,024 bytes, of which 20 usual names fill half.
const MAX_NAMES_IN_EVENT: usize = 20;

/// How often to check whether machines wait for traffic, while none does. The check makes no call.
const IDLE_INTERVAL: Duration = Duration::from_secs(60);
/// The pause before the first lookup of waiting machines, doubled after each: a machine that boots gets traffic soon
/// after it runs.
const MIN_LOOK_INTERVAL: Duration = Duration::from_secs(10);
/// The longest pause between two lookups, as for the machines of dead nodes: one that is started after a day gets
/// traffic about a minute later.
const MAX_LOOK_INTERVAL: Duration = Duration::from_secs(60);
/// How much younger than the pause before the lookup an answer must be. With less, a lookup without other readers would
/// reuse the data of the previous one; with more, it would miss the lists that are read for dead nodes, and cost a
/// second list a minute.
const ANSWER_MARGIN: Duration = Duration::from_secs(5);

/// The lookups of waiting machines, since the first of them began to wait.
#[derive(Debug)]
struct Looks {
    pause: Duration,
    next: Instant,
}

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
    told: Mutex<Option<(NodeSetVersion, BTreeSet<ObjectKey>)>>,
    /// The set for which the Services that follow nodes were last queued.
    followed: Mutex<Option<NodeSetVersion>>,
    /// The queue of Services.
    queue: Queue<ObjectKey>,
    freshness: Arc<Freshness>,
    /// `None` while no machine waits.
    looks: Mutex<Option<Looks>>,
}

impl NodeSync {
    pub fn new(
        cloud: Arc<dyn LoadBalancers>,
        state: ClusterState,
        changes: Arc<NodeSetChanges>,
        services: Arc<ServiceController>,
        queue: Queue<ObjectKey>,
        freshness: Arc<Freshness>,
        observer: Arc<dyn Observer>,
    ) -> Self {
        let (synced, told, followed) = (Mutex::default(), Mutex::default(), Mutex::default());
        let looks = Mutex::default();
        Self { cloud, state, changes, services, observer, synced, told, followed, queue, freshness, looks }
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
            return self.look_at_waiting_machines().await;
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
        self.tell(&served, &version, failure.as_ref());
        match failure.map(|failure| failure.error) {
            None => {
                *self.synced.lock() = Some(version);
                self.look_at_waiting_machines().await
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
    fn tell(&self, served: &[Arc<Service>], version: &NodeSetVersion, failure: Option<&UpdateError>) {
        let recorder = &self.services.recorder;
        let no_nodes = no_available_nodes(&*self.cloud, &self.state.nodes());
        let mut told = self.told.lock();
        let before = told.take().filter(|(of, _)| of == version).map(|(_, told)| told).unwrap_or_default();
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
            let is_told = before.contains(&key);
            done.insert(key);
            match &no_nodes {
                _ if is_told => {}
                Some(message) => {
                    recorder.warning(service.as_ref(), "UnAvailableLoadBalancer", message.clone());
                }
                None => {
                    let message = "Updated load balancer with new hosts";
                    recorder.normal(service.as_ref(), "UpdatedLoadBalancer", message);
                }
            }
        }
        *told = failure.map(|_| (*version, done));
    }

    /// The nodes are the same; machines among them that did not run may have started.
    async fn look_at_waiting_machines(&self) -> Next {
        let now = Instant::now();
        let pause = {
            let mut looks = self.looks.lock();
            if !self.cloud.waits_for_machines() {
                *looks = None;
                return Next::After(IDLE_INTERVAL);
            }
            // The machines are known to wait from a lookup a moment ago.
            let first = || Looks { pause: MIN_LOOK_INTERVAL, next: now + MIN_LOOK_INTERVAL };
            let looks = looks.get_or_insert_with(first);
            if looks.next > now {
                return Next::After(looks.next - now);
            }
            let passed = looks.pause;
            looks.pause = passed.saturating_mul(2).min(MAX_LOOK_INTERVAL);
            looks.next = now + looks.pause;
            passed
        };
        let newer_than = self.freshness.within(pause.saturating_sub(ANSWER_MARGIN));
        if let Err(error) = self.update(|cloud| cloud.update_waiting_machines(newer_than)).await {
            tracing::warn!(%error, "failed to update load balancers with waiting machines");
        }
        let next = self.looks.lock().as_ref().map_or(now + IDLE_INTERVAL, |looks| looks.next);
        Next::After(next.saturating_duration_since(Instant::now()))
    }

    async fn update<'a, F, E>(&'a self, work: impl FnOnce(&'a dyn LoadBalancers) -> F) -> Result<(), E>
    where
        F: Future<Output = Result<(), E>>,
        E: From<ServiceError>,
    {
        let _guard = self.services.hold_lease("update load balancer nodes").await?;
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
