//! The webhook that converts the objects of a custom kind: `spec.conversion` of its definition.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use futures::future::{BoxFuture, Shared, WeakShared};
use parking_lot::Mutex;
use serde_json::Value;

use super::cache::{ConversionCache, Key};
use super::review::ReviewVersion;
use crate::object::{list_at, metadata_value, set_api_version, set_metadata, string_at, value_at};
use crate::webhook::{CallError, ClientConfig};

/// A request in flight.
pub(super) type SharedCall = Shared<Call>;

/// Nothing if the result is cached now; otherwise the whole error message.
pub(super) type Call = BoxFuture<'static, Result<(), String>>;

/// A conversion webhook as registered, and the cache of its results. Writing the definition again creates a new one.
pub(crate) struct ConversionWebhook {
    /// Name of the definition, and of the shelf of its objects.
    pub(super) definition: String,
    pub(super) config: Result<ClientConfig, CallError>,
    pub(super) review_version: Option<ReviewVersion>,
    pub(super) cache: Mutex<ConversionCache>,
    /// Requests in flight, while a task waits for them.
    pub(super) calls: Mutex<HashMap<Key, WeakShared<Call>>>,
}

impl fmt::Debug for ConversionWebhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConversionWebhook").field("definition", &self.definition).finish_non_exhaustive()
    }
}

impl ConversionWebhook {
    /// The webhook of a definition, if it has one.
    pub(crate) fn of_definition(definition: &Value) -> Option<Self> {
        let conversion = value_at(definition, &["spec", "conversion"])?;
        if string_at(conversion, &["strategy"]) != Some("Webhook") {
            return None;
        }
        let config = value_at(conversion, &["webhook", "clientConfig"]).unwrap_or(&Value::Null);
        let versions = list_at(conversion, &["webhook", "conversionReviewVersions"]).iter();
        Some(Self {
            definition: string_at(definition, &["metadata", "name"]).unwrap_or_default().to_owned(),
            config: ClientConfig::parse(config),
            review_version: versions.filter_map(Value::as_str).find_map(ReviewVersion::named),
            cache: Mutex::default(),
            calls: Mutex::default(),
        })
    }

    /// The error message for callers that cannot wait for the webhook.
    pub(super) fn uncalled(&self) -> String {
        format!("conversion webhook for {} must be asked first", self.definition)
    }

    /// The result for an object. Resource versions do not matter to the webhook and are not sent to it.
    ///
    /// # Errors
    /// It is not cached.
    pub(super) fn converted(
        this: &Arc<Self>,
        mut object: Value,
        to: &str,
    ) -> Result<Value, Box<MissingConversion>> {
        // An empty object is empty in every version.
        if is_empty(&object) {
            set_api_version(&mut object, to);
            return Ok(object);
        }
        let version = metadata_value(&object, "resourceVersion");
        set_metadata(&mut object, "resourceVersion", Value::Null);
        let key = Key::of(&object, to);
        if let Some(mut answer) = this.cache.lock().get(key) {
            set_metadata(&mut answer, "resourceVersion", version);
            return Ok(answer);
        }
        Err(Box::new(MissingConversion { webhook: Arc::clone(this), key, object, to: to.to_owned() }))
    }
}

fn is_empty(object: &Value) -> bool {
    object.as_object().is_none_or(|members| {
        members.iter().all(|(name, value)| match name.as_str() {
            "apiVersion" | "kind" => true,
            "metadata" => value.as_object().is_some_and(serde_json::Map::is_empty),
            _ => false,
        })
    })
}

/// A missing conversion: an object that is not cached in another version.
#[derive(Debug, Clone)]
pub(super) struct MissingConversion {
    pub(super) webhook: Arc<ConversionWebhook>,
    pub(super) key: Key,
    /// The object, without its resource version.
    pub(super) object: Value,
    /// The requested `apiVersion`.
    pub(super) to: String,
}

/// The conversions that a verb is waiting for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pending(pub(super) Vec<MissingConversion>);

impl Pending {
    /// The number of missing conversions.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}
