//! Members of objects.

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// An object for people: `AzureCluster default/web`.
pub fn title(object: &Value) -> String {
    let part = |pointer: &str| text(object, pointer);
    format!("{} {}/{}", part("/kind"), part("/metadata/namespace"), part("/metadata/name"))
}

/// A text member; empty if it is not a text.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Text members, by name.
pub fn texts(object: &Value, pointer: &str) -> BTreeMap<String, String> {
    let members = object.pointer(pointer).and_then(Value::as_object);
    let texts = members
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
    texts.collect()
}

/// A text member that is not empty.
pub fn optional(object: &Value, pointer: &str) -> Option<String> {
    Some(text(object, pointer)).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Whether it is an object of a group.
pub fn is_of(object: &Value, group: &str) -> bool {
    text(object, "/apiVersion").split('/').next() == Some(group)
}

/// Whether two objects are in one namespace.
pub fn beside_each_other(one: &Value, other: &Value) -> bool {
    text(one, "/metadata/namespace") == text(other, "/metadata/namespace")
}

/// The ranges of `spec.clusterNetwork` of a Cluster: `services` or `pods`.
pub fn ranges(cluster: &Value, member: &str) -> Vec<String> {
    let ranges = cluster["spec"]["clusterNetwork"][member]["cidrBlocks"].as_array();
    ranges.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The specification of an object.
///
/// # Errors
/// It has another shape.
pub fn spec_of<T: DeserializeOwned>(object: &Value) -> anyhow::Result<T> {
    serde_json::from_value(object["spec"].clone())
        .with_context(|| format!("{} cannot be read", title(object)))
}
