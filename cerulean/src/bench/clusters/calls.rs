//! The requests to Azure, by time and by cluster.

use std::collections::BTreeMap;

use azure_simulator::{Journal, JournalEntry, RequestKind};
use azure_types::ResourceId;

/// The requests within a minute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Minute {
    pub calls: usize,
    pub writes: usize,
    /// Refused because of a rate limit.
    pub throttled: usize,
    /// Refused for other reasons, except reads of missing resources.
    pub refused: usize,
}

/// The minutes since the first call.
pub fn by_minute(journal: &Journal) -> Vec<Minute> {
    let mut minutes: Vec<Minute> = Vec::new();
    let Some(first) = journal.entries.first() else { return minutes };
    for entry in &journal.entries {
        let after = entry.time.as_millisecond() - first.time.as_millisecond();
        let index = usize::try_from(after / 60_000).unwrap_or_default();
        if minutes.len() <= index {
            minutes.resize(index + 1, Minute::default());
        }
        if let Some(minute) = minutes.get_mut(index) {
            minute.calls += 1;
            minute.writes += usize::from(is_write(entry.kind));
            minute.throttled += usize::from(is_throttled(entry));
            minute.refused += usize::from(is_refused(entry) && !is_throttled(entry));
        }
    }
    minutes
}

/// The number of Azure's refusals, by code and type.
pub fn refusals(journal: &Journal) -> BTreeMap<String, usize> {
    let mut refusals = BTreeMap::new();
    for entry in journal.entries.iter().filter(|entry| is_refused(entry)) {
        let code = entry.code.as_deref().unwrap_or_default();
        let kind = entry.resource_type.as_deref().unwrap_or_default();
        *refusals.entry(format!("{} {code} {} {kind}", entry.status, entry.method)).or_default() += 1;
    }
    refusals
}

fn is_refused(entry: &JournalEntry) -> bool {
    entry.status >= 400 && !(entry.status == 404 && entry.method == "GET")
}

/// Status 429 is also returned for a resource with another operation in progress; that is not a rate limit.
fn is_throttled(entry: &JournalEntry) -> bool {
    entry.status == 429 && !entry.code.as_deref().is_some_and(|code| code.starts_with("RetryableError"))
}

/// Reads and writes, each for all clusters and for the cluster with the most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Round {
    pub reads: usize,
    pub most_reads: usize,
    pub writes: usize,
}

impl Round {
    /// Counts requests. A cluster is identified by its resource group; requests at subscription level belong to no
    /// cluster, and count only in the sum.
    pub fn of(journal: &Journal) -> Self {
        let mut reads: BTreeMap<String, usize> = BTreeMap::new();
        let mut round = Self::default();
        for entry in &journal.entries {
            if is_write(entry.kind) && !lists_secrets(entry) {
                round.writes += 1;
                continue;
            }
            round.reads += 1;
            let id = ResourceId::parse(&entry.path);
            let group = id.as_ref().ok().and_then(ResourceId::group_name).map(str::to_lowercase);
            let group = group.or_else(|| group_of_a_list(&entry.path));
            if let Some(group) = group {
                let group = owner_of_nodes(&group).unwrap_or(&group).to_owned();
                *reads.entry(group).or_default() += 1;
            }
        }
        round.most_reads = reads.into_values().max().unwrap_or_default();
        round
    }
}

/// The path of a list is not an ID: it ends with a type.
fn group_of_a_list(path: &str) -> Option<String> {
    let path = path.to_lowercase();
    let (_, behind) = path.split_once("/resourcegroups/")?;
    behind.split('/').next().map(str::to_owned)
}

/// The group of the managed cluster that this is the group of the nodes of: `MC_<group>_<cluster>_<region>`.
fn owner_of_nodes(group: &str) -> Option<&str> {
    group.strip_prefix("mc_")?.split('_').next()
}

/// Credentials are read with POST, which changes nothing.
fn lists_secrets(entry: &JournalEntry) -> bool {
    let action = entry.path.rsplit('/').next().unwrap_or_default();
    entry.method == "POST" && action.starts_with("list")
}

fn is_write(kind: RequestKind) -> bool {
    matches!(kind, RequestKind::Write | RequestKind::Delete)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn journal(requests: &[(&str, &str, &str, u16)]) -> Journal {
        let entry = |(time, kind, path, status): &(&str, &str, &str, u16)| {
            let method = if *kind == "write" { "PUT" } else { "GET" };
            serde_json::from_value(json!({
                "sequence": 1, "time": format!("2026-01-01T00:{time}Z"), "method": method,
                "path": format!("/subscriptions/s{path}"), "status": status, "kind": kind,
            }))
            .unwrap()
        };
        Journal { entries: requests.iter().map(entry).collect(), ..Journal::default() }
    }

    const ADDRESSES: &str = "providers/Microsoft.Network/publicIPAddresses";

    #[test]
    fn minutes_count_from_the_first_call() {
        let minutes = by_minute(&journal(&[
            ("00:30", "read", "/resourceGroups/a", 200),
            ("01:29", "write", "/resourceGroups/a", 429),
            ("02:31", "poll", "/providers/Microsoft.Network/locations/eastus/operations/1", 429),
        ]));
        let minute = |calls, writes, throttled| Minute { calls, writes, throttled, refused: 0 };
        assert_eq!(minutes, [minute(2, 1, 1), Minute::default(), minute(1, 0, 1)]);
        assert!(by_minute(&Journal::default()).is_empty());
    }

    /// A busy resource answers 429, too, and counts as refused, not as throttled.
    #[test]
    fn refusals_are_counted_by_their_code() {
        let mut all = journal(&[
            ("00:00", "write", "/resourceGroups/a", 429),
            ("00:01", "write", "/resourceGroups/a", 429),
            ("00:02", "read", "/resourceGroups/a", 404),
            ("00:03", "write", "/resourceGroups/a", 200),
        ]);
        all.entries[0].code = Some("SubscriptionRequestsThrottled".to_owned());
        all.entries[1].code = Some("RetryableError".to_owned());
        assert_eq!(by_minute(&all), [Minute { calls: 4, writes: 3, throttled: 1, refused: 1 }]);
        let counted: Vec<_> = refusals(&all).into_iter().collect();
        assert_eq!(
            counted,
            [
                ("429 RetryableError PUT ".to_owned(), 1),
                ("429 SubscriptionRequestsThrottled PUT ".to_owned(), 1),
            ]
        );
    }

    #[test]
    fn reads_are_those_of_a_cluster_by_its_group() {
        let round = Round::of(&journal(&[
            ("00:00", "read", &format!("/resourceGroups/A/{ADDRESSES}"), 200),
            ("00:00", "read", &format!("/resourceGroups/a/{ADDRESSES}/ip"), 404),
            ("00:00", "read", "/resourceGroups/b", 200),
            ("00:00", "read", "/providers/Microsoft.Compute/skus", 200),
            ("00:00", "write", "/resourceGroups/b", 200),
        ]));
        assert_eq!(round, Round { reads: 4, most_reads: 2, writes: 1 });
    }
}
