//! Subscriptions and provider records (`spec/arm-wire.md`, section 11).

use serde_json::{Value, json};

use crate::engine::answer::Answer;
use crate::engine::error::Refusal;
use crate::engine::world::World;

impl World {
    fn subscription_document(&self, subscription: &str) -> Value {
        json!({
            "id": format!("/subscriptions/{subscription}"),
            "subscriptionId": subscription,
            "tenantId": self.options.tenant,
            "displayName": "Simulated",
            "state": "Enabled",
            "subscriptionPolicies": {
                "locationPlacementId": "Public_2014-09-01",
                "quotaId": "PayAsYouGo_2014-09-01",
                "spendingLimit": "Off",
            },
            "authorizationSource": "RoleBased",
        })
    }

    pub(crate) fn read_subscription(&self, subscription: &str) -> Answer {
        Answer::ok(self.subscription_document(subscription))
    }

    pub(crate) fn list_subscriptions(&self) -> Answer {
        let known = std::iter::once(&self.options.subscription).chain(&self.options.more_subscriptions);
        let list: Vec<Value> = known.map(|subscription| self.subscription_document(subscription)).collect();
        Answer::ok(json!({ "value": list }))
    }

    pub(crate) fn list_locations(&self, subscription: &str) -> Answer {
        let (name, shown) = (&self.options.region, &self.options.region_display_name);
        let mut location = json!({
            "id": format!("/subscriptions/{subscription}/locations/{name}"),
            "name": name,
            "type": "Region",
            "displayName": shown,
            "regionalDisplayName": shown,
            "metadata": { "regionType": "Physical", "regionCategory": "Recommended" },
        });
        let zones: Vec<Value> = self
            .options
            .zones
            .iter()
            .map(|zone| json!({ "logicalZone": zone, "physicalZone": format!("{name}-az{zone}") }))
            .collect();
        if !zones.is_empty() {
            location["availabilityZoneMappings"] = zones.into();
        }
        Answer::ok(json!({ "value": [location] }))
    }

    /// A provider's record; the zones stand with virtual machines and scale sets.
    fn provider_document(&self, subscription: &str, namespace: &str) -> Option<Value> {
        let provider = self.provider(namespace)?;
        let shown = &self.options.region_display_name;
        let types: Vec<Value> = provider
            .kinds
            .iter()
            .map(|kind| {
                let name = kind.resource_type().split_once('/').map_or("", |(_, name)| name);
                let mut record = json!({
                    "resourceType": name,
                    "locations": [shown],
                    "apiVersions": kind.api_versions(),
                    "defaultApiVersion": kind.api_versions().first(),
                    "capabilities": "CrossResourceGroupResourceMove, CrossSubscriptionResourceMove, SupportsTags, SupportsLocation",
                });
                let zoned = name.eq_ignore_ascii_case("virtualMachines") || name.eq_ignore_ascii_case("virtualMachineScaleSets");
                if zoned && !self.options.zones.is_empty() {
                    // Azure lists zones in no order; the newest first is one that shows who relies on it.
                    let zones: Vec<&String> = self.options.zones.iter().rev().collect();
                    record["zoneMappings"] = json!([{ "location": shown, "zones": zones }]);
                }
                record
            })
            .collect();
        Some(json!({
            "id": format!("/subscriptions/{subscription}/providers/{}", provider.namespace),
            "namespace": provider.namespace,
            "authorizations": [],
            "resourceTypes": types,
            "registrationState": "Registered",
            "registrationPolicy": "RegistrationRequired",
        }))
    }

    pub(crate) fn read_provider(&self, subscription: &str, namespace: &str) -> Result<Answer, Refusal> {
        self.provider_document(subscription, namespace).map(Answer::ok).ok_or_else(|| {
            Refusal::new(
                404,
                "InvalidResourceNamespace",
                format!("The resource namespace '{namespace}' is invalid."),
            )
        })
    }

    pub(crate) fn list_providers(&self, subscription: &str) -> Answer {
        let list: Vec<Value> =
            self.providers.iter().filter_map(|p| self.provider_document(subscription, p.namespace)).collect();
        Answer::ok(json!({ "value": list }))
    }
}
