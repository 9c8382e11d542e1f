//! Divides the cluster's nodes among several load balancers: each node is in the pools of one entry's load balancers
//! ([`planner::placement`]).
//!
//! Each change of a load balancer or of nodes causes a new division. Each load balancer's own writer writes what is
//! due, in parallel and without an owner: [`NodeSharing`] tracks writes in flight, failures, and the nodes that a load
//! balancer may have before another has lost them. A load balancer that cannot be written delays only its own Services.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use azure_types::LoadBalancer;
use cloud::LogicalTime;
use k8s::Node;
use parking_lot::Mutex;
use planner::instance::{self, ProviderId};
use planner::load_balancer::{self as plans, ClusterFacts};
use planner::placement::{self, NodesInPools, MachineSets, NodePlaces, NodeShare};
use planner::{Balancer, Cluster, ListedLoadBalancer};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::failure::{Failure, Kind};
use crate::load_balancer::{Owner, Wish};
use crate::provider::Inner;

/// How long other Services than its own wait for the nodes of a load balancer, from the start of their write. Azure
/// takes some twenty seconds for such a write; a longer one is in trouble, which its writer retries for minutes.
const MAX_WAIT_FOR_OTHERS: Duration = Duration::from_secs(60);

/// How long a failed write is not repeated while it would be the same. Hundreds of Services may request it meanwhile;
/// one write a minute is nothing to Azure's limits, and the end of the trouble is noticed soon.
const RETRY_INTERVAL: Duration = Duration::from_secs(60);

type Documents = [(Balancer, ListedLoadBalancer)];

/// The nodes that each of several load balancers has, and may have.
#[derive(Default)]
pub(crate) struct NodeSharing {
    state: Mutex<State>,
    /// Number of answered writes.
    answers: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    /// The latest division of the nodes.
    places: Option<Arc<NodePlaces>>,
    holdings: NodesInPools,
    judged: Option<Judged>,
    /// When the write in flight of a load balancer's nodes began.
    writes: BTreeMap<Balancer, Instant>,
    /// The latest failed attempts.
    failed: BTreeMap<Balancer, Failed>,
    /// Desired states that the writer found to be reached.
    done: BTreeMap<Balancer, Due>,
    /// Fingerprint of the members that the latest write of a load balancer was planned with.
    claimed: BTreeMap<Balancer, u64>,
    /// Number of answered writes, by load balancer.
    answered: BTreeMap<Balancer, u64>,
    /// Why machines could not be read, and when.
    unread: Option<(Failure, Instant)>,
}

/// The inputs of a division.
#[derive(PartialEq)]
struct Inputs {
    nodes: u64,
    sets: MachineSets,
    load_balancers: Vec<(Balancer, Option<String>)>,
    in_flight: Vec<Balancer>,
}

/// The result of a division.
struct Judged {
    inputs: Inputs,
    due: Vec<(Balancer, Due)>,
    /// Whether a load balancer waits for nodes that another one has.
    is_short: bool,
}

/// Pools that differ from their desired state.
#[derive(Debug, Clone, PartialEq)]
struct Due {
    /// Fingerprint of their desired members.
    print: u64,
    /// The version of the load balancer.
    version: Option<String>,
}

struct Failed {
    print: u64,
    failure: Failure,
    until: Instant,
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

/// The caller of a division.
#[derive(Clone, Copy)]
enum Asker<'a> {
    /// A Service, with its load balancer if it has a place on one.
    Service(Option<&'a Balancer>),
    /// A change of nodes.
    Nodes,
}

/// How long to wait for writes.
enum Patience {
    /// There is nothing to wait for.
    None,
    Until(Instant),
    ForEver,
}

/// Fingerprint of the desired pools of a load balancer: equal if the same would be written.
fn fingerprint(nodes: &[Arc<Node>], share: &NodeShare) -> u64 {
    let mut hasher = DefaultHasher::new();
    for node in nodes.iter().filter(|node| share.has(node.name())) {
        (node.name(), node.is_draining()).hash(&mut hasher);
        node.internal_addresses().for_each(|address| address.hash(&mut hasher));
    }
    hasher.finish()
}

/// Whether the cluster's pools of a load balancer differ from their desired state.
fn is_due(
    cluster: &Cluster,
    balancer: &Balancer,
    document: &LoadBalancer,
    nodes: &[Arc<Node>],
    share: &NodeShare,
) -> bool {
    let known = ClusterFacts { nodes: Some(nodes), share: Some(share), ..ClusterFacts::default() };
    plans::plan(cluster, balancer, Some(document), &[], known).step.is_some()
}

impl NodeSharing {
    /// The nodes that a load balancer may have in its pools now, for a write that is about to be made; `None` before
    /// the first division. Until the load balancer is read again, these nodes are assumed to be there.
    pub(crate) fn claim(
        &self,
        cluster: &Cluster,
        nodes: &[Arc<Node>],
        balancer: &Balancer,
        document: Option<&LoadBalancer>,
    ) -> Option<NodeShare> {
        let mut state = self.state.lock();
        let places = state.places.clone()?;
        state.holdings.retain(|one| one != balancer);
        state.holdings.see(cluster, nodes, document.map(|document| (balancer, document)));
        let share = state.holdings.share(&places, balancer);
        state.holdings.claim(balancer, &share);
        state.claimed.insert(balancer.clone(), fingerprint(nodes, &share));
        Some(share)
    }

    /// Divides the nodes. Returns their places, and the load balancers whose pools have to be written. Excludes those
    /// with a write in flight, and those that failed until some time has passed or the desired state differs.
    fn divide(
        &self,
        cluster: &Cluster,
        (version, nodes): (u64, &[Arc<Node>]),
        sets: MachineSets,
        load_balancers: &Documents,
    ) -> (Arc<NodePlaces>, Vec<(Balancer, Due)>) {
        let mut state = self.state.lock();
        let state = &mut *state;
        let documents = load_balancers.iter();
        let inputs = Inputs {
            nodes: version,
            sets,
            load_balancers: documents.map(|(one, document)| (one.clone(), document.etag.clone())).collect(),
            in_flight: state.writes.keys().cloned().collect(),
        };
        let known = state.judged.as_ref().filter(|judged| judged.inputs == inputs);
        let places = match (known, &state.places) {
            (Some(_), Some(places)) => Arc::clone(places),
            _ => state.judge(cluster, nodes, inputs, load_balancers),
        };
        let now = Instant::now();
        let due = state.judged.iter().flat_map(|judged| &judged.due).filter(|(balancer, due)| {
            let failed = state.failed.get(balancer);
            !state.writes.contains_key(balancer)
                && failed.is_none_or(|failed| failed.print != due.print || failed.until <= now)
        });
        let due: Vec<(Balancer, Due)> = due.cloned().collect();
        for (balancer, _) in &due {
            state.writes.insert(balancer.clone(), now);
            // Earlier writes say nothing about the members that this write is planned with.
            state.claimed.remove(balancer);
        }
        (places, due)
    }

    fn answered(&self, balancer: Balancer, due: Due, answer: Result<Option<String>, Failure>) {
        let mut state = self.state.lock();
        state.writes.remove(&balancer);
        *state.answered.entry(balancer.clone()).or_default() += 1;
        // If a write and the desired state differ, they are compared once more.
        state.judged = None;
        // Nodes may have come and gone during the write: the members of the last plan count.
        let claimed = state.claimed.remove(&balancer);
        match answer {
            Ok(version) => {
                state.failed.remove(&balancer);
                match claimed {
                    Some(print) => drop(state.done.insert(balancer, Due { print, version })),
                    None => drop(state.done.remove(&balancer)),
                }
            }
            Err(failure) => {
                let wait = failure.after.unwrap_or_default().max(RETRY_INTERVAL);
                let until = Instant::now() + wait;
                // The refusal is not about a single owner's intent.
                let failure = failure.not_attributable();
                state.failed.insert(balancer, Failed { print: due.print, failure, until });
            }
        }
        drop(state);
        self.answers.send_modify(|answers| *answers += 1);
    }

    /// Whether nodes should be elsewhere than they are, or may have to be.
    pub(crate) fn is_waiting(&self) -> bool {
        let state = self.state.lock();
        let has_unknown = state.places.as_ref().is_some_and(|places| places.unknown().next().is_some());
        // An answer that no task waited for is yet to be processed.
        let is_open = match &state.judged {
            Some(judged) => judged.is_short || !judged.due.is_empty(),
            None => state.places.is_some(),
        };
        has_unknown || is_open || !state.writes.is_empty()
    }

    /// Number of answered writes of a load balancer.
    fn answered_writes(&self, balancer: &Balancer) -> u64 {
        self.state.lock().answered.get(balancer).copied().unwrap_or_default()
    }

    /// How long a caller waits that started at `begun`, when `answered_before` writes of its own load balancer had been
    /// answered. Nodes may change all the time: it waits for the writes in flight at that time and for one more, not
    /// for all that follow.
    fn patience(&self, asker: Asker<'_>, begun: Instant, answered_before: u64) -> Patience {
        let state = self.state.lock();
        if let Asker::Service(Some(own)) = asker
            && state.writes.contains_key(own)
            && state.answered.get(own).copied().unwrap_or_default() < answered_before + 2
        {
            return Patience::ForEver;
        }
        let holders = match asker {
            Asker::Service(Some(own)) => state.holders_of_all(own),
            Asker::Service(None) | Asker::Nodes => Vec::new(),
        };
        // A Service does not wait for the retry of a recent failure, unless that load balancer holds all its nodes.
        let counts = |balancer: &Balancer| {
            matches!(asker, Asker::Nodes)
                || !state.failed.contains_key(balancer)
                || holders.iter().any(|(holder, _)| holder == balancer)
        };
        let writes = state.writes.iter().filter(|(balancer, _)| counts(balancer));
        let deadlines = writes.map(|(_, since)| (*since).min(begun) + MAX_WAIT_FOR_OTHERS);
        deadlines.filter(|at| *at > Instant::now()).max().map_or(Patience::None, Patience::Until)
    }

    /// Why a load balancer does not have the nodes that it should have.
    fn failure_of(&self, balancer: &Balancer) -> Option<Failure> {
        let state = self.state.lock();
        let failed = state.failed.get(balancer).filter(|_| !state.writes.contains_key(balancer))?;
        let left = failed.until.saturating_duration_since(Instant::now());
        Some(Failure { after: failed.failure.after.map(|_| left), ..failed.failure.clone() })
    }

    /// Why a load balancer has no node at all although some belong to it: others still have them (LB-438).
    fn shortage_of(&self, balancer: &Balancer) -> Option<Failure> {
        let state = self.state.lock();
        let mut after = None;
        let holders = state.holders_of_all(balancer).into_iter().map(|(holder, count)| {
            let why = match state.failed.get(&holder) {
                Some(failed) => {
                    let left = failed.until.saturating_duration_since(Instant::now());
                    after = Some(after.map_or(left, |after: Duration| after.min(left)));
                    &failed.failure.message
                }
                None if state.writes.contains_key(&holder) => "its nodes are still being written",
                None => "it has not given them up yet",
            };
            format!("load balancer {holder} has {count} that belong to it ({why})")
        });
        let holders: Vec<String> = holders.collect();
        let message = format!("load balancer {balancer} has no nodes: {}", holders.join("; "));
        (!holders.is_empty()).then(|| Failure { after, ..Failure::new(Kind::Unavailable, message) })
    }

    /// Why load balancers do not have the nodes that they should have, including those that are no longer waited for.
    fn unfinished(&self) -> Option<Unfinished> {
        let state = self.state.lock();
        let late = state.writes.keys().map(|balancer| {
            let message = format!("load balancer {balancer}: its nodes are still being written");
            (balancer.clone(), Failure::new(Kind::Unavailable, message))
        });
        let failed = state.failed.iter().map(|(balancer, failed)| (balancer.clone(), failed.failure.clone()));
        // One that failed before is reported with its error, although it is being retried.
        let all: BTreeMap<Balancer, Failure> = late.chain(failed).collect();
        let unread = state.unread.as_ref().map(|(failure, _)| failure.clone());
        // A long wait of one does not delay the others.
        let left = |failed: &Failed| failed.until.saturating_duration_since(Instant::now());
        let mut wait = state.failed.values().map(left).min();
        if !state.writes.is_empty() || unread.is_some() {
            wait = wait.map(|wait| wait.min(RETRY_INTERVAL));
        }
        let first = state.failed.values().next();
        let first = first.map(|failed| Failure { after: wait, ..failed.failure.clone() });
        match Unfinished::of_each(all) {
            Some(of_each) => Some(Unfinished { failure: first.unwrap_or(of_each.failure), ..of_each }),
            None => unread.map(Unfinished::from),
        }
    }
}

impl State {
    /// The load balancers that hold the nodes of one that has none at all, each with the number of nodes.
    fn holders_of_all(&self, balancer: &Balancer) -> Vec<(Balancer, usize)> {
        match &self.places {
            Some(places) if self.holdings.share(places, balancer).is_empty() => {
                self.holdings.holders(places, balancer)
            }
            _ => Vec::new(),
        }
    }

    fn judge(
        &mut self,
        cluster: &Cluster,
        nodes: &[Arc<Node>],
        inputs: Inputs,
        load_balancers: &Documents,
    ) -> Arc<NodePlaces> {
        let places = Arc::new(placement::place_nodes(cluster, nodes, &inputs.sets, load_balancers));
        self.places = Some(Arc::clone(&places));
        let writes = &self.writes;
        self.holdings
            .retain(|one| writes.contains_key(one) || load_balancers.iter().any(|(there, _)| there == one));
        // The result of a write in flight may be visible already: its writer reports it.
        let settled = load_balancers.iter().filter(|(balancer, _)| !writes.contains_key(balancer));
        self.holdings.see(cluster, nodes, settled.map(|(balancer, document)| (balancer, &**document)));
        let configured = cluster.balancers();
        let (mut all_due, mut is_short) = (Vec::new(), false);
        for (balancer, document) in load_balancers.iter().filter(|(one, _)| configured.contains(one)) {
            is_short |= self.holdings.is_short(&places, balancer);
            let share = self.holdings.share(&places, balancer);
            let due = Due { print: fingerprint(nodes, &share), version: document.etag.clone() };
            let is_done = due.version.is_some() && self.done.get(balancer) == Some(&due);
            if !is_done && is_due(cluster, balancer, document, nodes, &share) {
                all_due.push((balancer.clone(), due));
            }
        }
        let is_due = |one: &Balancer| all_due.iter().any(|(balancer, _)| balancer == one);
        self.failed.retain(|balancer, _| is_due(balancer));
        self.judged = Some(Judged { inputs, due: all_due, is_short });
        places
    }
}

impl Inner {
    /// Divides the nodes among the existing load balancers, and waits until their pools match, for a limited time for
    /// those other than `own`. Returns the places of the nodes. Does nothing if there is only one load balancer of each
    /// kind, or while not all nodes are known.
    ///
    /// # Errors
    ///
    /// If load balancers cannot be read, the nodes of `own` cannot be written, or others have all of them.
    pub(crate) async fn share_nodes(
        &self,
        own: Option<&Balancer>,
    ) -> Result<Option<Arc<NodePlaces>>, Failure> {
        if !self.cluster.has_several_load_balancers() || !self.state.nodes_synced() {
            return Ok(None);
        }
        let places = self.divide_until_settled(Asker::Service(own), self.observed.started).await?;
        let failure = |own| self.sharing.failure_of(own).or_else(|| self.sharing.shortage_of(own));
        match own.and_then(failure) {
            Some(failure) => Err(failure),
            None => Ok(Some(places)),
        }
    }

    /// Brings the pools of all load balancers in line with the nodes, based on data read after `newer_than`.
    ///
    /// # Errors
    ///
    /// If one could not be written; the others are.
    pub(crate) async fn share_all_nodes(&self, newer_than: LogicalTime) -> Result<(), Unfinished> {
        self.require_nodes()?;
        self.sharing.state.lock().unread = None;
        self.divide_until_settled(Asker::Nodes, newer_than).await?;
        self.sharing.unfinished().map_or(Ok(()), Err)
    }

    async fn divide_until_settled(
        &self,
        asker: Asker<'_>,
        mut newer_than: LogicalTime,
    ) -> Result<Arc<NodePlaces>, Failure> {
        let mut answers = self.sharing.answers.subscribe();
        let begun = Instant::now();
        let answered_before = match asker {
            Asker::Service(Some(own)) => self.sharing.answered_writes(own),
            Asker::Service(None) | Asker::Nodes => 0,
        };
        loop {
            answers.mark_unchanged();
            let places = self.divide_nodes(newer_than).await?;
            newer_than = self.observed.started;
            // After each answer there is more to do, or the division is complete.
            let is_over = match self.sharing.patience(asker, begun, answered_before) {
                Patience::None => true,
                Patience::Until(deadline) => timeout_at(deadline, answers.changed()).await.is_err(),
                Patience::ForEver => answers.changed().await.is_err(),
            };
            if is_over {
                return Ok(places);
            }
        }
    }

    /// Divides the nodes, and starts writing what is due. Writes are planned on cached versions: after a lost race the
    /// load balancer is read again.
    async fn divide_nodes(&self, newer_than: LogicalTime) -> Result<Arc<NodePlaces>, Failure> {
        for balancer in self.cluster.balancers() {
            self.observed.load_balancers().get(&balancer.name, newer_than).await?;
        }
        let sets = self.machine_sets(newer_than).await;
        // A load balancer with only pools of single Services has no nodes to give.
        let all = self.observed.load_balancers().all_cached();
        let load_balancers = self.cluster.own_load_balancers(all, &[]);
        let (version, nodes) = self.state.nodes_in_version();
        let (places, due) = self.sharing.divide(&self.cluster, (version, &nodes), sets, &load_balancers);
        for (balancer, due) in due {
            let (writer, sharing) = (self.load_balancer(&balancer), Arc::clone(&self.sharing));
            let seen = self.observed.started;
            tokio::spawn(async move {
                let done = writer.submit(Owner::Nodes, Wish::Members, seen, None).await;
                let version = |document: &Arc<LoadBalancer>| document.etag.clone();
                let done = done.map(|done| done.observed.load_balancer.as_ref().and_then(version));
                sharing.answered(balancer, due, done);
            });
        }
        Ok(places)
    }

    /// Whether nodes may be missing behind load balancers of SKU Basic because it is unknown in which scale sets or
    /// availability sets their machines are (LB-439).
    pub(crate) fn waits_for_sets(&self) -> bool {
        let is_used = self.cluster.config.uses_basic_load_balancer() && {
            let all = self.observed.load_balancers().all_cached();
            !self.cluster.own_load_balancers(all, &[]).is_empty()
        };
        is_used && {
            let known = self.membership.cached_virtual_machines();
            let sets = MachineSets::new(known.iter().map(|machine| &**machine));
            let places = placement::nodes_of_sets(&self.cluster, &self.state.nodes(), &sets);
            places.unknown().next().is_some()
        }
    }

    /// The nodes of each load balancer of SKU Basic; `None` for another SKU.
    ///
    /// # Errors
    ///
    /// If the machines' sets cannot be read.
    pub(crate) async fn nodes_of_sets(&self, newer_than: LogicalTime) -> Result<Option<NodePlaces>, Failure> {
        if !self.cluster.config.uses_basic_load_balancer() {
            return Ok(None);
        }
        let sets = self.machine_sets(newer_than).await;
        if let Some((failure, _)) = &self.sharing.state.lock().unread {
            return Err(failure.clone());
        }
        Ok(Some(placement::nodes_of_sets(&self.cluster, &self.state.nodes(), &sets)))
    }

    /// The scale sets and availability sets of nodes' machines. Read again only if a machine is unknown; unreadable
    /// ones count as unknown.
    pub(crate) async fn machine_sets(&self, newer_than: LogicalTime) -> MachineSets {
        let nodes = self.state.nodes();
        let machines =
            nodes.iter().filter_map(|node| match instance::parse_provider_id(&node.spec.provider_id) {
                ProviderId::Machine(id) => Some(id),
                ProviderId::Instance(_) | ProviderId::Unreadable | ProviderId::Other => None,
            });
        let machines: Vec<_> = machines.collect();
        if machines.is_empty() {
            self.sharing.state.lock().unread = None;
            return MachineSets::default();
        }
        let known = self.membership.cached_virtual_machines();
        let is_known = |id| known.iter().any(|machine| machine.id.as_ref() == Some(id));
        let has_failed = |(_, at): &(Failure, Instant)| at.elapsed() < RETRY_INTERVAL;
        let may_ask = !self.sharing.state.lock().unread.as_ref().is_some_and(has_failed);
        let are_known = machines.iter().all(is_known);
        if are_known {
            self.sharing.state.lock().unread = None;
        }
        if are_known || !may_ask {
            return MachineSets::new(known.iter().map(|machine| &**machine));
        }
        let newer_than = newer_than.max(self.state.machines_changed());
        let read = self.membership.virtual_machines(newer_than).await;
        let unread = read.err().map(|failure| {
            tracing::warn!(error = %failure.message, "the machine sets of nodes cannot be read");
            (failure, Instant::now())
        });
        self.sharing.state.lock().unread = unread;
        MachineSets::new(self.membership.cached_virtual_machines().iter().map(|machine| &**machine))
    }
}
