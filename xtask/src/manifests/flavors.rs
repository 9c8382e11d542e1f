//! Templates of clusters for `clusterctl generate cluster --flavor`, each assembled from parts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::{Map, Value};

/// The templates of all flavors.
pub(super) fn templates(folder: &Path) -> anyhow::Result<Vec<(PathBuf, String)>> {
    let parts = folder.join("flavors");
    let read = |name: &str| {
        let path = parts.join(format!("{name}.yaml"));
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let flavors: BTreeMap<String, Vec<String>> = serde_saphyr::from_str(&read("flavors")?)?;
    let print = |(flavor, parts): (String, Vec<String>)| {
        let mut objects = Vec::new();
        for part in &parts {
            let changes: Vec<Value> =
                serde_saphyr::from_multiple(&read(part)?).with_context(|| part.clone())?;
            changes.into_iter().for_each(|change| add(&mut objects, change));
        }
        let mut text = String::from("# Printed by cargo xtask manifests from deploy/capz/flavors.\n");
        for (index, object) in objects.iter().enumerate() {
            text += if index == 0 { "" } else { "---\n" };
            text += &with_plain_variables(&serde_saphyr::to_string(object)?);
        }
        let name = if flavor.is_empty() { String::new() } else { format!("-{flavor}") };
        Ok((folder.join("templates").join(format!("cluster-template{name}.yaml")), text))
    };
    flavors.into_iter().map(print).collect()
}

/// Changes the object of the same kind and name, or adds one.
fn add(objects: &mut Vec<Value>, change: Value) {
    let is_same = |object: &&mut Value| {
        object["kind"] == change["kind"] && object["metadata"]["name"] == change["metadata"]["name"]
    };
    match objects.iter_mut().find(is_same) {
        Some(object) => merge(object, change),
        None => objects.push(change),
    }
}

/// A JSON merge patch (RFC 7386).
fn merge(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(members) = target.as_object_mut() else { return };
    for (name, value) in patch {
        if value.is_null() {
            members.remove(&name);
        } else {
            merge(members.entry(name).or_insert(Value::Null), value);
        }
    }
}

/// Removes the quotes of a value that is a variable: its replacement determines its type. `${COUNT:=2}` is a number,
/// and `${KEY:=""}` an empty text.
fn with_plain_variables(yaml: &str) -> String {
    let plain = |line: &str| {
        let (head, value) = line.split_at(line.find(['"', '\''])?);
        let inner = match value.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
            Some(inner) => inner.replace("''", "'"),
            None => serde_json::from_str::<String>(value).ok()?,
        };
        let is_variable = inner.starts_with("${") && inner.ends_with('}') && !inner.contains(": ");
        (is_variable && (head.ends_with(": ") || head.ends_with("- "))).then(|| format!("{head}{inner}"))
    };
    let mut text = String::with_capacity(yaml.len());
    for line in yaml.lines() {
        text += &plain(line).unwrap_or_else(|| line.to_owned());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_change_what_is_there_and_add_the_rest() {
        let object =
            |name: &str, spec: Value| json!({ "kind": "A", "metadata": { "name": name }, "spec": spec });
        let mut objects = vec![object("a", json!({ "x": 1, "y": { "z": [1, 2] }, "w": 5 }))];
        add(&mut objects, object("a", json!({ "x": null, "y": { "z": [3], "v": 4 } })));
        add(&mut objects, object("b", json!({})));
        assert_eq!(
            objects,
            [object("a", json!({ "y": { "z": [3], "v": 4 }, "w": 5 })), object("b", json!({}))]
        );
    }

    #[test]
    fn variables_are_plain_and_texts_stay_texts() {
        let yaml = "a: '${A:=\"\"}'\nb: \"${B}\"\nc: \"false\"\n- \"${D:=2}\"\ne: 'it''s ${E}'\n";
        assert_eq!(
            with_plain_variables(yaml),
            "a: ${A:=\"\"}\nb: ${B}\nc: \"false\"\n- ${D:=2}\ne: 'it''s ${E}'\n"
        );
    }
}
