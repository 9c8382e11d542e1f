//! The connections of a private link service: stored with the private endpoints that requested them, shown and approved
//! on the service's side.

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::network::shared::type_names::PRIVATE_LINK_SERVICES;
use azure_engine::document::{items, name, text};
use azure_engine::provider::AzureState;
use azure_engine::refusal::{Code, Result};
use azure_engine::store::reference::is_of;

/// The path segment and member on the service's side.
pub(crate) const COLLECTION: &str = "privateEndpointConnections";

/// Where an endpoint keeps them: approved by right, or waiting for the owner's decision.
pub(crate) const AUTOMATIC: &str = "privateLinkServiceConnections";
pub(crate) const MANUAL: &str = "manualPrivateLinkServiceConnections";

/// One connection, by its place in the endpoint's document.
pub(crate) struct Connection {
    endpoint: ResourceId,
    collection: &'static str,
    name: String,
}

/// The connections that point at a service, ordered by endpoint.
pub(crate) fn of_service(azure: &AzureState, service: &ResourceId) -> Vec<Connection> {
    let mut all: Vec<Connection> = azure
        .store
        .referrers(service)
        .filter_map(|referrer| {
            let collection = [AUTOMATIC, MANUAL].into_iter().find(|collection| {
                is_of(&referrer.from, &format!("/{}/", collection.to_ascii_lowercase()))
            })?;
            Some(Connection {
                endpoint: referrer.from.parent()?,
                collection,
                name: referrer.from.name().to_owned(),
            })
        })
        .collect();
    all.sort_by_cached_key(|connection| connection.endpoint.to_lower());
    all
}

impl Connection {
    /// Its id on the service's side.
    pub(crate) fn id(&self, azure: &AzureState, service: &ResourceId) -> ResourceId {
        let record = azure.store.get(&self.endpoint);
        let (endpoint, incarnation) =
            record.map_or((&self.endpoint, 0), |record| (&record.id, record.incarnation));
        let subject = format!("{endpoint}/{}", self.name);
        let guid = azure.seed.guid("connection", &subject, incarnation);
        service.child(COLLECTION, &format!("{}.{guid}", endpoint.name()))
    }

    fn document<'a>(&self, azure: &'a AzureState) -> Option<&'a Value> {
        let endpoint = azure.store.get(&self.endpoint)?;
        items(&endpoint.body, &format!("properties/{}", self.collection))
            .iter()
            .find(|item| name(item).eq_ignore_ascii_case(&self.name))
    }

    /// The endpoint that requested it.
    pub(crate) fn endpoint<'a>(&'a self, azure: &'a AzureState) -> &'a ResourceId {
        azure.store.get(&self.endpoint).map_or(&self.endpoint, |record| &record.id)
    }

    /// Its state: whether it was approved, and the description.
    pub(crate) fn state(&self, azure: &AzureState) -> Option<Value> {
        self.document(azure)?.get("properties")?.get("privateLinkServiceConnectionState").cloned()
    }

    /// The document on the service's side; `etag` is the service's.
    pub(crate) fn present(&self, azure: &AzureState, service: &ResourceId, etag: &Value) -> Value {
        let id = self.id(azure, service);
        let (state, endpoint) = (self.state(azure), self.endpoint(azure));
        let link = azure.seed.number("link identifier", id.as_str(), 0) % (1 << 29);
        json!({
            "name": id.name(),
            "id": id,
            "etag": etag,
            "type": format!("{PRIVATE_LINK_SERVICES}/{COLLECTION}"),
            "properties": {
                "provisioningState": "Succeeded",
                "privateEndpoint": { "id": endpoint },
                "privateLinkServiceConnectionState": state,
                "linkIdentifier": link.to_string(),
                "privateEndpointLocation": azure.location(endpoint),
            },
        })
    }
}

/// The state of a connection, as both sides show it.
pub(crate) fn state(status: &str, description: &str, actions: &str) -> Value {
    json!({ "status": status, "description": description, "actionsRequired": actions })
}

/// PUT (`body`) of the owner's decision, or DELETE of a connection (no body). Says whether there is one.
pub(crate) fn decide(
    azure: &mut AzureState,
    service: &ResourceId,
    wanted: &str,
    body: Option<&Value>,
) -> Result<bool> {
    let id = service.child(COLLECTION, wanted);
    let found = of_service(azure, service).into_iter().find(|connection| connection.id(azure, service) == id);
    let Some(connection) = found else { return Ok(false) };
    let state = match body {
        None => state("Disconnected", "The connection was removed by the owner of the service.", "None"),
        Some(body) => decision(&id, body, connection.document(azure))?,
    };
    if let Some(endpoint) = azure.store.get_mut(&connection.endpoint) {
        endpoint.version += 1;
        let kept = endpoint
            .body
            .get_mut("properties")
            .and_then(|properties| properties.get_mut(connection.collection))
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
            .find(|item| name(item).eq_ignore_ascii_case(&connection.name));
        if let Some(properties) =
            kept.and_then(|item| item.get_mut("properties")).and_then(Value::as_object_mut)
        {
            properties.insert("privateLinkServiceConnectionState".into(), state);
        }
    }
    let endpoint = connection.endpoint.clone();
    if let Some(endpoints) = azure.store.get(&endpoint).map(|record| record.resource_type) {
        endpoints.after_write(azure, &endpoint, None);
    }
    azure.changed(&endpoint);
    if let Some(service) = azure.store.get_mut(service) {
        service.version += 1;
    }
    Ok(true)
}

/// Reads a decision; what it leaves out stays as it was.
fn decision(id: &ResourceId, body: &Value, old: Option<&Value>) -> Result<Value> {
    let old = |member: &str| {
        old.and_then(|old| text(old, &format!("properties/privateLinkServiceConnectionState/{member}")))
    };
    let member = |member: &str| text(body, &format!("properties/privateLinkServiceConnectionState/{member}"));
    let asked = member("status").or_else(|| old("status")).unwrap_or_default();
    let status = ["Approved", "Rejected"].into_iter().find(|known| known.eq_ignore_ascii_case(asked));
    let status = status.ok_or_else(|| {
        Code::ours(400, "PrivateEndpointConnectionStatusInvalid").details(format_args!(
            "The status of private endpoint connection {id} can be changed to Approved or \
             Rejected, not to '{asked}'."
        ))
    })?;
    Ok(state(
        status,
        member("description").or_else(|| old("description")).unwrap_or_default(),
        member("actionsRequired").unwrap_or("None"),
    ))
}
