//! The connections of private endpoints as resources of other providers show and approve them: vaults, registries,
//! accounts.

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::connection::{Connection, decide, of_service};
use azure_engine::provider::AzureState;
use azure_engine::refusal::Refusal;

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
pub(crate) fn view(
    azure: &AzureState,
    resource: &ResourceId,
    below: &[&str],
) -> Option<Result<Value, Refusal>> {
    match below {
        [collection] if collection.eq_ignore_ascii_case(COLLECTION) => {
            Some(Ok(json!({ "value": list(azure, resource) })))
        }
        [collection, name] if collection.eq_ignore_ascii_case(COLLECTION) => {
            let wanted = resource.child(COLLECTION, name);
            let all = of_service(azure, resource);
            let found = all.iter().find(|connection| connection.id(azure, resource) == wanted);
            Some(match found {
                Some(connection) => Ok(shown(azure, resource, connection)),
                None => Err(Refusal::child_not_found(&wanted)),
            })
        }
        _ => None,
    }
}

/// PUT (`body`) of a decision about one of them, or its DELETE.
pub(crate) fn write_view(
    azure: &mut AzureState,
    resource: &ResourceId,
    below: &[&str],
    body: Option<&Value>,
) -> Option<Result<bool, Refusal>> {
    match below {
        [collection, name] if collection.eq_ignore_ascii_case(COLLECTION) => {
            Some(decide(azure, resource, name, body))
        }
        _ => None,
    }
}
