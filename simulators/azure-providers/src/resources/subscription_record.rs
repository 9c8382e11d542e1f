//! The state of a subscription beyond the options: its tags, and the providers it has registered.

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::protocol::{API_VERSIONS, protocol};
use azure_engine::operation::Completion;
use azure_engine::provider::{AzureState, EndedOperation, Protocol, Record, Writing};

/// The hidden member with the states of providers and features, by their lower-case names.
const STATES: &str = "registrations";

pub(super) const REGISTERED: &str = "Registered";
pub(super) const REGISTERING: &str = "Registering";
pub(super) const UNREGISTERING: &str = "Unregistering";
pub(super) const NOT_REGISTERED: &str = "NotRegistered";

/// The type of subscriptions' records. A subscription has one once its state was changed.
pub(crate) struct Subscriptions;

const PROTOCOL: Protocol = Protocol {
    api_versions: &API_VERSIONS,
    tracked: false,
    creatable: false,
    ..protocol("Microsoft.Resources/subscriptions", "Subscription")
};

shape!(Subscriptions, PROTOCOL, without Presenting, Acting);

impl Writing for Subscriptions {
    fn after_operation(&self, azure: &mut AzureState, id: &ResourceId, ended: EndedOperation<'_>) {
        if let Completion::Action(_, change) = ended.completion {
            registration_ended(azure, id, change, ended.failed);
        }
    }
}

/// Creates the record of a subscription, unless it exists.
pub(super) fn hold(azure: &mut AzureState, id: &ResourceId) {
    if azure.store.get(id).is_none() {
        let created = azure.now();
        azure.insert(Record::new(&Subscriptions, id, json!({}), created));
    }
}

/// The state of a provider in a subscription.
pub(super) fn registration<'a>(azure: &'a AzureState, subscription: &str, namespace: &str) -> &'a str {
    recorded_registration(azure, subscription, namespace).unwrap_or(REGISTERED)
}

/// The state of a provider or a feature of one, where it was ever changed.
pub(crate) fn recorded_registration<'a>(
    azure: &'a AzureState,
    subscription: &str,
    called: &str,
) -> Option<&'a str> {
    let record = azure.store.get(&ResourceId::subscription(subscription))?;
    record.hidden.get(STATES)?.get(called.to_ascii_lowercase())?.as_str()
}

/// Sets it.
pub(super) fn set_registration(
    azure: &mut AzureState,
    subscription: &ResourceId,
    namespace: &str,
    state: &str,
) {
    hold(azure, subscription);
    if let Some(record) = azure.store.get_mut(subscription) {
        let states = record.hidden.entry(STATES).or_insert_with(|| json!({}));
        states[namespace.to_ascii_lowercase()] = state.into();
    }
    azure.revision += 1;
}

/// The end of a registration.
fn registration_ended(azure: &mut AzureState, subscription: &ResourceId, change: &Value, failed: bool) {
    let namespace = change.get(0).and_then(Value::as_str).unwrap_or_default().to_owned();
    let last = change.get(1).and_then(Value::as_str).unwrap_or(REGISTERED);
    let other = if last == REGISTERED { NOT_REGISTERED } else { REGISTERED };
    set_registration(azure, subscription, &namespace, if failed { other } else { last });
}
