//! Applies the Services of a batch to the security group: all that fit, in the order of their ranks.

use std::collections::{BTreeMap, BTreeSet};

use azure_types::{SecurityGroup, SecurityRuleProperties, Word};
use k8s::ObjectKey;
use ownership::{Evidence, Proof};

use super::edit::Draft;
use super::entry::Entry;
use super::intent::AccessIntent;
use super::limits::{Counts, Limits};
use super::usage::ClusterUsage;
use super::{clean, repair, retain, rule};
use crate::model::Cluster;
use crate::outcome::{Action, Change, Document, Purpose, Refusal, Step, TrafficClass, proof};
use crate::resources::tags;
use crate::service::WantedRule;

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

/// The order of Services if not all fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// The group already matches what the Service wants.
    Unchanged,
    /// The Service already has something in the group.
    Known,
    New,
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

impl Draft<'_> {
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
