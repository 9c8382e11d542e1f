//! The requests to Azure during a scenario, counted.

use std::collections::BTreeMap;

use azure_simulator::{Journal, JournalEntry, RequestKind};
use serde::Serialize;

/// Requests by purpose.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Calls {
    /// All of them.
    pub all: u64,
    /// GET of resources and lists.
    pub reads: u64,
    /// GET of long-running operations.
    pub polls: u64,
    /// PUT, PATCH, POST and DELETE, whatever the answer.
    pub writes: u64,
    /// Answered with 400 or more, except 404.
    pub refused: u64,
    /// Method and type, such as `PUT Microsoft.Network/publicIPAddresses`; a GET of a collection is a `LIST`, one of an
    /// operation a `POLL`.
    pub by_kind: BTreeMap<String, u64>,
}

impl Calls {
    /// Counts a journal.
    pub fn of(journal: &Journal) -> Self {
        let mut calls = Self::default();
        for entry in &journal.entries {
            calls.all += 1;
            *match entry.kind {
                RequestKind::Read => &mut calls.reads,
                RequestKind::Poll => &mut calls.polls,
                RequestKind::Write | RequestKind::Delete => &mut calls.writes,
            } += 1;
            calls.refused += u64::from(entry.status >= 400 && entry.status != 404);
            *calls.by_kind.entry(kind(entry)).or_default() += 1;
        }
        calls
    }
}

fn kind(entry: &JournalEntry) -> String {
    let of = entry.resource_type.as_deref().unwrap_or("what is no resource");
    match entry.kind {
        RequestKind::Poll => "POLL".to_owned(),
        RequestKind::Read if is_list(&entry.path) => format!("LIST {of}"),
        _ => format!("{} {of}", entry.method),
    }
}

/// Whether a path ends with a collection. After the last provider's name, types and names alternate; an instance view
/// looks like a type there.
fn is_list(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    let below = path.rsplit_once("/providers/").map_or(path.as_str(), |(_, below)| below);
    below.split('/').count().is_multiple_of(2) && !below.ends_with("/instanceview")
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A journal of (method, type of the first level, name, more members): a request without a name is a list.
    pub fn journal(requests: &[(&str, &str, &str, Value)]) -> Journal {
        let entry = |(at, (method, kind, name, more)): (usize, &(&str, &str, &str, Value))| {
            let sort = match *method {
                "GET" if kind.ends_with("/operations") => "poll",
                "GET" => "read",
                "DELETE" => "delete",
                _ => "write",
            };
            let path = format!("/subscriptions/s/resourceGroups/g/providers/{kind}/{name}");
            let mut entry = json!({
                "sequence": at + 1, "time": "2026-01-01T00:00:00Z", "method": method,
                "path": path.trim_end_matches('/'),
                "status": 200, "kind": sort, "resourceType": kind,
            });
            for (member, value) in more.as_object().into_iter().flatten() {
                entry[member] = value.clone();
            }
            serde_json::from_value(entry).expect("an entry")
        };
        Journal { entries: requests.iter().enumerate().map(entry).collect(), ..Journal::default() }
    }

    #[test]
    fn calls_are_counted_by_method_and_type() {
        let addresses = "Microsoft.Network/publicIPAddresses";
        let calls = Calls::of(&journal(&[
            ("GET", addresses, "", json!({})),
            ("GET", addresses, "a", json!({"status": 404})),
            ("PUT", addresses, "a", json!({"status": 201})),
            ("PUT", addresses, "b", json!({"status": 409})),
            ("DELETE", addresses, "b", json!({})),
            ("GET", "Microsoft.Network/locations/operations", "", json!({})),
        ]));
        let by_kind: Vec<(&str, u64)> = calls.by_kind.iter().map(|(kind, n)| (kind.as_str(), *n)).collect();
        assert_eq!(
            by_kind,
            [
                ("DELETE Microsoft.Network/publicIPAddresses", 1),
                ("GET Microsoft.Network/publicIPAddresses", 1),
                ("LIST Microsoft.Network/publicIPAddresses", 1),
                ("POLL", 1),
                ("PUT Microsoft.Network/publicIPAddresses", 2),
            ]
        );
        let of_a_set = "/providers/Microsoft.Compute/virtualMachineScaleSets/a/virtualMachines";
        assert!(is_list(of_a_set) && !is_list(&format!("{of_a_set}/0/instanceView")));
        assert!(is_list(&format!("{of_a_set}/0/networkInterfaces")) && !is_list(&format!("{of_a_set}/0")));
        assert_eq!((calls.all, calls.reads, calls.polls, calls.writes, calls.refused), (6, 2, 1, 3, 1));
    }
}
