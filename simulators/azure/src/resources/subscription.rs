//! Subscriptions and tenants (Azure REST reference, "Subscriptions").

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::group::API_VERSIONS;
use crate::engine::answer::Answer;
use crate::engine::error::Refusal;
use crate::engine::operation::Completion;
use crate::engine::resource_type::{Proposal, Protocol, ResourceType};
use crate::engine::state::AzureState;
use crate::engine::store::Record;

/// What is known about a subscription beyond the options: its tags, and which providers it uses. There
/// is a record only of a subscription where something was said about it.
pub(crate) struct Subscriptions;

const PROTOCOL: Protocol = Protocol {
    api_versions: &API_VERSIONS,
    tracked: false,
    creatable: false,
    ..super::protocol("Microsoft.Resources/subscriptions", "Subscription")
};

impl ResourceType for Subscriptions {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn write(&self, _azure: &AzureState, proposal: Proposal<'_>) -> Result<Value, Refusal> {
        Ok(Value::Object(proposal.body))
    }

    fn after_operation(
        &self,
        azure: &mut AzureState,
        id: &ResourceId,
        completion: &Completion,
        failed: bool,
    ) {
        if let Completion::Action(_, change) = completion {
            azure.registration_ended(id, change, failed);
        }
    }
}

/// Makes the record of a subscription, where there is none.
pub(super) fn hold(azure: &mut AzureState, id: &ResourceId) {
    if azure.store.get(id).is_none() {
        let created = azure.now();
        azure.insert(Record::new(&Subscriptions, id, json!({}), created));
    }
}

impl AzureState {
    /// The tenant that a subscription belongs to.
    pub(crate) fn tenant_of(&self, subscription: &str) -> &str {
        let mut others = self.options.subscription_tenants.iter();
        let other = others.find(|(known, _)| known.eq_ignore_ascii_case(subscription));
        other.map_or(&self.options.tenant, |(_, tenant)| tenant)
    }

    fn subscription_document(&self, subscription: &str) -> Value {
        let mut document = json!({
            "id": format!("/subscriptions/{subscription}"),
            "subscriptionId": subscription,
            "tenantId": self.tenant_of(subscription),
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
        let record = self.store.get(&ResourceId::subscription(subscription));
        if let Some(tags) = record.and_then(|record| record.body.get("tags")) {
            document["tags"] = tags.clone();
        }
        document
    }

    pub(crate) fn read_subscription(&self, subscription: &str) -> Answer {
        Answer::ok(self.subscription_document(subscription))
    }

    pub(crate) fn list_subscriptions(&self) -> Answer {
        let known = std::iter::once(&self.options.subscription).chain(&self.options.more_subscriptions);
        let list: Vec<Value> = known.map(|subscription| self.subscription_document(subscription)).collect();
        let count = json!({ "type": "Total", "value": list.len() });
        Answer::ok(json!({ "value": list, "count": count }))
    }

    /// GET of the tenants: those of the subscriptions.
    pub(crate) fn list_tenants(&self) -> Answer {
        let mut tenants = vec![&self.options.tenant];
        tenants.extend(self.options.subscription_tenants.values());
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
}
