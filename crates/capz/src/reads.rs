//! Lists that many loops share. A loop asks for what is no older than the event that woke it; those who ask while a list is
//! on its way wait, and the next one answers all of them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use arm::{ApiVersion, Class, Client, Error, Listing};
use azure_types::ResourceId;
use capz_planner::Reading;
use capz_planner::kind::Kind;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

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
    match client.get_optional(id, ApiVersion::new(api_version), class).await {
        Err(error) if says_absent(&error) => Ok(None),
        answer => answer,
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
    fn of(documents: &[Value]) -> Self {
        let id = |document: &Value| ResourceId::parse(document["id"].as_str()?).ok();
        Self(documents.iter().map(|document| (id(document), document.to_string().into())).collect())
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

type Shelf = Arc<tokio::sync::Mutex<Option<(Instant, Arc<Listed>)>>>;

/// Lists that many loops share.
#[derive(Default)]
pub struct Reads {
    shelves: Mutex<HashMap<(Arc<str>, Reading), Shelf>>,
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
            // Nobody waits for a shelf that only this map holds.
            shelves.retain(|_, shelf| {
                Arc::strong_count(shelf) > 1
                    || shelf
                        .try_lock()
                        .is_ok_and(|kept| kept.as_ref().is_some_and(|(began, _)| began.elapsed() < KEPT))
            });
            Arc::clone(shelves.entry((Arc::clone(tenant), reading.clone())).or_default())
        };
        let mut kept = shelf.lock().await;
        if let Some((began, documents)) = kept.as_ref()
            // What began at that very moment may not tell of what was written in it.
            && *began > not_before
        {
            return Ok(Answer::List(Arc::clone(documents)));
        }
        let began = Instant::now();
        let (namespace, kind) = resource_type.split_once('/').unwrap_or(("", resource_type));
        let listing = if group.namespace().is_none() {
            Listing::of(group, namespace, kind)
        } else {
            Listing::children(group, kind.rsplit('/').next().unwrap_or(kind))
        };
        let listed = client.list(&listing, ApiVersion::new(api_version), &[], Class::Refresh).await;
        let documents = match listed {
            Ok(documents) => Arc::new(Listed::of(&documents)),
            Err(error) if error.is_not_found() => Arc::default(),
            Err(error) => return Err(error),
        };
        *kept = Some((began, Arc::clone(&documents)));
        Ok(Answer::List(documents))
    }
}
