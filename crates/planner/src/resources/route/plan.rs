//! Plans the route table for a batch of ranges.

use std::collections::BTreeMap;

use azure_types::{ResourceId, RouteTable};
use ipnet::IpNet;
use ownership::{Evidence, Proof};

use super::draft::Draft;
use super::key::{Place, RouteIntent, RouteKey, place};
use super::name::route_name;
use super::refusal::RouteRefusal;
use super::repair;
use crate::model::Cluster;
use crate::model::words::names_word;
use crate::outcome::{Action, Change, Document, Purpose, Step, proof};
use crate::resources::tags;

/// The plan of the route table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RoutePlan {
    /// The one write, if anything differs.
    pub step: Option<Step>,
    /// The ranges that get no route, sorted; existing routes to them stay.
    pub refused: Vec<(RouteKey, RouteRefusal)>,
}

/// Plans the route table `table` for a batch of ranges. `cluster_ranges` are the ranges that nodes' ranges are
/// allocated from; `observed` is the table, which is created with its routes if it does not exist. The order of the
/// batch does not matter; of several intents of one key the first counts.
///
/// * A route is a node's if its name consists of the node's name and its own prefix ([`route_name`]), or is the node's
///   name alone. It is removed only if the batch says so and the cluster's ranges contain it.
/// * A route of the desired name is changed to lead to the node. A foreign route to the range stays, and the range is
///   refused: Azure would refuse the whole write. The batch names the nodes that are known not to have the range any
///   more.
/// * Configured tags are put on a table in the cluster's own group, even if nothing else differs.
pub fn plan_table(
    cluster: &Cluster,
    table: &ResourceId,
    cluster_ranges: &[IpNet],
    observed: Option<&RouteTable>,
    batch: &[(RouteKey, RouteIntent)],
) -> RoutePlan {
    let mut members: BTreeMap<Place, (&RouteKey, RouteIntent)> = BTreeMap::new();
    for (key, intent) in batch {
        members.entry(place(&key.node, &key.range)).or_insert((key, *intent));
    }
    let has_routes = |table: &RouteTable| table.properties.as_ref().is_some_and(|p| p.routes.is_some());
    if !observed.is_none_or(has_routes) {
        let refusal = RouteRefusal::TableWithoutRoutes { table: table.name().to_owned() };
        let refused = members.into_values().map(|(key, _)| (key.clone(), refusal.clone())).collect();
        return RoutePlan { step: None, refused };
    }
    let mut draft = Draft::new(table.name(), observed);
    draft.remove(cluster_ranges, |place| matches!(members.get(place), Some((_, RouteIntent::Absent))));
    let wanted = members.iter().filter_map(|(place, (key, intent))| match intent {
        RouteIntent::Present { next_hop } => Some((place, *key, *next_hop)),
        RouteIntent::Absent => None,
    });
    let refused = draft.bring(cluster_ranges, &wanted.collect::<Vec<_>>());
    RoutePlan { step: step(cluster, table, observed, draft), refused }
}

fn step(
    cluster: &Cluster,
    table: &ResourceId,
    observed: Option<&RouteTable>,
    draft: Draft<'_>,
) -> Option<Step> {
    let (routes, mut changes) = draft.finish();
    // There is no table, and there are no routes for it: the program that creates this cluster's tables may still do
    // so.
    let action = match observed {
        Some(_) => Action::Update,
        None if changes.is_empty() => return None,
        None => Action::Create,
    };
    let new = || RouteTable { location: Some(cluster.config.location.clone()), ..Default::default() };
    let mut document = observed.cloned().unwrap_or_else(new);
    document.properties.get_or_insert_default().routes = Some(routes);
    let config = &cluster.config;
    let group = table.group_name().unwrap_or_default();
    if !config.tags.is_empty() && group.eq_ignore_ascii_case(&config.resource_group) {
        changes.extend(tags::reconcile(&mut document.tags, &config.tags, &config.system_tags));
    }
    if changes.is_empty() {
        return repair::repair(cluster, table, observed?);
    }
    let mut ownership = Vec::new();
    if action == Action::Update {
        ownership.push(repair::configured(cluster));
        ownership.extend(changes.iter().filter_map(|change| match change {
            Change::RouteRemoved { route, .. } => {
                let name =
                    Evidence::Name { name: route.clone(), rule: "a node's name and its range of pods" };
                Some(Proof::new(proof::cluster(cluster), name).of_part(format!("route {route}")))
            }
            _ => None,
        }));
    }
    Some(Step {
        ownership,
        action,
        target: table.clone(),
        if_match: observed.and_then(|table| table.etag.clone()),
        document: Some(Document::RouteTable(Box::new(document))),
        changes,
        purpose: Purpose::Change,
        on_behalf_of: Vec::new(),
    })
}

/// The keys whose routes or nodes Azure's error text names. Empty if it names none of the batch.
pub fn keys_named_in(error_text: &str, batch: &[(RouteKey, RouteIntent)]) -> Vec<RouteKey> {
    let text = error_text.to_ascii_lowercase();
    let is_named = |key: &&RouteKey| {
        let names = [route_name(&key.node, &key.range), key.node.clone(), key.range.to_string()];
        names.iter().any(|name| names_word(&text, &name.to_ascii_lowercase()))
    };
    let mut named: Vec<RouteKey> = batch.iter().map(|(key, _)| key).filter(is_named).cloned().collect();
    named.sort();
    named.dedup();
    named
}
