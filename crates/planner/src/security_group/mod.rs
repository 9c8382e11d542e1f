//! The one security group for all Services, in one write (section 8).
//!
//! Rules are shared: Services with the same protocol, sources and ports only add their addresses. A batch
//! takes back everything that its Services had (sparing what others share), then writes what they want;
//! a rule that comes back keeps its priority, so that nothing changes where nothing differs.

mod clean;
mod limits;
mod repair;
mod retain;
mod rule;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use azure_types::{SecurityGroup, SecurityRule, SecurityRuleProperties, Word};
use k8s::ObjectKey;

pub use clean::Everybody;
use clean::Ports;
pub use repair::restore;
use rule::{Allow, normal};
pub(crate) use rule::{MAX_PRIORITY, MIN_PRIORITY};

use crate::cluster::{Cluster, Family};
use crate::intent::{ServiceIntent, ServiceRemoval};
use crate::plan::{Action, Document, Notice, Purpose, Refusal, Step};
use crate::tags;

/// What one Service wants of the security group.
#[derive(Debug, Clone)]
pub enum AccessIntent {
    /// The Service's clients may reach it.
    Present {
        /// The Service.
        service: Arc<ServiceIntent>,
        /// The addresses of its frontends.
        addresses: Vec<IpAddr>,
        /// The addresses of the nodes in its pools: where traffic arrives when floating IP is off.
        node_addresses: Vec<IpAddr>,
    },
    /// Nothing of the Service may stay.
    Absent {
        /// The Service.
        service: Arc<ServiceRemoval>,
        /// The addresses that its frontends have or had, as far as they are known.
        addresses: Vec<IpAddr>,
    },
}

/// The plan of the security group.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SecurityGroupPlan {
    /// The one write, if anything differs.
    pub step: Option<Step>,
    /// The Services that cannot be served, in order of their keys; they are left as they are.
    pub refused: Vec<(ObjectKey, Refusal)>,
    /// What to tell Services' owners.
    pub notices: Vec<Notice>,
}

/// The rules that a Service wants, with their destinations.
#[derive(Default)]
struct Wanted {
    allows: Vec<(Allow, BTreeSet<String>)>,
    denies: Vec<(Family, BTreeSet<String>)>,
}

impl AccessIntent {
    /// The Service that it is about.
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Present { service, .. } => &service.key,
            Self::Absent { service, .. } => &service.key,
        }
    }

    fn owner(&self) -> &ServiceRemoval {
        match self {
            Self::Present { service, .. } => service.removal(),
            Self::Absent { service, .. } => service,
        }
    }

    /// All addresses that the Service has or had, but not those of nodes.
    fn addresses(&self) -> impl Iterator<Item = &IpAddr> {
        let (Self::Present { addresses, .. } | Self::Absent { addresses, .. }) = self;
        let owner = self.owner();
        addresses.iter().chain(&owner.additional_addresses).chain(&owner.published_addresses)
    }

    /// The rules that the Service wants, in the order in which priorities are given out.
    fn wanted(&self) -> Wanted {
        let Self::Present { service, addresses, node_addresses } = self else { return Wanted::default() };
        if service.access.disabled {
            return Wanted::default();
        }
        let arriving = if service.floating_ip { addresses } else { node_addresses };
        let mut destinations: BTreeMap<Family, BTreeSet<String>> = BTreeMap::new();
        for address in service.additional_addresses().iter().chain(arriving) {
            destinations.entry(Family::of(*address)).or_default().insert(address.to_string());
        }
        let ports = ports(service);
        let mut allows = Vec::new();
        for (protocol, ports) in rule::PROTOCOLS.iter().filter_map(|name| ports.get_key_value(name)) {
            for (family, destinations) in &destinations {
                for sources in service.access.sources(service.flavor, *family) {
                    let allow = Allow {
                        protocol: (*protocol).to_owned(),
                        family: *family,
                        sources: sources.into_iter().collect(),
                        ports: ports.clone(),
                    };
                    allows.push((allow, destinations.clone()));
                }
            }
        }
        let denies =
            if service.access.denies_all_else() { destinations.into_iter().collect() } else { Vec::new() };
        Wanted { allows, denies }
    }
}

/// The ports that clients' packets have when they arrive at a node.
fn ports(service: &ServiceIntent) -> Ports {
    let mut ports = Ports::new();
    for port in &service.ports {
        let number = if service.floating_ip { port.port } else { port.node_port };
        if number > 0 {
            ports.entry(port.protocol.in_security_rule()).or_default().insert(number);
        }
    }
    ports
}

/// The Services whose parts Azure's error text names: by the name of a rule or by address. Empty where it
/// names none of the batch.
pub fn blame(error_text: &str, batch: &[AccessIntent]) -> Vec<ObjectKey> {
    let text = error_text.to_lowercase();
    let named = |intent: &&AccessIntent| {
        let Wanted { allows, denies } = intent.wanted();
        intent.owner().is_named_in(&text)
            || allows.iter().any(|(allow, _)| text.contains(&allow.name().to_lowercase()))
            || denies.iter().any(|(family, _)| text.contains(&rule::deny_name(*family).to_lowercase()))
            || intent.addresses().any(|address| crate::intent::names_word(&text, &address.to_string()))
    };
    crate::plan::ordered(batch.iter().filter(named).map(|intent| intent.key().clone()))
}

/// Plans the security group for a batch of Services. The order of the batch does not matter; of several
/// intents of one Service the first counts.
pub fn plan(
    cluster: &Cluster,
    observed: &SecurityGroup,
    batch: &[AccessIntent],
    everybody: &Everybody,
) -> SecurityGroupPlan {
    let mut members: BTreeMap<&ObjectKey, &AccessIntent> = BTreeMap::new();
    for intent in batch {
        members.entry(intent.key()).or_insert(intent);
    }
    let mut refused: BTreeMap<ObjectKey, Refusal> = BTreeMap::new();
    let has_rules = observed.properties.as_ref().is_some_and(|p| p.security_rules.is_some());
    for (key, intent) in &members {
        let refusal = match intent {
            _ if !has_rules => {
                Refusal::SecurityGroupWithoutRules { name: observed.name.clone().unwrap_or_default() }
            }
            AccessIntent::Present { addresses, .. } if addresses.is_empty() => {
                Refusal::NoAddressYet { service: (*key).clone() }
            }
            _ => continue,
        };
        refused.insert((*key).clone(), refusal);
    }
    members.retain(|key, _| !refused.contains_key(*key));
    let notices = members
        .values()
        .filter_map(|intent| match intent {
            AccessIntent::Present { service, .. } => Some(service.access.notices(&service.key)),
            AccessIntent::Absent { .. } => None,
        })
        .flatten()
        .collect();
    loop {
        let mut draft = Draft::new(observed, everybody);
        match draft.take(&members) {
            Ok(()) => {
                let step = if has_rules { draft.finish(cluster, observed, &members) } else { None };
                let step = step.or_else(|| repair::repair(observed));
                return SecurityGroupPlan { step, refused: refused.into_iter().collect(), notices };
            }
            Err(refused_one) => {
                let (key, refusal) = *refused_one;
                members.remove(&key);
                refused.insert(key, refusal);
            }
        }
    }
}

/// One rule of the group.
struct Entry {
    document: SecurityRule,
    managed: bool,
    is_new: bool,
    asserted: bool,
    /// Destinations in their normal spelling; only kept up for managed rules.
    destinations: BTreeSet<String>,
    before: BTreeSet<String>,
    /// What was taken, and from whom.
    taken: Vec<(String, Option<ObjectKey>)>,
    added_for: BTreeSet<ObjectKey>,
}

impl Entry {
    fn observed(document: &SecurityRule) -> Self {
        let managed = rule::is_managed(document);
        let mut destinations = BTreeSet::new();
        if let Some(p) = document.properties.as_ref().filter(|_| managed) {
            let listed = rule::items(&p.destination_address_prefix, &p.destination_address_prefixes);
            destinations.extend(listed.map(normal));
        }
        Self {
            document: document.clone(),
            managed,
            is_new: false,
            asserted: false,
            before: destinations.clone(),
            destinations,
            taken: Vec::new(),
            added_for: BTreeSet::new(),
        }
    }

    fn new(name: String, priority: i32) -> Self {
        let properties = SecurityRuleProperties { priority: Some(priority), ..Default::default() };
        let document = SecurityRule { name: Some(name), properties: Some(properties), ..Default::default() };
        Self { is_new: true, managed: true, ..Self::observed(&document) }
    }

    fn name(&self) -> &str {
        self.document.name.as_deref().unwrap_or_default()
    }

    fn protocol(&self) -> &str {
        let protocol = self.document.properties.as_ref().and_then(|p| p.protocol.as_ref());
        protocol.map(Word::as_str).unwrap_or_default()
    }

    fn is_deny(&self) -> bool {
        let access = self.document.properties.as_ref().and_then(|p| p.access.as_ref());
        access.is_some_and(|word| word.is("Deny"))
    }

    fn sources(&self) -> BTreeSet<String> {
        let properties = self.document.properties.iter();
        let items =
            properties.flat_map(|p| rule::items(&p.source_address_prefix, &p.source_address_prefixes));
        items.map(rule::hashed_spelling).collect()
    }

    /// Whether nothing is left that a managed rule would apply to.
    fn is_empty(&self) -> bool {
        let groups = self.document.properties.as_ref().and_then(|p| {
            p.destination_application_security_groups.as_ref().filter(|groups| !groups.is_empty())
        });
        self.managed && self.destinations.is_empty() && groups.is_none()
    }

    fn take(&mut self, destination: &str, from: Option<&ObjectKey>) {
        if self.destinations.remove(destination) {
            self.taken.push((destination.to_owned(), from.cloned()));
        }
    }
}

struct Draft<'a> {
    everybody: &'a Everybody,
    entries: Vec<Entry>,
}

impl<'a> Draft<'a> {
    fn new(observed: &SecurityGroup, everybody: &'a Everybody) -> Self {
        let rules = observed.properties.iter().flat_map(|p| p.security_rules.iter().flatten());
        Self { everybody, entries: rules.map(Entry::observed).collect() }
    }

    /// Takes all members' shares back and writes them anew; tells who cannot be served.
    fn take(
        &mut self,
        members: &BTreeMap<&ObjectKey, &AccessIntent>,
    ) -> Result<(), Box<(ObjectKey, Refusal)>> {
        let mut owners = BTreeMap::new();
        let mut of_batch = BTreeSet::new();
        for (key, intent) in members {
            for address in intent.addresses() {
                owners.entry(address.to_string()).or_insert_with(|| (*key).clone());
            }
            if let AccessIntent::Present { service, addresses, node_addresses } = intent {
                let now = addresses.iter().chain(node_addresses).chain(service.additional_addresses());
                of_batch.extend(now.map(ToString::to_string));
            }
        }
        let may_take = self.everybody.known && !members.is_empty();
        if may_take {
            clean::clean(self, &owners, &members.keys().copied().collect());
        }
        for (key, intent) in members {
            let Wanted { allows, denies } = intent.wanted();
            let grows = !allows.is_empty() || !denies.is_empty();
            for (allow, destinations) in allows {
                if !self.allow(&allow, &destinations, Some(key)) {
                    return Err(Box::new(((*key).clone(), no_priority(key))));
                }
            }
            for (family, destinations) in denies {
                if !self.deny(family, &destinations, key) {
                    return Err(Box::new(((*key).clone(), no_priority(key))));
                }
            }
            if let Some(exceeded) = limits::exceeded(self).filter(|_| grows) {
                return Err(Box::new(((*key).clone(), exceeded.refusal(key))));
            }
        }
        if may_take {
            retain::retain(self, &of_batch);
        }
        Ok(())
    }

    fn is_free(&self, priority: i32) -> bool {
        let taken =
            |entry: &Entry| entry.document.properties.as_ref().and_then(|p| p.priority) == Some(priority);
        !self.entries.iter().any(taken)
    }

    fn find(&mut self, name: &str) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.name().eq_ignore_ascii_case(name))
    }

    /// Adds destinations to the allow rule of this content; whether there was a priority left for it.
    fn allow(&mut self, allow: &Allow, destinations: &BTreeSet<String>, key: Option<&ObjectKey>) -> bool {
        let name = allow.name();
        if self.find(&name).is_none() {
            let Some(priority) = (MIN_PRIORITY..=MAX_PRIORITY).find(|priority| self.is_free(*priority))
            else {
                return false;
            };
            self.entries.push(Entry::new(name.clone(), priority));
        }
        self.add(&name, destinations, key, |properties| rule::assert_allow(properties, allow));
        true
    }

    /// Adds destinations to the rule that denies all else.
    fn deny(&mut self, family: Family, destinations: &BTreeSet<String>, key: &ObjectKey) -> bool {
        let name = rule::deny_name(family);
        if self.find(&name).is_none() {
            let Some(priority) = (MIN_PRIORITY..=MAX_PRIORITY).rev().find(|priority| self.is_free(*priority))
            else {
                return false;
            };
            self.entries.push(Entry::new(name.clone(), priority));
        }
        self.add(&name, destinations, Some(key), rule::assert_deny);
        true
    }

    fn add(
        &mut self,
        name: &str,
        destinations: &BTreeSet<String>,
        key: Option<&ObjectKey>,
        assert: impl Fn(&mut SecurityRuleProperties) -> bool,
    ) {
        let Some(entry) = self.find(name) else { return };
        if !entry.managed {
            *entry = Entry { managed: true, ..Entry::observed(&entry.document) };
            if let Some(p) = &entry.document.properties {
                let listed = rule::items(&p.destination_address_prefix, &p.destination_address_prefixes);
                entry.destinations = listed.map(normal).collect();
                entry.before = entry.destinations.clone();
            }
        }
        let asserted = assert(entry.document.properties.get_or_insert_default());
        entry.asserted |= asserted;
        let differs = entry.is_new || asserted || destinations.iter().any(|d| !entry.before.contains(d));
        entry.added_for.extend(key.filter(|_| differs).cloned());
        entry.destinations.extend(destinations.iter().cloned());
    }

    fn finish(
        self,
        cluster: &Cluster,
        observed: &SecurityGroup,
        members: &BTreeMap<&ObjectKey, &AccessIntent>,
    ) -> Option<Step> {
        let mut changes = Vec::new();
        let mut keys = BTreeSet::new();
        let mut rules = Vec::with_capacity(self.entries.len());
        for mut entry in self.entries {
            if !entry.managed {
                rules.push(entry.document);
                continue;
            }
            for (destination, key) in std::mem::take(&mut entry.taken) {
                if !entry.destinations.contains(&destination) && entry.before.contains(&destination) {
                    keys.extend(key);
                }
            }
            if entry.is_empty() {
                if !entry.is_new {
                    let gone: Vec<&str> = entry.before.iter().map(String::as_str).collect();
                    changes.push(format!(
                        "rule {} removed: nobody needs it for {}",
                        entry.name(),
                        gone.join(", ")
                    ));
                }
                continue;
            }
            let name = entry.name().to_owned();
            let properties = entry.document.properties.get_or_insert_default();
            let moved = rule::set_prefixes(
                &mut properties.destination_address_prefix,
                &mut properties.destination_address_prefixes,
                &entry.destinations,
            );
            if entry.is_new {
                let list: Vec<&str> = entry.destinations.iter().map(String::as_str).collect();
                let what = told_rule(properties);
                let priority = properties.priority.unwrap_or_default();
                changes
                    .push(format!("rule {name} added: {what} to {} (priority {priority})", list.join(", ")));
            } else if moved {
                let signed = |sign: char, one: &BTreeSet<String>, other: &BTreeSet<String>| {
                    one.difference(other).map(|d| format!(" {sign}{d}")).collect::<String>()
                };
                let plus = signed('+', &entry.destinations, &entry.before);
                let minus = signed('-', &entry.before, &entry.destinations);
                changes.push(format!("rule {name}: destinations{plus}{minus}"));
            } else if entry.asserted {
                changes.push(format!("rule {name}: set right again: {}", told_rule(properties)));
            }
            keys.extend(entry.added_for);
            rules.push(entry.document);
        }

        let mut document = observed.clone();
        let any_present = members.values().any(|intent| matches!(intent, AccessIntent::Present { .. }));
        if any_present && !cluster.config.tags.is_empty() {
            let config = &cluster.config;
            changes.extend(tags::reconcile(&mut document.tags, &config.tags, &config.system_tags));
        }
        if changes.is_empty() {
            return None;
        }
        document.properties.get_or_insert_default().security_rules = Some(rules);
        Some(Step {
            action: Action::Update,
            target: observed.id.clone().or_else(|| cluster.security_group_id())?,
            if_match: observed.etag.clone(),
            document: Some(Document::SecurityGroup(Box::new(document))),
            changes,
            purpose: Purpose::Change,
            on_behalf_of: keys.into_iter().collect(),
        })
    }
}

fn told_rule(properties: &SecurityRuleProperties) -> String {
    let list = |single: &Option<String>, plural: &Option<Vec<String>>| {
        rule::items(single, plural).collect::<Vec<_>>().join(",")
    };
    format!(
        "{} {} {} from {}",
        properties.access.as_ref().map(Word::as_str).unwrap_or_default(),
        properties.protocol.as_ref().map(Word::as_str).unwrap_or_default(),
        list(&properties.destination_port_range, &properties.destination_port_ranges),
        list(&properties.source_address_prefix, &properties.source_address_prefixes),
    )
}

fn no_priority(key: &ObjectKey) -> Refusal {
    Refusal::NoPriorityLeft { service: key.clone() }
}
