//! Lists that many loops share. A loop asks for what is no older than the event that woke it; those who ask while a list is
//! on its way wait, and the next one answers all of them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arm::{ApiVersion, Class, Client, Error, Listing};
use capz_planner::Reading;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

/// How long a list is kept for whoever does not need a newer one.
const KEPT: Duration = Duration::from_secs(60);

/// What a reading answered.
#[derive(Clone)]
pub enum Answer {
    /// All resources of the list.
    List(Arc<Vec<Value>>),
    /// One resource, if it exists.
    One(Option<Value>),
}

type Shelf = Arc<tokio::sync::Mutex<Option<(Instant, Arc<Vec<Value>>)>>>;

/// Lists that many loops share.
#[derive(Default)]
pub struct Reads {
    shelves: Mutex<HashMap<(Arc<str>, Reading), Shelf>>,
}

impl Reads {
    /// What Azure holds, no older than `not_before`. `tenant` says whose client it is: what one may see, another may not.
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
                let document = client.get_optional(id, ApiVersion::new(api_version), Class::Refresh).await?;
                return Ok(Answer::One(document));
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
            && *began >= not_before
        {
            return Ok(Answer::List(Arc::clone(documents)));
        }
        let began = Instant::now();
        let (namespace, kind) = resource_type.split_once('/').unwrap_or(("", resource_type));
        let listing = Listing::of(group, namespace, kind);
        let listed = client.list(&listing, ApiVersion::new(api_version), &[], Class::Refresh).await;
        let documents = match listed {
            Ok(documents) => Arc::new(documents),
            Err(error) if error.is_not_found() => Arc::default(),
            Err(error) => return Err(error),
        };
        *kept = Some((began, Arc::clone(&documents)));
        Ok(Answer::List(documents))
    }
}
