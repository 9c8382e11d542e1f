//! The route table as a shared resource: one write for the routes of many nodes.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use arm::ApiVersion;
use async_trait::async_trait;
use azure_types::{ResourceId, RouteTable};
use cloud::{LogicalTime, Notice};
use ipnet::IpNet;
use planner::route::{self as plans, RouteIntent, RouteKey, route_name};
use planner::{Change, Cluster, Purpose, Step};

use crate::azure::Azure;
use crate::failure::{Failure, Kind};
use crate::fingerprint;
use crate::observed::Observed;
use writer::{Planned, Resource, Written};

/// The owner of an intent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RouteOwner {
    /// The table itself: its tags, and operations that Azure did not finish.
    Table,
    /// A pod range of a node.
    Range(RouteKey),
}

impl fmt::Display for RouteOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table => f.write_str("the table itself"),
            Self::Range(key) => key.fmt(f),
        }
    }
}

/// The desired state of one owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RouteTableRequest {
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
pub(crate) fn routes(batch: &[(RouteOwner, RouteTableRequest)]) -> Vec<(RouteKey, RouteIntent)> {
    let route = |(owner, request): &(RouteOwner, RouteTableRequest)| match (owner, request) {
        (RouteOwner::Range(key), RouteTableRequest::Route(intent)) => Some((key.clone(), *intent)),
        _ => None,
    };
    batch.iter().filter_map(route).collect()
}

impl SharedRouteTable {
    pub(crate) fn plan(
        &self,
        table: Option<&RouteTable>,
        batch: &[(RouteKey, RouteIntent)],
    ) -> plans::RoutePlan {
        plans::plan_table(&self.cluster, &self.id, &self.cluster_ranges, table, batch)
    }
}

#[async_trait]
impl Resource for SharedRouteTable {
    type Key = RouteOwner;
    type Intent = RouteTableRequest;
    type Observed = Option<Arc<RouteTable>>;
    type Write = Step;
    type Claim = ();
    type Notice = Notice;

    fn name(&self) -> String {
        format!("route table {}", self.id.name())
    }

    async fn observe(&self, newer_than: LogicalTime) -> Result<Self::Observed, Failure> {
        self.observed.settled_route_table(&self.id, newer_than).await
    }

    fn claim(&self, _observed: &Self::Observed, _batch: &[(RouteOwner, RouteTableRequest)]) {}

    fn plan(
        &self,
        observed: &Self::Observed,
        batch: &[(RouteOwner, RouteTableRequest)],
        _: &(),
    ) -> Planned<Self> {
        let plan = Self::plan(self, observed.as_deref(), &routes(batch));
        // An obstacle may disappear: a retry is judged again.
        let refused = |(key, refusal): (RouteKey, plans::RouteRefusal)| {
            (RouteOwner::Range(key), Failure::new(Kind::FailedPrecondition, refusal.to_string()))
        };
        let refused = plan.refused.into_iter().map(refused).collect();
        Planned { write: plan.step, refused, notices: Vec::new() }
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

    fn concerned(&self, step: &Step, batch: &[(RouteOwner, RouteTableRequest)]) -> Vec<RouteOwner> {
        let routes = step.changes.iter().map(|change| match change {
            Change::RouteAdded { route, .. }
            | Change::RouteRemoved { route, .. }
            | Change::RouteChanged { route, .. } => Some(route.to_ascii_lowercase()),
            _ => None,
        });
        let changed: BTreeSet<Option<String>> = routes.collect();
        let names = |key: &RouteKey| [route_name(&key.node, &key.range), key.node.clone()];
        let is_changed = |owner: &&RouteOwner| match owner {
            RouteOwner::Table => changed.contains(&None),
            RouteOwner::Range(key) => {
                names(key).iter().any(|name| changed.contains(&Some(name.to_ascii_lowercase())))
            }
        };
        batch.iter().map(|(owner, _)| owner).filter(is_changed).cloned().collect()
    }

    fn blame(&self, message: &str, batch: &[(RouteOwner, RouteTableRequest)]) -> Vec<RouteOwner> {
        plans::keys_named_in(message, &routes(batch)).into_iter().map(RouteOwner::Range).collect()
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

/// The error if no route table is configured.
pub(crate) fn no_route_table() -> Failure {
    Failure::new(
        Kind::FailedPrecondition,
        "no route table is configured: set routeTableName in the cloud configuration",
    )
}
