//! The table of kinds and the documents against the contract that Azure publishes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::OnceLock;

use azure_contract::{Contract, Problem, Side};
use operator_resources::{KINDS, Kind};
use serde_json::{Map, Value, json};

use crate::known::{Table, document, parse};
use crate::paths::{PATHS, an_object, with};

/// `CERULEAN_AZURE_CONTRACT`, which cargo sets for runs in this checkout; nothing where the folder is not there.
pub(crate) fn folder() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("CERULEAN_AZURE_CONTRACT")?);
    if folder.is_dir() {
        return Some(folder);
    }
    assert!(std::env::var_os("CI").is_none(), "in CI there must be a contract in {}", folder.display());
    eprintln!("skipped: there is no contract in {}", folder.display());
    None
}

/// One file of the contract.
pub(crate) struct Shapes {
    file: &'static Value,
}

/// All files of the contract, read once, by their names.
fn files(folder: &PathBuf) -> &'static BTreeMap<String, Value> {
    static FILES: OnceLock<BTreeMap<String, Value>> = OnceLock::new();
    FILES.get_or_init(|| {
        let read = |entry: std::io::Result<std::fs::DirEntry>| {
            let path = entry.unwrap().path();
            let name = path.file_name()?.to_str()?.strip_suffix(".json")?.to_owned();
            Some((name, serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap()))
        };
        std::fs::read_dir(folder).unwrap().filter_map(read).collect()
    })
}

impl Shapes {
    /// The shape of each version of a type.
    fn of(folder: &PathBuf, kind: &Kind) -> Vec<(Self, Value)> {
        let prefix = format!("{}@", kind.namespace().to_lowercase());
        let of_namespace = files(folder).iter().filter(|(name, _)| name.starts_with(&prefix));
        let with_root = of_namespace.map(|(_, file)| {
            let root = file["resources"][kind.resource_type.to_lowercase()].clone();
            (Self { file }, root)
        });
        with_root.filter(|(_, root)| !root.is_null()).collect()
    }

    fn shape(&self, number: &Value) -> &Value {
        &self.file["types"][&number.to_string()]
    }

    /// The members that can be written.
    fn members<'s>(&'s self, shape: &'s Value) -> impl Iterator<Item = (&'s String, &'s Value)> {
        let members = shape["o"].as_object().or(shape["b"].as_object());
        members
            .into_iter()
            .flatten()
            .filter(|(_, member)| member[1].as_u64().unwrap() & 2 == 0)
            .map(|(n, m)| (n, &m[0]))
    }

    /// Calls `visit` for each writable value below a shape, with its path. What it returns false for is not entered.
    pub(crate) fn walk(
        &self,
        number: &Value,
        path: &str,
        depth: usize,
        visit: &mut dyn FnMut(&str, &Value) -> bool,
    ) {
        let shape = self.shape(number);
        if depth > 14 || !visit(path, shape) {
            return;
        }
        let dot = if path.is_empty() { "" } else { "." };
        for (name, member) in self.members(shape) {
            self.walk(member, &format!("{path}{dot}{name}"), depth + 1, visit);
        }
        for other in shape["e"].as_object().into_iter().flat_map(Map::values) {
            self.walk(other, path, depth + 1, visit);
        }
        if !shape["a"].is_null() {
            self.walk(&shape["a"], &format!("{path}.*"), depth + 1, visit);
        }
        if !shape["l"].is_null() {
            self.walk(&shape["l"], &format!("{path}[]"), depth + 1, visit);
        }
        for other in shape["u"].as_array().into_iter().flatten() {
            self.walk(other, path, depth + 1, visit);
        }
    }
}

/// The kinds that the contract has, with its shapes.
pub(crate) fn kinds(folder: &PathBuf) -> impl Iterator<Item = (&'static Kind, Vec<(Shapes, Value)>)> {
    // The contract has no workspaces.
    let held = KINDS.iter().filter(|kind| kind.kind != "Workspace");
    held.map(move |kind| {
        let shapes = Shapes::of(folder, kind);
        assert!(!shapes.is_empty(), "the contract has no {}", kind.resource_type);
        (kind, shapes)
    })
}

/// Each member beside `properties` is in the table, and the table has no other.
#[test]
fn each_member_beside_properties_is_known() {
    let Some(folder) = folder() else { return };
    for (kind, shapes) in kinds(&folder) {
        let (mut writable, mut all) = (BTreeSet::new(), BTreeSet::new());
        for (shapes, root) in &shapes {
            let root = shapes.shape(root);
            writable.extend(shapes.members(root).map(|(name, _)| name.clone()));
            all.extend(root["o"].as_object().unwrap().keys().cloned());
        }
        let table: BTreeSet<String> = kind.envelope.iter().map(|name| (*name).to_owned()).collect();
        for not_stated in ["name", "properties"] {
            writable.remove(not_stated);
        }
        assert!(writable.is_subset(&table), "{}: {writable:?} is more than {table:?}", kind.kind);
        assert!(table.is_subset(&all), "{}: {table:?} is more than {all:?}", kind.kind);
    }
}

/// Lists whose items have `properties` are in the table, are children with kinds of their own, or are stated by
/// reference.
#[test]
fn each_nested_list_is_known() {
    let Some(folder) = folder() else { return };
    for (kind, shapes) in kinds(&folder) {
        let mut lists = BTreeSet::new();
        for (shapes, root) in &shapes {
            shapes.walk(root, "", 0, &mut |path, shape| {
                let has_properties = !shape["o"]["properties"].is_null();
                if has_properties && path.ends_with("[]") {
                    lists.insert(path.trim_end_matches("[]").to_owned());
                }
                path.is_empty() || !has_properties
            });
        }
        let is_child = |list: &str| kind.children.contains(&&*format!("/{}", list.replace('.', "/")));
        let by_reference =
            |list: &str| PATHS.contains(&format!("{} reference {}[].reference ", kind.kind, list));
        let nested: BTreeSet<String> = kind.nested.iter().map(|list| format!("properties.{list}")).collect();
        for list in &lists {
            let name = list.trim_start_matches("properties.");
            assert!(
                nested.contains(list) || is_child(list) || by_reference(name),
                "{}: {list} is in no table",
                kind.kind
            );
        }
        assert!(nested.is_subset(&lists), "{}: {nested:?} is more than {lists:?}", kind.kind);
    }
}

/// Keys that users choose are never taken for members of the operator's, and no member of Azure's has a name that the
/// operator's rules would change.
#[test]
fn keys_of_users_stay() {
    let Some(folder) = folder() else { return };
    let mut tried = BTreeSet::new();
    for (kind, shapes) in kinds(&folder) {
        let mut maps = BTreeMap::new();
        for (shapes, root) in &shapes {
            shapes.walk(root, "", 0, &mut |path, shape| {
                let name = path.rsplit('.').next().unwrap();
                assert!(
                    !["Reference", "References", "FromConfig"].iter().any(|suffix| name.ends_with(suffix))
                        && name != "reference",
                    "{}: {path}",
                    kind.kind
                );
                if !shape["a"].is_null() {
                    let is_text = shapes.shape(&shape["a"])["o"].is_null();
                    maps.insert(path.trim_start_matches("properties.").to_owned(), is_text);
                }
                path.is_empty() || shape["o"]["properties"].is_null()
            });
        }
        for (path, is_text) in maps {
            if path == "identity.userAssignedIdentities" || kind.secret_maps.contains(&&*path) {
                continue;
            }
            let value = if is_text { json!("text") } else { json!({ "enabled": true }) };
            let map = json!({ "aReference": value, "reference": value, "bFromConfig": value });
            let document =
                document(&parse(&an_object(kind.kind, with(&path, map.clone()))), &Table::default());
            let from = if document.value["properties"].is_null() { "" } else { "/properties" };
            let pointer =
                format!("{from}/{}", path.replace("[]", "/0").replace('.', "/").replace('*', "KEY"));
            assert_eq!(document.value.pointer(&pointer), Some(&map), "{}: {path}", kind.kind);
            tried.insert(path);
        }
    }
    assert!(tried.len() > 10, "{tried:?}");
}

/// Each path that a member leads to is one of Azure's, in its spelling.
#[test]
fn each_path_is_in_the_contract() {
    let Some(folder) = folder() else { return };
    let contract = Contract::read(&folder).unwrap();
    let mut count = 0;
    for line in PATHS.lines().filter(|line| !line.starts_with("Workspace ")) {
        let [kind, _, _, to] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let kind = KINDS.iter().find(|known| known.kind == kind).unwrap();
        let document = with(to, Value::Null);
        let versions = contract.versions(kind.resource_type);
        let problems: Vec<_> = versions
            .into_iter()
            .map(|version| {
                let judged = contract.judge(kind.resource_type, version, Side::Patch, &document).unwrap();
                judged.violations
            })
            .collect();
        let is_member = |problem: &Problem| !matches!(problem, Problem::Unknown | Problem::LetterCase(_));
        assert!(
            problems.iter().any(|problems| problems.iter().all(|found| is_member(&found.problem))),
            "{line}: {problems:?}"
        );
        count += 1;
    }
    assert!(count > 150, "{count}");
}
