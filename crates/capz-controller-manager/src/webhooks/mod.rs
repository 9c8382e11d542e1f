//! The webhooks: requests of the API server for [`capz_api::admission`], and the responses.

mod lookups;
mod review;
mod ssh_key;

use axum::extract::{DefaultBodyLimit, State};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::post;
use bytes::Bytes;
use capz_api::admission::{self, Admitted};
use capz_api::webhooks::{Task, WEBHOOKS, Webhook};
use capz_api::{Context, Gates, Random};
use http::{HeaderMap, header};
use serde_json::Value;
use telemetry::metrics::controllers::WebhookMetrics;
use tokio::time::Instant;

pub use lookups::Lookups;
use review::{Operation, Review};

/// Larger than any object.
const MAX_BODY: usize = 7 << 20;

/// The inputs of the webhooks.
#[derive(Clone)]
pub struct Webhooks {
    /// The feature gates.
    pub gates: Gates,
    /// The look-ups of other objects.
    pub lookups: Lookups,
    /// The metrics.
    pub metrics: WebhookMetrics,
}

impl Webhooks {
    /// A route for each webhook.
    pub fn router(&self) -> axum::Router {
        let router = WEBHOOKS.iter().fold(axum::Router::new(), |router, webhook| {
            let state = (self.clone(), webhook);
            router.route(&webhook.path(), post(serve).with_state(state))
        });
        router.layer(DefaultBodyLimit::max(MAX_BODY))
    }

    async fn answer(&self, webhook: &'static Webhook, headers: &HeaderMap, body: &[u8]) -> Value {
        let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.split(';').next().map(str::trim) != Some("application/json") {
            return review::unreadable(&format!("Content-Type is {kind:?} and must be application/json"));
        }
        match Review::read(body) {
            Err(why) => review::unreadable(&why),
            Ok(review) if matches!(review.request.operation, Operation::Create | Operation::Update) => {
                let said = self.judge(webhook, &review).await;
                review.answer(webhook.task, said)
            }
            // An object that is being deleted need not be valid, but others may depend on it.
            Ok(review) if review.request.operation == Operation::Delete && webhook.task == Task::Validate => {
                match self.judge_deletion(webhook.kind, &review).await {
                    Ok(()) => review.allow(),
                    Err(status) => review.answer(webhook.task, Err(status)),
                }
            }
            Ok(review) => review.allow(),
        }
    }

    async fn judge_deletion(&self, kind: &str, review: &Review) -> Result<(), Value> {
        let object = &review.request.old_object;
        let needs = admission::needs_of_deletion(kind, object);
        let results = self.lookups.find(kind, object, needs, review.request.dry_run == Some(true)).await;
        let context = Context { gates: self.gates, system_pools: results.system_pools, ..Context::default() };
        admission::validate_deletion(kind, object, &context)
            .map_err(|denied| denied.status(kind, &review.name()))
    }

    async fn judge(&self, webhook: &'static Webhook, review: &Review) -> Result<Admitted, Value> {
        let request = &review.request;
        let old = Some(&request.old_object).filter(|old| old.is_object());
        let mut needs = admission::needs(webhook.kind, &request.object, old);
        // A role from an earlier look-up stays: no further look-up is needed for it.
        if let (Task::Default, Some(old)) = (webhook.task, old) {
            needs.subscription &= admission::needs(webhook.kind, old, None).subscription;
        }
        // Defaults do not depend on these.
        needs.system_pools &= webhook.task == Task::Validate;
        needs.cluster_network &= webhook.task == Task::Validate;
        let dry_run = request.dry_run == Some(true);
        let results = self.lookups.find(webhook.kind, &request.object, needs, dry_run).await;
        let context = Context {
            gates: self.gates,
            subscription: results.subscription,
            pool_version: results.pool_version,
            system_pools: results.system_pools,
            cluster_network: results.cluster_network,
            topology_dry_run: admission::is_topology_dry_run(dry_run, &request.object),
        };
        let (new, old) = (request.object.clone(), request.old_object.clone());
        let judged = move || {
            let old = Some(&old).filter(|old| old.is_object());
            admission::review(webhook, new, old, &context, &mut SystemRandom)
        };
        let judged = match webhook.task {
            // It may take a moment: a new key has to be generated.
            Task::Default => tokio::task::spawn_blocking(judged).await.unwrap_or_else(|error| {
                Err(admission::Denied::Unreadable(format!("the webhook failed: {error}")))
            }),
            Task::Validate => judged(),
        };
        judged.map_err(|denied| denied.status(webhook.kind, &review.name()))
    }
}

async fn serve(
    State((webhooks, webhook)): State<(Webhooks, &'static Webhook)>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let (path, asked) = (webhook.path(), Instant::now());
    webhooks.metrics.received(&path);
    let answer = webhooks.answer(webhook, &headers, &body).await;
    webhooks.metrics.answered(&path, 200, asked.elapsed());
    let response = &answer["response"];
    tracing::debug!(path, allowed = %response["allowed"], status = %response["status"]["message"], "Answered the API server");
    Json(answer).into_response()
}

/// The random values.
struct SystemRandom;

impl Random for SystemRandom {
    fn guid(&mut self) -> String {
        uuid::Uuid::new_v4().to_string()
    }

    fn ssh_public_key(&mut self) -> String {
        // A system without random numbers has no TLS either; validation refuses the empty key.
        ssh_key::generate().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
