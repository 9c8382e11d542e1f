//! Defaults that AKS fills in; all of them were recorded.

use azure_engine::document::{Object, fill, into_object, strip};
use serde_json::{Value, json};

use crate::container_service::nat_gateway::{MANAGED, USUAL_IDLE};

/// Fills the whole of a cluster's properties.
pub(super) fn fill_in(properties: &mut Object, tenant: &str) {
    for (member, value) in [
        ("enableRBAC", json!(true)),
        ("powerState", json!({ "code": "Running" })),
        ("servicePrincipalProfile", json!({ "clientId": "msi" })),
        ("securityProfile", json!({})),
        ("workloadAutoScalerProfile", json!({})),
    ] {
        fill(properties, member, value);
    }
    within(properties, "autoUpgradeProfile", |profile| fill(profile, "nodeOSUpgradeChannel", "NodeImage"));
    within(properties, "storageProfile", |profile| {
        for driver in ["diskCSIDriver", "fileCSIDriver", "snapshotController"] {
            within(profile, driver, |driver| fill(driver, "enabled", true));
        }
    });
    within(properties, "oidcIssuerProfile", |profile| {
        strip(profile, &["issuerURL"]);
        fill(profile, "enabled", false);
    });
    within(properties, "metricsProfile", |profile| {
        within(profile, "costAnalysis", |analysis| fill(analysis, "enabled", false));
    });
    within(properties, "networkProfile", network);
    if properties.contains_key("aadProfile") {
        within(properties, "aadProfile", |profile| {
            strip(profile, &["serverAppSecret"]);
            if profile.get("managed") == Some(&Value::Bool(true)) {
                fill(profile, "tenantID", tenant);
                fill(profile, "enableAzureRBAC", false);
            }
        });
    }
    // Secrets are written and never shown.
    for (member, secret) in [("servicePrincipalProfile", "secret"), ("windowsProfile", "adminPassword")] {
        if let Some(Value::Object(profile)) = properties.get_mut(member) {
            profile.remove(secret);
        }
    }
    // The ids of the kubelets' identity are derived.
    if let Some(Value::Object(identity)) =
        properties.get_mut("identityProfile").and_then(|profile| profile.get_mut("kubeletidentity"))
    {
        strip(identity, &["clientId", "objectId"]);
    }
}

/// Changes an object member, which is made if it is missing.
fn within(object: &mut Object, member: &str, change: impl FnOnce(&mut Object)) {
    let mut inner = object.remove(member).map(into_object).unwrap_or_default();
    change(&mut inner);
    object.insert(member.into(), Value::Object(inner));
}

fn network(profile: &mut Object) {
    let text = |profile: &Object, member: &str| {
        profile.get(member).and_then(Value::as_str).unwrap_or_default().to_ascii_lowercase()
    };
    // A cluster without a plugin gets the overlay network.
    if !profile.contains_key("networkPlugin") {
        profile.insert("networkPlugin".into(), "azure".into());
        fill(profile, "networkPluginMode", "overlay");
    }
    let plugin = text(profile, "networkPlugin");
    let overlay = text(profile, "networkPluginMode") == "overlay";
    if plugin == "azure" {
        let dataplane = if text(profile, "networkDataplane") == "cilium" { "cilium" } else { "azure" };
        profile.insert("networkDataplane".into(), dataplane.into());
        fill(profile, "networkPolicy", if dataplane == "cilium" { "cilium" } else { "none" });
    }
    if plugin == "kubenet" || overlay {
        fill(profile, "podCidr", "10.244.0.0/16");
    }
    fill(profile, "serviceCidr", "10.0.0.0/16");
    fill(profile, "dnsServiceIP", "10.0.0.10");
    fill(profile, "outboundType", "loadBalancer");
    fill(profile, "ipFamilies", json!(["IPv4"]));
    let sku = match text(profile, "loadBalancerSku").as_str() {
        "basic" => "basic",
        _ => "standard",
    };
    profile.insert("loadBalancerSku".into(), sku.into());
    for (one, many) in [("podCidr", "podCidrs"), ("serviceCidr", "serviceCidrs")] {
        if let Some(range) = profile.get(one).cloned() {
            fill(profile, many, json!([range]));
        }
    }
    let outbound = text(profile, "outboundType");
    if outbound == MANAGED.to_ascii_lowercase() {
        within(profile, "natGatewayProfile", |gateway| {
            strip(gateway, &["effectiveOutboundIPs"]);
            within(gateway, "managedOutboundIPProfile", |managed| fill(managed, "count", 1));
            fill(gateway, "idleTimeoutInMinutes", USUAL_IDLE);
        });
    }
    if sku == "standard" && outbound == "loadbalancer" {
        within(profile, "loadBalancerProfile", |balancer| {
            strip(balancer, &["effectiveOutboundIPs"]);
            if !balancer.contains_key("outboundIPs") && !balancer.contains_key("outboundIPPrefixes") {
                within(balancer, "managedOutboundIPs", |managed| fill(managed, "count", 1));
            }
            fill(balancer, "backendPoolType", "nodeIPConfiguration");
        });
    }
}
