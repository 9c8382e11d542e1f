//! `docs/rules` and the code agree: every ID in the code has a row, and every row's file and tests exist.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../src/rules/ledger.rs"]
mod ledger;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use ledger::{AREAS, HEAD, INDEX, Relation, Row};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn sources() -> Vec<(String, String)> {
    let folders = ["crates", "simulators", "cerulean", "explorer", "testkit", "xtask"];
    let all = folders.into_iter().flat_map(|folder| ledger::files(&root(), folder, ".rs").unwrap());
    all.map(|path| (read(&path), path)).map(|(text, path)| (path, text)).collect()
}

/// The IDs in a text, in the form of comments (`LB-` and a number) or of function names (`lb_` and a number).
fn ids(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for area in AREAS {
        for (start, end) in [(area.to_owned(), '-'), (area.to_lowercase(), '_')] {
            let start = format!("{start}{end}");
            for (at, _) in text.match_indices(&start) {
                let before = text[..at].chars().next_back();
                let rest = &text[at + start.len()..];
                let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
                if !before.is_some_and(char::is_alphanumeric) && digits.len() == 3 {
                    found.insert(format!("{area}-{digits}"));
                }
            }
        }
    }
    found
}

fn function_name(line: &str) -> Option<&str> {
    let mut line = line.trim_start();
    for word in ["pub ", "async "] {
        line = line.strip_prefix(word).unwrap_or(line);
    }
    let name = line.strip_prefix("fn ")?;
    Some(&name[..name.find(['(', '<'])?])
}

/// The tests of a file by name, each with its comment, its attributes and its body.
fn tests(source: &str) -> BTreeMap<&str, String> {
    let lines: Vec<&str> = source.lines().collect();
    let mut found = BTreeMap::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let is_above = |line: &&&str| ["//", "#["].iter().any(|start| line.trim_start().starts_with(start));
        let above = lines[..at].iter().rev().take_while(is_above).count();
        let is_test = |line: &&str| {
            let line = line.trim_start();
            line.starts_with("#[test]") || line.starts_with("#[tokio::test")
        };
        if lines[at - above..at].iter().any(is_test) {
            let close = format!("{}}}", &line[..line.len() - line.trim_start().len()]);
            let body = lines[at..].iter().take_while(|line| **line != close).count();
            found.insert(name, lines[at - above..at + body].join("\n"));
        }
    }
    found
}

fn pages() -> Vec<String> {
    ledger::pages(&root()).unwrap()
}

fn rows() -> Vec<Row> {
    let rows = ledger::rows(&root()).unwrap_or_else(|error| panic!("{error}"));
    assert!(!rows.is_empty(), "docs/rules holds no rows");
    rows
}

fn report(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

#[test]
fn rows_are_whole_in_order_and_unique() {
    let rows = rows();
    let mut problems = Vec::new();
    let mut seen = BTreeMap::new();
    for row in &rows {
        let id = row.id();
        if ids(id) != BTreeSet::from([id.to_owned()]) {
            problems.push(format!(
                "{}: `{id}` is no id; write one of {:?}, a dash and three digits",
                row.page, AREAS
            ));
        }
        for (_, head) in row.cells.iter().zip(HEAD).filter(|(cell, _)| cell.is_empty()) {
            problems.push(format!("{}: {id}: the cell `{head}` is empty; fill it", row.page));
        }
        if let Some(other) = seen.insert(id, &row.page) {
            problems.push(format!("{id} stands in {other} and in {}; keep one of the rows", row.page));
        }
    }
    for pair in rows.windows(2).filter(|pair| pair[0].page == pair[1].page) {
        if pair[0].order() > pair[1].order() {
            problems.push(format!(
                "{}: {} stands before {}; sort the rows by id",
                pair[0].page,
                pair[0].id(),
                pair[1].id()
            ));
        }
    }
    report(&problems);
}

/// The first number of the IDs of our own rules, without a case.
const FIRST_OWN: [(&str, u32); 5] = [("LB", 400), ("NODE", 200), ("CAPZ", 400), ("CSI", 1), ("FILE", 1)];

/// Each row states the relation of ours to the case as it was written.
#[test]
fn every_row_relates_to_its_case() {
    let mut problems = Vec::new();
    let served: BTreeSet<String> = rows().iter().map(|row| row.id().to_owned()).collect();
    for row in rows() {
        let (page, id, cell) = (&row.page, row.id(), &row.cells[5]);
        let is_own = FIRST_OWN.iter().any(|(area, first)| row.order().0 == *area && row.order().1 >= *first);
        match (row.relation(), is_own) {
            (None, _) => problems.push(format!(
                "{page}: {id}: `{cell}` is neither `as the case`, `narrower: what is missing`, `opposite: why` nor `own`"
            )),
            (Some(Relation::Own), false) => {
                problems.push(format!("{page}: {id} is a case: say how ours relates to it, and not `own`"));
            }
            (Some(Relation::Own), true) => {}
            (Some(Relation::Opposite(_)), false) if !row.cells[2].contains("ours:") => {
                problems.push(format!("{page}: {id} is the opposite of its case: say in its source `ours: why`"));
            }
            (Some(_), true) => problems.push(format!("{page}: {id} is no case: write `own`")),
            (Some(_), false) => {}
        }
    }
    for id in ledger::not_served(&read(INDEX)).intersection(&served) {
        problems.push(format!("{INDEX} says that {id} is not served, and it has a row; keep one of the two"));
    }
    report(&problems);
}

/// The counts in the index are those of the rows.
#[test]
fn the_index_counts_the_rows() {
    let index = read(INDEX);
    let counts = ledger::counts(&rows(), &index);
    assert!(index.contains(&counts), "write this into {INDEX} (cargo xtask rules prints it):\n{counts}");
}

#[test]
fn every_id_that_the_code_names_has_a_row() {
    let rows = rows();
    let known: BTreeSet<&str> = rows.iter().map(Row::id).collect();
    let mut problems = Vec::new();
    for (path, text) in sources() {
        for id in ids(&text) {
            if !known.contains(id.as_str()) {
                problems.push(format!(
                    "{path} names {id}, and docs/rules has no row for it; add one (docs/rules/README.md says how)"
                ));
            }
        }
    }
    report(&problems);
}

#[test]
fn every_row_names_a_file_that_decides_and_tests_that_prove() {
    let mut problems = Vec::new();
    let in_code =
        |text: &str| text.strip_prefix('`').and_then(|text| text.strip_suffix('`')).map(str::to_owned);
    for row in rows() {
        let (page, id) = (&row.page, row.id());
        match in_code(&row.cells[3]) {
            Some(path) if root().join(&path).is_file() => {}
            _ => problems.push(format!(
                "{page}: {id}: {} is no file of the repository; name the one that decides this now",
                row.cells[3]
            )),
        }
        for proof in row.cells[4].split(", ") {
            let wanted = in_code(proof);
            let Some((path, name)) = wanted.as_deref().and_then(|proof| proof.split_once("::")) else {
                problems.push(format!("{page}: {id}: write {proof} as `path/from/the/root.rs::function`"));
                continue;
            };
            let Ok(source) = fs::read_to_string(root().join(path)) else {
                problems
                    .push(format!("{page}: {id}: there is no {path}; name the file in which {name} is now"));
                continue;
            };
            match tests(&source).get(name) {
                None => problems.push(format!(
                    "{page}: {id}: {path} has no test {name}; name the one that proves it now"
                )),
                Some(text) if !ids(text).contains(id) => {
                    problems.push(format!(
                        "{path}: {name}: add {id} to its comment, because {page} says that it proves it"
                    ));
                }
                Some(_) => {}
            }
        }
    }
    report(&problems);
}

#[test]
fn every_source_can_be_opened() {
    let mut problems = Vec::new();
    let mut addresses = BTreeMap::new();
    for page in pages() {
        let text = read(&page);
        let mut defined = BTreeSet::new();
        for line in text.lines().filter(|line| line.starts_with('[')) {
            let Some((name, address)) = line[1..].split_once("]: ") else { continue };
            if !address.starts_with("https://") || !address.ends_with('"') {
                problems.push(format!("{page}: write [{name}] as `[{name}]: https://… \"title\"`"));
            }
            let other = addresses.insert(name.to_owned(), address.to_owned());
            if other.is_some_and(|other| other != address) {
                problems.push(format!(
                    "{page}: [{name}] leads elsewhere on another page; give both the same address"
                ));
            }
            defined.insert(name.to_owned());
        }
        let mut used = BTreeSet::new();
        for row in rows().iter().filter(|row| row.page == page) {
            let id = row.id();
            let (published, ours) = match row.cells[2].split_once("ours:") {
                Some((published, reason)) => (published.trim_end_matches("; "), Some(reason)),
                None => (row.cells[2].as_str(), None),
            };
            if ours.is_some_and(|reason| reason.trim().is_empty()) {
                problems.push(format!("{page}: {id}: say after `ours:` why it is better"));
            }
            for source in published.split(", ").filter(|source| !source.is_empty() && *source != "observed") {
                match source.strip_prefix('[').and_then(|source| source.strip_suffix(']')) {
                    Some(name) => drop(used.insert(name.to_owned())),
                    None => problems.push(format!(
                        "{page}: {id}: {source} is neither a link `[name]` nor `observed` nor `ours: reason`"
                    )),
                }
            }
        }
        for name in used.difference(&defined) {
            problems.push(format!("{page}: add the definition of [{name}] at the end of the page"));
        }
        for name in defined.difference(&used) {
            problems.push(format!("{page}: no row uses [{name}]; remove its definition"));
        }
    }
    report(&problems);
}

#[test]
fn the_index_leads_to_every_page() {
    let index = read(INDEX);
    let missing = |page: &String| {
        let name = page.strip_prefix("docs/rules/").unwrap_or_default();
        (!index.contains(&format!("]({name})"))).then(|| format!("{INDEX}: add a row for {name}"))
    };
    report(&pages().iter().filter_map(missing).collect::<Vec<_>>());
}

/// The comment of a line; the slashes of a URL in a text do not begin a comment.
fn comment_in(line: &str) -> Option<&str> {
    let mut slashes = line.match_indices("//").map(|(at, _)| line.split_at(at));
    slashes.find(|(before, _)| !before.ends_with(':')).map(|(_, comment)| comment)
}

/// A comment that cites a page which is not in the repository explains nothing.
#[test]
fn comments_cite_pages_that_are_in_the_repository() {
    let mut problems = Vec::new();
    let is_part = |c: char| c.is_alphanumeric() || "-_./".contains(c);
    for (path, text) in sources() {
        for comment in text.lines().filter_map(comment_in) {
            for cited in comment.split(|c| !is_part(c)).filter(|word| word.ends_with(".md") && word.len() > 3)
            {
                let beside = Path::new(&path).parent().unwrap().join(cited);
                if !root().join(cited).is_file() && !root().join(beside).is_file() {
                    problems.push(format!(
                        "{path}: {cited} is not in the repository; cite an id of docs/rules or a published page"
                    ));
                }
            }
        }
    }
    report(&problems);
}
