//! Webhooks that MutatingWebhookConfigurations and ValidatingWebhookConfigurations register. Missing members have the
//! defaults of `admissionregistration.k8s.io/v1`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::condition;
use super::hooks::{Hook, HookTarget, Phase, Registrations};
use super::rule::Rule;
use crate::object::{list_at, string_at};
use crate::registry::Kind;
use crate::selector::LabelSelector;
use crate::verbs::State;
use crate::webhook::ClientConfig;

/// The shelves of the registrations, and the phases of their webhooks.
const SHELVES: [(&str, Phase); 2] = [
    ("mutatingwebhookconfigurations.admissionregistration.k8s.io", Phase::Mutating),
    ("validatingwebhookconfigurations.admissionregistration.k8s.io", Phase::Validating),
];

/// The default timeout of a webhook in seconds.
const DEFAULT_TIMEOUT: u64 = 10;

/// Whether objects of this kind are exempt from webhooks: it must be possible to delete a broken webhook.
pub(super) fn is_exempt(kind: &Kind) -> bool {
    SHELVES.iter().any(|(shelf, _)| *kind.shelf == **shelf)
}

/// All registered webhooks, ordered by the names of their configurations.
fn hooks(state: &mut State) -> Vec<Arc<Hook>> {
    let mut all = Vec::new();
    for (shelf, phase) in SHELVES {
        for configuration in state.store.shelf(&shelf.into()).range("", "") {
            let configuration = configuration.value();
            let webhooks = list_at(&configuration, &["webhooks"]).iter();
            all.extend(webhooks.map(|webhook| Arc::new(hook(webhook, phase))));
        }
    }
    all
}

fn hook(webhook: &Value, phase: Phase) -> Hook {
    let text = |member: &str| string_at(webhook, &[member]).unwrap_or_default();
    let selector = |member: &str| webhook.get(member).map(LabelSelector::of_object).unwrap_or_default();
    let seconds = webhook.get("timeoutSeconds").and_then(Value::as_u64).unwrap_or(DEFAULT_TIMEOUT);
    Hook {
        name: text("name").to_owned(),
        phase,
        rules: list_at(webhook, &["rules"]).iter().map(Rule::parse).collect(),
        namespaces: selector("namespaceSelector"),
        objects: selector("objectSelector"),
        equivalent: text("matchPolicy") != "Exact",
        optional: text("failurePolicy") == "Ignore",
        timeout: Duration::from_secs(seconds),
        dry_run: matches!(text("sideEffects"), "None" | "NoneOnDryRun"),
        reinvocable: text("reinvocationPolicy") == "IfNeeded",
        conditions: condition::parse(webhook),
        call: HookTarget::Webhook(ClientConfig::parse(webhook.get("clientConfig").unwrap_or(&Value::Null))),
    }
}

impl Registrations {
    /// Reads the registrations again if one has changed.
    pub(super) fn refresh(&mut self, state: &mut State) {
        let versions = SHELVES.map(|(shelf, _)| state.store.shelf(&shelf.into()).newest());
        if versions != self.versions {
            self.hooks = hooks(state);
            self.versions = versions;
        }
    }
}
