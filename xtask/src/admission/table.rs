//! The recorded answers, as a table in `answers.txt`, and the intended differences, as a table in the docs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::answer::{Agreement, Answer, agreement};
use crate::program::root;
use admission_corpus::{Case, folder};

/// Lines by case name.
pub type Said = BTreeMap<String, String>;

/// The separator between a case and its answer.
const ARROW: &str = " → ";

/// The answers to the cases.
pub fn of(cases: &[Case], answers: &[Answer]) -> Said {
    cases.iter().zip(answers).map(|(case, answer)| (case.name.clone(), answer.to_string())).collect()
}

fn file() -> PathBuf {
    folder().join("answers.txt")
}

/// Writes the table.
///
/// # Errors
/// The file cannot be written.
pub fn write(said: &Said) -> anyhow::Result<()> {
    let lines: String = said.iter().map(|(case, answer)| format!("{case}{ARROW}{answer}\n")).collect();
    std::fs::write(file(), lines).with_context(|| file().display().to_string())
}

/// Reads the table.
///
/// # Errors
/// The file cannot be read.
pub fn read() -> anyhow::Result<Said> {
    let text = std::fs::read_to_string(file()).with_context(|| file().display().to_string())?;
    let lines = text.lines().filter_map(|line| line.rsplit_once(ARROW));
    Ok(lines.map(|(case, answer)| (case.to_owned(), answer.to_owned())).collect())
}

/// A row of the docs: cases with an intended difference, and the answers of both; `*` matches anything.
#[derive(Debug)]
pub struct Row {
    cases: String,
    theirs: String,
    ours: String,
}

/// The rows of the docs' table: `| cases | theirs | ours | why |`, the first three of them in backquotes.
///
/// # Errors
/// The docs cannot be read, or a row names no member.
pub fn on_purpose() -> anyhow::Result<Vec<Row>> {
    let file = root().join("docs/cluster-api-admission.md");
    let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let rows = text.lines().filter_map(|line| {
        let mut members = line.strip_prefix("| `")?.split("` | ");
        let mut next = || members.next().map(|member| member.trim_start_matches('`').to_owned());
        Some(Row { cases: next()?, theirs: next()?, ours: next()? })
    });
    let rows: Vec<Row> = rows.collect();
    for row in &rows {
        let cases = row.cases.split_once(' ').map_or("", |(_, cases)| cases);
        ensure!(cases.chars().any(char::is_alphanumeric), "a row is for whatever is said of a kind: {row:?}");
    }
    Ok(rows)
}

/// Whether a text matches this pattern.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else { return rest.is_empty() };
    for part in between {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// The result of a comparison.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Unknown differences: the number of the case, and both answers.
    pub differences: Vec<(usize, String)>,
    /// The number of cases that both refuse in different words.
    pub in_other_words: usize,
    /// Differences that are listed in the docs.
    pub on_purpose: Vec<String>,
    /// Rows of the docs without a difference.
    pub unused: Vec<String>,
}

/// Compares our answers with the recorded ones.
pub fn compare(cases: &[Case], ours: &[Answer], said: &Said, known: &[Row]) -> Verdict {
    let mut verdict = Verdict::default();
    let mut used = vec![false; known.len()];
    for (index, (case, ours)) in cases.iter().zip(ours).enumerate() {
        let theirs = said.get(&case.name).map_or("(never asked)", String::as_str);
        match agreement(&ours.to_string(), theirs) {
            Agreement::Same => continue,
            Agreement::InOtherWords => {
                verdict.in_other_words += 1;
                continue;
            }
            Agreement::None => {}
        }
        let ours = ours.to_string();
        let line = format!("{}\n    theirs: {theirs}\n    ours:   {ours}", case.name);
        let is_for =
            |row: &Row| fits(&row.cases, &case.name) && fits(&row.theirs, theirs) && fits(&row.ours, &ours);
        let row = known.iter().position(is_for);
        match row {
            Some(row) => {
                used[row] = true;
                verdict.on_purpose.push(line);
            }
            None => verdict.differences.push((index, line)),
        }
    }
    verdict.unused =
        known.iter().zip(used).filter(|(_, used)| !used).map(|(row, _)| format!("{row:?}")).collect();
    verdict
}

/// The members in which two documents differ.
pub fn members(ours: &Value, theirs: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    differing("spec", ours, theirs, &mut lines);
    lines
}

fn differing(path: &str, ours: &Value, theirs: &Value, lines: &mut Vec<String>) {
    if ours == theirs {
        return;
    }
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            let names: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for name in names {
                differing(&format!("{path}.{name}"), &ours[name.as_str()], &theirs[name.as_str()], lines);
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            for index in 0..a.len().max(b.len()) {
                differing(&format!("{path}[{index}]"), &ours[index], &theirs[index], lines);
            }
        }
        _ => lines.push(format!("{path}: theirs {theirs}, ours {ours}")),
    }
}
