//! Derived members of a cluster's document: its hosts, its pools, its identity, its outbound addresses.

use azure_engine::document::{Object, at, fill, into_object};
use azure_engine::provider::{AzureState, Expand, Record};
use azure_engine::store::State;
use serde_json::{Value, json};

use crate::container_service::host::{hosts, label};
use crate::container_service::nat_gateway;
use crate::container_service::node_group::{NodeGroup, given_identity};
use crate::container_service::protocol::own_spelling;
use crate::container_service::type_names::POOLS;

/// Most pools of a cluster, as documents of clusters say it.
const MAX_POOLS: u64 = 100;

/// Adds the derived members.
pub(super) fn present(azure: &AzureState, record: &Record, document: &mut Object) {
    document.insert("id".into(), own_spelling(&record.id).into());
    document.insert("type".into(), "Microsoft.ContainerService/ManagedClusters".into());
    let Some(Value::Object(properties)) = document.get_mut("properties") else { return };
    let (public, private) = hosts(azure, record);
    if public.is_some() {
        let portal = format!("{}.portal.hcp.{}.azmk8s.io", label(azure, record), azure.location(&record.id));
        properties.insert("azurePortalFQDN".into(), portal.into());
    }
    for (member, host) in [("fqdn", public), ("privateFQDN", private)] {
        if let Some(host) = host {
            properties.insert(member.into(), host.into());
        }
    }
    let (purpose, incarnation) = (record.id.as_str(), record.incarnation);
    let unique = azure.seed.guid("resource uid", purpose, incarnation).replace('-', "");
    properties.insert("resourceUID".into(), unique.chars().take(24).collect::<String>().into());
    properties.insert("maxAgentPools".into(), MAX_POOLS.into());
    properties.insert("agentPoolProfiles".into(), pools(azure, record));
    if at(&record.body, "properties/oidcIssuerProfile/enabled") == Some(&Value::Bool(true)) {
        let issuer = azure.seed.guid("oidc issuer", purpose, incarnation);
        let tenant = azure.tenant_of(record.id.subscription_id());
        let url = format!("https://{}.oic.prod-aks.azure.com/{tenant}/{issuer}/", azure.location(&record.id));
        if let Some(Value::Object(profile)) = properties.get_mut("oidcIssuerProfile") {
            profile.insert("issuerURL".into(), url.into());
        }
    }
    // A cluster that is being created has none of this yet.
    if record.state == State::Creating {
        properties.remove("identityProfile");
        return;
    }
    let Some(group) = NodeGroup::of(azure, &record.id) else { return };
    let identity =
        record.body.get("properties").and_then(given_identity).unwrap_or_else(|| group.kubelet_identity());
    if let Some(shown) = azure.document(&identity) {
        let profile = json!({ "kubeletidentity": {
            "resourceId": own_spelling(&identity),
            "clientId": at(&shown, "properties/clientId"),
            "objectId": at(&shown, "properties/principalId"),
        } });
        properties.insert("identityProfile".into(), profile);
    }
    if let Some(Value::Object(profile)) =
        properties.get_mut("networkProfile").and_then(|profile| profile.get_mut("loadBalancerProfile"))
    {
        profile.insert("effectiveOutboundIPs".into(), group.effective_outbound(azure).into());
    }
    if let Some(Value::Object(profile)) =
        properties.get_mut("networkProfile").and_then(|profile| profile.get_mut("natGatewayProfile"))
    {
        let addresses = nat_gateway::effective_outbound(&group, azure);
        profile.insert("effectiveOutboundIPs".into(), addresses.into());
    }
}

/// The cluster's pools, as it shows them.
fn pools(azure: &AzureState, cluster: &Record) -> Value {
    let pools = azure.store.of_type_below(POOLS, &cluster.id);
    let shown = pools.into_iter().map(|pool| {
        let mut document = into_object(azure.present(pool, Expand::default()));
        let mut profile = document.remove("properties").map(into_object).unwrap_or_default();
        profile.insert("name".into(), pool.id.name().into());
        Value::Object(profile)
    });
    shown.collect()
}

/// Members that an answer shows while the write runs, and later reads do not.
pub(super) fn accepted(document: &mut Object) {
    let profiles =
        document.get_mut("properties").and_then(|properties| properties.get_mut("agentPoolProfiles"));
    for profile in profiles.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Value::Object(profile) = profile {
            fill(profile, "nodeLabels", json!({}));
        }
    }
}
