//! A security rule as Services ask for it: the traffic, and a name that follows from it.

use std::collections::BTreeSet;

use md5::{Digest, Md5};

use crate::model::Family;

/// The prefix of the names of managed rules.
pub(crate) const MANAGED_PREFIX: &str = "k8s-azure-lb";

/// The protocols of managed rules, in the order in which priorities are assigned.
pub(crate) const PROTOCOLS: [&str; 3] = ["Tcp", "Udp", "*"];

/// What a rule applies to, without its destinations. Services with equal traffic share one rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Traffic {
    pub protocol: String,
    pub family: Family,
    pub sources: BTreeSet<String>,
    pub ports: BTreeSet<i32>,
}

impl Traffic {
    pub fn new(
        protocol: &str,
        family: Family,
        sources: impl IntoIterator<Item = String>,
        ports: &BTreeSet<i32>,
    ) -> Self {
        let sources = sources.into_iter().collect();
        Self { protocol: protocol.to_owned(), family, sources, ports: ports.clone() }
    }

    /// The name of the traffic's rule: verb, family and a hash of protocol, sources and ports.
    fn rule_name(&self, verb: &str) -> String {
        let sources: Vec<&str> = self.sources.iter().map(String::as_str).collect();
        let text = format!("{}_{}_{}", self.protocol, sources.join(","), port_list(&self.ports).join(","));
        let hash: String = Md5::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{MANAGED_PREFIX}_{verb}_{}_{hash}", self.family)
    }
}

/// A rule that a Service wants, with the destinations that it adds to it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WantedRule {
    pub name: String,
    pub destinations: BTreeSet<String>,
    /// What it applies to; `None` for everything.
    pub(crate) traffic: Option<Traffic>,
    pub(crate) denies: bool,
}

impl WantedRule {
    pub fn allow(traffic: Traffic) -> Self {
        Self::new(traffic.rule_name("allow"), Some(traffic), false)
    }

    pub fn deny(traffic: Traffic) -> Self {
        Self::new(traffic.rule_name("deny"), Some(traffic), true)
    }

    pub fn deny_all(family: Family) -> Self {
        Self::new(format!("{MANAGED_PREFIX}_deny-all_{family}"), None, true)
    }

    fn new(name: String, traffic: Option<Traffic>, denies: bool) -> Self {
        Self { name, destinations: BTreeSet::new(), traffic, denies }
    }

    /// The same rule for these destinations.
    pub fn to(&self, destinations: BTreeSet<String>) -> Self {
        Self { destinations, ..self.clone() }
    }

    /// Whether it applies to packets of a protocol, by its name in security rules.
    pub fn is_for(&self, protocol: &str) -> bool {
        self.traffic.as_ref().is_none_or(|traffic| traffic.protocol == protocol)
    }

    /// Whether it denies; such rules come last.
    pub fn is_deny(&self) -> bool {
        self.denies
    }

    /// The number of its source entries.
    pub fn source_count(&self) -> usize {
        self.traffic.as_ref().map_or(1, |traffic| traffic.sources.len())
    }
}

/// Ports as text, sorted as text, in the form used in hashes and documents.
pub(crate) fn port_list(ports: &BTreeSet<i32>) -> Vec<String> {
    let mut list: Vec<String> = ports.iter().map(ToString::to_string).collect();
    list.sort();
    list
}
