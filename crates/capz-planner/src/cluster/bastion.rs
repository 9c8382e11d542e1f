//! The bastion host.

use capz_api::azure_cluster::AzureBastion;
use serde_json::json;

use crate::goal::Goal;
use crate::scope::{ClusterScope, reference};
use crate::service;

/// The declared bastion host.
pub(super) fn declared(scope: ClusterScope<'_>) -> Option<&AzureBastion> {
    scope.spec.bastion_spec.as_ref()?.azure_bastion.as_ref()
}

pub(super) fn goals(scope: ClusterScope<'_>) -> Vec<Goal> {
    let Some(bastion) = declared(scope) else { return Vec::new() };
    let name = bastion.name.as_deref().unwrap_or_default();
    let subnet = bastion.subnet.as_ref().and_then(|subnet| subnet.name.as_deref()).unwrap_or_default();
    let ip = bastion.public_ip.as_ref().and_then(|ip| ip.name.as_deref()).unwrap_or_default();
    let document = json!({
        "location": scope.location(),
        "sku": { "name": bastion.sku.as_deref().unwrap_or("Basic") },
        "tags": scope.plain_tags(Some("Bastion"), Some(name)),
        "properties": {
            "dnsName": format!("{}-bastion", name.to_lowercase()),
            "enableTunneling": bastion.enable_tunneling.unwrap_or_default(),
            "ipConfigurations": [{
                "name": format!("{name}-bastionIP"),
                "properties": {
                    "privateIPAllocationMethod": "Dynamic",
                    "subnet": reference(&scope.subnet(subnet)),
                    "publicIPAddress": reference(&scope.public_ip(ip)),
                },
            }],
        },
    });
    vec![Goal::new(scope.in_group("bastionHosts", name), &service::BASTION, document)]
}
