//! Comments and pages name the thing that they are about: words that stand for no noun make readers guess. A few may be right
//! where they stand, so a crate may have some in a thousand lines.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

/// How many of the words a crate may have in a thousand lines of comments, and the pages in a thousand lines.
const ALLOWED: usize = 5;

/// A crate with fewer lines of comments is not judged.
const LINES: usize = 50;

// As a list of parts, so that this file does not count itself.
static WORDS: LazyLock<Regex> = LazyLock::new(|| {
    let pronouns = ["who(so?)?ever", "whomever", "whom", "(no|some|any|every)body('s)?"];
    let phrases = ["told", "tells of", "(is|of) none", "glances?", "whichsoever", "wherewith", "thereof"];
    let words = [&pronouns[..], &phrases[..]].concat().join("|");
    Regex::new(&format!(r"(?i)\b({words})\b")).unwrap()
});

/// What a crate has, or all pages together.
#[derive(Default)]
struct Count {
    lines: usize,
    /// Each word with its place.
    words: Vec<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The crate that a file is in, as a path from the root.
fn crate_of(root: &Path, file: &Path) -> String {
    let crates = file.ancestors().skip(1).find(|folder| folder.join("Cargo.toml").exists());
    crates.unwrap_or(root).strip_prefix(root).unwrap().display().to_string()
}

fn count(root: &Path, folder: &Path, counts: &mut BTreeMap<String, Count>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !["target", ".git", "node_modules"].contains(&name.as_str()) {
                count(root, &path, counts);
            }
            continue;
        }
        let is_page = name.ends_with(".md");
        if !is_page && !name.ends_with(".rs") {
            continue;
        }
        let of = if is_page { "the pages".to_owned() } else { crate_of(root, &path) };
        let count = counts.entry(of).or_default();
        for (number, line) in fs::read_to_string(&path).unwrap().lines().enumerate() {
            if !is_page && !line.trim_start().starts_with("//") {
                continue;
            }
            count.lines += 1;
            let place = path.strip_prefix(root).unwrap().display();
            let found = WORDS.find_iter(line);
            count.words.extend(found.map(|word| format!("{place}:{}: {}", number + 1, word.as_str())));
        }
    }
}

#[test]
fn comments_and_pages_name_what_they_are_about() {
    let root = root();
    let mut counts = BTreeMap::new();
    count(&root, &root, &mut counts);
    assert!(counts.len() > 40, "the crates were found");
    let judged = counts.iter().filter(|(_, count)| count.lines >= LINES);
    let too_many: Vec<String> = judged
        .filter(|(_, count)| count.words.len() * 1_000 > ALLOWED * count.lines)
        .map(|(of, Count { lines, words })| {
            format!("{of} has {} in {lines} lines:\n  {}", words.len(), words.join("\n  "))
        })
        .collect();
    assert!(too_many.is_empty(), "name the thing instead:\n{}", too_many.join("\n"));
}

#[test]
fn the_words_are_found_in_any_case_and_alone() {
    for (text, found) in [
        (concat!("who", "ever comes"), 1),
        (concat!("Some", "body's group, and any", "body"), 2),
        (concat!("a value that is ", "none"), 1),
        ("each owner, as a whole", 0),
        ("untold wholes", 0),
    ] {
        assert_eq!(WORDS.find_iter(text).count(), found, "{text}");
    }
}
