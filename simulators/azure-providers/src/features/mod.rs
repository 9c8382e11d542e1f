//! `Microsoft.Features`: features that a subscription must register before it can use them ("Set up preview features in
//! Azure subscription"). [`offered`] lists them; types that need one call [`is_registered`].

pub(crate) mod offered;

use azure_engine::operation::execution::Execution;
use azure_engine::provider::{AzureState, Provider, ProviderCall};
use azure_engine::refusal::{Code, Handled, Result};
use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::resources::{begin_registration, recorded_registration};

const NAMESPACE: &str = "Microsoft.Features";

/// The words are Azure's (MicrosoftDocs/azure-docs#71962); no source shows the code.
const FEATURE_NOT_FOUND: Code = Code::ours(404, "FeatureNotFound");

const REGISTERED: &str = "Registered";
const NOT_REGISTERED: &str = "NotRegistered";

/// An action, the state of a feature meanwhile, and the state afterwards.
const ACTIONS: [(&str, &str, &str); 2] =
    [("register", "Registering", REGISTERED), ("unregister", "Unregistering", "Unregistered")];

pub(crate) fn provider() -> Provider {
    Provider { calls: vec![answer], ..Provider::new(NAMESPACE, Vec::new()) }
}

/// Whether a subscription has registered a feature, such as `Microsoft.ContainerService/KubeletDisk`.
pub(crate) fn is_registered(azure: &AzureState, subscription: &str, feature: &str) -> bool {
    state(azure, subscription, feature) == REGISTERED
}

fn state<'a>(azure: &'a AzureState, subscription: &str, feature: &str) -> &'a str {
    recorded_registration(azure, subscription, feature).unwrap_or(NOT_REGISTERED)
}

/// `features`, `providers/{namespace}/features`, one of these, and what is done with it.
fn answer(azure: &mut AzureState, call: &ProviderCall<'_>) -> Handled<Value> {
    let is = |word: &str, expected: &str| word.eq_ignore_ascii_case(expected);
    if call.group.is_some() {
        return None;
    }
    match (call.method, call.segments) {
        ("GET", [features]) if is(features, "features") => Some(Ok(list(azure, call.subscription, None))),
        ("GET", [providers, namespace, features])
            if is(providers, "providers") && is(features, "features") =>
        {
            Some(Ok(list(azure, call.subscription, Some(namespace))))
        }
        ("GET", [providers, namespace, features, name])
            if is(providers, "providers") && is(features, "features") =>
        {
            Some(one(namespace, name).map(|feature| shown(azure, call.subscription, feature)))
        }
        ("POST", [providers, namespace, features, name, action])
            if is(providers, "providers") && is(features, "features") =>
        {
            let action = ACTIONS.into_iter().find(|(known, ..)| is(action, known))?;
            Some(one(namespace, name).map(|feature| change(azure, call.subscription, feature, action)))
        }
        _ => None,
    }
}

fn one(namespace: &str, name: &str) -> Result<&'static str> {
    let wanted = format!("{namespace}/{name}");
    let found = offered::OFFERED.into_iter().find(|feature| feature.eq_ignore_ascii_case(&wanted));
    found.ok_or_else(|| FEATURE_NOT_FOUND.says(format_args!("The feature '{name}' could not be found.")))
}

fn list(azure: &AzureState, subscription: &str, namespace: Option<&str>) -> Value {
    let of = |feature: &&str| {
        let (theirs, _) = feature.split_once('/').unwrap_or((feature, ""));
        namespace.is_none_or(|namespace| namespace.eq_ignore_ascii_case(theirs))
    };
    let shown: Vec<Value> =
        offered::OFFERED.into_iter().filter(of).map(|feature| shown(azure, subscription, feature)).collect();
    json!({ "value": shown })
}

fn shown(azure: &AzureState, subscription: &str, feature: &str) -> Value {
    let (namespace, name) = feature.split_once('/').unwrap_or((feature, ""));
    json!({
        "id": format!("/subscriptions/{subscription}/providers/{NAMESPACE}/providers/{namespace}/features/{name}"),
        "name": feature,
        "type": format!("{NAMESPACE}/providers/features"),
        "properties": { "state": state(azure, subscription, feature) },
    })
}

/// The state changes after a while.
fn change(
    azure: &mut AzureState,
    subscription: &str,
    feature: &str,
    (_, passing, last): (&str, &str, &str),
) -> Value {
    let now = state(azure, subscription, feature);
    let idle = now == passing || now == last || (last != REGISTERED && now == NOT_REGISTERED);
    if !idle {
        let id = ResourceId::subscription(subscription);
        begin_registration(azure, &id, feature, (passing, last), &Execution::default());
    }
    shown(azure, subscription, feature)
}
