//! Names of types say what they are where they are used: some words, which name only the role of a value in the function
//! that holds it, are not allowed.

use std::collections::BTreeSet;
use std::path::Path;

/// Names that say nothing where they are imported.
const EMPTY_NAMES: [&str; 8] = ["Asked", "Found", "Kept", "Known", "Seen", "Told", "Wish", "Work"];

/// Folders of crates.
const FOLDERS: [&str; 2] = ["crates", "simulators"];

/// The other crates.
const TOOLS: [&str; 6] = ["admission-corpus", "cerulean", "explorer", "real-kubernetes", "testkit", "xtask"];

/// The name of a type with such a name that a line of code declares.
fn declared(line: &str) -> Option<&'static str> {
    let code = line.split("//").next().unwrap_or_default();
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let words: Vec<&str> = code.split(|letter| !is_word(letter)).filter(|word| !word.is_empty()).collect();
    let words =
        match words.iter().position(|word| ["struct", "enum", "trait", "type", "union"].contains(word))? {
            0 => words,
            keyword if words.first() == Some(&"pub") => words[keyword..].to_vec(),
            _ => return None,
        };
    EMPTY_NAMES.into_iter().find(|empty| words.get(1) == Some(empty))
}

/// The types with such names below a folder, as `FILE:LINE NAME`.
fn below(folder: &Path, found: &mut Vec<String>, files: &mut usize) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            below(&path, found, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with(file!()) {
            *files += 1;
            let text = std::fs::read_to_string(&path)?;
            let lines = text.lines().enumerate();
            let names = lines.filter_map(|(number, line)| Some((number + 1, declared(line)?)));
            found.extend(names.map(|(number, name)| format!("{}:{number} {name}", path.display())));
        }
    }
    Ok(())
}

#[test]
fn types_have_names_that_say_what_they_are() {
    let house = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut crates: BTreeSet<String> = TOOLS.map(str::to_owned).into();
    for folder in FOLDERS {
        let entries = std::fs::read_dir(house.join(folder)).unwrap();
        crates.extend(
            entries.map(|entry| format!("{folder}/{}", entry.unwrap().file_name().to_string_lossy())),
        );
    }
    let (mut all, mut files) = (Vec::new(), 0);
    for name in crates {
        for folder in ["src", "tests"].map(|folder| house.join(&name).join(folder)) {
            if folder.exists() {
                below(&folder, &mut all, &mut files).unwrap();
            }
        }
    }
    assert!(files > 1_000, "hardly any files were read: correct this test");
    assert!(all.is_empty(), "these types need names that say what they are:\n{}", all.join("\n"));
}

/// The reading above is by text, so it is shown that it sees what it should.
#[test]
fn declarations_are_seen_and_variants_are_not() {
    for (line, name) in [
        ("struct Work;", Some("Work")),
        ("pub(super) struct Known<'a> {", Some("Known")),
        ("pub(in crate::plan) enum Wish {", Some("Wish")),
        ("    type Work: Send + Sync;", Some("Work")),
        ("pub trait Seen {}", Some("Seen")),
        ("    Found,", None),
        ("    Kept(Vec<Value>),", None),
        ("struct Workload;", None),
        ("let known: Known = Known::new();", None),
        ("// struct Told;", None),
    ] {
        assert_eq!(declared(line), name, "{line}");
    }
}
