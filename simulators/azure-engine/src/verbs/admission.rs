//! Admission of requests by budgets, and Azure's refusals when one is used up.

use tokio::time::Instant;

use crate::document::location::normal_location;
use crate::document::text;
use crate::provider::AzureState;
use crate::refusal::{Refusal, Result};
use crate::request::Request;
use crate::request::target::{Scope, Target};
use crate::settings::budget::policy::{Counted, Wording};
use crate::settings::budget::{Buckets, Exhausted, Remaining, Requester};
use crate::verbs::dispatch::Located;

impl AzureState {
    /// Counts a request, and returns what is left or a refusal.
    pub fn admission(
        &mut self,
        request: &Request<'_>,
        located: &Located,
        principal: &str,
    ) -> (Remaining, Result<()>) {
        let now = Instant::now();
        let (subscription, namespace) = match &located.target {
            Target::Within(subscription, scope) => (subscription.as_str(), namespace(scope)),
            Target::Subscriptions | Target::Tenants | Target::TenantProviders(_) => ("", None),
        };
        let namespace = namespace.and_then(|namespace| self.namespace(namespace));
        let provider = namespace.map(|namespace| {
            let policies = self.providers_of(namespace).flat_map(|provider| provider.policies);
            (namespace, policies.collect())
        });
        let region = self.region_of(request, located);
        let resource = match &located.resolved {
            Some(resolved) => resolved.id.as_str(),
            None => request.path,
        };
        let counted = Counted {
            method: request.method,
            resource_type: &located.resource_type,
            list: located.resolved.as_ref().is_some_and(|resolved| resolved.list),
            resource,
        };
        let requester = Requester { subscription, principal, region: &region, counted: &counted, provider };
        let exhausted = match &self.budgets {
            None => return (Buckets::full(&Default::default(), &requester), Ok(())),
            Some(budgets) => match self.buckets.take(budgets, &requester, now) {
                Ok(remaining) => return (remaining, Ok(())),
                Err(exhausted) => exhausted,
            },
        };
        let Exhausted { remaining, wait, policy, size, measured, window_age } = exhausted;
        let Some(policy) = policy else {
            let operation = format!("{}/{}", request.method, located.resource_type.to_uppercase());
            return (remaining, Err(Refusal::subscription_throttled(subscription, &operation, wait)));
        };
        let refusal = match policy.wording {
            Wording::Gateway => {
                let verb = match request.method {
                    "GET" | "HEAD" => "read",
                    "POST" => "action",
                    "DELETE" => "delete",
                    _ => "write",
                };
                let action = format!("{}/{verb}", located.resource_type);
                Refusal::action_throttled(&action, size, policy.window.as_secs(), wait)
            }
            Wording::Window => Refusal::operation_throttled(policy.name, wait),
            Wording::Provider => {
                let end = self.now();
                let age = jiff::SignedDuration::try_from(window_age).unwrap_or_default();
                let start = end.checked_sub(age).unwrap_or(end);
                let window = [start.to_string(), end.to_string()];
                Refusal::group_throttled(policy.name, &window, size, measured, wait)
            }
        };
        (remaining, Err(refusal))
    }

    /// The region whose instance of the provider answers: that of the resource, or of the operation's.
    fn region_of(&self, request: &Request<'_>, located: &Located) -> String {
        if let Some(resolved) = located.resolved.as_ref().filter(|resolved| !resolved.list) {
            if request.method == "PUT" && self.store.get(&resolved.id).is_none() {
                let body = request.body.readable();
                if let Some(location) = body.and_then(|body| text(body, "location")) {
                    return normal_location(location);
                }
            }
            return self.location(&resolved.id);
        }
        if let Target::Within(_, Scope::Operation(_, key, _)) = &located.target
            && let Some(operation) = self.operations.get(key)
        {
            return self.location(&operation.subject);
        }
        self.options.region.clone()
    }
}

fn namespace(scope: &Scope) -> Option<&str> {
    match scope {
        Scope::Resource(_, namespace, _) | Scope::Operation(namespace, ..) => Some(namespace),
        _ => None,
    }
}
