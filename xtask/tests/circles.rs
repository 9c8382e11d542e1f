//! The files of a crate do not import each other in a circle, so that each can be read after those that it imports.

#[path = "imports/floors.rs"]
mod floors;
mod imports;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use imports::{Files, Module};

/// Folders of crates.
const FOLDERS: [&str; 2] = ["crates", "simulators"];

/// The other crates.
const TOOLS: [&str; 6] = ["admission-corpus", "cerulean", "explorer", "real-kubernetes", "testkit", "xtask"];

/// The files that reach themselves.
fn in_circles(graph: &BTreeMap<&Module, BTreeSet<Module>>) -> Vec<String> {
    let reached = |from: &Module| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(next) = open.pop() {
            for named in graph.get(&next).into_iter().flatten() {
                if seen.insert(named.clone()) {
                    open.push(named.clone());
                }
            }
        }
        seen
    };
    let all: BTreeMap<&Module, BTreeSet<Module>> = graph.keys().map(|file| (*file, reached(file))).collect();
    let mut found = Vec::new();
    for (file, named) in graph {
        let back = named.iter().filter(|named| all.get(named).is_some_and(|reached| reached.contains(*file)));
        found.extend(back.map(|named| format!("{} names {}", file.join("::"), named.join("::"))));
    }
    found
}

#[test]
fn files_make_no_circle() {
    let house = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut all, mut count) = (Vec::new(), 0);
    let mut crates = TOOLS.map(str::to_owned).to_vec();
    for folder in FOLDERS {
        let entries = std::fs::read_dir(house.join(folder)).unwrap();
        crates.extend(
            entries.map(|entry| format!("{folder}/{}", entry.unwrap().file_name().to_string_lossy())),
        );
    }
    for name in crates {
        let files = Files::read(&house.join(&name).join("src")).unwrap();
        count += files.len();
        let circle = in_circles(&files.graph());
        all.extend(circle.into_iter().map(|line| format!("{name}: {line}")));
    }
    assert!(count > 500, "hardly any files were read: correct this test");
    assert!(all.is_empty(), "files import each other in a circle:\n{}", all.join("\n"));
}

/// The reading above is by text, so it is shown that it sees what it should.
#[test]
fn circles_are_seen_through_paths_and_reexports() {
    for (case, list, circle) in [
        ("none", vec![("", "mod a;\nmod b;"), ("a", "use crate::b::B;"), ("b", "pub struct B;")], false),
        ("uses", vec![("a", "use crate::b::B;"), ("b", "use super::a::{A, C as D};")], true),
        ("a path", vec![("a", "use super::b;\nfn f() { b::g() }"), ("b", "fn g() { crate::a::f() }")], true),
        ("comments", vec![("a", "use crate::b::B;"), ("b", "// use crate::a::A;\nstruct B;")], false),
        (
            "a re-export",
            vec![("m", "pub use self::x::X;"), ("m::x", "use crate::y::Y;"), ("y", "use crate::m::X;")],
            true,
        ),
        ("a parent", vec![("m", "fn f() { x::g() }"), ("m::x", "use super::f;")], true),
    ] {
        let found = in_circles(&Files::of(&list).graph());
        assert_eq!(!found.is_empty(), circle, "{case}: {found:?}");
    }
}
