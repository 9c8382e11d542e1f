//! Subscriptions and tenants (Azure REST reference, "Subscriptions").

use azure_types::ResourceId;
use serde_json::{Value, json};

use azure_engine::answer::Answer;
use azure_engine::provider::AzureState;

fn subscription_document(azure: &AzureState, subscription: &str) -> Value {
    let mut document = json!({
        "id": format!("/subscriptions/{subscription}"),
        "subscriptionId": subscription,
        "tenantId": azure.tenant_of(subscription),
        "displayName": "Simulated",
        "state": "Enabled",
        "subscriptionPolicies": {
            "locationPlacementId": "Public_2014-09-01",
            "quotaId": "PayAsYouGo_2014-09-01",
            "spendingLimit": "Off",
        },
        "authorizationSource": "RoleBased",
        "managedByTenants": [],
    });
    let record = azure.store.get(&ResourceId::subscription(subscription));
    if let Some(tags) = record.and_then(|record| record.body.get("tags")) {
        document["tags"] = tags.clone();
    }
    document
}

pub(crate) fn read_subscription(azure: &AzureState, subscription: &str) -> Answer {
    Answer::ok(subscription_document(azure, subscription))
}

pub(crate) fn list_subscriptions(azure: &AzureState) -> Answer {
    let known = std::iter::once(&azure.options.subscription).chain(&azure.options.more_subscriptions);
    let list: Vec<Value> = known.map(|subscription| subscription_document(azure, subscription)).collect();
    let count = json!({ "type": "Total", "value": list.len() });
    Answer::ok(json!({ "value": list, "count": count }))
}

/// GET of the tenants: those of the subscriptions.
pub(crate) fn list_tenants(azure: &AzureState) -> Answer {
    let mut tenants = vec![&azure.options.tenant];
    tenants.extend(azure.options.subscription_tenants.values());
    let mut seen = std::collections::BTreeSet::new();
    tenants.retain(|tenant| seen.insert(tenant.to_ascii_lowercase()));
    let list: Vec<Value> = tenants
        .into_iter()
        .map(|tenant| {
            json!({
                "id": format!("/tenants/{tenant}"),
                "tenantId": tenant,
                "countryCode": "US",
                "displayName": "Simulated",
                "domains": [],
                "tenantCategory": "Home",
            })
        })
        .collect();
    Answer::ok(json!({ "value": list }))
}
