//! The metrics and labels that a PromQL expression names, and the table of metrics that they are held against.

use std::collections::{BTreeMap, BTreeSet};

/// Labels that Prometheus and its operator add to every series.
pub const TARGET_LABELS: [&str; 5] = ["job", "instance", "namespace", "pod", "container"];

/// Metrics that Prometheus itself makes of every target.
const OF_TARGETS: [&str; 1] = ["up"];

/// Words that are not metrics: operators, and the clauses of aggregations and matches.
const WORDS: [&str; 12] = [
    "and",
    "bool",
    "by",
    "group_left",
    "group_right",
    "ignoring",
    "inf",
    "nan",
    "offset",
    "on",
    "or",
    "without",
];

/// The clauses whose brackets hold labels.
const LABEL_CLAUSES: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];

/// A family of the table: its type, and its labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Family {
    /// `counter`, `gauge` or `histogram`.
    pub kind: String,
    /// Its labels in all programs.
    pub labels: BTreeSet<String>,
}

/// The families in the tables of `docs/metrics.md`.
pub fn table(page: &str) -> BTreeMap<String, Family> {
    let mut table = BTreeMap::<String, Family>::new();
    for line in page.lines() {
        let Some(row) = line.strip_prefix("| `") else { continue };
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [name, kind, labels, _program, _meaning, ..] = cells.as_slice() else { continue };
        let labels = labels.split(',').map(|label| label.trim().trim_matches('`').to_owned());
        let family = table
            .entry(name.trim_matches('`').to_owned())
            .or_insert_with(|| Family { kind: (*kind).to_owned(), labels: BTreeSet::new() });
        family.labels.extend(labels.filter(|label| !label.is_empty()));
    }
    table
}

/// What an expression names.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// The metrics, as they stand in the expression.
    pub metrics: BTreeSet<String>,
    /// The labels that it selects or groups by.
    pub labels: BTreeSet<String>,
}

/// The tokens of an expression: words, and single other characters. Strings are left out.
fn tokens(expression: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = expression.chars().peekable();
    while let Some(c) = rest.next() {
        if c == '"' {
            while let Some(inner) = rest.next() {
                match inner {
                    '\\' => drop(rest.next()),
                    '"' => break,
                    _ => {}
                }
            }
        } else if c.is_ascii_alphanumeric() || c == '_' || c == ':' {
            let mut word = String::from(c);
            while let Some(next) = rest.next_if(|c| c.is_ascii_alphanumeric() || *c == '_' || *c == ':') {
                word.push(next);
            }
            tokens.push(word);
        } else if !c.is_whitespace() {
            tokens.push(c.to_string());
        }
    }
    tokens
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// Whether the word before this token is a function or an aggregation.
fn follows_a_function(next: &str) -> bool {
    matches!(next, "(" | "by" | "without")
}

/// Finds the metrics and labels of an expression.
pub fn named(expression: &str) -> Named {
    let tokens = tokens(expression);
    let mut named = Named::default();
    let (mut in_braces, mut in_brackets, mut in_clause) = (false, false, false);
    for (at, token) in tokens.iter().enumerate() {
        let next = tokens.get(at + 1).map_or("", String::as_str);
        match token.as_str() {
            "{" => in_braces = true,
            "}" => in_braces = false,
            "[" => in_brackets = true,
            "]" => in_brackets = false,
            "(" => in_clause = at > 0 && LABEL_CLAUSES.contains(&tokens[at - 1].as_str()),
            ")" => in_clause = false,
            // Durations.
            _ if in_brackets => {}
            word if in_clause && is_name(word) => _ = named.labels.insert(word.to_owned()),
            word if in_braces && is_name(word) && matches!(next, "=" | "!") => {
                named.labels.insert(word.to_owned());
            }
            _ if in_braces || in_clause => {}
            word if is_name(word)
                && !follows_a_function(next)
                && !WORDS.contains(&word.to_ascii_lowercase().as_str()) =>
            {
                named.metrics.insert(word.to_owned());
            }
            _ => {}
        }
    }
    named
}

/// The family in the table that a series belongs to: of a histogram there are three kinds of series.
pub fn family<'a>(table: &'a BTreeMap<String, Family>, series: &str) -> Option<&'a Family> {
    if let Some(family) = table.get(series) {
        // A histogram has no series of its own name.
        return (family.kind != "histogram").then_some(family);
    }
    let histogram = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| series.strip_suffix(suffix));
    table.get(histogram?).filter(|family| family.kind == "histogram")
}

/// What an expression names that the table does not have. `recorded` are series that rules record.
pub fn problems(
    expression: &str,
    table: &BTreeMap<String, Family>,
    recorded: &BTreeSet<String>,
) -> Vec<String> {
    let named = named(expression);
    let mut problems = Vec::new();
    let mut labels: BTreeSet<String> = TARGET_LABELS.map(str::to_owned).into();
    let mut recorded_only = false;
    for metric in &named.metrics {
        if OF_TARGETS.contains(&metric.as_str()) {
            continue;
        }
        if recorded.contains(metric) {
            recorded_only = true;
            continue;
        }
        match family(table, metric) {
            Some(family) => {
                labels.extend(family.labels.iter().cloned());
                if family.kind == "histogram" {
                    labels.insert("le".to_owned());
                }
            }
            None => problems.push(format!("{metric} is no series of docs/metrics.md")),
        }
    }
    if !recorded_only {
        let unknown = named.labels.iter().filter(|label| !labels.contains(*label));
        problems.extend(unknown.map(|label| format!("{label} is no label of {:?}", named.metrics)));
    }
    problems
}
