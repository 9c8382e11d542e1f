//! A key of a log line has one spelling and one meaning: `docs/logs.md` lists all keys.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const LEVELS: [&str; 5] = ["trace!", "debug!", "info!", "warn!", "error!"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The sources of the programs, without tests.
fn sources() -> Vec<(PathBuf, String)> {
    let (mut found, mut folders) = (Vec::new(), vec![root().join("crates")]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if name != "tests" {
                    folders.push(path);
                }
            } else if name.ends_with(".rs") && name != "tests.rs" {
                let text = fs::read_to_string(&path).unwrap();
                let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
                found.push((path, text[..end].to_owned()));
            }
        }
    }
    found
}

/// The arguments of a macro whose opening bracket has been read, up to its end.
fn arguments(text: &str) -> Vec<String> {
    let (mut arguments, mut argument, mut depth) = (Vec::new(), String::new(), 0);
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '"' => {
                argument.push(c);
                while let Some(inner) = rest.next() {
                    argument.push(inner);
                    match inner {
                        '\\' => argument.extend(rest.next()),
                        '"' => break,
                        _ => {}
                    }
                }
                continue;
            }
            ')' if depth == 0 => break,
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                arguments.push(std::mem::take(&mut argument).trim().to_owned());
                continue;
            }
            _ => {}
        }
        argument.push(c);
    }
    arguments.push(argument.trim().to_owned());
    arguments.retain(|argument| !argument.is_empty());
    arguments
}

/// The keys among the arguments of a log macro: those before the message.
fn keys(arguments: &[String]) -> Vec<String> {
    let fields = arguments.iter().take_while(|argument| !argument.starts_with('"'));
    let fields = fields.filter(|argument| !argument.starts_with("target:"));
    let key = |field: &String| {
        let name = field.split_once(" = ").map_or(field.as_str(), |(name, _)| name);
        name.trim_start_matches(['%', '?', '&']).trim().to_owned()
    };
    fields.map(key).collect()
}

/// The keys of each log macro in a text.
fn logged(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for level in LEVELS {
        for (at, _) in text.match_indices(level) {
            let before = text[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
                continue;
            }
            if let Some(inner) = text[at + level.len()..].strip_prefix('(') {
                found.push(keys(&arguments(inner)));
            }
        }
    }
    found
}

/// The keys in the table of the page.
fn stated() -> BTreeSet<String> {
    let page = fs::read_to_string(root().join("docs/logs.md")).unwrap();
    let (_, table) = page.split_once("| key | meaning |").unwrap();
    let cells = table.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    cells.flat_map(|cell| cell.split(", ")).map(|key| key.trim_matches('`').to_owned()).collect()
}

#[test]
fn keys_of_log_lines_are_those_of_the_page() {
    let stated = stated();
    let (mut used, mut wrong, mut lines) = (BTreeSet::new(), Vec::new(), 0);
    for (path, text) in sources() {
        for keys in logged(&text) {
            lines += 1;
            for key in keys {
                if !stated.contains(&key) {
                    let path = path.strip_prefix(root()).unwrap().display().to_string();
                    wrong.push(format!(
                        "{path}: {key} is not in docs/logs.md; use a key that is, or add it there"
                    ));
                }
                used.insert(key);
            }
        }
    }
    assert!(lines > 100, "{lines}: correct this test");
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
    let stray: Vec<_> = stated.difference(&used).collect();
    assert!(stray.is_empty(), "no line has these keys of docs/logs.md: {stray:?}");
}

#[test]
fn keys_are_found_in_every_form_of_a_field() {
    let text = "info!(node, %error, ?state, taint = key(a, b), wait_ms = wait.as_millis(), \"said, {}\", more);\n\
                tracing::warn!(\"alone\"); my_info!(not); debug!(\n  path = \"a, (b\",\n \"m\",\n)";
    let found: BTreeSet<String> = logged(text).into_iter().flatten().collect();
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["error", "node", "path", "state", "taint", "wait_ms"]);
}
