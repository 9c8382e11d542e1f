//! The route table as a shared resource: one write for the routes of many nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use arm::ApiVersion;
use async_trait::async_trait;
use azure_types::{ResourceId, RouteTable};
use cloud::{LogicalTime, PodRange, ServiceError};
use futures::future::join_all;
use ipnet::IpNet;
use planner::route::{self as plans, OwnedRoute, RouteIntent, RouteKey, route_name};
use planner::{Change, Cluster, Purpose, Step};

use crate::azure::Azure;
use crate::failure::{Failure, Kind};
use crate::fingerprint;
use crate::observed::Observed;
use crate::port::route_error;
use crate::provider::{Inner, Provider};
use crate::writer::{Planned, Resource, Written};

/// The owner of an intent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    /// The table itself: its tags, and operations that Azure did not finish.
    Table,
    /// A pod range of a node.
    Range(RouteKey),
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table => f.write_str("the table itself"),
            Self::Range(key) => key.fmt(f),
        }
    }
}

/// The desired state of one owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// The table matches azure.json.
    AsConfigured,
    /// The route of a range exists, or does not.
    Route(RouteIntent),
}

/// The route table.
pub(crate) struct SharedRouteTable {
    pub(crate) id: ResourceId,
    pub(crate) cluster: Arc<Cluster>,
    /// All ranges that nodes' ranges are taken from.
    pub(crate) cluster_ranges: Vec<IpNet>,
    pub(crate) azure: Azure,
    pub(crate) observed: Arc<Observed>,
}

/// The route intents of a batch.
fn routes(batch: &[(Owner, Wish)]) -> Vec<(RouteKey, RouteIntent)> {
    let route = |(owner, wish): &(Owner, Wish)| match (owner, wish) {
        (Owner::Range(key), Wish::Route(intent)) => Some((key.clone(), *intent)),
        _ => None,
    };
    batch.iter().filter_map(route).collect()
}

impl SharedRouteTable {
    fn plan(&self, table: Option<&RouteTable>, batch: &[(RouteKey, RouteIntent)]) -> plans::RoutePlan {
        plans::plan_table(&self.cluster, &self.id, &self.cluster_ranges, table, batch)
    }
}

#[async_trait]
impl Resource for SharedRouteTable {
    type Key = Owner;
    type Intent = Wish;
    type Observed = Option<Arc<RouteTable>>;
    type Work = Step;
    type Claim = ();

    fn name(&self) -> String {
        format!("route table {}", self.id.name())
    }

    async fn observe(&self, newer_than: LogicalTime) -> Result<Self::Observed, Failure> {
        self.observed.settled_route_table(&self.id, newer_than).await
    }

    fn claim(&self, _observed: &Self::Observed, _batch: &[(Owner, Wish)]) {}

    fn plan(&self, observed: &Self::Observed, batch: &[(Owner, Wish)], _: &()) -> Planned<Self> {
        let plan = Self::plan(self, observed.as_deref(), &routes(batch));
        // An obstacle may disappear: a retry is judged again.
        let refused = |(key, refusal): (RouteKey, plans::RouteRefusal)| {
            (Owner::Range(key), Failure::new(Kind::FailedPrecondition, refusal.to_string()))
        };
        let refused = plan.refused.into_iter().map(refused).collect();
        Planned { work: plan.step, refused, notices: Vec::new() }
    }

    async fn write(
        &self,
        _observed: &Self::Observed,
        step: &Step,
    ) -> Result<Written<Self::Observed>, Failure> {
        let known = self.observed.route_table();
        let document = self.azure.put_known(step, ApiVersion::NETWORK, known).await?;
        Ok(Written::Whole(Some(document)))
    }

    fn fingerprint(&self, step: &Step) -> u64 {
        fingerprint::of([step])
    }

    fn concerned(&self, step: &Step, batch: &[(Owner, Wish)]) -> Vec<Owner> {
        let routes = step.changes.iter().map(|change| match change {
            Change::RouteAdded { route, .. }
            | Change::RouteRemoved { route, .. }
            | Change::RouteChanged { route, .. } => Some(route.to_ascii_lowercase()),
            _ => None,
        });
        let changed: BTreeSet<Option<String>> = routes.collect();
        let names = |key: &RouteKey| [route_name(&key.node, &key.range), key.node.clone()];
        let is_changed = |owner: &&Owner| match owner {
            Owner::Table => changed.contains(&None),
            Owner::Range(key) => {
                names(key).iter().any(|name| changed.contains(&Some(name.to_ascii_lowercase())))
            }
        };
        batch.iter().map(|(owner, _)| owner).filter(is_changed).cloned().collect()
    }

    fn blame(&self, message: &str, batch: &[(Owner, Wish)]) -> Vec<Owner> {
        plans::keys_named_in(message, &routes(batch)).into_iter().map(Owner::Range).collect()
    }

    async fn restore(&self, before: &Self::Observed) -> Result<(), Failure> {
        let now = self.observed.settled_route_table(&self.id, LogicalTime::now()).await?;
        let (Some(before), Some(now)) = (before, now) else { return Ok(()) };
        let Some(step) = plans::restore(&self.cluster, &self.id, before, &now) else { return Ok(()) };
        self.azure.put_known(&step, ApiVersion::NETWORK, self.observed.route_table()).await.map(drop)
    }

    fn is_repair(&self, step: &Step) -> bool {
        step.purpose == Purpose::Repair
    }
}

/// Intents with their owners, each with its range if it is for one.
type Batch<'a> = Vec<(Option<&'a PodRange>, Owner, Wish)>;

/// The existing routes of nodes, including those outside of the cluster's ranges.
type AtHand = BTreeMap<PodRange, OwnedRoute>;

/// The intents that are needed to bring the table to the desired state. What already matches needs none.
fn batch<'a>(
    resource: &SharedRouteTable,
    table: Option<&RouteTable>,
    at_hand: &AtHand,
    wanted: &'a BTreeMap<PodRange, IpAddr>,
    unwanted: &'a BTreeSet<PodRange>,
) -> Batch<'a> {
    let mut batch: Batch<'_> = Vec::new();
    if resource.plan(table, &[]).step.is_some() {
        batch.push((None, Owner::Table, Wish::AsConfigured));
    }
    let key = |range: &PodRange| Owner::Range(RouteKey { node: range.node.clone(), range: range.range });
    for (range, next_hop) in wanted {
        let is_in_order = |route: &OwnedRoute| route.next_hop == Some(*next_hop) && !route.is_legacy;
        if !at_hand.get(range).is_some_and(is_in_order) {
            let present = RouteIntent::Present { next_hop: *next_hop };
            batch.push((Some(range), key(range), Wish::Route(present)));
        }
    }
    for range in unwanted {
        batch.push((Some(range), key(range), Wish::Route(RouteIntent::Absent)));
    }
    batch
}

/// The outcome of each range.
pub(crate) type Answers = BTreeMap<PodRange, Result<(), Failure>>;

impl Inner {
    /// The ranges that have a route of a node.
    async fn routes_at_hand(
        &self,
        newer_than: LogicalTime,
    ) -> Result<(Option<Arc<RouteTable>>, AtHand), Failure> {
        let known = self.observed.route_table().ok_or_else(no_route_table)?;
        let table = match self.cluster.route_table_id() {
            Some(id) => known.get(id.name(), newer_than).await?,
            None => None,
        };
        let is_node = |name: &str| self.state.node(name).is_some();
        let mut at_hand = BTreeMap::new();
        for route in plans::owned(&self.cluster_ranges, table.as_deref(), is_node) {
            let range = PodRange::new(route.key.node.clone(), route.key.range);
            if !route.is_legacy || !at_hand.contains_key(&range) {
                at_hand.insert(range, route);
            }
        }
        Ok((table, at_hand))
    }

    pub(crate) async fn owned_routes(&self, newer_than: LogicalTime) -> Result<BTreeSet<PodRange>, Failure> {
        let (_, at_hand) = self.routes_at_hand(newer_than).await?;
        Ok(at_hand.into_iter().filter(|(_, route)| route.is_within).map(|(range, _)| range).collect())
    }

    pub(crate) async fn apply_routes(
        &self,
        wanted: &BTreeMap<PodRange, IpAddr>,
        unwanted: &BTreeSet<PodRange>,
        newer_than: LogicalTime,
    ) -> Result<Answers, Failure> {
        let writer = self.route_table()?;
        let (table, at_hand) = self.routes_at_hand(newer_than).await?;
        let mut answers: Answers = wanted.keys().map(|range| (range.clone(), Ok(()))).collect();
        let batch = batch(writer.resource(), table.as_deref(), &at_hand, wanted, unwanted);
        // All are announced before the first is submitted, so that they form one batch.
        let submitted: Vec<_> = (batch.into_iter())
            .map(|(range, owner, wish)| {
                let announcement = writer.announce();
                let writer = &writer;
                async move {
                    let done = writer.submit(owner, wish, newer_than, Some(announcement)).await;
                    (range, done.map(drop))
                }
            })
            .collect();
        for (range, done) in join_all(submitted).await {
            // A problem with the tags has no owner: the writer has logged it.
            let Some(range) = range else { continue };
            // Packets arrive even if the route has a wrong name.
            let leads_there =
                || at_hand.get(range).is_some_and(|route| route.next_hop == wanted.get(range).copied());
            let is_wanted = wanted.contains_key(range);
            let done = if done.is_err() && is_wanted && leads_there() { Ok(()) } else { done };
            answers.insert(range.clone(), done);
        }
        Ok(answers)
    }
}

impl Provider {
    /// All ranges that nodes' ranges are taken from.
    pub fn cluster_ranges(&self) -> &[IpNet] {
        &self.0.cluster_ranges
    }

    /// What [`cloud::Routes::apply`] would write now. Writes nothing.
    ///
    /// # Errors
    ///
    /// The table could not be read, or none is configured.
    pub async fn preview_routes(
        &self,
        wanted: &BTreeMap<PodRange, IpAddr>,
        unwanted: &BTreeSet<PodRange>,
    ) -> Result<plans::RoutePlan, ServiceError> {
        let writer = self.0.route_table().map_err(route_error)?;
        // The table was read when the routes were listed.
        let read = self.0.routes_at_hand(LogicalTime::BEGINNING).await;
        let (table, at_hand) = read.map_err(route_error)?;
        let batch = batch(writer.resource(), table.as_deref(), &at_hand, wanted, unwanted);
        let batch: Vec<(Owner, Wish)> = batch.into_iter().map(|(_, owner, wish)| (owner, wish)).collect();
        Ok(writer.resource().plan(table.as_deref(), &routes(&batch)))
    }
}

pub(crate) fn no_route_table() -> Failure {
    Failure::new(
        Kind::FailedPrecondition,
        "no route table is configured: set routeTableName in the cloud configuration",
    )
}
