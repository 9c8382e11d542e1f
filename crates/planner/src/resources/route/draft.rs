//! The draft of the route table: the table while a batch is applied.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use azure_types::{Route, RouteTable, Word};
use ipnet::IpNet;

use super::key::{Place, RouteKey, is_within};
use super::name::route_name;
use super::owned::{NEXT_HOP_TYPE, name_of, place_of, range_of};
use super::refusal::RouteRefusal;
use crate::model::names::MAX_LENGTH;
use crate::outcome::{Change, Difference};

/// A route, with its place from its name and prefix.
struct Entry {
    document: Route,
    range: Option<IpNet>,
    /// The place of the route, and whether it is named after the node alone.
    place: Option<(Place, bool)>,
}

impl Entry {
    fn new(document: Route) -> Self {
        let range = range_of(&document).map(|range| range.trunc());
        Self { range, place: place_of(&document), document }
    }

    fn name(&self) -> &str {
        name_of(&self.document)
    }

    /// Whether it is the route of a place: the one with the full name, or the one that is named after the node alone.
    fn is_of(&self, place: &Place, legacy: bool) -> bool {
        self.place.as_ref().is_some_and(|(own, is_legacy)| own == place && *is_legacy == legacy)
    }

    fn removed(&self, range: IpNet) -> Change {
        Change::RouteRemoved { route: self.name().to_owned(), range }
    }
}

/// The routes as they will be written, and the changes.
pub(super) struct Draft<'a> {
    table: &'a str,
    routes: Vec<Entry>,
    changes: Vec<Change>,
    /// The lower-case names of the existing routes that the batch wants.
    served: BTreeSet<String>,
    /// The routes with the name of a desired route but another range, by lower-case name.
    set_aside: BTreeMap<String, Entry>,
}

type Wanted<'a> = (&'a Place, &'a RouteKey, IpAddr);

impl<'a> Draft<'a> {
    pub(super) fn new(table: &'a str, observed: Option<&RouteTable>) -> Self {
        let routes = observed.and_then(|table| table.properties.as_ref()?.routes.as_deref());
        let routes = routes.unwrap_or_default().iter().cloned().map(Entry::new).collect();
        Self { table, routes, changes: Vec::new(), served: BTreeSet::new(), set_aside: BTreeMap::new() }
    }

    /// Removes the routes of places that are no longer wanted. A route that is named after its node alone is found only
    /// if the batch names that node.
    pub(super) fn remove(&mut self, cluster_ranges: &[IpNet], is_unwanted: impl Fn(&Place) -> bool) {
        let changes = &mut self.changes;
        self.routes.retain(|route| {
            let Some((place, _)) = &route.place else { return true };
            let goes = is_within(&place.1, cluster_ranges) && is_unwanted(place);
            if goes {
                changes.push(route.removed(place.1));
            }
            !goes
        });
    }

    /// Points the desired routes, given in order, to their nodes. Returns the ones that cannot be added. Existing
    /// routes come first, so that two nodes with the same range do not take it from each other.
    pub(super) fn bring(
        &mut self,
        cluster_ranges: &[IpNet],
        wanted: &[Wanted<'_>],
    ) -> Vec<(RouteKey, RouteRefusal)> {
        let mut missing = Vec::new();
        for wanted in wanted {
            match self.routes.iter().position(|route| route.is_of(wanted.0, false)) {
                Some(at) => self.set(at, wanted),
                None => missing.push(wanted),
            }
        }
        // A route with the desired name has another range, or it would have been found: its range is free for others.
        for (_, key, _) in &missing {
            let name = route_name(&key.node, &key.range).to_ascii_lowercase();
            let has_name = |route: &Entry| route.name().eq_ignore_ascii_case(&name);
            if let Some(at) = self.routes.iter().position(has_name).filter(|_| !self.served.contains(&name)) {
                self.set_aside.insert(name, self.routes.remove(at));
            }
        }
        missing.sort_by_key(|(place, ..)| !self.routes.iter().any(|route| route.is_of(place, true)));
        let mut refused = Vec::new();
        for wanted in missing {
            if let Err(refusal) = self.add(cluster_ranges, wanted) {
                refused.push((wanted.1.clone(), refusal));
            }
        }
        refused.sort_by(|(a, _), (b, _)| a.cmp(b));
        refused
    }

    fn add(&mut self, cluster_ranges: &[IpNet], wanted: &Wanted<'_>) -> Result<(), RouteRefusal> {
        let (place, key, next_hop) = *wanted;
        let (name, range, table) = (route_name(&key.node, &key.range), key.range, self.table.to_owned());
        if name.len() > MAX_LENGTH {
            return Err(RouteRefusal::NameTooLong { name });
        }
        let lower = name.to_ascii_lowercase();
        if self.served.contains(&lower) {
            return Err(RouteRefusal::NameTaken { table, name, range });
        }
        if let Some(at) = self.routes.iter().position(|route| route.range == Some(place.1)) {
            let present = &self.routes[at];
            if !present.is_of(place, true) || !is_within(&place.1, cluster_ranges) {
                let by = present.name().to_owned();
                return Err(RouteRefusal::PrefixTaken { table, by, range });
            }
            self.changes.push(present.removed(place.1));
            self.routes.remove(at);
        }
        if let Some(route) = self.set_aside.remove(&lower) {
            self.routes.push(route);
            self.set(self.routes.len() - 1, wanted);
            return Ok(());
        }
        self.served.insert(lower);
        self.changes.push(Change::RouteAdded { route: name.clone(), range, next_hop });
        let mut route = Route { name: Some(name), ..Default::default() };
        lead(&mut route, &range, next_hop);
        self.routes.push(Entry::new(route));
        Ok(())
    }

    fn set(&mut self, at: usize, (_, key, next_hop): &Wanted<'_>) {
        let Some(route) = self.routes.get_mut(at) else { return };
        let name = route.name().to_owned();
        let differences = lead(&mut route.document, &key.range, *next_hop);
        (route.range, route.place) = (Some(key.range.trunc()), place_of(&route.document));
        self.served.insert(name.to_ascii_lowercase());
        let changed = |difference| Change::RouteChanged { route: name.clone(), difference };
        self.changes.extend(differences.into_iter().map(changed));
    }

    pub(super) fn finish(mut self) -> (Vec<Route>, Vec<Change>) {
        // A route that was set aside for one that could not be added stays, unless its own range is taken by now.
        for route in std::mem::take(&mut self.set_aside).into_values() {
            let is_taken = |range: &IpNet| self.routes.iter().any(|other| other.range == Some(*range));
            match route.range.filter(is_taken) {
                Some(range) => self.changes.push(route.removed(range)),
                None => self.routes.push(route),
            }
        }
        (self.routes.into_iter().map(|route| route.document).collect(), self.changes)
    }
}

/// Points a route to an address. Returns the differences; its other members stay.
fn lead(route: &mut Route, range: &IpNet, next_hop: IpAddr) -> Vec<Difference> {
    let before = range_of(route);
    let properties = route.properties.get_or_insert_default();
    let mut differences = Vec::new();
    let mut differs = |member, from: Option<&str>, to: String| {
        let from = from.unwrap_or("none").to_owned();
        differences.push(Difference { member, from, to });
    };
    if before.is_none_or(|before| before.trunc() != range.trunc()) {
        let prefix = range.to_string();
        differs("prefix", properties.address_prefix.as_deref(), prefix.clone());
        properties.address_prefix = Some(prefix);
    }
    if !properties.next_hop_type.as_ref().is_some_and(|kind| kind.is(NEXT_HOP_TYPE)) {
        let from = properties.next_hop_type.as_ref().map(Word::as_str);
        differs("next hop type", from, NEXT_HOP_TYPE.to_owned());
        properties.next_hop_type = Some(NEXT_HOP_TYPE.into());
    }
    let hop = properties.next_hop_ip_address.as_deref();
    if hop.and_then(|hop| hop.parse::<IpAddr>().ok()) != Some(next_hop) {
        differs("next hop", hop, next_hop.to_string());
        properties.next_hop_ip_address = Some(next_hop.to_string());
    }
    differences
}
