//! The configuration that was applied to the model of a scale set before: items that are no longer declared are removed
//! by the next write of the model. Items of other writers stay.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::compare::Withdrawn;

/// The annotation with the names of the extensions that were applied to the scale set.
pub const EXTENSIONS: &str = "sigs.k8s.io/cluster-api-provider-azure-last-applied-extensions-vmss";

const EXTENSION_LIST: &str = "properties/virtualMachineProfile/extensionProfile/extensions";
const DISK_LIST: &str = "properties/virtualMachineProfile/storageProfile/dataDisks";

fn names<'a>(document: &'a Value, list: &str) -> BTreeSet<&'a str> {
    let items = document.pointer(&format!("/{list}")).and_then(Value::as_array);
    items.into_iter().flatten().filter_map(|item| item["name"].as_str()).collect()
}

fn applied(memory: Option<&str>) -> BTreeSet<String> {
    memory.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// The annotation for this observed scale set, where these extensions are declared; `None` if there is nothing to
/// record. Declared extensions that are not applied yet, because they alone are no reason to write the model, are not
/// in it.
pub(super) fn remembered(memory: Option<&str>, declared: &BTreeSet<String>, held: &Value) -> Option<String> {
    let mut ours = applied(memory);
    ours.extend(declared.iter().cloned());
    let held = names(held, EXTENSION_LIST);
    ours.retain(|name| held.contains(name.as_str()));
    (memory.is_some() || !ours.is_empty()).then(|| serde_json::json!(ours).to_string())
}

/// The items that the next write of the model removes. Data disks bear the name of their scale set: no other writer
/// adds any.
pub(super) fn withdrawn(memory: Option<&str>, set: &str, wanted: &Value, held: &Value) -> Vec<Withdrawn> {
    let gone = |list: &'static str, is_ours: &dyn Fn(&str) -> bool| -> Vec<Withdrawn> {
        let wanted = names(wanted, list);
        names(held, list)
            .into_iter()
            .filter(|name| !wanted.contains(name) && is_ours(name))
            .map(|name| Withdrawn::Item { list, name: name.to_owned() })
            .collect()
    };
    let applied = applied(memory);
    let prefix = format!("{set}_");
    let mut all = gone(EXTENSION_LIST, &|name| applied.contains(name));
    all.extend(gone(DISK_LIST, &|name| name.starts_with(&prefix)));
    all
}
