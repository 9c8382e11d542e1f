//! Lists that many loops share. A loop asks for what is no older than the event that woke it; loops that ask while a list is
//! on its way wait, and the next one answers all of them, well or with its failure.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use arm::{ApiVersion, Class, Client, Error, Listing};
use azure_types::ResourceId;
use capz_planner::Reading;
use capz_planner::kind::Kind;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::shelf::Shelf;

/// How long a list is kept for whoever does not need a newer one.
const KEPT: Duration = Duration::from_secs(60);

/// How Compute says, with status 400, that an instance of a scale set does not exist.
const NO_SUCH_INSTANCE: &str = "not an active Virtual Machine Scale Set VM instanceId";

/// Whether a refusal says that a resource does not exist.
pub fn says_absent(error: &Error) -> bool {
    error.is_not_found() || (error.status() == Some(400) && error.to_string().contains(NO_SUCH_INSTANCE))
}

/// A resource, if it exists.
///
/// # Errors
/// Azure does not answer, or with an error.
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

/// Whether Azure says, asked for it alone, that the resource with this provider id does not exist. What cannot be asked is not
/// absent, and neither is what a list has left out.
pub async fn is_absent(client: &Client, provider_id: &str) -> bool {
    let id = ResourceId::parse(provider_id.strip_prefix("azure://").unwrap_or(provider_id));
    let Ok(id) = id else { return false };
    matches!(get(client, &id, Kind::of(&id).api_version, Class::Refresh).await, Ok(None))
}

/// The resources of a list, as texts: a document that is taken apart is several times as large, and the lists of a thousand
/// machines are kept for a while.
#[derive(Default)]
pub struct Listed(Vec<(Option<ResourceId>, Box<str>)>);

impl Listed {
    fn of(documents: Vec<Value>) -> Self {
        let kept = |mut document: Value| {
            // Of how a machine looks from outside, its states alone are of use.
            if let Some(view) = document.pointer_mut("/properties/instanceView") {
                *view = json!({ "statuses": view["statuses"].take() });
            }
            let id = document["id"].as_str().and_then(|id| ResourceId::parse(id).ok());
            (id, document.to_string().into())
        };
        Self(documents.into_iter().map(kept).collect())
    }

    /// These of the resources.
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

/// What a reading answered.
#[derive(Clone)]
pub enum Answer {
    /// All resources of the list.
    List(Arc<Listed>),
    /// One resource, if it exists.
    One(Option<Value>),
}

type Lists = Arc<Shelf<Arc<Listed>>>;

/// Lists that many loops share.
#[derive(Default)]
pub struct Reads {
    shelves: Mutex<HashMap<(Arc<str>, Reading), Lists>>,
}

impl Reads {
    /// What Azure holds, newer than `not_before`. `tenant` says whose client it is: what one may see, another may not.
    ///
    /// # Errors
    /// Azure does not answer, or with an error. A group that does not exist holds nothing.
    pub async fn read(
        &self,
        tenant: &Arc<str>,
        client: &Client,
        reading: &Reading,
        not_before: Instant,
    ) -> Result<Answer, Error> {
        let (group, resource_type, api_version) = match reading {
            Reading::Get { id, api_version } => {
                return Ok(Answer::One(get(client, id, api_version, Class::Refresh).await?));
            }
            Reading::List { group, resource_type, api_version } => (group, resource_type, api_version),
        };
        let shelf = {
            let mut shelves = self.shelves.lock();
            // A shelf that only this map holds is waited for by no loop.
            let since = Instant::now().checked_sub(KEPT);
            shelves.retain(|_, shelf| {
                Arc::strong_count(shelf) > 1 || since.is_none_or(|since| shelf.is_used_since(since))
            });
            Arc::clone(shelves.entry((Arc::clone(tenant), reading.clone())).or_default())
        };
        // What began at that very moment may not tell of what was written in it.
        let serves = |began: Instant| began > not_before;
        let listed = shelf.read(serves, list(client, group, resource_type, api_version)).await?;
        Ok(Answer::List(listed))
    }
}

/// All resources of a type in a group, or below a resource. A group that does not exist holds nothing.
async fn list(
    client: &Client,
    group: &ResourceId,
    resource_type: &str,
    api_version: &'static str,
) -> Result<Arc<Listed>, Error> {
    let (namespace, kind) = resource_type.split_once('/').unwrap_or(("", resource_type));
    let listing = if group.namespace().is_none() && !namespace.is_empty() {
        Listing::of(group, namespace, kind)
    } else {
        Listing::children(group, kind.rsplit('/').next().unwrap_or(kind))
    };
    let query = Kind::named(resource_type).query;
    match client.list(&listing, ApiVersion::new(api_version), query, Class::Refresh).await {
        Ok(documents) => Ok(Arc::new(Listed::of(documents))),
        Err(error) if error.is_not_found() => Ok(Arc::default()),
        Err(error) => Err(error),
    }
}
