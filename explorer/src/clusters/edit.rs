//! A third party's changes of a document that a cluster created: it is deleted, or a member that the cluster set is
//! changed.

use azure_types::ResourceId;
use serde_json::{Value, json};

/// A change of one document.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Edit {
    /// It is deleted.
    Delete,
    /// The member at this path is removed.
    Remove(Vec<Step>),
    /// The member at this path gets another value.
    Replace(Vec<Step>, Value),
}

/// One step of a path in a document.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Member(String),
    /// The item of this name.
    Named(String),
    Item(usize),
}

/// Members that cannot change during a resource's life, or that Azure returns in another form.
const FIXED: [&str; 20] = [
    // It describes what machines of the set run at start, and is written with that: bootstrap data changes by itself.
    "capz-custom-data-hash",
    // One of a machine's interfaces and addresses must be primary: Azure refuses anything else.
    "primary",
    // Azure changes it only while no machine runs on the interface, and the size decides whether it is supported.
    "enableAcceleratedNetworking",
    "singlePlacementGroup",
    "location",
    "id",
    "name",
    "type",
    "zones",
    "sku",
    "kind",
    "osProfile",
    "imageReference",
    "storageProfile",
    "hardwareProfile",
    "etag",
    "identity",
    "registrationEnabled",
    "publicIPAllocationMethod",
    "publicIPAddressVersion",
];

/// All changes of a document with these requested members.
pub(super) fn all(asked: &Value) -> Vec<Edit> {
    let mut edits = vec![Edit::Delete];
    collect(asked, &mut Vec::new(), &mut edits);
    edits
}

fn collect(value: &Value, at: &mut Vec<Step>, edits: &mut Vec<Edit>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members.iter().filter(|(name, _)| !FIXED.contains(&name.as_str())) {
                at.push(Step::Member(name.clone()));
                collect(value, at, edits);
                at.pop();
            }
        }
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                let step =
                    item["name"].as_str().map_or(Step::Item(number), |name| Step::Named(name.to_owned()));
                at.push(step);
                if item.is_object() && item["name"].is_string() {
                    edits.push(Edit::Remove(at.clone()));
                }
                collect(item, at, edits);
                at.pop();
            }
        }
        Value::Null => {}
        leaf => {
            let in_tags = matches!(at.first(), Some(Step::Member(name)) if name == "tags");
            if in_tags {
                edits.push(Edit::Remove(at.clone()));
            }
            if let Some(other) = other_value(leaf) {
                edits.push(Edit::Replace(at.clone(), other));
            }
        }
    }
}

/// Another plausible value.
fn other_value(leaf: &Value) -> Option<Value> {
    match leaf {
        Value::Bool(value) => Some(json!(!value)),
        Value::Number(number) => number.as_u64().map(|number| json!(number + 1)),
        Value::String(text) => match text.as_str() {
            "Allow" => Some(json!("Deny")),
            "Tcp" => Some(json!("Udp")),
            "Inbound" => Some(json!("Outbound")),
            text if text.starts_with('/') => None,
            text if text.parse::<u16>().is_ok() => Some(json!("9")),
            text if text.parse::<std::net::IpAddr>().is_ok() || text.contains('/') => None,
            _ => Some(json!("changed")),
        },
        _ => None,
    }
}

impl Edit {
    /// Applies the change to a document. Returns whether there was anything to change.
    pub(super) fn apply(&self, document: &mut Value) -> bool {
        match self {
            Self::Delete => false,
            Self::Remove(at) => {
                let Some((last, way)) = at.split_last() else { return false };
                let Some(parent) = walk(document, way) else { return false };
                match (last, parent) {
                    (Step::Member(name), Value::Object(members)) => members.remove(name).is_some(),
                    (Step::Named(name), Value::Array(items)) => {
                        let before = items.len();
                        items.retain(|item| item["name"] != name.as_str());
                        items.len() < before
                    }
                    (Step::Item(number), Value::Array(items)) if *number < items.len() => {
                        items.remove(*number);
                        true
                    }
                    _ => false,
                }
            }
            Self::Replace(at, value) => match walk(document, at) {
                Some(place) => {
                    *place = value.clone();
                    true
                }
                None => false,
            },
        }
    }

    /// Whether it changes a proof of ownership: a tag, or the metadata of a resource without tags.
    pub(super) fn is_of_owner(&self) -> bool {
        let (Self::Remove(at) | Self::Replace(at, _)) = self else { return false };
        let is_proof = |name: &str| name.starts_with("sigs.k8s.io_cluster-api-provider-azure_cluster");
        match at.as_slice() {
            [Step::Member(tags), Step::Member(name)] => tags == "tags" && is_proof(name),
            [Step::Member(properties), Step::Member(metadata), Step::Member(name)] => {
                properties == "properties" && metadata == "metadata" && is_proof(name)
            }
            _ => false,
        }
    }

    /// A description.
    pub(super) fn words(&self, id: &ResourceId) -> String {
        let place = |at: &[Step]| {
            let words = at.iter().map(|step| match step {
                Step::Member(name) | Step::Named(name) => name.clone(),
                Step::Item(number) => number.to_string(),
            });
            words.collect::<Vec<_>>().join("/")
        };
        match self {
            Self::Delete => format!("deleted {id}"),
            Self::Remove(at) => format!("took {} away from {id}", place(at)),
            Self::Replace(at, value) => format!("set {} of {id} to {value}", place(at)),
        }
    }
}

fn walk<'a>(value: &'a mut Value, way: &[Step]) -> Option<&'a mut Value> {
    let mut place = value;
    for step in way {
        place = match step {
            Step::Member(name) => place.get_mut(name)?,
            Step::Item(number) => place.get_mut(*number)?,
            Step::Named(name) => {
                place.as_array_mut()?.iter_mut().find(|item| item["name"] == name.as_str())?
            }
        };
    }
    Some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_come_from_what_was_asked_for() {
        let asked = json!({ "location": "eastus", "tags": { "a": "b" },
            "properties": { "rules": [{ "name": "r", "properties": { "access": "Allow" } }] } });
        let edits = all(&asked);
        assert_eq!(edits.len(), 5, "{edits:?}");
        for edit in &edits[1..] {
            let mut document = asked.clone();
            assert!(edit.apply(&mut document), "{edit:?}");
            assert_ne!(document, asked, "{edit:?}");
        }
    }
}
