//! `locations/{location}/usages`: how much of what Network counts a subscription has.

use serde_json::{Value, json};

use azure_engine::document::text;
use azure_engine::provider::AzureState;

/// Azure's name of the count, in words, the type, and the limit.
const COUNTED: [(&str, &str, &str, &str); 11] = [
    ("VirtualNetworks", "Virtual Networks", "virtualNetworks", "virtualNetworksPerRegion"),
    ("NetworkInterfaces", "Network Interfaces", "networkInterfaces", "interfacesPerRegion"),
    ("NetworkSecurityGroups", "Network Security Groups", "networkSecurityGroups", "securityGroupsPerRegion"),
    (
        "ApplicationSecurityGroups",
        "Application Security Groups",
        "applicationSecurityGroups",
        "applicationSecurityGroupsPerRegion",
    ),
    ("RouteTables", "Route Tables", "routeTables", "routeTablesPerRegion"),
    ("PublicIPAddresses", "Public IP Addresses", "publicIPAddresses", "publicIpAddressesPerRegion"),
    ("LoadBalancers", "Load Balancers", "loadBalancers", "loadBalancersPerRegion"),
    ("NatGateways", "NAT Gateways", "natGateways", "natGatewaysPerRegion"),
    ("PrivateEndpoints", "Private Endpoints", "privateEndpoints", "privateEndpointsPerRegion"),
    ("PrivateLinkServices", "Private Link Services", "privateLinkServices", "privateLinkServicesPerRegion"),
    (
        "StandardSkuPublicIpAddresses",
        "Public IPv4 Addresses - Standard",
        "publicIPAddresses",
        "publicIpAddressesPerRegion",
    ),
];

pub(crate) fn of(azure: &AzureState, subscription: &str, location: &str) -> Value {
    let count = |name: &str, of: &str| {
        let resource_type = format!("Microsoft.Network/{of}");
        let records = azure.store.of_type(&resource_type);
        records
            .filter(|record| record.id.subscription_id().eq_ignore_ascii_case(subscription))
            .filter(|record| text(&record.body, "location") == Some(location))
            .filter(|record| {
                !name.starts_with("Standard") || text(&record.body, "sku/name") == Some("Standard")
            })
            .count()
    };
    let list: Vec<Value> = COUNTED
        .into_iter()
        .map(|(name, shown, of, limit)| {
            json!({
                "id": format!(
                    "/subscriptions/{subscription}/providers/Microsoft.Network/locations/{location}/usages/{name}"
                ),
                "unit": "Count",
                "currentValue": count(name, of),
                "limit": azure.limit(&format!("network.{limit}")),
                "name": { "value": name, "localizedValue": shown },
            })
        })
        .collect();
    json!({ "value": list })
}
