//! Where each member of the operator's goes in Azure's document, as the operator itself puts it.

use serde_json::{Map, Value, json};

use crate::known::{Table, document, parse};

/// `<kind> <form> <path in spec> <path in the document>` for all members that do not simply lie in `properties`.
pub(crate) const PATHS: &str = include_str!("paths.txt");
const ID: &str = "/subscriptions/1/resourceGroups/blue";

/// An object with one member. In a path, `[]` is the only item of a list, and `*` a key of the user's choice.
pub(crate) fn with(path: &str, leaf: Value) -> Value {
    path.rsplit('.').fold(leaf, |inner, name| {
        let (name, is_list) = name.strip_suffix("[]").map_or((name, false), |name| (name, true));
        let name = if name == "*" { "KEY" } else { name };
        let inner = if is_list { json!([inner]) } else { inner };
        Value::Object(Map::from_iter([(name.to_owned(), inner)]))
    })
}

/// The paths and values of a document's leaves.
pub(crate) fn leaves(value: &Value, path: &str, found: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(members) if members.is_empty() => {}
        Value::Object(members) => {
            for (name, value) in members {
                let name = if name == "KEY" { "*" } else { name };
                let dot = if path.is_empty() { "" } else { "." };
                leaves(value, &format!("{path}{dot}{name}"), found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| leaves(item, &format!("{path}[]"), found)),
        leaf => found.push((path.to_owned(), leaf.clone())),
    }
}

pub(crate) fn an_object(kind: &str, spec: Value) -> Value {
    let kind = operator_resources::KINDS.iter().find(|known| known.kind == kind).unwrap();
    let mut spec = spec;
    spec["owner"] = match kind.place {
        operator_resources::Place::Subscription => Value::Null,
        _ => json!({ "armId": ID }),
    };
    let version = kind.versions.last().unwrap().replace('-', "");
    json!({
        "apiVersion": format!("{}/v{version}", kind.group),
        "kind": kind.kind,
        "metadata": { "name": "blue" },
        "spec": spec,
    })
}

/// Names of the operator's members become names of Azure's.
#[test]
fn every_member_goes_where_the_operator_puts_it() {
    let mut known = Table::default();
    known.secrets.insert(("n".into(), "KEY".into()), "leaf".into());
    known.config_maps.insert(("n".into(), "KEY".into()), "leaf".into());
    let mut count = 0;
    for line in PATHS.lines() {
        let [kind, form, from, to] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let (written, expected) = match form {
            "reference" => (json!({ "armId": ID }), ID),
            "secret" => (json!({ "name": "n", "key": "KEY" }), "leaf"),
            "config-map" => (json!({ "name": "n", "key": "KEY" }), "leaf"),
            "whole-secret" => (json!({ "name": "n" }), "leaf"),
            _ => (json!("leaf"), "leaf"),
        };
        let document = document(&parse(&an_object(kind, with(from, written))), &known);
        assert_eq!(document.unknown, [""; 0], "{line}");
        if to == "identity.userAssignedIdentities.*" {
            assert_eq!(
                document.value,
                json!({ "identity": { "userAssignedIdentities": { ID: {} } } }),
                "{line}"
            );
            continue;
        }
        let mut found = Vec::new();
        leaves(&document.value, "", &mut found);
        assert_eq!(found, [(to.to_owned(), json!(expected))], "{line}");
        assert_eq!(document.secrets.is_empty(), !form.ends_with("secret"), "{line}: {:?}", document.secrets);
        count += 1;
    }
    assert!(count > 100, "{count}");
}
