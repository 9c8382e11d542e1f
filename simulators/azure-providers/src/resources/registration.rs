//! Providers' records, and their registration in subscriptions ("Azure resource providers and types").

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::location::{Region, regions};
use super::subscription_record::{
    NOT_REGISTERED, REGISTERED, REGISTERING, Subscriptions, UNREGISTERING, registration, set_registration,
};
use std::collections::BTreeSet;

use azure_engine::answer::{Answer, Note};
use azure_engine::document::at;
use azure_engine::operation::Completion;
use azure_engine::operation::execution::{Execution, Started};
use azure_engine::provider::AzureState;
use azure_engine::refusal::{Code, Refusal, Result};
use azure_engine::types::protocol::{GLOBAL, Placement};

/// The providers that are always registered.
const FREE: [&str; 3] = ["Microsoft.Resources", "Microsoft.Authorization", "Microsoft.Features"];

/// Types whose records list the zones.
const ZONAL: [&str; 7] = [
    "virtualMachines",
    "virtualMachineScaleSets",
    "disks",
    "publicIPAddresses",
    "publicIPPrefixes",
    "loadBalancers",
    "natGateways",
];

/// Whether a subscription may use a provider.
pub(crate) fn require_registered(azure: &AzureState, subscription: &str, namespace: &str) -> Result<()> {
    match registration(azure, subscription, namespace) {
        REGISTERED | UNREGISTERING => Ok(()),
        _ => {
            let spelled = azure.namespace(namespace).unwrap_or(namespace);
            Err(Code::azures(409, "MissingSubscriptionRegistration").says(format_args!(
                "The subscription is not registered to use namespace '{spelled}'. See \
                         https://aka.ms/rps-not-found for how to register subscriptions."
            )))
        }
    }
}

/// POST `register` and `unregister`: the state changes after a while.
pub(crate) fn change_registration(
    azure: &mut AzureState,
    subscription: &str,
    namespace: &str,
    action: &str,
    execution: &Execution,
) -> Result<Answer> {
    let spelled = azure.namespace(namespace).ok_or_else(|| Refusal::unknown_namespace(namespace))?;
    let id = ResourceId::subscription(subscription);
    let wanted = action.eq_ignore_ascii_case("register");
    if !wanted {
        let refused = |text: String| Err(Code::ours(409, "CannotUnregisterProvider").says(text));
        if FREE.contains(&spelled) {
            return refused(format!(
                "The provider '{spelled}' needs no registration and cannot be unregistered."
            ));
        }
        if let Some(record) = azure.store.below(&id).find(|record| record.id.namespace() == Some(spelled)) {
            return refused(format!(
                "The provider '{spelled}' cannot be unregistered because the subscription has resources of it, such \
                 as '{}'.",
                record.id
            ));
        }
    }
    let (passing, last) = if wanted { (REGISTERING, REGISTERED) } else { (UNREGISTERING, NOT_REGISTERED) };
    let state = registration(azure, subscription, spelled);
    let mut note = Note::default();
    if state != passing && state != last {
        note.changes = vec![format!("registrationState: {state} -> {last}")];
        let started = begin_registration(azure, &id, spelled, (passing, last), execution);
        note.operation_ms = started.latency.and_then(|latency| u64::try_from(latency.as_millis()).ok());
    }
    let answer = read_provider(azure, Some(subscription), spelled)?;
    Ok(Answer { note, ..answer })
}

/// Puts a provider, or a feature of one, into a transitional state, and after a while into its final one.
pub(crate) fn begin_registration(
    azure: &mut AzureState,
    subscription: &ResourceId,
    called: &str,
    (passing, last): (&str, &str),
    execution: &Execution,
) -> Started {
    set_registration(azure, subscription, called, passing);
    let completion = Completion::Action("registration".into(), json!([called, last]));
    azure.start(subscription, &Subscriptions, "POST", format!("{passing} {called}"), completion, execution)
}

/// A provider's record; the zones stand with virtual machines and related types.
fn provider_document(azure: &AzureState, subscription: Option<&str>, namespace: &str) -> Option<Value> {
    let namespace = azure.namespace(namespace)?;
    let regions: Vec<Region> = regions(azure);
    let shown: Vec<&str> = regions.iter().map(|region| region.display_name.as_str()).collect();
    let mut types: Vec<Value> = Vec::new();
    for resource_type in azure.providers_of(namespace).flat_map(|provider| &provider.resource_types) {
        let name = resource_type.name().split_once('/').map_or("", |(_, name)| name);
        let capabilities = match resource_type.protocol().tracked {
            true => {
                "CrossResourceGroupResourceMove, CrossSubscriptionResourceMove, SupportsTags, SupportsLocation"
            }
            false => "None",
        };
        let mut record = json!({
            "resourceType": name,
            "locations": match (resource_type.protocol().tracked, resource_type.protocol().placement) {
                (false, _) => Vec::new(),
                (true, Placement::Global) => vec![GLOBAL],
                (true, Placement::Regional) => shown.clone(),
            },
            "apiVersions": resource_type.protocol().api_versions,
            "defaultApiVersion": resource_type.protocol().api_versions.first(),
            "capabilities": capabilities,
        });
        let zoned: Vec<Value> = regions
            .iter()
            .filter(|region| ZONAL.contains(&name) && !region.zones.is_empty())
            // Azure lists zones in no order; the newest first shows which clients rely on one.
            .map(|region| json!({ "location": region.display_name, "zones": region.zones.iter().rev().collect::<Vec<_>>() }))
            .collect();
        if !zoned.is_empty() {
            record["zoneMappings"] = zoned.into();
        }
        types.push(record);
    }
    let mut document = json!({
        "namespace": namespace,
        "resourceTypes": types,
    });
    if let Some(subscription) = subscription {
        document["id"] = format!("/subscriptions/{subscription}/providers/{}", namespace).into();
        document["authorizations"] = json!([]);
        document["registrationState"] = registration(azure, subscription, namespace).into();
        let free = FREE.contains(&namespace);
        document["registrationPolicy"] =
            if free { "RegistrationFree" } else { "RegistrationRequired" }.into();
    }
    Some(document)
}

/// GET of a provider's record, of a subscription or as the tenant sees it.
pub(crate) fn read_provider(
    azure: &AzureState,
    subscription: Option<&str>,
    namespace: &str,
) -> Result<Answer> {
    let found = provider_document(azure, subscription, namespace);
    found.map(Answer::ok).ok_or_else(|| Refusal::unknown_namespace(namespace))
}

/// GET of all providers' records.
pub(crate) fn list_providers(azure: &AzureState, subscription: Option<&str>) -> Answer {
    let namespaces: BTreeSet<&str> = azure.providers.iter().map(|provider| provider.namespace).collect();
    let mut list: Vec<Value> = namespaces
        .into_iter()
        .filter_map(|namespace| provider_document(azure, subscription, namespace))
        .collect();
    list.sort_by_cached_key(|record| at(record, "namespace").map(Value::to_string));
    Answer::ok(json!({ "value": list }))
}
