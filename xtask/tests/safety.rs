//! Each promise in `docs/safety.md` names the tests that prove it. Readers of the page do not see these names: they are
//! in comments, as `<!-- path/of/a/file.rs::name_of_the_test -->`, separated by commas.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = "docs/safety.md";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// A promise: an item of a list, with the tests that its comment names.
struct Promise {
    text: String,
    tests: Vec<(String, String)>,
}

fn promises(page: &str) -> Vec<Promise> {
    let mut items: Vec<String> = Vec::new();
    let mut open = false;
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("* ") {
            items.push(rest.to_owned());
            open = true;
        } else if open && line.starts_with("  ") {
            let item = items.last_mut().unwrap();
            item.push(' ');
            item.push_str(line.trim());
        } else {
            open = false;
        }
    }
    items.iter().map(|item| promise(item)).collect()
}

fn promise(item: &str) -> Promise {
    let (text, comment) = item.split_once("<!--").unwrap_or((item, ""));
    let names = comment.split("-->").next().unwrap_or_default();
    let tests = names.split(',').filter_map(|name| name.trim().split_once("::"));
    Promise {
        text: text.trim().to_owned(),
        tests: tests.map(|(file, test)| (file.to_owned(), test.to_owned())).collect(),
    }
}

/// Whether a source contains a test of this name.
fn has_test(source: &str, name: &str) -> bool {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let is_test = |at: usize| {
        let above =
            lines[..at].iter().rev().take_while(|line| line.starts_with("#[") || line.starts_with("//"));
        above.into_iter().any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
    };
    let declares = |line: &str| {
        let line = line.strip_prefix("async ").unwrap_or(line);
        line.strip_prefix("fn ")
            .and_then(|rest| rest.strip_prefix(name))
            .is_some_and(|rest| rest.starts_with('('))
    };
    (0..lines.len()).any(|at| declares(lines[at]) && is_test(at))
}

#[test]
fn each_promise_of_the_page_on_safety_is_proven() {
    let page = fs::read_to_string(root().join(PAGE)).unwrap();
    let promises = promises(&page);
    assert!(promises.len() > 20, "the page makes {} promises: its form has changed", promises.len());
    let mut problems = Vec::new();
    for Promise { text, tests } in &promises {
        if tests.is_empty() {
            problems.push(format!("no test is named: {text}"));
        }
        for (file, test) in tests {
            match fs::read_to_string(root().join(file)) {
                Ok(source) if has_test(&source, test) => {}
                Ok(_) => problems.push(format!("{file} has no test {test}: {text}")),
                Err(error) => problems.push(format!("{file}: {error}: {text}")),
            }
        }
    }
    assert!(problems.is_empty(), "{PAGE}:\n{}", problems.join("\n"));
}

/// Only promises are list items, so that none is missed.
#[test]
fn what_is_no_promise_is_a_heading_or_an_introduction() {
    let page = fs::read_to_string(root().join(PAGE)).unwrap();
    let mut problems = Vec::new();
    for section in page.split("\n## ").skip(1) {
        let body = section.split_once('\n').map_or("", |(_, body)| body);
        for block in body.split("\n\n").map(str::trim).filter(|block| !block.is_empty()) {
            if !block.starts_with("* ") {
                problems.push(block.lines().next().unwrap_or_default().to_owned());
            }
        }
    }
    assert!(problems.is_empty(), "{PAGE}: write these as items, each with its test: {problems:?}");
}
