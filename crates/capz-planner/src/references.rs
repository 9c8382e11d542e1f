//! Which resources a document speaks of. Order among goals comes from here.

use azure_types::ResourceId;
use serde_json::Value;

use crate::kind::Kind;

/// All ids of resources that stand in the document, anywhere.
pub fn ids_in(document: &Value) -> Vec<ResourceId> {
    let mut ids = Vec::new();
    collect(document, &mut ids);
    ids
}

/// The ids that a document speaks of itself: without what other resources that stand in it speak of.
pub fn own_ids_in(kind: &Kind, document: &Value) -> Vec<ResourceId> {
    let mut document = document.clone();
    if let Some(properties) = document.get_mut("properties").and_then(Value::as_object_mut) {
        for member in kind.children() {
            properties.remove(member);
        }
    }
    ids_in(&document)
}

fn collect(value: &Value, ids: &mut Vec<ResourceId>) {
    match value {
        Value::String(text) if text.starts_with("/subscriptions/") => {
            ids.extend(ResourceId::parse(text).ok())
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, ids)),
        Value::Object(members) => {
            for (name, member) in members {
                // A map may have ids as its keys: user-assigned identities do.
                if name.starts_with("/subscriptions/") {
                    ids.extend(ResourceId::parse(name).ok());
                }
                collect(member, ids);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ids_are_found_at_every_depth() {
        let document = json!({
            "properties": {
                "ipConfigurations": [{ "properties": { "subnet": { "id": "/subscriptions/s/resourceGroups/g" } } }],
                "text": "/subscriptions/",
                "other": "/CommunityGalleries/g/Images/i/Versions/1",
            },
            "identity": { "userAssignedIdentities": { "/subscriptions/s/resourceGroups/h": {} } },
        });
        let found: Vec<String> = ids_in(&document).iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), 2, "{found:?}");
    }
}
