//! The webhook that converts the objects of a custom kind: `spec.conversion` of its definition.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{self, BoxFuture, Shared, WeakShared};
use parking_lot::Mutex;
use serde_json::Value;

use super::known::{Key, Known};
use super::review::{self, ReviewVersion};
use super::settle::{Pending, Wanted};
use crate::kubernetes::Kubernetes;
use crate::object::{list_at, metadata_value, set_api_version, set_metadata, string_at, value_at};
use crate::status::ApiError;
use crate::webhook::{CallError, ClientConfig};

/// kube-apiserver's timeout for conversion webhooks.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A request in flight.
pub(super) type Asking = Shared<Asked>;

/// Nothing if the result is cached now; otherwise the whole error message.
type Asked = BoxFuture<'static, Result<(), String>>;

/// A conversion webhook as registered, and the cache of its results. Writing the definition again creates a new one.
pub(crate) struct ConversionWebhook {
    /// Name of the definition, and of the shelf of its objects.
    definition: String,
    config: Result<ClientConfig, CallError>,
    review: Option<ReviewVersion>,
    known: Mutex<Known>,
    /// Requests in flight, while a task waits for them.
    asking: Mutex<HashMap<Key, WeakShared<Asked>>>,
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
            review: versions.filter_map(Value::as_str).find_map(ReviewVersion::named),
            known: Mutex::default(),
            asking: Mutex::default(),
        })
    }

    /// The error message for callers that cannot wait for the webhook.
    pub(super) fn unasked(&self) -> String {
        format!("conversion webhook for {} must be asked first", self.definition)
    }

    /// The result for an object. Resource versions do not matter to the webhook and are not sent to it.
    pub(super) fn converted(this: &Arc<Self>, mut object: Value, to: &str) -> Result<Value, ApiError> {
        // An empty object is empty in every version.
        if is_empty(&object) {
            set_api_version(&mut object, to);
            return Ok(object);
        }
        let version = metadata_value(&object, "resourceVersion");
        set_metadata(&mut object, "resourceVersion", Value::Null);
        let key = Key::of(&object, to);
        if let Some(mut answer) = this.known.lock().get(key) {
            set_metadata(&mut answer, "resourceVersion", version);
            return Ok(answer);
        }
        let wanted = Wanted { webhook: Arc::clone(this), key, object, to: to.to_owned() };
        Err(ApiError::pending(&this.unasked(), Pending::one(wanted)))
    }

    /// Requests an object in another version, and caches the result. Concurrent requests for the same conversion share
    /// one call.
    pub(super) fn ask(kubernetes: &Kubernetes, wanted: Wanted) -> Asking {
        let mut asking = wanted.webhook.asking.lock();
        if let Some(asking) = asking.get(&wanted.key).and_then(WeakShared::upgrade) {
            return asking;
        }
        if wanted.webhook.known.lock().has(wanted.key) {
            return future::ready(Ok(())).boxed().shared();
        }
        let Wanted { webhook: this, key, object, to } = wanted.clone();
        let kubernetes = kubernetes.clone();
        let asked = async move {
            let converted = this.ask_one(&kubernetes, &to, &object).await;
            if let Ok(converted) = &converted {
                let objects = kubernetes.shared.state.lock().store.len(&this.definition);
                this.known.lock().insert(key, converted, objects);
            }
            this.asking.lock().remove(&key);
            converted.map(drop)
        };
        let asked = asked.boxed().shared();
        asking.extend(asked.downgrade().map(|weak| (wanted.key, weak)));
        drop(asking);
        asked
    }

    /// The converted object.
    ///
    /// # Errors
    /// The API server's message: the webhook cannot be reached, fails, or returns an invalid response.
    async fn ask_one(&self, kubernetes: &Kubernetes, to: &str, object: &Value) -> Result<Value, String> {
        let subject = review::group_version_kind(object);
        let failed = |why: String| format!("conversion webhook for {subject} failed: {why}");
        let config = self.config.as_ref().map_err(|error| format!("could not get REST client: {error}"))?;
        let version = self.review.ok_or("no supported conversion review versions")?;
        let uid = kubernetes.shared.state.lock().new_uid();
        let question = review::question(version, &uid, to, object);
        let answer = kubernetes.call_webhook(config, &question, TIMEOUT).await;
        let answer = answer.map_err(|error| failed(error.to_string()))?;
        let converted = review::converted_objects(version, &uid, &answer).map_err(failed)?;
        let [converted] = converted else {
            return Err(format!(
                "conversion webhook for {subject} returned {} objects, expected 1",
                converted.len()
            ));
        };
        review::check(object, converted, to)
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
