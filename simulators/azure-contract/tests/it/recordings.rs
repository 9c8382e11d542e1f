//! The contract held against recorded conversations with Azure: Azure itself keeps it, but for what `BEYOND` lists.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use azure_contract::{BEYOND, Contract, Problem, Side};
use serde_json::Value;

/// `CERULEAN_AZURE_CONTRACT`, which cargo sets for runs in this checkout; nothing where the folder is not there.
fn folder() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("CERULEAN_AZURE_CONTRACT")?);
    if folder.is_dir() {
        return Some(folder);
    }
    assert!(std::env::var_os("CI").is_none(), "in CI there must be a contract in {}", folder.display());
    eprintln!("skipped: there is no contract in {}", folder.display());
    None
}

/// One recorded request with its answer.
struct Exchange {
    method: String,
    resource_type: String,
    version: String,
    body: Value,
    status: u64,
    response: Value,
}

/// The recorded requests of single resources in a file.
fn exchanges(file: &Path) -> Vec<Exchange> {
    let text = std::fs::read_to_string(file).unwrap();
    let read = |line: &str| {
        let entry: Value = serde_json::from_str(line).unwrap();
        let url = url::Url::parse("https://azure").unwrap().join(entry["url"].as_str().unwrap()).unwrap();
        let version = url.query_pairs().find(|(name, _)| name == "api-version")?.1.into_owned();
        Some(Exchange {
            method: entry["method"].as_str().unwrap().to_owned(),
            resource_type: type_of(url.path())?,
            version,
            body: entry["body"].clone(),
            status: entry["status"].as_u64().unwrap(),
            response: entry["response"].clone(),
        })
    };
    text.lines().filter_map(read).collect()
}

/// The type of the resource that a path names; nothing for lists and actions.
fn type_of(path: &str) -> Option<String> {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let Some(at) = segments.iter().rposition(|segment| segment.eq_ignore_ascii_case("providers")) else {
        let group = segments.len() == 4 && segments[2].eq_ignore_ascii_case("resourceGroups");
        return group.then(|| "Microsoft.Resources/resourceGroups".to_owned());
    };
    let [namespace, rest @ ..] = &segments[at + 1..] else { return None };
    let single = !rest.is_empty() && rest.len().is_multiple_of(2);
    single.then(|| rest.iter().step_by(2).fold((*namespace).to_owned(), |all, one| format!("{all}/{one}")))
}

#[test]
fn azure_keeps_its_contract_but_for_what_is_listed() {
    let Some(folder) = folder() else { return };
    let contract = Contract::read(&folder).unwrap();
    let recordings = folder.with_file_name("recordings");
    let mut judged = 0;
    let mut files: Vec<_> = std::fs::read_dir(recordings).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "jsonl")) {
        for exchange in exchanges(file) {
            let sent = (exchange.method == "PUT" && exchange.body.is_object())
                .then_some((Side::Request, &exchange.body));
            let shown = matches!(exchange.status, 200 | 201) && matches!(&*exchange.method, "GET" | "PUT");
            let shown =
                (shown && exchange.response.is_object()).then_some((Side::Answer, &exchange.response));
            for (side, document) in sent.into_iter().chain(shown) {
                let judgement = contract.judge(&exchange.resource_type, &exchange.version, side, document);
                let Some(judgement) = judgement else { continue };
                judged += 1;
                // Tenants were made unreadable in the recordings.
                let other = |one: &&azure_contract::Violation| {
                    !(one.member.ends_with("tenantId") && matches!(one.problem, Problem::Length(8)))
                };
                let violations: Vec<_> =
                    judgement.violations.iter().filter(other).map(ToString::to_string).collect();
                assert!(violations.is_empty(), "{side} of {}: {violations:?}", exchange.resource_type);
            }
        }
    }
    assert_eq!(judged, 281, "documents");
}

/// Each row names a recording in which Azure takes or shows just that, and no row stands twice.
#[test]
fn what_azure_does_beyond_its_contract_is_recorded() {
    let Some(folder) = folder() else { return };
    let mut rows = BTreeSet::new();
    for row in BEYOND {
        assert!(rows.insert((row.resource_type, row.member)), "{row:?} stands twice");
        let file = folder.with_file_name("recordings").join(format!("{}.jsonl", row.recording));
        let recorded = exchanges(&file).into_iter().any(|exchange| {
            let document = if row.side == Side::Answer { &exchange.response } else { &exchange.body };
            let put = row.side == Side::Answer || exchange.method == "PUT" && document.is_object();
            let is_there = has(document, row.member);
            exchange.resource_type.eq_ignore_ascii_case(row.resource_type)
                && put
                && (is_there == (row.side == Side::Answer))
        });
        assert!(recorded, "{row:?} is not in its recording");
    }
}

/// Whether a document has a member at such a path.
fn has(document: &Value, path: &str) -> bool {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let below = |value: &Value| rest.is_none_or(|rest| has(value, rest));
    match first.strip_suffix("[]") {
        Some(list) => document[list].as_array().is_some_and(|items| items.iter().any(below)),
        None => document.get(first).is_some_and(below),
    }
}
