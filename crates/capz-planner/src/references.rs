//! References between documents. The order of goals is derived from them.

use azure_types::ResourceId;
use serde_json::Value;

use crate::document::{id_of, list};
use crate::kind::Kind;

/// All resource IDs anywhere in the document.
pub fn ids_in(document: &Value) -> Vec<ResourceId> {
    let mut ids = Vec::new();
    collect(document, &mut ids);
    ids
}

/// The IDs that a document refers to itself: without references of embedded resources, and without those of resources
/// that refer to it.
pub fn own_ids_in(kind: &Kind, document: &Value) -> Vec<ResourceId> {
    let mut document = document.clone();
    if let Some(properties) = document.get_mut("properties").and_then(Value::as_object_mut) {
        for member in kind.children() {
            properties.remove(member);
        }
    }
    for path in kind.back {
        remove(&mut document, path);
    }
    ids_in(&document)
}

/// Like [`own_ids_in`], including the references of embedded resources, such as the subnets of a network.
pub fn ids_in_whole(kind: &Kind, document: &Value) -> Vec<ResourceId> {
    let mut ids = own_ids_in(kind, document);
    for member in kind.children() {
        for child in list(&document["properties"][member]) {
            let Some(id) = id_of(&child["id"]) else { continue };
            ids.extend(own_ids_in(Kind::of(&id), child));
        }
    }
    ids
}

/// Removes a member; `*` in its path is any item of a list.
pub(crate) fn remove(value: &mut Value, path: &str) {
    match path.split_once('/') {
        None => {
            value.as_object_mut().map(|members| members.remove(path));
        }
        Some(("*", rest)) => value.as_array_mut().into_iter().flatten().for_each(|item| remove(item, rest)),
        Some((member, rest)) => {
            if let Some(inner) = value.get_mut(member) {
                remove(inner, rest);
            }
        }
    }
}

fn collect(value: &Value, ids: &mut Vec<ResourceId>) {
    match value {
        Value::String(text) if text.starts_with("/subscriptions/") => {
            ids.extend(ResourceId::parse(text).ok())
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, ids)),
        Value::Object(members) => {
            for (name, member) in members {
                // A map may have IDs as its keys: user-assigned identities do.
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
    fn who_speaks_of_a_resource_is_no_reference_of_its_own() {
        let group = ResourceId::group("s", "g");
        let balancer = Kind::of(&group.resource("Microsoft.Network", "loadBalancers", "b"));
        let (ip, nic) = ("/subscriptions/s/resourceGroups/ip", "/subscriptions/s/resourceGroups/nic");
        let document = json!({ "properties": {
            "frontendIPConfigurations": [{ "properties": { "publicIPAddress": { "id": ip } } }],
            "backendAddressPools": [{ "properties": { "backendIPConfigurations": [{ "id": nic }] } }],
            "inboundNatRules": [{ "properties": { "backendIPConfiguration": { "id": nic } } }],
        } });
        assert_eq!(own_ids_in(balancer, &document), [ResourceId::parse(ip).unwrap()]);
        let disk = Kind::of(&group.resource("Microsoft.Compute", "disks", "d"));
        assert_eq!(own_ids_in(disk, &json!({ "managedBy": nic })), []);
    }

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
