//! The rooms of a crate are on floors: a file imports files of its own floor and of those below it, never of one above.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::imports::{Files, Module};

/// The crates with rooms, each with its rooms from the top floor down. `lib.rs` is above them all.
const FLOORS: [(&str, &[&str]); 4] = [
    (
        "crates/capz",
        &[
            "run",
            "cluster",
            "machine",
            "pool",
            "raw",
            "managed",
            "secrets",
            "context",
            "azure",
            "kubernetes",
            "settings",
        ],
    ),
    ("crates/planner", &["order", "placement", "resources", "machines", "service", "outcome", "model"]),
    ("crates/volume-planner", &["listing", "shares", "snapshot", "disk", "attach", "parameters", "model"]),
    ("crates/volumes-node", &["devices", "filesystems", "mounts", "simulated", "system"]),
];

/// The arrows that run up, and the files without a floor. Tests count as files of their floor, but the fixtures of other
/// tests are theirs to use wherever these are.
fn upward(graph: &BTreeMap<&Module, BTreeSet<Module>>, floors: &[&str]) -> Vec<String> {
    let floor_of =
        |module: &[String]| floors.iter().position(|room| module.first().is_some_and(|own| own == room));
    let is_test = |module: &[String]| module.iter().any(|step| step == "tests");
    let file = |module: &[String]| if module.is_empty() { "lib".to_owned() } else { module.join("::") };
    let mut problems = Vec::new();
    for (module, imported) in graph.iter().filter(|(module, _)| !module.is_empty()) {
        let Some(own) = floor_of(module) else {
            problems.push(format!("{} is on no floor", file(module)));
            continue;
        };
        let is_up = |other: &&Module| floor_of(other).is_none_or(|floor| floor < own);
        let up = imported.iter().filter(is_up).filter(|other| !(is_test(module) && is_test(other)));
        problems
            .extend(up.map(|other| format!("{} imports {}, which is above it", file(module), file(other))));
    }
    problems
}

#[test]
fn arrows_between_rooms_run_down() {
    let house = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut problems = Vec::new();
    for (name, floors) in FLOORS {
        let files = Files::read(&house.join(name).join("src")).unwrap();
        assert!(files.len() > 5 * floors.len(), "hardly any files of {name} were read: correct this test");
        let graph = files.graph();
        let is_used =
            |room: &&&str| graph.keys().any(|module| module.first().is_some_and(|own| own == **room));
        let used: Vec<_> = floors.iter().filter(is_used).collect();
        assert_eq!(used.len(), floors.len(), "{name} has only the rooms {used:?}: correct the table");
        problems.extend(upward(&graph, floors).into_iter().map(|problem| format!("{name}: {problem}")));
    }
    assert!(problems.is_empty(), "files import files of a higher floor:\n{}", problems.join("\n"));
}

#[test]
fn an_arrow_that_runs_up_is_named_with_both_files() {
    let floors = ["top", "bottom"];
    for (case, list, problem) in [
        ("down", vec![("top::a", "use crate::bottom::b::B;"), ("bottom::b", "")], None),
        ("beside", vec![("top::a", "use super::b::B;"), ("top::b", "")], None),
        (
            "up",
            vec![("top::a", ""), ("bottom::b", "use crate::top::a::A;")],
            Some("bottom::b imports top::a, which is above it"),
        ),
        (
            "up by a path in the code",
            vec![("top::a", ""), ("bottom::b", "fn f() { crate::top::a::g() }")],
            Some("bottom::b imports top::a, which is above it"),
        ),
        (
            "up through a re-export of the crate",
            vec![("", "pub use top::a::A;"), ("top", ""), ("top::a", ""), ("bottom::b", "use crate::A;")],
            Some("bottom::b imports top::a, which is above it"),
        ),
        (
            "up from tests inside a file",
            vec![("top::a", ""), ("bottom::b", "#[cfg(test)]\nmod tests {\n    use crate::top::a::A;\n}")],
            Some("bottom::b::tests imports top::a, which is above it"),
        ),
        (
            "fixtures of other tests",
            vec![
                ("top::tests", ""),
                ("bottom::b", "#[cfg(test)]\nmod tests {\n    use crate::top::tests::f;\n}"),
            ],
            None,
        ),
        (
            "fixtures outside of tests",
            vec![("top::tests", ""), ("bottom::b", "use crate::top::tests::f;")],
            Some("bottom::b imports top::tests, which is above it"),
        ),
        (
            "something of the crate's root",
            vec![("", "pub struct A;"), ("bottom::b", "use crate::A;")],
            Some("bottom::b imports lib, which is above it"),
        ),
        ("a room without a floor", vec![("cellar::c", "")], Some("cellar::c is on no floor")),
    ] {
        let files = Files::of(&list);
        let found = upward(&files.graph(), &floors);
        assert_eq!(found, problem.into_iter().collect::<Vec<_>>(), "{case}");
    }
}
