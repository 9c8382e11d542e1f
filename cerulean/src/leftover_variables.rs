//! Variables in manifests that were not replaced, as `clusterctl generate cluster` and `envsubst` would do.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::manifests::Manifest;

/// Members with a script or a file for a machine: there the shell replaces variables.
const SCRIPTS: [&str; 10] = [
    "content",
    "preKubeadmCommands",
    "postKubeadmCommands",
    "preRKE2Commands",
    "postRKE2Commands",
    "bootCommands",
    "additionalConfig",
    "data",
    "stringData",
    "value",
];

/// A variable without a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// Its first place; if it has to be set, the first place without a default.
    pub place: String,
    /// Whether it has a default everywhere, so that it need not be set.
    pub has_default: bool,
}

/// The variables without a value, by name.
pub fn find(manifests: &[Manifest]) -> BTreeMap<String, Leftover> {
    let mut found = BTreeMap::new();
    for manifest in manifests {
        let place = format!("{}: {}", manifest.source, manifest.kind());
        look(&manifest.object, &place, "", &mut found);
    }
    found
}

/// Why manifests with such variables are refused; `None` without any.
pub fn refusal(manifests: &[Manifest]) -> Option<String> {
    const REMEDY: &str = "`clusterctl generate yaml --from FILE` put them in (`envsubst` does not support defaults and leaves them out)";
    let found = find(manifests);
    let named = |has_default: bool| -> Vec<String> {
        let found = found.iter().filter(|(_, leftover)| leftover.has_default == has_default);
        found.map(|(name, Leftover { place, .. })| format!("${{{name}}} ({place})")).collect()
    };
    let missing = named(false);
    if !missing.is_empty() {
        let missing = missing.join(", ");
        return Some(format!(
            "these variables have no value: {missing}; set them in the environment and let {REMEDY}"
        ));
    }
    let defaulted = named(true);
    (!defaulted.is_empty()).then(|| {
        let defaulted = defaulted.join(", ");
        format!("these variables stand where their defaults belong: {defaulted}; let {REMEDY}")
    })
}

fn note(found: &mut BTreeMap<String, Leftover>, (name, has_default): (String, bool), place: String) {
    match found.get_mut(&name) {
        None => drop(found.insert(name, Leftover { place, has_default })),
        Some(known) if known.has_default && !has_default => *known = Leftover { place, has_default },
        Some(_) => {}
    }
}

fn look(value: &Value, place: &str, path: &str, found: &mut BTreeMap<String, Leftover>) {
    match value {
        Value::String(text) => {
            for name in names(text) {
                note(found, name, format!("{place}, {}", path.trim_start_matches('.')));
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                look(item, place, &format!("{path}[{index}]"), found);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                if SCRIPTS.contains(&key.as_str()) {
                    continue;
                }
                let path = format!("{path}.{key}");
                for name in names(key) {
                    note(found, name, format!("{place}, {}", path.trim_start_matches('.')));
                }
                look(member, place, &path, found);
            }
        }
        _ => {}
    }
}

/// The names in `${NAME}`, `${NAME:=default}` and the like, each with whether it has a default there.
fn names(text: &str) -> Vec<(String, bool)> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        rest = after;
        // $${NAME} is an escaped literal.
        if before.ends_with('$') {
            continue;
        }
        let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
        let (name, more) = after.split_at(end);
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if is_name && more.starts_with(['}', ':', '-', '=', '#', '/', '%', '^', ',']) {
            let has_default = [":=", ":-", "=", "-"].iter().any(|sign| more.starts_with(sign));
            names.push((name.to_owned(), has_default));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn variables_without_a_value_are_found_and_those_of_scripts_are_not() {
        let manifest = |object: Value| Manifest { source: "c.yaml".to_owned(), object };
        let left = manifest(json!({
            "kind": "AzureCluster",
            "metadata": { "name": "${CLUSTER_NAME}" },
            "spec": {
                "location": "${AZURE_LOCATION:=westeurope}",
                "vnet": "${AZURE_VNET_NAME:=${CLUSTER_NAME}-vnet}",
                "additionalTags": { "${TAG}": "a" },
                "subnets": [{ "name": "x" }, { "name": "$${NOT_ONE}-${}-$HOME" }],
            },
        }));
        let script = manifest(json!({
            "kind": "KubeadmConfig",
            "spec": {
                "files": [{ "path": "/x", "content": "echo ${HOST}" }],
                "preKubeadmCommands": ["test -n ${HOST:-x}"],
            },
        }));
        let found = find(&[left.clone(), script.clone()]);
        let found: Vec<_> =
            found.iter().map(|(name, it)| (name.as_str(), it.place.as_str(), it.has_default)).collect();
        assert_eq!(
            found,
            [
                ("AZURE_LOCATION", "c.yaml: AzureCluster, spec.location", true),
                ("AZURE_VNET_NAME", "c.yaml: AzureCluster, spec.vnet", true),
                ("CLUSTER_NAME", "c.yaml: AzureCluster, metadata.name", false),
                ("TAG", "c.yaml: AzureCluster, spec.additionalTags.${TAG}", false),
            ]
        );
        let words = refusal(&[left]).unwrap();
        assert!(words.starts_with("these variables have no value: ${CLUSTER_NAME} ("), "{words}");
        assert!(!words.contains("AZURE_LOCATION") && words.contains("clusterctl generate yaml"), "{words}");
        let location = |text: &str| manifest(json!({ "kind": "AzureCluster", "spec": { "location": text } }));
        let words = refusal(&[location("${A:=westeurope}")]).unwrap();
        assert!(words.contains("their defaults belong: ${A} ("), "{words}");
        // It has to be set if one place has no default.
        let words = refusal(&[location("${A:=westeurope}"), location("${A}")]).unwrap();
        assert!(words.starts_with("these variables have no value: ${A} ("), "{words}");
        assert_eq!(refusal(&[script]), None);
    }
}
