//! Every entry of `tests/corpus/services` has the result in its header.

use std::collections::VecDeque;

use explorer::corpus::{self, Entry};
use explorer::stage::Stage;
use explorer::trial::{Outcome, try_entry};
use explorer::{on_paused_time, workers};

/// An entry and its result.
type Tried = (Entry, Outcome);

/// Tries entries one after the other; after a failure, the next ones begin in a new world.
fn try_all(entries: Vec<Entry>) -> Vec<Tried> {
    let mut tried = Vec::new();
    let mut queue = VecDeque::from(entries);
    while !queue.is_empty() {
        let (rest, part) = on_paused_time(async move {
            let mut stage = Stage::set(&[]).await;
            let mut part = Vec::new();
            while let Some(entry) = queue.pop_front() {
                let outcome = try_entry(&mut stage, &entry).await;
                let failed = !outcome.complaints.is_empty();
                part.push((entry, outcome));
                if failed {
                    break;
                }
            }
            (queue, part)
        });
        queue = rest;
        tried.extend(part);
    }
    tried
}

/// With `CERULEAN_CASE=name` only entries whose names contain it are tried.
fn chosen() -> Vec<Entry> {
    let mut entries = corpus::read(&corpus::folder()).unwrap_or_else(|error| panic!("{error}"));
    if let Ok(name) = std::env::var("CERULEAN_CASE") {
        entries.retain(|entry| entry.name.contains(&name));
        assert!(!entries.is_empty(), "no entry is called {name}");
    }
    entries
}

#[test]
fn every_service_of_the_corpus_comes_out_as_its_header_says() {
    let entries = chosen();
    let share = entries.len().div_ceil(workers());
    let tried: Vec<Tried> = std::thread::scope(|scope| {
        let parts: Vec<_> =
            entries.chunks(share).map(|part| scope.spawn(|| try_all(part.to_vec()))).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    });
    let mut wrong = Vec::new();
    for (entry, outcome) in &tried {
        match (&entry.known, outcome.complaints.is_empty()) {
            (Some(bug), true) => {
                wrong.push(format!("{} passes: take `known: {bug}` out of its header", entry.name));
            }
            (None, false) => wrong.push(format!(
                "{}:\n  {}\n  alone: CERULEAN_CASE={} cargo test -p explorer corpus",
                entry.name,
                outcome.complaints.join("\n  "),
                entry.name,
            )),
            _ => {}
        }
    }
    let differ: Vec<&Tried> = tried.iter().filter(|(_, outcome)| !outcome.preview.is_empty()).collect();
    wrong.extend(
        differ.iter().map(|(entry, outcome)| format!("{}: {}", entry.name, outcome.preview.join("\n"))),
    );
    assert!(wrong.is_empty(), "{} of {} entries:\n{}", wrong.len(), tried.len(), wrong.join("\n\n"));
}
