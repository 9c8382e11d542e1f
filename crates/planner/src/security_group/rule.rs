//! Security rules: names, hashes and the two spellings of lists (8.5).

use std::collections::BTreeSet;

use azure_types::{SecurityRule, SecurityRuleProperties, Word};
use md5::{Digest, Md5};

use crate::access::parse_single;
use crate::cluster::Family;

/// What the names of managed rules begin with.
const MANAGED_PREFIX: &str = "k8s-azure-lb";
/// The lowest priority of managed rules.
pub(super) const MIN_PRIORITY: i32 = 500;
/// The highest priority of managed rules that are new.
pub(super) const MAX_PRIORITY: i32 = 4095;
/// The highest priority that Azure knows.
const LAST_PRIORITY: i32 = 4096;

/// The content of an allow rule without its destinations. Services with equal content share one rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Allow {
    pub protocol: String,
    pub family: Family,
    pub sources: BTreeSet<String>,
    pub ports: BTreeSet<i32>,
}

impl Allow {
    /// The rule's name: its family and a hash of protocol, sources and ports.
    pub fn name(&self) -> String {
        let sources: Vec<&str> = self.sources.iter().map(String::as_str).collect();
        let text = format!("{}_{}_{}", self.protocol, sources.join(","), port_list(&self.ports).join(","));
        let hash: String = Md5::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{MANAGED_PREFIX}_allow_{}_{hash}", self.family)
    }

    /// What it allows, for people.
    pub fn told(&self) -> String {
        let sources: Vec<&str> = self.sources.iter().map(String::as_str).collect();
        format!("{} {} from {}", self.protocol, port_list(&self.ports).join(","), sources.join(","))
    }
}

/// Ports as text, sorted as text, as they stand in hashes and documents.
fn port_list(ports: &BTreeSet<i32>) -> Vec<String> {
    let mut list: Vec<String> = ports.iter().map(ToString::to_string).collect();
    list.sort();
    list
}

/// The name of the rule that denies all else.
pub(super) fn deny_name(family: Family) -> String {
    format!("{MANAGED_PREFIX}_deny-all_{family}")
}

/// Whether a rule is one that controller managers write.
pub(super) fn is_managed(rule: &SecurityRule) -> bool {
    let name = rule.name.as_deref().unwrap_or_default().to_ascii_lowercase();
    let priority = rule.properties.as_ref().and_then(|p| p.priority).unwrap_or_default();
    name.starts_with(MANAGED_PREFIX) && (MIN_PRIORITY..=LAST_PRIORITY).contains(&priority)
}

/// An address or prefix in the one spelling in which they are compared: single addresses without a
/// length, IPv6 in its short form.
pub(super) fn normal(prefix: &str) -> String {
    parse_single(prefix).map_or_else(|| prefix.to_owned(), |address| address.to_string())
}

/// The family of a destination.
pub(super) fn family_of(destination: &str) -> Family {
    if destination.contains(':') { Family::V6 } else { Family::V4 }
}

/// The items of a list that Azure spells in a singular or in a plural member.
pub(super) fn items<'a>(
    single: &'a Option<String>,
    plural: &'a Option<Vec<String>>,
) -> impl Iterator<Item = &'a str> {
    single.iter().chain(plural.iter().flatten()).map(String::as_str).filter(|item| !item.is_empty())
}

/// Sets a list, one item in the singular and several in the plural member. Leaves both alone where they
/// say the same already.
pub(super) fn set_items(
    single: &mut Option<String>,
    plural: &mut Option<Vec<String>>,
    wanted: &BTreeSet<String>,
) -> bool {
    let current: BTreeSet<String> = items(single, plural).map(normal).collect();
    let in_single = single.as_deref().is_some_and(|item| !item.is_empty());
    let in_plural = plural.as_ref().is_some_and(|list| !list.is_empty());
    if current == *wanted && in_single == (wanted.len() == 1) && in_plural == (wanted.len() > 1) {
        return false;
    }
    let mut list: Vec<String> = wanted.iter().cloned().collect();
    if list.len() == 1 {
        *single = list.pop();
        *plural = None;
    } else {
        *single = None;
        *plural = Some(list);
    }
    true
}

fn set_word(member: &mut Option<Word>, value: &str) -> bool {
    if member.as_ref().is_some_and(|word| word.is(value)) {
        return false;
    }
    *member = Some(Word::from(value));
    true
}

fn one(item: &str) -> BTreeSet<String> {
    BTreeSet::from([item.to_owned()])
}

/// Brings everything of a rule but its destinations and priority to what an allow rule says. Whether
/// anything changed.
pub(super) fn assert_allow(properties: &mut SecurityRuleProperties, allow: &Allow) -> bool {
    let mut changed = assert_common(properties, &allow.protocol, "Allow");
    changed |= set_items(
        &mut properties.source_address_prefix,
        &mut properties.source_address_prefixes,
        &allow.sources,
    );
    let ports = port_list(&allow.ports);
    let current: BTreeSet<&str> =
        items(&properties.destination_port_range, &properties.destination_port_ranges).collect();
    let plural_only = properties.destination_port_range.as_deref().unwrap_or_default().is_empty();
    if !plural_only || current != ports.iter().map(String::as_str).collect() {
        properties.destination_port_range = None;
        properties.destination_port_ranges = Some(ports);
        changed = true;
    }
    changed
}

/// The same for a rule that denies all else.
pub(super) fn assert_deny(properties: &mut SecurityRuleProperties) -> bool {
    let mut changed = assert_common(properties, "*", "Deny");
    changed |=
        set_items(&mut properties.source_address_prefix, &mut properties.source_address_prefixes, &one("*"));
    changed |=
        set_items(&mut properties.destination_port_range, &mut properties.destination_port_ranges, &one("*"));
    changed
}

fn assert_common(properties: &mut SecurityRuleProperties, protocol: &str, access: &str) -> bool {
    let mut changed = set_word(&mut properties.protocol, protocol);
    changed |= set_word(&mut properties.access, access);
    changed |= set_word(&mut properties.direction, "Inbound");
    changed |= set_items(&mut properties.source_port_range, &mut properties.source_port_ranges, &one("*"));
    changed
}
