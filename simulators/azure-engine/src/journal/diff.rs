//! How two runs differ: requests that one made and the other did not.
//!
//! Two requests are the same if they ask the same of the same resource, get the same answer and change the same.
//! Numbers, times and ids of requests do not count: runs differ only in what was done.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use super::book::{Counts, Journal};
use super::entry::{JournalEntry, RequestKind};

/// How two journals differ. `Display` says it in plain words.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JournalDiff {
    /// The first requests that are not the same; `None` when all are.
    pub first: Option<Divergence>,
    /// The resources with different requests, ordered by id.
    pub resources: Vec<ResourceDiff>,
    /// The counts of the first run.
    pub counts_a: Counts,
    /// The counts of the second run.
    pub counts_b: Counts,
    /// Position from 1 of the first request that came at another time since its run began, where all
    /// requests are the same.
    pub first_at_another_time: Option<usize>,
}

/// The first difference of two runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Divergence {
    /// Position from 1: so many requests less one were the same.
    pub position: usize,
    /// The first run's request there; `None` if it had ended.
    pub a: Option<JournalEntry>,
    /// The second run's request there; `None` if it had ended.
    pub b: Option<JournalEntry>,
}

/// The requests of two runs about one resource.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceDiff {
    /// Id of the resource, or the path of a list, in the spelling of its first mention.
    pub resource: String,
    /// How often the first run made each request and got each answer: `PUT 200` and the like.
    pub a: BTreeMap<String, usize>,
    /// The same of the second run.
    pub b: BTreeMap<String, usize>,
    /// Changes that only the first run made, as [`JournalEntry::changes`] words them.
    pub changes_only_a: Vec<String>,
    /// Changes that only the second run made.
    pub changes_only_b: Vec<String>,
}

impl JournalDiff {
    /// Whether requests and answers are the same; on a real clock the times of two runs always differ.
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }
}

/// Compares two runs. Polls of operations are compared by their answer alone, because the operations' keys are new in
/// every run with another seed.
pub fn diff(a: &Journal, b: &Journal) -> JournalDiff {
    let counts = |journal: &Journal| {
        let mut counts = Counts::default();
        journal.entries.iter().for_each(|entry| counts.count(entry));
        counts
    };
    let (left, right) = (&a.entries, &b.entries);
    let same = left.iter().zip(right).take_while(|(a, b)| essence(a) == essence(b)).count();
    let first = (same < left.len().max(right.len())).then(|| Divergence {
        position: same + 1,
        a: left.get(same).cloned(),
        b: right.get(same).cloned(),
    });
    let offset = |entries: &[JournalEntry], entry: &JournalEntry| {
        entries.first().map(|first| entry.time.duration_since(first.time))
    };
    let moved = left.iter().zip(right).position(|(a, b)| offset(left, a) != offset(right, b));
    JournalDiff {
        first_at_another_time: moved.filter(|_| first.is_none()).map(|index| index + 1),
        first,
        resources: resources(left, right),
        counts_a: counts(a),
        counts_b: counts(b),
    }
}

/// The parts by which requests are compared.
fn essence(entry: &JournalEntry) -> impl PartialEq + use<'_> {
    let subject = match entry.kind {
        RequestKind::Poll => String::new(),
        _ => entry.path.to_ascii_lowercase(),
    };
    (
        (entry.method.as_str(), subject, entry.api_version.as_deref()),
        (entry.status, entry.code.as_deref()),
        (&entry.changes, entry.fault.as_deref(), entry.principal.as_deref()),
    )
}

#[derive(Default)]
struct ResourceRequests {
    name: String,
    sides: [Side; 2],
}

#[derive(Default)]
struct Side {
    answers: BTreeMap<String, usize>,
    changes: BTreeSet<String>,
}

fn resources(left: &[JournalEntry], right: &[JournalEntry]) -> Vec<ResourceDiff> {
    let mut resources: BTreeMap<String, ResourceRequests> = BTreeMap::new();
    let sides = [(0, left), (1, right)];
    for (side, entry) in
        sides.into_iter().flat_map(|(side, list)| list.iter().map(move |entry| (side, entry)))
    {
        if entry.kind == RequestKind::Poll {
            continue;
        }
        let name = entry.resource.as_ref().unwrap_or(&entry.path);
        let requests = resources.entry(name.to_ascii_lowercase()).or_default();
        if requests.name.is_empty() {
            requests.name.clone_from(name);
        }
        let Some(side) = requests.sides.get_mut(side) else { continue };
        *side.answers.entry(answer(entry)).or_default() += 1;
        side.changes.extend(entry.changes.iter().cloned());
    }
    resources
        .into_values()
        .filter(|ResourceRequests { sides: [a, b], .. }| a.answers != b.answers || a.changes != b.changes)
        .map(|ResourceRequests { name, sides: [a, b] }| ResourceDiff {
            resource: name,
            changes_only_a: a.changes.difference(&b.changes).cloned().collect(),
            changes_only_b: b.changes.difference(&a.changes).cloned().collect(),
            a: a.answers,
            b: b.answers,
        })
        .collect()
}

/// `PUT 200`, `PUT 412 PreconditionFailed`, `PUT lost`.
fn answer(entry: &JournalEntry) -> String {
    let JournalEntry { method, status, code, .. } = entry;
    match (status, code) {
        (0, _) => format!("{method} lost"),
        (status, Some(code)) => format!("{method} {status} {code}"),
        (status, None) => format!("{method} {status}"),
    }
}

impl fmt::Display for JournalDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.counts_a.requests;
        let Some(first) = &self.first else {
            return match self.first_at_another_time {
                None => writeln!(f, "The runs are the same: {total} requests."),
                Some(position) => writeln!(
                    f,
                    "The runs ask and get the same, {total} requests, but from request {position} on at other times."
                ),
            };
        };
        writeln!(f, "The runs are the same for {} requests. Then:", first.position - 1)?;
        for (run, entry) in [("A", &first.a), ("B", &first.b)] {
            match entry {
                None => writeln!(f, "  {run} asks nothing more.")?,
                Some(entry) => {
                    let fault = entry.fault.as_ref().map(|name| format!(" (fault '{name}')"));
                    let who = entry.principal.as_ref().map(|name| format!(" (by {name})"));
                    writeln!(
                        f,
                        "  {run} {} at {}: {}{}{}",
                        answer(entry),
                        entry.time,
                        entry.path,
                        fault.unwrap_or_default(),
                        who.unwrap_or_default()
                    )?;
                    let done = match (entry.kind, entry.changes.as_slice()) {
                        (RequestKind::Read | RequestKind::Poll, _) => continue,
                        (_, []) => "changes nothing".to_owned(),
                        (_, changes) => format!("changes {}", changes.join(", ")),
                    };
                    writeln!(f, "    which {done}")?;
                }
            }
        }
        writeln!(f, "\n  {:<12}{:>8}{:>8}", "", "A", "B")?;
        let (a, b) = (&self.counts_a, &self.counts_b);
        for (name, a, b) in [
            ("requests", a.requests, b.requests),
            ("reads", a.reads, b.reads),
            ("writes", a.writes, b.writes),
            ("deletes", a.deletes, b.deletes),
            ("polls", a.polls, b.polls),
            ("refused", a.refused, b.refused),
            ("throttled", a.throttled, b.throttled),
        ] {
            writeln!(f, "  {name:<12}{a:>8}{b:>8}")?;
        }
        if self.resources.is_empty() {
            return writeln!(f, "\nEvery resource was asked for alike; only the order differs.");
        }
        writeln!(f, "\nResources that were asked for differently: {}", self.resources.len())?;
        for resource in &self.resources {
            writeln!(f, "  {}", resource.resource)?;
            for (run, answers, changes) in
                [("A", &resource.a, &resource.changes_only_a), ("B", &resource.b, &resource.changes_only_b)]
            {
                let asked: Vec<String> =
                    answers.iter().map(|(what, count)| format!("{count} x {what}")).collect();
                let asked = if asked.is_empty() { "nothing".to_owned() } else { asked.join(", ") };
                let alone = match changes.as_slice() {
                    [] => String::new(),
                    changes => format!("; alone changes {}", changes.join(", ")),
                };
                writeln!(f, "    {run}: {asked}{alone}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(lines: &[(&str, &str, u16, &[&str])]) -> Journal {
        let text: String = lines
            .iter()
            .zip(1..)
            .map(|((method, path, status, changes), sequence)| {
                let kind = if *method == "GET" { "read" } else { "write" };
                let entry = serde_json::json!({
                    "sequence": sequence, "time": format!("2026-01-01T00:00:{sequence:02}Z"), "method": method,
                    "path": path, "status": status, "kind": kind, "resource": path, "changes": changes,
                });
                format!("{entry}\n")
            })
            .collect();
        Journal::from_lines(&text).unwrap()
    }

    #[test]
    fn runs_are_told_apart_by_what_they_do() {
        let a = journal(&[("GET", "/x", 200, &[]), ("PUT", "/x", 200, &["~a"]), ("GET", "/y", 404, &[])]);
        let b = journal(&[("GET", "/X", 200, &[]), ("PUT", "/x", 200, &["~b"]), ("GET", "/y", 404, &[])]);
        assert!(diff(&a, &a).is_empty());
        assert_eq!(Journal::from_lines(&a.to_lines()).unwrap(), a);
        let found = diff(&a, &b);
        assert_eq!(found.first.as_ref().map(|first| first.position), Some(2));
        let names: Vec<&str> = found.resources.iter().map(|resource| resource.resource.as_str()).collect();
        assert_eq!(names, ["/x"]);
        assert_eq!(
            (&found.resources[0].changes_only_a, &found.resources[0].changes_only_b),
            (&vec!["~a".to_owned()], &vec!["~b".to_owned()])
        );
        let words = found.to_string();
        for part in [
            "the same for 1 requests",
            "A PUT 200",
            "which changes ~b",
            "A: 1 x GET 200, 1 x PUT 200; alone changes ~a",
        ] {
            assert!(words.contains(part), "{part} in {words}");
        }
    }

    #[test]
    fn the_end_of_one_run_is_a_difference_and_other_times_are_told() {
        let a = journal(&[("GET", "/x", 200, &[]), ("GET", "/x", 200, &[])]);
        let mut shorter = a.clone();
        shorter.entries.pop();
        assert!(diff(&a, &shorter).to_string().contains("B asks nothing more."));
        let mut later = a.clone();
        later.entries[1].time = "2026-01-01T00:00:09Z".parse().unwrap();
        assert_eq!(diff(&a, &later).first_at_another_time, Some(2));
        assert!(diff(&a, &later).is_empty());
        // When a run began does not matter.
        for entry in &mut later.entries {
            entry.time += jiff::SignedDuration::from_hours(1);
        }
        later.entries[1].time = "2026-01-01T01:00:02Z".parse().unwrap();
        assert_eq!(diff(&a, &later).first_at_another_time, None);
    }
}
