//! An API server's audit log, compared with the roles of its clients: what was denied, and what was never used.

mod event;
mod rule;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use event::Event;
use rule::BoundRule;

/// The result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Audit {
    /// How many requests the clients made.
    pub requests: usize,
    /// Denied requests, by client and request, with their number.
    pub denied: BTreeMap<(String, String), usize>,
    /// What no request needed: role, and resource with verb.
    pub unused: BTreeSet<(String, String)>,
    /// How many lines are not events.
    pub unreadable: usize,
}

/// Compares the requests of some users with roles.
///
/// `users` are names of the API server, or `namespace/name` for service accounts; without any, the subjects of the
/// bindings among `objects` count. Roles without a binding are not looked at.
pub fn audit<'a>(lines: impl IntoIterator<Item = &'a str>, users: &[String], objects: &[Value]) -> Audit {
    let rules = rule::bound_rules(objects);
    let users: BTreeSet<String> = if users.is_empty() {
        rules.iter().flat_map(|rule| rule.users.iter().cloned()).collect()
    } else {
        users.iter().map(|user| rule::user_name(user)).collect()
    };
    let mut audit = Audit::default();
    let mut used: BTreeSet<(usize, String)> = BTreeSet::new();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for line in lines.into_iter().filter(|line| !line.trim().is_empty()) {
        let Some(event) = Event::parse(line) else {
            audit.unreadable += 1;
            continue;
        };
        // A watch has two events, one when it begins and one when it ends.
        if !users.contains(&event.user) || !seen.insert(event.id.clone()) {
            continue;
        }
        audit.requests += 1;
        if event.is_denied {
            *audit.denied.entry((event.user.clone(), event.to_string())).or_default() += 1;
        }
        for (index, rule) in rules.iter().enumerate().filter(|(_, rule)| rule.users.contains(&event.user)) {
            used.extend(rule.uses(&event).map(|what| (index, what)));
        }
    }
    let of_users = |rule: &&(usize, &BoundRule)| rule.1.users.iter().any(|user| users.contains(user));
    for (index, rule) in rules.iter().enumerate().collect::<Vec<_>>().iter().filter(of_users) {
        let idle = rule.all().filter(|what| !used.contains(&(*index, what.clone())));
        audit.unused.extend(idle.map(|what| (rule.role.clone(), what)));
    }
    audit
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let denied: usize = self.denied.values().sum();
        writeln!(f, "{} requests, {denied} denied", self.requests)?;
        for ((user, request), count) in &self.denied {
            writeln!(f, "  denied {count} times: {request} of {user}")?;
        }
        if self.unreadable > 0 {
            writeln!(f, "  {} lines are not events of an audit log", self.unreadable)?;
        }
        writeln!(f, "{} rights were not used", self.unused.len())?;
        self.unused.iter().try_for_each(|(role, what)| writeln!(f, "  {role}: {what}"))
    }
}
