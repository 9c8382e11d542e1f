//! The guides lead where they say: every link to a file of the repository opens.

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
