//! The writes of the members of several load balancers that share the cluster's nodes.
//!
//! [`NodeSharing`] decides which load balancers are written. Beside it, [`MemberWrites`] keeps the times: when writes
//! began, and until when failed ones are not repeated. A load balancer that cannot be written delays only its own
//! Services.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use azure_types::LoadBalancer;
use k8s::Node;
use parking_lot::Mutex;
use planner::placement::{NodePlaces, NodeShare, NodeSharing, SharingInputs};
use planner::{Balancer, Cluster};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::failure::{Failure, Kind};

/// How long other Services than its own wait for the nodes of a load balancer, from the start of their write. Azure
/// takes some twenty seconds for such a write; a longer one is in trouble, which its writer retries for minutes.
const MAX_WAIT_FOR_OTHERS: Duration = Duration::from_secs(60);

/// How long a failed write is not repeated while it would be the same. Hundreds of Services may request it meanwhile;
/// one write a minute is nothing to Azure's limits, and the end of the trouble is noticed soon.
const RETRY_INTERVAL: Duration = Duration::from_secs(60);

/// The nodes that each of several load balancers has, and the writes that change them.
#[derive(Default)]
pub(crate) struct MemberWrites {
    state: Mutex<State>,
    /// Number of ended writes.
    ended: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    sharing: NodeSharing,
    /// When the write in flight of a load balancer's members began.
    began: BTreeMap<Balancer, Instant>,
    /// The latest failed attempts.
    failures: BTreeMap<Balancer, RecentFailure>,
    /// Number of ended writes, by load balancer.
    ended: BTreeMap<Balancer, u64>,
    /// Why machines could not be read, and when.
    unread: Option<(Failure, Instant)>,
}

/// A write that is not repeated for some time.
struct RecentFailure {
    failure: Failure,
    until: Instant,
}

impl RecentFailure {
    fn remaining(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }
}

/// Load balancers that do not match the nodes.
pub(crate) struct Unfinished {
    /// What went wrong, and when to try again.
    pub(crate) failure: Failure,
    /// What went wrong with each load balancer; `None` if the failure was not about certain load balancers.
    pub(crate) of: Option<BTreeMap<Balancer, Failure>>,
}

impl From<Failure> for Unfinished {
    fn from(failure: Failure) -> Self {
        Self { failure, of: None }
    }
}

impl Unfinished {
    /// The failures of load balancers; `None` if there are none.
    pub(crate) fn of_each(failed: BTreeMap<Balancer, Failure>) -> Option<Self> {
        let failure = failed.values().next()?.clone();
        Some(Self { failure, of: Some(failed) })
    }
}

/// The cause of a division.
#[derive(Clone, Copy)]
pub(crate) enum Cause<'a> {
    /// A Service, with its load balancer if it has a place on one.
    Service(Option<&'a Balancer>),
    /// A change of nodes.
    Nodes,
}

/// How long to wait for writes.
pub(crate) enum Patience {
    /// There is nothing to wait for.
    None,
    Until(Instant),
    ForEver,
}

impl MemberWrites {
    /// The nodes that a load balancer may have in its pools now, for a write that is about to be made.
    pub(crate) fn claim(
        &self,
        cluster: &Cluster,
        nodes: &[Arc<Node>],
        balancer: &Balancer,
        document: Option<&LoadBalancer>,
    ) -> Option<NodeShare> {
        self.state.lock().sharing.claim(cluster, nodes, balancer, document)
    }

    /// Divides the nodes. Returns their places, and the load balancers whose writes have to start now.
    pub(crate) fn divide(
        &self,
        cluster: &Cluster,
        inputs: SharingInputs<'_>,
    ) -> (Arc<NodePlaces>, Vec<Balancer>) {
        let State { sharing, began, failures, .. } = &mut *self.state.lock();
        let places = sharing.divide(cluster, inputs);
        failures.retain(|balancer, _| sharing.has_failed(balancer));
        let now = Instant::now();
        let due = sharing.start_writes(|balancer| failures.get(balancer).is_none_or(|one| one.until <= now));
        began.extend(due.iter().map(|balancer| (balancer.clone(), now)));
        (places, due)
    }

    /// Records the end of a write: the version of the load balancer since then, or why it failed.
    pub(crate) fn end(&self, balancer: &Balancer, result: Result<Option<String>, Failure>) {
        {
            let state = &mut *self.state.lock();
            state.began.remove(balancer);
            *state.ended.entry(balancer.clone()).or_default() += 1;
            match result {
                Ok(version) => {
                    state.sharing.finish_write(balancer, version);
                    state.failures.remove(balancer);
                }
                Err(failure) => {
                    state.sharing.fail_write(balancer);
                    let until = Instant::now() + failure.after.unwrap_or_default().max(RETRY_INTERVAL);
                    // The refusal is not about a single owner's intent.
                    let failure = failure.not_attributable();
                    state.failures.insert(balancer.clone(), RecentFailure { failure, until });
                }
            }
        }
        self.ended.send_modify(|ended| *ended += 1);
    }

    /// Reports the end of each write.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.ended.subscribe()
    }

    /// Number of ended writes of a load balancer.
    pub(crate) fn ended_writes(&self, balancer: &Balancer) -> u64 {
        self.state.lock().ended.get(balancer).copied().unwrap_or_default()
    }

    /// Whether nodes should be elsewhere than they are, or may have to be.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.state.lock().sharing.is_settled()
    }

    /// How long a caller waits that started at `begun`, when `ended_before` writes of its own load balancer had ended.
    /// Nodes may change all the time: it waits for the writes in flight at that time and for one more, not for all that
    /// follow.
    pub(crate) fn patience(&self, cause: Cause<'_>, begun: Instant, ended_before: u64) -> Patience {
        let state = self.state.lock();
        if let Cause::Service(Some(own)) = cause
            && state.sharing.is_in_flight(own)
            && state.ended.get(own).copied().unwrap_or_default() < ended_before + 2
        {
            return Patience::ForEver;
        }
        let holders = match cause {
            Cause::Service(Some(own)) => state.sharing.holders_of_all(own),
            Cause::Service(None) | Cause::Nodes => Vec::new(),
        };
        // A Service does not wait for the retry of a recent failure, unless that load balancer holds all its nodes.
        let counts = |balancer: &Balancer| {
            matches!(cause, Cause::Nodes)
                || !state.failures.contains_key(balancer)
                || holders.iter().any(|(holder, _)| holder == balancer)
        };
        let writes = state.began.iter().filter(|(balancer, _)| counts(balancer));
        let deadlines = writes.map(|(_, since)| (*since).min(begun) + MAX_WAIT_FOR_OTHERS);
        deadlines.filter(|at| *at > Instant::now()).max().map_or(Patience::None, Patience::Until)
    }

    /// Why a load balancer does not have the nodes that it should have.
    pub(crate) fn failure_of(&self, balancer: &Balancer) -> Option<Failure> {
        let state = self.state.lock();
        let failed = state.failures.get(balancer).filter(|_| !state.sharing.is_in_flight(balancer))?;
        Some(Failure { after: failed.failure.after.map(|_| failed.remaining()), ..failed.failure.clone() })
    }

    /// Why a load balancer has no node at all although some belong to it: others still have them (LB-438).
    pub(crate) fn shortage_of(&self, balancer: &Balancer) -> Option<Failure> {
        let state = self.state.lock();
        let mut after = None;
        let holders = state.sharing.holders_of_all(balancer).into_iter().map(|(holder, count)| {
            let why = match state.failures.get(&holder) {
                Some(failed) => {
                    let left = failed.remaining();
                    after = Some(after.map_or(left, |after: Duration| after.min(left)));
                    &failed.failure.message
                }
                None if state.sharing.is_in_flight(&holder) => "its nodes are still being written",
                None => "it has not given them up yet",
            };
            format!("load balancer {holder} has {count} that belong to it ({why})")
        });
        let holders: Vec<String> = holders.collect();
        let message = format!("load balancer {balancer} has no nodes: {}", holders.join("; "));
        (!holders.is_empty()).then(|| Failure { after, ..Failure::new(Kind::Unavailable, message) })
    }

    /// Why load balancers do not have the nodes that they should have, including those that are no longer waited for.
    pub(crate) fn unfinished(&self) -> Option<Unfinished> {
        let state = self.state.lock();
        let late = state.sharing.in_flight().map(|balancer| {
            let message = format!("load balancer {balancer}: its nodes are still being written");
            (balancer.clone(), Failure::new(Kind::Unavailable, message))
        });
        let failed =
            state.failures.iter().map(|(balancer, failed)| (balancer.clone(), failed.failure.clone()));
        // One that failed before is reported with its error, although it is being retried.
        let all: BTreeMap<Balancer, Failure> = late.chain(failed).collect();
        let unread = state.unread.as_ref().map(|(failure, _)| failure.clone());
        // A long wait of one does not delay the others.
        let mut wait = state.failures.values().map(RecentFailure::remaining).min();
        if !state.began.is_empty() || unread.is_some() {
            wait = wait.map(|wait| wait.min(RETRY_INTERVAL));
        }
        let first = state.failures.values().next();
        let first = first.map(|failed| Failure { after: wait, ..failed.failure.clone() });
        match Unfinished::of_each(all) {
            Some(of_each) => Some(Unfinished { failure: first.unwrap_or(of_each.failure), ..of_each }),
            None => unread.map(Unfinished::from),
        }
    }

    /// Why the machines' sets could not be read by the latest attempt.
    pub(crate) fn unread(&self) -> Option<Failure> {
        self.state.lock().unread.as_ref().map(|(failure, _)| failure.clone())
    }

    /// Whether the machines' sets could not be read a moment ago.
    pub(crate) fn was_just_unread(&self) -> bool {
        self.state.lock().unread.as_ref().is_some_and(|(_, at)| at.elapsed() < RETRY_INTERVAL)
    }

    /// Records whether the machines' sets could be read.
    pub(crate) fn set_unread(&self, failure: Option<Failure>) {
        self.state.lock().unread = failure.map(|failure| (failure, Instant::now()));
    }
}
