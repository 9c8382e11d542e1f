//! Calls of conversion webhooks.

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{self, WeakShared};
use serde_json::Value;

use super::review;
use super::webhook::{ConversionWebhook, MissingConversion, SharedCall};
use crate::object::go::group_version_kind;
use crate::server::handle::Kubernetes;

/// kube-apiserver's timeout for conversion webhooks.
const TIMEOUT: Duration = Duration::from_secs(30);

impl ConversionWebhook {
    /// Requests an object in another version, and caches the result. Concurrent requests for the same conversion share
    /// one call.
    pub(super) fn call(kubernetes: &Kubernetes, missing: MissingConversion) -> SharedCall {
        let mut calls = missing.webhook.calls.lock();
        if let Some(call) = calls.get(&missing.key).and_then(WeakShared::upgrade) {
            return call;
        }
        if missing.webhook.cache.lock().has(missing.key) {
            return future::ready(Ok(())).boxed().shared();
        }
        let MissingConversion { webhook: this, key, object, to } = missing.clone();
        let kubernetes = kubernetes.clone();
        let call = async move {
            let converted = this.convert_one(&kubernetes, &to, &object).await;
            if let Ok(converted) = &converted {
                let objects = kubernetes.shared.state.lock().store.len(&this.definition);
                this.cache.lock().insert(key, converted, objects);
            }
            this.calls.lock().remove(&key);
            converted.map(drop)
        };
        let call = call.boxed().shared();
        calls.extend(call.downgrade().map(|weak| (missing.key, weak)));
        drop(calls);
        call
    }

    /// The converted object.
    ///
    /// # Errors
    /// The API server's message: the webhook cannot be reached, fails, or returns an invalid response.
    async fn convert_one(&self, kubernetes: &Kubernetes, to: &str, object: &Value) -> Result<Value, String> {
        let subject = group_version_kind(object);
        let failed = |why: String| format!("conversion webhook for {subject} failed: {why}");
        let config = self.config.as_ref().map_err(|error| format!("could not get REST client: {error}"))?;
        let version = self.review_version.ok_or("no supported conversion review versions")?;
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
