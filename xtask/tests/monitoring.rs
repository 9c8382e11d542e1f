//! Dashboards and alerts name metrics and labels that exist, and each alert has a runbook.
#![allow(clippy::unwrap_used, clippy::panic)]

// The task uses more of both.
#[allow(dead_code)]
#[path = "../src/monitoring/expression.rs"]
mod expression;
#[allow(dead_code)]
#[path = "../src/monitoring/queries.rs"]
mod queries;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use expression::{named, problems, table};
use queries::{Monitoring, text};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn monitoring() -> Monitoring {
    Monitoring::read(&root().join("deploy/monitoring")).unwrap()
}

#[test]
fn queries_name_metrics_and_labels_of_the_page() {
    let (monitoring, page) = (monitoring(), fs::read_to_string(root().join("docs/metrics.md")).unwrap());
    let (queries, table) = (monitoring.queries().unwrap(), table(&page));
    assert!(queries.len() > 100 && table.len() > 60, "{} queries, {} metrics", queries.len(), table.len());
    let wrong = monitoring.problems(&page).unwrap();
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn a_series_that_may_be_missing_is_asked_for() {
    let monitoring = monitoring();
    let queries = monitoring.queries().unwrap();
    let asked: BTreeSet<String> = queries.iter().flat_map(|query| named(&query.expression).metrics).collect();
    let stray: Vec<_> = monitoring.rare.keys().filter(|name| !asked.contains(*name)).collect();
    assert!(stray.is_empty(), "no query has {stray:?}: take it from `rare` in parts/dashboards.yaml");
}

#[test]
fn each_alert_has_a_runbook_and_each_runbook_an_alert() {
    let (monitoring, folder) = (monitoring(), root().join("docs/runbooks"));
    let index = fs::read_to_string(folder.join("README.md")).unwrap();
    let mut pages: BTreeSet<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "README.md")
        .collect();
    for rule in monitoring.rules().filter(|rule| rule["alert"].is_string()) {
        let name = text(rule, "alert").unwrap();
        let (annotations, labels) = (&rule["annotations"], &rule["labels"]);
        assert_eq!(text(annotations, "runbook_url").unwrap(), format!("docs/runbooks/{name}.md"));
        assert!(["critical", "warning"].contains(&text(labels, "severity").unwrap()), "{name}");
        assert!(text(annotations, "summary").is_ok() && text(annotations, "description").is_ok(), "{name}");
        let file = format!("{name}.md");
        assert!(pages.remove(&file), "docs/runbooks/{file} is missing");
        assert!(index.contains(&format!("[{name}]({file})")), "docs/runbooks/README.md does not list {name}");
        let page = fs::read_to_string(folder.join(&file)).unwrap();
        for part in [&format!("# {name}\n"), "\n## How to look\n", "\n## What to do\n"] {
            assert!(page.contains(part), "{file} has no {part:?}");
        }
        let shown = page.split("```\n").nth(1).unwrap_or_default().trim();
        assert_eq!(shown, text(rule, "expr").unwrap(), "{file} shows another expression than the rule");
    }
    assert!(pages.is_empty(), "no alert has these runbooks: {pages:?}");
}

#[test]
fn an_expressions_metrics_and_labels_are_found() {
    let text = "sum by (job, le) (rate(a_bucket{x=~\"y{z}\", w!=\"\"}[5m])) / on (v) group_left (u) b offset 5m > 1e3 or time()";
    let named = named(text);
    assert_eq!(named.metrics.into_iter().collect::<Vec<_>>(), ["a_bucket", "b"]);
    assert_eq!(named.labels.into_iter().collect::<Vec<_>>(), ["job", "le", "u", "v", "w", "x"]);
}

#[test]
fn what_the_page_does_not_have_is_reported() {
    let page = "| `a` | histogram | `x` | ccm | About it |\n| `b_total` | counter | | capz | |\n";
    let (table, none) = (table(page), BTreeSet::new());
    let found = |text: &str| problems(text, &table, &none);
    assert!(found("sum by (x, le, job) (a_bucket) / b_total{instance=\"i\"}").is_empty());
    assert_eq!(found("a"), ["a is no series of docs/metrics.md"]);
    assert_eq!(found("b_total{x=\"1\"}").len(), 1);
    assert_eq!(found("b").len(), 1);
}
