//! The links in the guides work: every link to a file of the repository.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn guides() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("docs"), root().join("tests/corpus")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root().join(name)));
    found
}

#[test]
fn links_to_files_open() {
    let mut problems = Vec::new();
    for guide in guides() {
        let text = fs::read_to_string(&guide).unwrap();
        for (at, _) in text.match_indices("](") {
            let target = text[at + 2..].split([')', '#', ' ']).next().unwrap_or_default();
            if target.contains("://") || target.is_empty() {
                continue;
            }
            if !guide.parent().unwrap().join(target).exists() {
                let guide = guide.strip_prefix(root()).unwrap();
                problems.push(format!("{}: {target} is not there; link to where it is now", guide.display()));
            }
        }
    }
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

/// A manifest is copied by readers who have not read the page that explains the expectations in it (U14).
#[test]
fn a_page_with_expectations_says_what_they_are() {
    const EXPLAINED: [&str; 2] = ["clusters/README.md", "resources/examples.md"];
    const SAYS: &str = "A comment `# expect:` says what a test finds once it has applied the example (";
    let mut problems = Vec::new();
    for guide in guides().iter().filter(|guide| guide.starts_with(root().join("docs"))) {
        let text = fs::read_to_string(guide).unwrap();
        let folder = guide.parent().unwrap();
        let leads_there = || {
            let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let (_, after) = flat.split_once(SAYS)?;
            let target = after.split_once("](")?.1.split([')', '#']).next()?;
            let page = folder.join(target).canonicalize().ok()?;
            Some(EXPLAINED.iter().any(|name| page.ends_with(name)))
        };
        let explains = EXPLAINED.iter().any(|name| guide.ends_with(name));
        if text.lines().any(|line| line.starts_with("# expect:")) && !explains && leads_there() != Some(true)
        {
            problems.push(guide.strip_prefix(root()).unwrap().display().to_string());
        }
    }
    let pages = problems.join(", ");
    assert!(problems.is_empty(), "say {SAYS:?} with a link to one of {EXPLAINED:?} in {pages}");
}
