//! Lists that reconciles share. A reconcile asks for a list no older than the event that woke it. Reconciles that ask
//! while a list is being read wait, and the next read answers them all, with a result or a failure.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use arm::{ApiVersion, Class, Client, Error, Listing};
use azure_types::ResourceId;
use capz_planner::Reading;
use capz_planner::kind::Kind;
use freshness::SharedReadings;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::azure::clients::AzureAccess;

/// How long a list is kept for reconciles that accept its age.
const KEPT: Duration = Duration::from_secs(60);

/// Compute's message, with status 400, for an instance of a scale set that does not exist.
const NO_SUCH_INSTANCE: &str = "not an active Virtual Machine Scale Set VM instanceId";

/// Whether a refusal says that a resource does not exist.
pub fn says_absent(error: &Error) -> bool {
    error.is_not_found() || (error.status() == Some(400) && error.to_string().contains(NO_SUCH_INSTANCE))
}

/// Returns a resource, if it exists.
///
/// # Errors
/// Azure does not answer, or answers with an error.
pub async fn get(
    client: &Client,
    id: &ResourceId,
    api_version: &'static str,
    class: Class,
) -> Result<Option<Value>, Error> {
    match client.get_with(id, ApiVersion::new(api_version), Kind::of(id).query, class).await {
        Err(error) if says_absent(&error) => Ok(None),
        answer => answer.map(Some),
    }
}

/// Whether a read of this resource alone shows that it does not exist. A failed read does not make it absent, and
/// neither does a list without it.
pub async fn is_absent(client: &Client, provider_id: &str) -> bool {
    let id = ResourceId::parse(provider_id.strip_prefix("azure://").unwrap_or(provider_id));
    let Ok(id) = id else { return false };
    matches!(get(client, &id, Kind::of(&id).api_version, Class::Refresh).await, Ok(None))
}

/// The resources of a list, as texts: a parsed document is several times as large, and the lists of a thousand machines
/// are kept for a while.
#[derive(Default)]
pub struct Listed(Vec<(Option<ResourceId>, Box<str>)>);

impl Listed {
    fn of(documents: Vec<Value>) -> Self {
        let slimmed = |mut document: Value| {
            // Only the statuses of an instance view are used.
            if let Some(view) = document.pointer_mut("/properties/instanceView") {
                *view = json!({ "statuses": view["statuses"].take() });
            }
            let id = document["id"].as_str().and_then(|id| ResourceId::parse(id).ok());
            (id, document.to_string().into())
        };
        Self(documents.into_iter().map(slimmed).collect())
    }

    /// The resources with these IDs.
    pub fn these(&self, ids: &BTreeSet<ResourceId>) -> Vec<Value> {
        let asked = |id: &Option<ResourceId>| id.as_ref().is_some_and(|id| ids.contains(id));
        self.0
            .iter()
            .filter(|(id, _)| asked(id))
            .filter_map(|(_, text)| serde_json::from_str(text).ok())
            .collect()
    }

    /// All resources.
    pub fn all(&self) -> Vec<Value> {
        self.0.iter().filter_map(|(_, text)| serde_json::from_str(text).ok()).collect()
    }
}

/// The answer to a reading, as text while others are awaited.
#[derive(Clone)]
pub enum Answer {
    /// All resources of the list.
    List(Arc<Listed>),
    /// One resource, if it exists.
    One(Option<Box<str>>),
}

/// The document of one resource.
pub fn document(text: Option<Box<str>>) -> Option<Value> {
    text.and_then(|text| serde_json::from_str(&text).ok())
}

/// Lists that reconciles share, by the rights of the client.
pub struct Reads(SharedReadings<(Arc<str>, Reading), Arc<Listed>, Error>);

impl Default for Reads {
    fn default() -> Self {
        Self(SharedReadings::kept_for(KEPT))
    }
}

impl Reads {
    /// Reads from Azure, or returns an answer newer than `not_before`. Clients with other rights may see other resources.
    ///
    /// # Errors
    /// Azure does not answer, or answers with an error. A group that does not exist has no resources.
    pub async fn read(
        &self,
        AzureAccess { client, tenant, .. }: &AzureAccess,
        reading: &Reading,
        not_before: Instant,
    ) -> Result<Answer, Error> {
        let (group, resource_type, api_version) = match reading {
            Reading::Get { id, api_version } => {
                let document = get(client, id, api_version, Class::Refresh).await?;
                return Ok(Answer::One(document.map(|document| document.to_string().into())));
            }
            Reading::List { group, resource_type, api_version } => (group, resource_type, api_version),
        };
        let key = (Arc::clone(tenant), reading.clone());
        // A read that began at that very moment may not show what was written then.
        let ask = || list(client, group, resource_type, api_version);
        let listed = self.0.get(key, |asked| asked.at > not_before, ask).await?;
        Ok(Answer::List(listed))
    }
}

/// All resources of a type in a group, or below a resource. A group that does not exist has no resources.
async fn list(
    client: &Client,
    group: &ResourceId,
    resource_type: &str,
    api_version: &'static str,
) -> Result<Arc<Listed>, Error> {
    let listing = Listing::of_type(group, resource_type);
    let query = Kind::named(resource_type).query;
    match client.list(&listing, ApiVersion::new(api_version), query, Class::Refresh).await {
        Ok(documents) => Ok(Arc::new(Listed::of(documents))),
        Err(error) if error.is_not_found() => Ok(Arc::default()),
        Err(error) => Err(error),
    }
}
