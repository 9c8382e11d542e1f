//! The routes of nodes: compares the existing ones with the wanted ones, and submits the differences to the writer of
//! the route table.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use azure_types::RouteTable;
use cloud::{LogicalTime, PodRange, Routes, ServiceError};
use futures::future::join_all;
use ipnet::IpNet;
use planner::route::{self as plans, OwnedRoute, RouteIntent, RouteKey};

use crate::failure::{Failure, short};
use crate::provider::{Inner, Provider};
use crate::route_table::{RouteOwner, RouteTableRequest, SharedRouteTable, no_route_table, routes};

/// The error of a node's route. Azure's terminal refusals are only about the whole table's input, so every route is
/// retried.
fn route_error(failure: Failure) -> ServiceError {
    ServiceError::Retry { message: short(failure.message), after: failure.after, notices: Vec::new() }
}

/// Requests with their owners, each with its range if it is for one.
type RouteRequests<'a> = Vec<(Option<&'a PodRange>, RouteOwner, RouteTableRequest)>;

/// The existing routes of nodes, including those outside of the cluster's ranges.
type ExistingRoutes = BTreeMap<PodRange, OwnedRoute>;

/// The requests that are needed to bring the table to the desired state. What already matches needs none.
fn route_requests<'a>(
    resource: &SharedRouteTable,
    table: Option<&RouteTable>,
    existing: &ExistingRoutes,
    wanted: &'a BTreeMap<PodRange, IpAddr>,
    unwanted: &'a BTreeSet<PodRange>,
) -> RouteRequests<'a> {
    let mut requests: RouteRequests<'_> = Vec::new();
    if resource.plan(table, &[]).step.is_some() {
        requests.push((None, RouteOwner::Table, RouteTableRequest::AsConfigured));
    }
    let key = |range: &PodRange| RouteOwner::Range(RouteKey { node: range.node.clone(), range: range.range });
    for (range, next_hop) in wanted {
        let is_in_order = |route: &OwnedRoute| route.next_hop == Some(*next_hop) && !route.is_legacy;
        if !existing.get(range).is_some_and(is_in_order) {
            let present = RouteIntent::Present { next_hop: *next_hop };
            requests.push((Some(range), key(range), RouteTableRequest::Route(present)));
        }
    }
    for range in unwanted {
        requests.push((Some(range), key(range), RouteTableRequest::Route(RouteIntent::Absent)));
    }
    requests
}

impl Inner {
    /// The ranges that have a route of a node.
    async fn existing_routes(
        &self,
        newer_than: LogicalTime,
    ) -> Result<(Option<Arc<RouteTable>>, ExistingRoutes), Failure> {
        let known = self.observed.route_table().ok_or_else(no_route_table)?;
        let table = match self.cluster.route_table_id() {
            Some(id) => known.get(id.name(), newer_than).await?,
            None => None,
        };
        let is_node = |name: &str| self.state.node(name).is_some();
        let mut existing = BTreeMap::new();
        for route in plans::owned(&self.cluster_ranges, table.as_deref(), is_node) {
            let range = PodRange::new(route.key.node.clone(), route.key.range);
            if !route.is_legacy || !existing.contains_key(&range) {
                existing.insert(range, route);
            }
        }
        Ok((table, existing))
    }
}

#[async_trait]
impl Routes for Provider {
    async fn owned(&self, newer_than: LogicalTime) -> Result<BTreeSet<PodRange>, ServiceError> {
        let (_, existing) = self.0.existing_routes(newer_than).await.map_err(route_error)?;
        Ok(existing.into_iter().filter(|(_, route)| route.is_within).map(|(range, _)| range).collect())
    }

    async fn apply(
        &self,
        wanted: &BTreeMap<PodRange, IpAddr>,
        unwanted: &BTreeSet<PodRange>,
        newer_than: LogicalTime,
    ) -> Result<BTreeMap<PodRange, Result<(), ServiceError>>, ServiceError> {
        let writer = self.0.route_table().map_err(route_error)?;
        let (table, existing) = self.0.existing_routes(newer_than).await.map_err(route_error)?;
        let mut outcomes: BTreeMap<_, _> = wanted.keys().map(|range| (range.clone(), Ok(()))).collect();
        let requests = route_requests(writer.resource(), table.as_deref(), &existing, wanted, unwanted);
        // All are announced before the first is submitted, so that they form one batch.
        let submitted: Vec<_> = (requests.into_iter())
            .map(|(range, owner, request)| (range, owner, request, writer.announce()))
            .collect();
        let submitted = submitted.into_iter().map(async |(range, owner, request, announcement)| {
            (range, writer.submit(owner, request, newer_than, Some(announcement)).await.map(drop))
        });
        for (range, done) in join_all(submitted).await {
            // A problem with the tags has no owner: the writer has logged it.
            let Some(range) = range else { continue };
            let next_hop = wanted.get(range).copied();
            // Packets arrive even if the route has a wrong name.
            let leads_there =
                next_hop.is_some() && existing.get(range).is_some_and(|route| route.next_hop == next_hop);
            let done = if leads_there { Ok(()) } else { done.map_err(route_error) };
            outcomes.insert(range.clone(), done);
        }
        Ok(outcomes)
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
        let read = self.0.existing_routes(LogicalTime::BEGINNING).await;
        let (table, existing) = read.map_err(route_error)?;
        let requests = route_requests(writer.resource(), table.as_deref(), &existing, wanted, unwanted);
        let batch: Vec<(RouteOwner, RouteTableRequest)> =
            requests.into_iter().map(|(_, owner, request)| (owner, request)).collect();
        Ok(writer.resource().plan(table.as_deref(), &routes(&batch)))
    }
}
