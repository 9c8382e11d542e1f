//! The draft of the security group: every rule, the source of its destinations, and the free priorities.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use azure_types::{SecurityGroup, SecurityRule, SecurityRuleProperties, Word};
use k8s::ObjectKey;
use ownership::{Evidence, Proof};

use super::limits::{Counts, Limits};
use super::rule::{self, MAX_PRIORITY, MIN_PRIORITY, WantedRule};
use super::usage::ClusterUsage;
use super::{AccessIntent, clean, repair, retain};
use crate::change::{Change, TrafficClass};
use crate::cluster::Cluster;
use crate::plan::{Action, Document, Purpose, Refusal, Step};
use crate::{proof, tags};

/// A Service of the batch and its demand.
pub(super) struct Member<'a> {
    pub intent: &'a AccessIntent,
    wanted: Vec<WantedRule>,
}

impl<'a> Member<'a> {
    pub fn new(intent: &'a AccessIntent) -> Self {
        Self { intent, wanted: intent.wanted() }
    }

    pub fn key(&self) -> &'a ObjectKey {
        self.intent.key()
    }
}

/// Plans all members that fit. The others keep what they have, and each gets its refusal.
pub(super) fn plan(
    cluster: &Cluster,
    observed: &SecurityGroup,
    usage: &ClusterUsage,
    mut members: Vec<Member<'_>>,
) -> (Option<Step>, Vec<(ObjectKey, Refusal)>) {
    let mut refused: BTreeMap<ObjectKey, Refusal> = BTreeMap::new();
    loop {
        let mut draft = Draft::new(observed, usage);
        let unserved = draft.apply_batch(&members);
        if unserved.is_empty() {
            let step = draft.finish(cluster, observed, &members);
            return (step, refused.into_iter().collect());
        }
        // One more pass without them leaves what they had unchanged. It seldom refuses more: Services that already have
        // rules in the group precede new ones.
        members.retain(|member| !unserved.contains_key(member.key()));
        refused.extend(unserved);
    }
}

/// One rule of the group.
pub(super) struct Entry {
    pub document: SecurityRule,
    pub managed: bool,
    /// Destinations in their normal spelling; maintained only for managed rules.
    pub destinations: BTreeSet<String>,
    is_new: bool,
    asserted: bool,
    before: BTreeSet<String>,
    /// The destinations that were removed, and the Services that had them.
    taken: Vec<(String, Option<ObjectKey>)>,
    added_for: BTreeSet<ObjectKey>,
}

impl Entry {
    fn observed(document: &SecurityRule) -> Self {
        let managed = rule::is_managed(document);
        let mut entry = Self {
            document: document.clone(),
            managed,
            is_new: false,
            asserted: false,
            before: BTreeSet::new(),
            destinations: BTreeSet::new(),
            taken: Vec::new(),
            added_for: BTreeSet::new(),
        };
        if managed {
            entry.read_destinations();
        }
        entry
    }

    fn new(name: String, priority: i32) -> Self {
        let properties = SecurityRuleProperties { priority: Some(priority), ..Default::default() };
        let document = SecurityRule { name: Some(name), properties: Some(properties), ..Default::default() };
        Self { is_new: true, managed: true, ..Self::observed(&document) }
    }

    fn read_destinations(&mut self) {
        if let Some(p) = &self.document.properties {
            let listed = rule::items(&p.destination_address_prefix, &p.destination_address_prefixes);
            self.destinations = rule::spread(listed);
            self.before = self.destinations.clone();
        }
    }

    fn name(&self) -> &str {
        self.document.name.as_deref().unwrap_or_default()
    }

    pub fn protocol(&self) -> &str {
        let protocol = self.document.properties.as_ref().and_then(|p| p.protocol.as_ref());
        protocol.map(Word::as_str).unwrap_or_default()
    }

    pub fn is_deny(&self) -> bool {
        let access = self.document.properties.as_ref().and_then(|p| p.access.as_ref());
        access.is_some_and(|word| word.is("Deny"))
    }

    pub fn is_named(&self, name: &str) -> bool {
        self.name().eq_ignore_ascii_case(name)
    }

    /// Whether a managed rule has no destinations left.
    pub fn is_empty(&self) -> bool {
        let groups = self.document.properties.as_ref().and_then(|p| {
            p.destination_application_security_groups.as_ref().filter(|groups| !groups.is_empty())
        });
        self.managed && self.destinations.is_empty() && groups.is_none()
    }

    pub fn take(&mut self, destination: &str, from: Option<&ObjectKey>) {
        if self.destinations.remove(destination) {
            self.taken.push((destination.to_owned(), from.cloned()));
        }
    }
}

/// The priorities of the group's rules. None becomes free while a batch is planned: a rule that is added again keeps
/// its own.
struct Priorities(BTreeSet<i32>);

impl Priorities {
    /// The number of priorities that are free for managed rules.
    fn free(&self) -> usize {
        (MIN_PRIORITY..=MAX_PRIORITY).count() - self.0.range(MIN_PRIORITY..=MAX_PRIORITY).count()
    }

    /// Takes the first free priority.
    fn take(&mut self, mut order: impl Iterator<Item = i32>) -> Option<i32> {
        order.find(|priority| self.0.insert(*priority))
    }
}

/// The order of Services if not all fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// The group already matches what the Service wants.
    Unchanged,
    /// The Service already has something in the group.
    Known,
    New,
}

/// The security group while a batch is applied.
pub(super) struct Draft<'a> {
    pub usage: &'a ClusterUsage,
    pub entries: Vec<Entry>,
    /// Rules by their names in lower case.
    by_name: HashMap<String, usize>,
    priorities: Priorities,
    /// Whether adjacent destinations are merged, because there are too many of them.
    gathers: bool,
}

impl<'a> Draft<'a> {
    fn new(observed: &SecurityGroup, usage: &'a ClusterUsage) -> Self {
        let rules = observed.properties.iter().flat_map(|p| p.security_rules.iter().flatten());
        let entries: Vec<Entry> = rules.map(Entry::observed).collect();
        let priority = |entry: &Entry| entry.document.properties.as_ref().and_then(|p| p.priority);
        let mut by_name = HashMap::new();
        for (index, entry) in entries.iter().enumerate() {
            by_name.entry(entry.name().to_ascii_lowercase()).or_insert(index);
        }
        let priorities = Priorities(entries.iter().filter_map(priority).collect());
        Self { usage, entries, by_name, priorities, gathers: false }
    }

    /// Removes all members' shares and adds them anew; returns the members that do not fit.
    fn apply_batch(&mut self, members: &[Member<'_>]) -> BTreeMap<ObjectKey, Refusal> {
        let mut owners = BTreeMap::new();
        let mut of_batch = BTreeSet::new();
        for member in members {
            for address in member.intent.addresses() {
                owners.entry(address.to_string()).or_insert_with(|| member.key().clone());
            }
            if let AccessIntent::Present { service, addresses, node_addresses } = member.intent {
                let now = addresses.iter().chain(node_addresses).chain(service.additional_addresses());
                of_batch.extend(now.map(ToString::to_string));
            }
        }
        let mut order = self.ranked(members);
        let limits = Limits::of(&Counts::stored(&self.entries));
        if self.usage.is_complete {
            clean::clean(self, &owners, &members.iter().map(Member::key).collect());
            retain::retain(self, &of_batch);
        }
        let mut counts = Counts::of(&self.entries);
        order.sort_by_key(|(rank, member)| (*rank, member.key()));
        let mut refused = BTreeMap::new();
        // The number of destinations after merging; computed only once it matters.
        let mut gathered: Option<usize> = None;
        for (_, member) in order {
            let growth = self.growth(&member.wanted);
            let mut full = || {
                let exceeded = limits.exceeded_by(&counts, &growth)?;
                if exceeded.is_of_destinations() {
                    let before = *gathered.get_or_insert_with(|| self.gathered_destinations());
                    let count = before + self.gathered_growth(&member.wanted);
                    if count <= limits.destinations() {
                        gathered = Some(count);
                        return None;
                    }
                }
                Some(exceeded.refusal(member.key()))
            };
            let exhausted = || {
                let missing = growth.new_names > self.priorities.free();
                missing.then(|| Refusal::NoPriorityLeft { service: member.key().clone() })
            };
            if let Some(refusal) = full().or_else(exhausted) {
                refused.insert(member.key().clone(), refusal);
                continue;
            }
            counts.add(&growth);
            for wanted in &member.wanted {
                self.add(wanted, Some(member.key()));
            }
        }
        self.gathers = Counts::of(&self.entries).destinations > limits.destinations();
        refused
    }

    /// The number of the group's destinations with adjacent ones merged.
    fn gathered_destinations(&self) -> usize {
        let (managed, others): (Vec<&Entry>, Vec<&Entry>) =
            self.entries.iter().partition(|entry| entry.managed);
        let theirs = others.into_iter().filter_map(|entry| entry.document.properties.as_ref());
        let theirs = theirs
            .map(|p| rule::items(&p.destination_address_prefix, &p.destination_address_prefixes).count());
        let ours = managed.iter().map(|entry| rule::gathered(&entry.destinations).len());
        ours.sum::<usize>() + theirs.sum::<usize>()
    }

    /// The increase of that number with these rules.
    fn gathered_growth(&self, wanted: &[WantedRule]) -> usize {
        let mut seen = BTreeSet::new();
        let distinct = wanted.iter().filter(|wanted| seen.insert(&wanted.name));
        let more = distinct.map(|wanted| match self.find(&wanted.name) {
            Some(entry) => {
                let all = &entry.destinations | &wanted.destinations;
                // Fewer prefixes may stand for more addresses.
                rule::gathered(&all).len().saturating_sub(rule::gathered(&entry.destinations).len())
            }
            None => rule::gathered(&wanted.destinations).len(),
        });
        more.sum()
    }

    /// The rank of each member, by what the group holds now.
    fn ranked<'m, 'i>(&self, members: &'m [Member<'i>]) -> Vec<(Rank, &'m Member<'i>)> {
        let managed = self.entries.iter().filter(|entry| entry.managed);
        let held: BTreeSet<&String> = managed.flat_map(|entry| &entry.destinations).collect();
        let rank = |member: &Member<'_>| {
            let entries: Vec<Option<&Entry>> =
                member.wanted.iter().map(|wanted| self.find(&wanted.name)).collect();
            let mut pairs = entries.iter().zip(&member.wanted);
            if pairs.all(|(entry, wanted)| {
                entry.is_some_and(|entry| entry.destinations.is_superset(&wanted.destinations))
            }) {
                Rank::Unchanged
            } else if entries.iter().any(Option::is_some)
                || member.intent.addresses().any(|address| held.contains(&address.to_string()))
            {
                Rank::Known
            } else {
                Rank::New
            }
        };
        members.iter().map(|member| (rank(member), member)).collect()
    }

    pub fn find(&self, name: &str) -> Option<&Entry> {
        self.entries.get(*self.by_name.get(&name.to_ascii_lowercase())?)
    }

    /// What these rules would add to the group.
    fn growth(&self, wanted: &[WantedRule]) -> Counts {
        let mut growth = Counts::default();
        let mut seen = BTreeSet::new();
        for wanted in wanted.iter().filter(|wanted| seen.insert(&wanted.name)) {
            let entry = self.find(&wanted.name);
            growth.new_names += usize::from(entry.is_none());
            match entry.filter(|entry| !entry.is_empty()) {
                Some(entry) => {
                    growth.destinations += wanted.destinations.difference(&entry.destinations).count();
                }
                None => {
                    growth.rules += 1;
                    growth.sources += wanted.source_count();
                    growth.destinations += wanted.destinations.len();
                }
            }
        }
        growth
    }

    /// Adds destinations to the rule of this content. Does nothing if there is no priority left for a new rule.
    pub fn add(&mut self, wanted: &WantedRule, key: Option<&ObjectKey>) {
        let name = wanted.name.to_ascii_lowercase();
        let index = match self.by_name.get(&name) {
            Some(index) => *index,
            None => {
                let range = MIN_PRIORITY..=MAX_PRIORITY;
                let priority = match wanted.is_deny() {
                    false => self.priorities.take(range),
                    true => self.priorities.take(range.rev()),
                };
                let Some(priority) = priority else { return };
                self.entries.push(Entry::new(wanted.name.clone(), priority));
                self.by_name.insert(name, self.entries.len() - 1);
                self.entries.len() - 1
            }
        };
        let Some(entry) = self.entries.get_mut(index) else { return };
        if !entry.managed {
            entry.managed = true;
            entry.read_destinations();
        }
        let asserted = wanted.assert(entry.document.properties.get_or_insert_default());
        entry.asserted |= asserted;
        let differs = entry.is_new || asserted || !wanted.destinations.is_subset(&entry.before);
        entry.added_for.extend(key.filter(|_| differs).cloned());
        entry.destinations.extend(wanted.destinations.iter().cloned());
    }

    fn finish(self, cluster: &Cluster, observed: &SecurityGroup, members: &[Member<'_>]) -> Option<Step> {
        let mut changes = Vec::new();
        let mut keys = BTreeSet::new();
        let mut ownership: BTreeMap<String, Proof> = BTreeMap::new();
        let mut rules = Vec::with_capacity(self.entries.len());
        for mut entry in self.entries {
            if !entry.managed {
                rules.push(entry.document);
                continue;
            }
            for (destination, key) in std::mem::take(&mut entry.taken) {
                if !entry.destinations.contains(&destination) && entry.before.contains(&destination) {
                    ownership
                        .entry(destination.clone())
                        .or_insert_with(|| taken(cluster, self.usage, &destination, key.as_ref()));
                    keys.extend(key);
                }
            }
            if entry.is_empty() {
                if !entry.is_new {
                    let destinations = entry.before.iter().cloned().collect();
                    changes.push(Change::SecurityRuleRemoved { rule: entry.name().to_owned(), destinations });
                }
                continue;
            }
            let name = entry.name().to_owned();
            let properties = entry.document.properties.get_or_insert_default();
            let spelled = match self.gathers {
                true => &rule::gathered(&entry.destinations),
                false => &entry.destinations,
            };
            let is_same = !entry.is_new && entry.destinations == entry.before;
            let moved = (!is_same || self.gathers)
                && rule::set_prefixes(
                    &mut properties.destination_address_prefix,
                    &mut properties.destination_address_prefixes,
                    spelled,
                );
            if entry.is_new {
                changes.push(Change::SecurityRuleAdded {
                    rule: name,
                    traffic: traffic_of(properties),
                    destinations: entry.destinations.iter().cloned().collect(),
                    priority: properties.priority.unwrap_or_default(),
                });
            } else if moved && is_same {
                changes.push(Change::SecurityRuleGathered { rule: name, prefixes: spelled.len() });
            } else if moved {
                let come = entry.destinations.difference(&entry.before).cloned().collect();
                let gone = entry.before.difference(&entry.destinations).cloned().collect();
                changes.push(Change::SecurityRuleDestinations { rule: name, come, gone });
            } else if entry.asserted {
                changes.push(Change::SecurityRuleRestored { rule: name, traffic: traffic_of(properties) });
            }
            keys.extend(entry.added_for);
            rules.push(entry.document);
        }

        let mut document = observed.clone();
        let any_present = members.iter().any(|member| matches!(member.intent, AccessIntent::Present { .. }));
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
            ownership: std::iter::once(repair::configured(cluster)).chain(ownership.into_values()).collect(),
        })
    }
}

/// The proof that a destination may be removed from a rule.
fn taken(cluster: &Cluster, usage: &ClusterUsage, destination: &str, from: Option<&ObjectKey>) -> Proof {
    let recorded = |owner, place: &str| Proof::new(owner, Evidence::Recorded { place: place.to_owned() });
    let proof = match (usage.proven.get(destination), from) {
        (Some(proof), _) => proof.clone(),
        (None, Some(key)) => {
            recorded(proof::service(cluster, key), "its status, its annotations and its frontends")
        }
        (None, None) => recorded(proof::cluster(cluster), "the status of its Nodes"),
    };
    proof.of_part(format!("destination {destination}"))
}

fn traffic_of(properties: &SecurityRuleProperties) -> TrafficClass {
    let list = |single: &Option<String>, plural: &Option<Vec<String>>| {
        rule::items(single, plural).map(str::to_owned).collect::<Vec<_>>()
    };
    let word = |word: &Option<Word>| word.as_ref().map(Word::as_str).unwrap_or_default().to_owned();
    TrafficClass {
        access: word(&properties.access),
        protocol: word(&properties.protocol),
        ports: list(&properties.destination_port_range, &properties.destination_port_ranges),
        sources: list(&properties.source_address_prefix, &properties.source_address_prefixes),
    }
}
