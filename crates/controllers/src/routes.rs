//! The route controller: a route to each pod range of each node, and the node condition that reports it (NODE-096 to
//! NODE-101).
//!
//! All nodes are reconciled together: their routes are in one table, and all changes go into one write. Events of nodes
//! trigger it, as does `--route-reconciliation-period`, which accepts data about the table that is up to a minute old.
//!
//! A node reports that its network is available only after the cloud has confirmed its routes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use clock::Clock;
use cloud::{ClusterState, Existence, LogicalTime, Machines, PodRange, Routes, ServiceError};
use freshness::AgeLimits;
use futures::{StreamExt, stream};
use ipnet::IpNet;
use k8s::{Node, names};
use kube::Api;
use parking_lot::Mutex;

use crate::api::call;
use crate::events::Recorder;
use crate::node_condition::{self, NewCondition};
use crate::observer::Observer;
use crate::queue::{Backoff, MAX_PARALLEL_NODES, Next};
use crate::repeated_warning::RepeatedWarnings;

/// Maximum age of the table in a periodic comparison: a foreign change is noticed within a minute, for one read.
const MAX_TABLE_AGE: Duration = Duration::from_secs(60);

/// Maximum age of data about machines whose nodes show no address of a family: such addresses hardly ever change.
const MAX_ADDRESS_AGE: Duration = Duration::from_secs(300);

/// Minimum age of a node for an event that it has no address: its initialisation takes some seconds.
const MAX_AGE_WITHOUT_EVENT: Duration = Duration::from_secs(60);

const REACHABLE: NewCondition = NewCondition {
    kind: names::CONDITION_NETWORK_UNAVAILABLE,
    holds: false,
    reason: "RouteCreated",
    message: "RouteController created a route",
};
const UNREACHABLE: NewCondition = NewCondition {
    kind: names::CONDITION_NETWORK_UNAVAILABLE,
    holds: true,
    reason: "NoRouteCreated",
    message: "RouteController failed to create a route",
};

/// When a change of a node last affected routes.
#[derive(Debug, Default)]
pub(crate) struct RouteChanges(Mutex<Option<LogicalTime>>);

impl RouteChanges {
    /// Records a change.
    pub fn note(&self) {
        *self.0.lock() = Some(LogicalTime::now());
    }

    fn latest(&self) -> LogicalTime {
        self.0.lock().unwrap_or(LogicalTime::BEGINNING)
    }
}

/// Whether a change of a node may affect the routes to its pods.
pub(crate) fn routes_changed(old: Option<&Node>, new: &Node) -> bool {
    let Some(old) = old else { return !new.pod_ranges().is_empty() };
    old.metadata.uid != new.metadata.uid
        || old.pod_ranges() != new.pod_ranges()
        || old.is_managed() != new.is_managed()
        || !old.internal_addresses().eq(new.internal_addresses())
}

/// Whether another program changed a node's network condition. `NoRouteCreated` is set by this controller itself after
/// a failure, and is no reason to retry at once.
pub(crate) fn network_condition_changed(old: Option<&Node>, new: &Node) -> bool {
    let condition = |node: &Node| node.condition(names::CONDITION_NETWORK_UNAVAILABLE).cloned();
    let says_no_route = new.condition(names::CONDITION_NETWORK_UNAVAILABLE);
    let says_no_route =
        says_no_route.is_some_and(|said| said.status == "True" && said.reason == UNREACHABLE.reason);
    !new.pod_ranges().is_empty() && !says_no_route && old.and_then(condition) != condition(new)
}

/// Why a pod range of a node can have no route.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum NoRoute {
    #[error("spec.podCIDRs of node {node}: {range} is no range of addresses; register the node anew")]
    Unreadable { node: String, range: String },
    #[error(
        "node {node} has no InternalIP of the family of {range} among its addresses, and none is known of its machine: it has none, or the node is not initialised yet"
    )]
    NoAddress { node: String, range: IpNet },
    #[error(
        "range {range} of node {node} holds {address}, the address of node {of}: a route to it would take the traffic of \
         that machine; correct --cluster-cidr, then delete Node {node} and let it register again"
    )]
    HoldsNode { node: String, range: IpNet, address: IpAddr, of: String },
}

impl NoRoute {
    /// Whether the range has a route nevertheless, which stays because no better next hop is known.
    fn has_route(&self, existing: &BTreeSet<PodRange>) -> bool {
        match self {
            Self::Unreadable { .. } | Self::HoldsNode { .. } => false,
            Self::NoAddress { node, range } => existing.contains(&PodRange::new(node, *range)),
        }
    }
}

/// Addresses of machines that their nodes do not show, by the nodes' names. A kubelet that was started with one address
/// shows no other, although packets arrive at each.
type MachineAddresses = BTreeMap<String, Vec<IpAddr>>;

/// The known addresses.
struct Addresses<'a> {
    /// The addresses of all nodes, sorted.
    nodes: BTreeMap<IpAddr, &'a str>,
    machines: MachineAddresses,
}

impl<'a> Addresses<'a> {
    fn of(nodes: &BTreeMap<&str, &'a Node>) -> Self {
        let of_node = |node: &'a Node| node.internal_addresses().map(|address| (address, node.name()));
        Self { nodes: nodes.values().copied().flat_map(of_node).collect(), machines: MachineAddresses::new() }
    }

    /// The first node whose address is in a pod range.
    fn within(&self, range: &IpNet) -> Option<(IpAddr, &'a str)> {
        let behind = self.nodes.range(range.network()..).next();
        behind.filter(|(address, _)| range.contains(*address)).map(|(address, name)| (*address, *name))
    }
}

/// The desired next hops of the routes to a node's pods: its first address of each range's family, or its machine's if
/// the node shows none. A range that contains nodes' addresses gets no route (NODE-268).
fn wanted(node: &Node, addresses: &Addresses<'_>) -> Vec<Result<(PodRange, IpAddr), NoRoute>> {
    let of_machine = || addresses.machines.get(node.name()).into_iter().flatten().copied();
    let route = |text: &str| {
        let named = || node.name().to_owned();
        let range: IpNet =
            text.parse().map_err(|_| NoRoute::Unreadable { node: named(), range: text.to_owned() })?;
        if let Some((address, of)) = addresses.within(&range) {
            return Err(NoRoute::HoldsNode { node: named(), range, address, of: of.to_owned() });
        }
        let is_v4 = range.addr().is_ipv4();
        let mut known = node.internal_addresses().chain(of_machine());
        let next_hop = known.find(|address| address.is_ipv4() == is_v4);
        let next_hop = next_hop.ok_or_else(|| NoRoute::NoAddress { node: named(), range })?;
        Ok((PodRange::new(node.name(), range), next_hop))
    };
    node.pod_ranges().into_iter().map(route).collect()
}

/// Describes the machines of initialised nodes that show no address of a family in which they have a range.
async fn machine_addresses(
    machines: &dyn Machines,
    nodes: &BTreeMap<&str, &Node>,
    known: &Addresses<'_>,
    newer_than: LogicalTime,
) -> MachineAddresses {
    let lacks_address = |node: &&Node| {
        let is_described = !node.spec.provider_id.is_empty() && !node.has_taint(names::TAINT_UNINITIALIZED);
        let ranges = wanted(node, known);
        node.is_managed()
            && is_described
            && ranges.iter().any(|one| matches!(one, Err(NoRoute::NoAddress { .. })))
    };
    let mut asks = Vec::new();
    for node in nodes.values().copied().filter(lacks_address) {
        asks.push(addresses_of_machine(machines, node, newer_than));
    }
    stream::iter(asks).buffer_unordered(MAX_PARALLEL_NODES).filter_map(std::future::ready).collect().await
}

async fn addresses_of_machine(
    machines: &dyn Machines,
    node: &Node,
    newer_than: LogicalTime,
) -> Option<(String, Vec<IpAddr>)> {
    let Existence::Present(machine) = machines.describe(node, newer_than).await else { return None };
    let internal = machine.addresses.iter().filter(|address| address.kind == "InternalIP");
    Some((node.name().to_owned(), internal.filter_map(|one| one.address.parse().ok()).collect()))
}

/// The desired routes, derived from the known nodes.
#[derive(Debug, Default, PartialEq)]
struct DesiredRoutes {
    wanted: BTreeMap<PodRange, IpAddr>,
    /// Routes to ranges that their nodes no longer have.
    unwanted: BTreeSet<PodRange>,
    /// Routes of unknown nodes.
    orphans: BTreeSet<PodRange>,
}

impl DesiredRoutes {
    fn of(nodes: &BTreeMap<&str, &Node>, addresses: &Addresses<'_>, owned: BTreeSet<PodRange>) -> Self {
        let mut due = Self::default();
        let managed = nodes.values().filter(|node| node.is_managed());
        due.wanted = managed.flat_map(|node| wanted(node, addresses)).filter_map(Result::ok).collect();
        for route in owned {
            match nodes.get(route.node.as_str()) {
                None => drop(due.orphans.insert(route)),
                // The operator of a node that Azure does not manage also manages its routes.
                Some(node) if !node.is_managed() => {}
                Some(node) => {
                    let has = |text: &&str| text.parse::<IpNet>().is_ok_and(|own| own.trunc() == route.range);
                    if !node.pod_ranges().iter().any(has) {
                        due.unwanted.insert(route);
                    }
                }
            }
        }
        due
    }
}

/// The changes that the route controller would request of the cloud ([`Routes::apply`]).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoutesDue {
    /// The ranges of nodes, each with the address that its route leads to.
    pub wanted: BTreeMap<PodRange, IpAddr>,
    /// The ranges whose routes are deleted.
    pub unwanted: BTreeSet<PodRange>,
    /// Why nodes get no route until something is changed.
    pub refused: Vec<String>,
    /// Why nodes get no route yet, and other problems with their ranges.
    pub problems: Vec<String>,
}

/// The changes that the route controller would request if it started now. All Nodes must be in `state`, including those
/// that a selector would hide from the controller. `cluster_ranges` are all ranges that nodes' ranges are taken from.
///
/// # Errors
/// The cloud could not list the routes.
pub async fn routes_due(
    routes: &dyn Routes,
    machines: &dyn Machines,
    state: &ClusterState,
    cluster_ranges: &[IpNet],
) -> Result<RoutesDue, ServiceError> {
    let owned = routes.owned(LogicalTime::BEGINNING).await?;
    let all = state.nodes();
    let nodes: BTreeMap<&str, &Node> = all.iter().map(|node| (node.name(), &**node)).collect();
    let mut addresses = Addresses::of(&nodes);
    addresses.machines = machine_addresses(machines, &nodes, &addresses, LogicalTime::BEGINNING).await;
    let existing = owned.clone();
    let DesiredRoutes { wanted: ranges, mut unwanted, orphans } =
        DesiredRoutes::of(&nodes, &addresses, owned);
    // A node that is not in the complete list was deleted.
    unwanted.extend(orphans);
    let managed = || nodes.values().filter(|node| node.is_managed());
    let unwritten = managed().flat_map(|node| wanted(node, &addresses)).filter_map(Result::err);
    let unwritten = unwritten.filter(|why| !why.has_route(&existing));
    let (waiting, refused): (Vec<_>, Vec<_>) =
        unwritten.partition(|why| matches!(why, NoRoute::NoAddress { .. }));
    let texts = |reasons: Vec<NoRoute>| reasons.iter().map(ToString::to_string).collect::<Vec<_>>();
    let (mut problems, refused) = (texts(waiting), texts(refused));
    let is_outside = |range: &&PodRange| !cluster_ranges.iter().any(|whole| whole.contains(&range.range));
    let outside: Vec<String> = ranges.keys().filter(is_outside).map(ToString::to_string).collect();
    if !outside.is_empty() {
        problems.push(format!(
            "ranges of nodes are in none of --cluster-cidr: {}; their routes stay when the nodes go: correct \
             --cluster-cidr, or delete these Nodes and let them register again",
            outside.join(", ")
        ));
    }
    let bare: Vec<&str> =
        managed().filter(|node| node.pod_ranges().is_empty()).map(|node| node.name()).collect();
    if !bare.is_empty() {
        problems.push(format!(
            "nodes that have no range for their pods yet get their routes later: {}",
            bare.join(", ")
        ));
    }
    Ok(RoutesDue { wanted: ranges, unwanted, refused, problems })
}

/// The route controller.
pub(crate) struct RouteController {
    pub api: Api<Node>,
    pub routes: Arc<dyn Routes>,
    pub machines: Arc<dyn Machines>,
    pub state: ClusterState,
    pub changes: Arc<RouteChanges>,
    pub age_limits: Arc<AgeLimits>,
    pub recorder: Recorder,
    pub observer: Arc<dyn Observer>,
    pub clock: Clock,
    /// Interval of periodic comparisons.
    pub period: Duration,
    pub warnings: RepeatedWarnings,
    pub failures: AtomicU32,
}

impl RouteController {
    /// Brings the routes in line with the current nodes. All nodes must be known.
    pub async fn reconcile(&self) -> Next {
        self.observer.routes_synced();
        let newer_than = self.changes.latest().max(self.age_limits.within(MAX_TABLE_AGE));
        match self.sync(newer_than).await {
            Ok(None) => {
                self.failures.store(0, Ordering::Relaxed);
                Next::After(self.period)
            }
            Ok(Some(ServiceError::Retry { after: Some(after), .. })) => Next::After(after),
            Ok(Some(_)) => self.back_off(),
            Err(error) => {
                let text = error.to_string();
                if self.warnings.is_due("", &text) {
                    tracing::warn!(error = text, "failed to read the routes: nodes stay as they are");
                }
                self.back_off()
            }
        }
    }

    fn back_off(&self) -> Next {
        Next::After(Backoff::NODES.after(self.failures.fetch_add(1, Ordering::Relaxed)))
    }

    /// Returns the failure, if any.
    async fn sync(&self, newer_than: LogicalTime) -> Result<Option<ServiceError>, ServiceError> {
        // Routes before nodes: the node of any route in the list is known, if it exists.
        let owned = self.routes.owned(newer_than).await?;
        let all = self.state.nodes();
        let nodes: BTreeMap<&str, &Node> = all.iter().map(|node| (node.name(), &**node)).collect();
        let mut addresses = Addresses::of(&nodes);
        let newer_than_machines = self.age_limits.within(MAX_ADDRESS_AGE);
        addresses.machines =
            machine_addresses(&*self.machines, &nodes, &addresses, newer_than_machines).await;
        let existing = owned.clone();
        let mut due = DesiredRoutes::of(&nodes, &addresses, owned);
        due.unwanted.extend(self.without_node(due.orphans).await);
        let answers = self.routes.apply(&due.wanted, &due.unwanted, newer_than).await?;
        self.warnings.forget("");
        for range in &due.unwanted {
            if let Some(Err(error)) = answers.get(range) {
                self.warn(&range.to_string(), &format!("failed to remove the route to {range}: {error}"));
            }
        }
        let unwanted_of: BTreeSet<&str> = due.unwanted.iter().map(|range| range.node.as_str()).collect();
        let mut writes = Vec::new();
        for node in nodes.values().copied() {
            let had_routes = unwanted_of.contains(node.name());
            let condition = self.judge(node, &addresses, &existing, &answers, had_routes);
            if let Some(condition) = condition.filter(|condition| !condition.is_on(node)) {
                writes.push(self.write(node, condition));
            }
        }
        let mut writes = stream::iter(writes).buffer_unordered(MAX_PARALLEL_NODES);
        let mut failed = answers.values().find_map(|answer| answer.as_ref().err()).cloned();
        while let Some(written) = writes.next().await {
            failed = failed.or(written.err());
        }
        Ok(failed)
    }

    /// The routes among these whose nodes were deleted. This is checked by reading the nodes, as the watch may be
    /// limited by a selector.
    async fn without_node(&self, orphans: BTreeSet<PodRange>) -> Vec<PodRange> {
        let mut gone: BTreeMap<&str, bool> = BTreeMap::new();
        for range in &orphans {
            let name = range.node.as_str();
            if !gone.contains_key(name) {
                let read = call(|| format!("read node {name}"), self.api.get_metadata(name)).await;
                gone.insert(name, read.is_err_and(|error| error.is_not_found()));
            }
        }
        let is_gone = |range: &&PodRange| gone.get(range.node.as_str()) == Some(&true);
        orphans.iter().filter(is_gone).cloned().collect()
    }

    /// The network condition of a node, from the outcome of its routes; an event if its pods cannot be reached.
    /// `existing` are the routes that the table contained before.
    fn judge(
        &self,
        node: &Node,
        addresses: &Addresses<'_>,
        existing: &BTreeSet<PodRange>,
        answers: &BTreeMap<PodRange, Result<(), ServiceError>>,
        had_routes: bool,
    ) -> Option<NewCondition> {
        if !node.is_managed() {
            return (!node.pod_ranges().is_empty()).then_some(REACHABLE);
        }
        let ranges = wanted(node, addresses);
        if ranges.is_empty() {
            return had_routes.then_some(UNREACHABLE);
        }
        let age = self.clock.age(node.metadata.creation_timestamp.as_ref().map(|created| created.0));
        let (mut reachable, mut problems) = (true, Vec::new());
        for range in ranges {
            let problem = match range {
                Ok((range, _)) => match answers.get(&range) {
                    Some(Ok(())) => continue,
                    Some(Err(error)) => format!("to {}: {error}", range.range),
                    None => format!("to {}: it was not requested", range.range),
                },
                Err(ref why) if why.has_route(existing) => continue,
                Err(NoRoute::NoAddress { .. }) if age < MAX_AGE_WITHOUT_EVENT => String::new(),
                // Its pods are reached as before; others are not.
                Err(ref why @ NoRoute::HoldsNode { range, .. })
                    if existing.contains(&PodRange::new(node.name(), range)) =>
                {
                    problems.push(why.to_string());
                    continue;
                }
                Err(why) => why.to_string(),
            };
            reachable = false;
            problems.extend(Some(problem).filter(|problem| !problem.is_empty()));
        }
        let name = node.name();
        if problems.is_empty() {
            self.warnings.forget(name);
        } else {
            let text = format!("Could not create route for node {name}: {}", problems.join("; "));
            if self.warn(name, &text) {
                self.recorder.warning(node, "FailedToCreateRoute", text);
            }
        }
        Some(if reachable { REACHABLE } else { UNREACHABLE })
    }

    async fn write(&self, node: &Node, condition: NewCondition) -> Result<(), ServiceError> {
        let written = node_condition::set(&self.api, node, &condition, &self.clock).await;
        written.map(drop).map_err(|error| {
            self.warn(node.name(), &error.to_string());
            ServiceError::Retry { message: error.to_string(), after: None, notices: Vec::new() }
        })
    }

    /// Logs a new warning. Returns whether it was new.
    fn warn(&self, subject: &str, text: &str) -> bool {
        let is_due = self.warnings.is_due(subject, text);
        if is_due {
            tracing::warn!(subject, reason = text, "routes are not as they should be");
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use cloud::{Instance, Presence};
    use k8s::NodeAddress;
    use serde_json::json;

    use super::*;

    fn node(name: &str, ranges: &[&str], addresses: &[&str]) -> Node {
        let addresses: Vec<_> =
            addresses.iter().map(|address| json!({"type": "InternalIP", "address": address})).collect();
        serde_json::from_value(json!({
            "metadata": {"name": name}, "spec": {"podCIDRs": ranges}, "status": {"addresses": addresses},
        }))
        .unwrap()
    }

    fn range(node: &str, range: &str) -> PodRange {
        PodRange::new(node, range.parse().unwrap())
    }

    /// NODE-092, NODE-096: the next hop is the first address of the range's family.
    #[test]
    fn node_092_node_096_routes_lead_to_the_first_address_of_the_family() {
        let both = node("n1", &["10.244.1.0/24", "fd00:1::/64"], &["fd00::9", "2.4.6.8", "10.10.10.10"]);
        let expected = [(range("n1", "10.244.1.0/24"), "2.4.6.8"), (range("n1", "fd00:1::/64"), "fd00::9")];
        let expected = expected.map(|(range, hop)| Ok((range, hop.parse().unwrap())));
        let wanted = |node: &Node| wanted(node, &Addresses::of(&[(node.name(), node)].into()));
        assert_eq!(wanted(&both), expected);
        let one = wanted(&node("n1", &["fd00:1::/64"], &["2.4.6.8"]));
        let [Err(why)] = &one[..] else { panic!("{one:?}") };
        assert!(why.to_string().contains("n1 has no InternalIP of the family of fd00:1::/64"), "{why}");
        let odd = wanted(&node("n1", &["10.244.1.0"], &["2.4.6.8"]));
        assert!(matches!(&odd[..], [Err(NoRoute::Unreadable { .. })]), "{odd:?}");
    }

    /// NODE-268: a route to a range that contains a node's address would take that node's traffic.
    #[test]
    fn node_268_a_range_that_holds_a_node_gets_no_route() {
        let (one, two) = (
            node("n1", &["10.240.0.0/24", "fd00:1::/64"], &["10.240.1.4", "fd00::4"]),
            node("n2", &["10.244.2.0/24"], &["10.240.0.5"]),
        );
        let nodes = [("n1", &one), ("n2", &two)].into();
        let due = DesiredRoutes::of(&nodes, &Addresses::of(&nodes), [range("n1", "10.240.0.0/24")].into());
        let wanted_ranges: Vec<String> = due.wanted.keys().map(ToString::to_string).collect();
        assert_eq!(wanted_ranges, ["n1 fd00:1::/64", "n2 10.244.2.0/24"]);
        assert!(due.unwanted.is_empty(), "a route that is there already stays");
        let all = wanted(&one, &Addresses::of(&nodes));
        let [Err(why), Ok(_)] = &all[..] else { panic!("{all:?}") };
        let text = why.to_string();
        assert!(
            text.starts_with("range 10.240.0.0/24 of node n1 holds 10.240.0.5, the address of node n2"),
            "{text}"
        );
    }

    /// NODE-097: a node that Azure does not manage gets no route and loses none.
    #[test]
    fn node_097_what_is_due_is_told_by_nodes_and_routes() {
        let mut unmanaged = node("edge", &["10.244.9.0/24"], &["10.0.0.9"]);
        unmanaged.metadata.labels = Some([(names::LABEL_MANAGED.to_owned(), "False".to_owned())].into());
        let (one, two) = (node("n1", &["10.244.1.0/24"], &["10.0.0.1"]), node("n2", &[], &["10.0.0.2"]));
        let nodes = [("edge", &unmanaged), ("n1", &one), ("n2", &two)].into();
        let owned = ["10.244.1.0/24", "10.244.7.0/24"].map(|text| range("n1", text));
        let others =
            [range("n2", "10.244.2.0/24"), range("gone", "10.244.3.0/24"), range("edge", "10.244.8.0/24")];
        let due =
            DesiredRoutes::of(&nodes, &Addresses::of(&nodes), owned.into_iter().chain(others).collect());
        assert_eq!(due.wanted, [(range("n1", "10.244.1.0/24"), "10.0.0.1".parse().unwrap())].into());
        assert_eq!(due.unwanted, [range("n1", "10.244.7.0/24"), range("n2", "10.244.2.0/24")].into());
        assert_eq!(due.orphans, [range("gone", "10.244.3.0/24")].into());
    }

    /// Ranges that have a route, whatever its next hop.
    struct Table(BTreeSet<PodRange>);

    #[async_trait::async_trait]
    impl Routes for Table {
        async fn owned(&self, _: LogicalTime) -> Result<BTreeSet<PodRange>, ServiceError> {
            Ok(self.0.clone())
        }

        async fn apply(
            &self,
            _: &BTreeMap<PodRange, IpAddr>,
            _: &BTreeSet<PodRange>,
            _: LogicalTime,
        ) -> Result<BTreeMap<PodRange, Result<(), ServiceError>>, ServiceError> {
            Ok(BTreeMap::new())
        }
    }

    /// One machine has an address that its node does not show.
    struct Rack;

    #[async_trait::async_trait]
    impl Machines for Rack {
        async fn presence(&self, _: &Node, _: LogicalTime) -> Existence<Presence> {
            Existence::Unknown("not used".into())
        }

        async fn describe(&self, node: &Node, _: LogicalTime) -> Existence<Instance> {
            let addresses = ["10.0.0.4", "fd00::4"]
                .map(|address| NodeAddress { kind: "InternalIP".into(), address: address.to_owned() });
            match node.name() {
                "n4" => Existence::Present(Instance { addresses: addresses.into(), ..Instance::default() }),
                _ => Existence::Unknown("503 from Azure".into()),
            }
        }
    }

    /// NODE-243: a route leads to an address that the node's machine has and the node does not show; if no address is
    /// known, an existing route stays.
    #[tokio::test]
    async fn node_243_a_route_leads_to_what_the_machine_has_and_one_that_stands_stays() {
        let state = ClusterState::default();
        let apply = |name: &str, id: &str| {
            let number = &name[1..];
            let ranges = [format!("10.244.{number}.0/24"), format!("fd00:{number}::/64")];
            let mut node =
                node(name, &ranges.each_ref().map(|range| &**range), &[&format!("10.0.0.{number}")]);
            id.clone_into(&mut node.spec.provider_id);
            state.apply_node(Arc::new(node));
        };
        // One with a known machine, one whose machine is unknown, one that has a route already, and one that is not
        // initialised yet.
        for (name, id) in [("n4", "azure:///4"), ("n5", "azure:///5"), ("n6", "azure:///6"), ("n7", "")] {
            apply(name, id);
        }
        let table = Table([range("n6", "10.244.6.0/24"), range("n6", "fd00:6::/64")].into());
        let whole = ["10.244.0.0/16", "fd00::/16"].map(|range| range.parse().unwrap());
        let due = routes_due(&table, &Rack, &state, &whole).await.unwrap();
        assert_eq!(due.wanted.get(&range("n4", "fd00:4::/64")), Some(&"fd00::4".parse().unwrap()));
        assert_eq!(due.wanted.get(&range("n4", "10.244.4.0/24")), Some(&"10.0.0.4".parse().unwrap()));
        assert_eq!(due.wanted.get(&range("n6", "fd00:6::/64")), None, "its next hop is unknown");
        assert!(due.unwanted.is_empty(), "{due:?}");
        let reported: Vec<bool> =
            ["n4", "n5", "n6", "n7"].map(|name| due.problems.iter().any(|why| why.contains(name))).into();
        assert_eq!(reported, [false, true, false, true], "{due:?}");
    }

    /// NODE-272: a preview knows all nodes, so unknown ones were deleted; nodes without route are reported.
    #[tokio::test]
    async fn node_272_a_preview_says_who_gets_a_route_who_loses_one_and_who_waits() {
        let state = ClusterState::default();
        let served = node("n1", &["10.244.1.0/24", "fd00:1::/64"], &["10.0.0.1"]);
        for node in [served, node("n2", &[], &["10.0.0.2"]), node("n3", &["10.244.3.0/24"], &["10.0.0.3"])] {
            state.apply_node(Arc::new(node));
        }
        let gone = [range("gone", "10.244.9.0/24"), range("n2", "10.244.2.0/24")];
        let table = Table(gone.clone().into_iter().chain([range("n3", "10.244.3.0/24")]).collect());
        let whole = ["10.244.0.0/23", "fd00:1::/56"].map(|range| range.parse().unwrap());
        let due = routes_due(&table, &Rack, &state, &whole).await.unwrap();
        let wanted: Vec<String> = due.wanted.iter().map(|(range, hop)| format!("{range} {hop}")).collect();
        assert_eq!(wanted, ["n1 10.244.1.0/24 10.0.0.1", "n3 10.244.3.0/24 10.0.0.3"]);
        assert_eq!(due.unwanted, gone.into());
        assert!(due.problems[0].contains("n1 has no InternalIP of the family of fd00:1::/64"), "{due:?}");
        assert!(
            due.problems[2].ends_with("get their routes later: n2") && due.problems.len() == 3,
            "{due:?}"
        );
        // NODE-269: routes outside of the cluster's ranges are written, but never removed.
        let outside = "ranges of nodes are in none of --cluster-cidr: n3 10.244.3.0/24; their routes stay";
        assert!(due.problems[1].starts_with(outside), "{due:?}");
    }

    #[test]
    fn heartbeats_are_no_reason_to_look_at_routes() {
        let before = node("n1", &["10.244.1.0/24"], &["10.0.0.1"]);
        let mut beats = before.clone();
        beats.metadata.resource_version = Some("9".to_owned());
        assert!(!routes_changed(Some(&before), &beats) && !network_condition_changed(Some(&before), &beats));
        let saying = |status: &str, reason: &str| {
            let mut node = before.clone();
            let condition = json!({"type": "NetworkUnavailable", "status": status, "reason": reason});
            node.status.conditions = vec![serde_json::from_value(condition).unwrap()];
            node
        };
        let theirs = saying("True", "CalicoIsDown");
        assert!(network_condition_changed(Some(&before), &theirs));
        assert!(network_condition_changed(Some(&theirs), &saying("False", "RouteCreated")));
        // Our own failure is retried after a pause.
        assert!(!network_condition_changed(Some(&before), &saying("True", "NoRouteCreated")));
        assert!(routes_changed(None, &before) && !routes_changed(None, &node("n1", &[], &["10.0.0.1"])));
        assert!(routes_changed(Some(&before), &node("n1", &["10.244.1.0/24"], &["10.0.0.2"])));
        assert!(routes_changed(Some(&before), &node("n1", &[], &["10.0.0.1"])));
    }
}
