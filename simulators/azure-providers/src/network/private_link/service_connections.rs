//! The connections of private endpoints as resources of other providers show and approve them: vaults, registries,
//! accounts.

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::connection::{Connection, decide, of_service};
use azure_engine::provider::{AzureState, PartWrite};
use azure_engine::refusal::{Handled, Refusal};

pub(crate) use super::connection::COLLECTION;

/// All connections of a resource.
pub(crate) fn list(azure: &AzureState, resource: &ResourceId) -> Vec<Value> {
    of_service(azure, resource).iter().map(|connection| shown(azure, resource, connection)).collect()
}

fn shown(azure: &AzureState, resource: &ResourceId, connection: &Connection) -> Value {
    let id = connection.id(azure, resource);
    json!({
        "id": id,
        "name": id.name(),
        "type": format!("{}/{COLLECTION}", resource.resource_type()),
        "properties": {
            "provisioningState": "Succeeded",
            "privateEndpoint": { "id": connection.endpoint(azure) },
            "privateLinkServiceConnectionState": connection.state(azure),
        },
    })
}

/// GET of the collection below a resource, or of one of it.
pub(crate) fn view(azure: &AzureState, resource: &ResourceId, below: &[&str]) -> Handled<Value> {
    view_as(azure, resource, below, |connection| shown(azure, resource, connection))
}

/// The same, with each connection shown in the type's own way.
pub(crate) fn view_as(
    azure: &AzureState,
    resource: &ResourceId,
    below: &[&str],
    show: impl Fn(&Connection) -> Value,
) -> Handled<Value> {
    let (collection, rest) = below.split_first()?;
    if !collection.eq_ignore_ascii_case(COLLECTION) {
        return None;
    }
    let all = of_service(azure, resource);
    match rest {
        [] => Some(Ok(json!({ "value": all.iter().map(show).collect::<Vec<_>>() }))),
        [name] => {
            let wanted = resource.child(COLLECTION, name);
            let found = all.iter().find(|connection| connection.id(azure, resource) == wanted);
            Some(found.map(show).ok_or_else(|| Refusal::child_not_found(&wanted)))
        }
        _ => None,
    }
}

/// PUT of a decision about one of them, or its DELETE.
pub(crate) fn write_view(
    azure: &mut AzureState,
    resource: &ResourceId,
    write: PartWrite<'_>,
) -> Handled<bool> {
    match write.below {
        [collection, name] if collection.eq_ignore_ascii_case(COLLECTION) => {
            Some(decide(azure, resource, name, write.body))
        }
        _ => None,
    }
}
