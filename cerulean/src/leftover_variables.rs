//! Variables in manifests that nobody has replaced: what `clusterctl generate cluster` and `envsubst` are for.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::manifests::Manifest;

/// Members whose text is a script or a file for a machine: there the shell replaces variables.
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

/// The variables that have no value yet, each with the first place where it stands.
pub fn find(manifests: &[Manifest]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for manifest in manifests {
        let place = format!("{}: {}", manifest.source, manifest.kind());
        look(&manifest.object, &place, "", &mut found);
    }
    found
}

/// Why manifests with such variables are refused; `None` where there are none.
pub fn refusal(manifests: &[Manifest]) -> Option<String> {
    let found = find(manifests);
    let places: Vec<String> = found.iter().map(|(name, place)| format!("${{{name}}} ({place})")).collect();
    (!places.is_empty()).then(|| {
        format!(
            "these variables have no value: {}; set them in the environment and let `clusterctl generate yaml --from FILE`, \
             or envsubst, put them in",
            places.join(", ")
        )
    })
}

fn look(value: &Value, place: &str, path: &str, found: &mut BTreeMap<String, String>) {
    match value {
        Value::String(text) => {
            for name in names(text) {
                found.entry(name).or_insert_with(|| format!("{place}, {}", path.trim_start_matches('.')));
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
                    found.entry(name).or_insert_with(|| format!("{place}, {}", path.trim_start_matches('.')));
                }
                look(member, place, &path, found);
            }
        }
        _ => {}
    }
}

/// The names in `${NAME}`, `${NAME:=default}` and their like.
fn names(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        rest = after;
        // $${NAME} is a text that looks so.
        if before.ends_with('$') {
            continue;
        }
        let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
        let (name, more) = after.split_at(end);
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if is_name && more.starts_with(['}', ':', '-', '=', '#', '/', '%', '^', ',']) {
            names.push(name.to_owned());
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
        let found: Vec<_> = found.iter().map(|(name, place)| (name.as_str(), place.as_str())).collect();
        assert_eq!(
            found,
            [
                ("AZURE_LOCATION", "c.yaml: AzureCluster, spec.location"),
                ("AZURE_VNET_NAME", "c.yaml: AzureCluster, spec.vnet"),
                ("CLUSTER_NAME", "c.yaml: AzureCluster, metadata.name"),
                ("TAG", "c.yaml: AzureCluster, spec.additionalTags.${TAG}"),
            ]
        );
        assert!(refusal(&[left]).unwrap().starts_with("these variables have no value: ${AZURE_LOCATION} ("));
        assert_eq!(refusal(&[script]), None);
    }
}
