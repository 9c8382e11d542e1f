//! Services for properties over small worlds: few, and of every kind that asks for something contested.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The Services that a cluster may have; the same for all clusters.
pub const SERVICES: [&str; 3] = ["default/web", "default/api", "shop/web"];

/// The resource group with the users' resources for their Services.
pub const KEPT_GROUP: &str = "kept";

/// A feature that a Service asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ServiceOption {
    /// An address in the virtual network.
    Internal,
    /// Only clients of two networks.
    Ranges,
    /// Only clients of one network, also from inside.
    DenyOthers,
    /// Clients that a service tag names.
    ServiceTag,
    /// Traffic stays on the node at which it arrives.
    Local,
    /// Nodes see their own address as destination.
    NodeAddress,
    /// A public IP in the shared group.
    KeptGroup,
    /// A user's public IP.
    KeptAddress,
    /// A public IP from a user's prefix.
    Prefix,
    /// A certain private address.
    PrivateAddress,
    /// A private link service.
    Link,
    /// A DNS label.
    Label,
}

/// All of them.
pub const SERVICE_OPTIONS: [ServiceOption; 12] = [
    ServiceOption::Internal,
    ServiceOption::Ranges,
    ServiceOption::DenyOthers,
    ServiceOption::ServiceTag,
    ServiceOption::Local,
    ServiceOption::NodeAddress,
    ServiceOption::KeptGroup,
    ServiceOption::KeptAddress,
    ServiceOption::Prefix,
    ServiceOption::PrivateAddress,
    ServiceOption::Link,
    ServiceOption::Label,
];

/// The clients of [`ServiceOption::Ranges`] and [`ServiceOption::DenyOthers`].
const RANGES: [&str; 2] = ["203.0.113.0/24", "10.240.0.0/14"];

impl ServiceOption {
    /// Whether it requires a public address.
    fn is_outside(self) -> bool {
        matches!(self, Self::KeptGroup | Self::KeptAddress | Self::Prefix | Self::Label)
    }

    fn is_inside(self) -> bool {
        matches!(self, Self::Internal | Self::PrivateAddress | Self::Link)
    }

    /// Whether another Service may have it.
    pub fn is_contested(self) -> bool {
        matches!(self, Self::KeptAddress | Self::PrivateAddress | Self::Link | Self::Label | Self::Prefix)
    }
}

/// A consistent subset of `drawn`.
pub fn consistent(drawn: &[ServiceOption]) -> Vec<ServiceOption> {
    let mut options: Vec<ServiceOption> = Vec::new();
    for option in drawn {
        let place = [ServiceOption::KeptGroup, ServiceOption::KeptAddress, ServiceOption::Prefix];
        let clashes = |other: &ServiceOption| {
            (option.is_outside() && other.is_inside())
                || (option.is_inside() && other.is_outside())
                || (place.contains(option) && place.contains(other))
                || option == other
                // The service tag stands for the internet, which cannot reach a private address.
                || (*option == ServiceOption::ServiceTag || *other == ServiceOption::ServiceTag)
                    && (option.is_inside() || other.is_inside())
                || [*option, *other].iter().all(|one| {
                    matches!(one, ServiceOption::Ranges | ServiceOption::DenyOthers | ServiceOption::ServiceTag)
                })
        };
        if !options.iter().any(clashes) {
            options.push(*option);
        }
    }
    options.sort();
    options
}

/// Whether its address is in the virtual network.
pub fn is_internal(options: &[ServiceOption]) -> bool {
    options.iter().any(|option| option.is_inside())
}

/// The port of a Service.
pub fn port(key: &str) -> u16 {
    let at = SERVICES.iter().position(|known| *known == key).unwrap_or(SERVICES.len());
    80 + u16::try_from(at).unwrap_or_default()
}

/// The manifest of a Service named `namespace/name`. `subnet` is the cluster's own.
pub fn manifest(key: &str, options: &[ServiceOption], subscription: &str, static_address: &str) -> Value {
    let (namespace, name) = key.split_once('/').unwrap_or_default();
    let mut annotations = serde_json::Map::new();
    let mut annotate = |key: &str, value: &str| {
        annotations.insert(format!("service.beta.kubernetes.io/{key}"), value.into());
    };
    let mut spec = json!({"type": "LoadBalancer", "selector": {"app": name},
        "ports": [{"name": "first", "protocol": "TCP", "port": port(key)}],
        "externalTrafficPolicy": "Cluster", "loadBalancerSourceRanges": []});
    if is_internal(options) {
        annotate("azure-load-balancer-internal", "true");
    }
    for option in options {
        match option {
            ServiceOption::Internal => {}
            ServiceOption::Ranges => spec["loadBalancerSourceRanges"] = json!(RANGES),
            ServiceOption::DenyOthers => {
                spec["loadBalancerSourceRanges"] = json!(RANGES);
                annotate("azure-deny-all-except-load-balancer-source-ranges", "true");
            }
            ServiceOption::ServiceTag => annotate("azure-allowed-service-tags", "Internet"),
            ServiceOption::Local => spec["externalTrafficPolicy"] = "Local".into(),
            ServiceOption::NodeAddress => annotate("azure-disable-load-balancer-floating-ip", "true"),
            ServiceOption::KeptGroup => annotate("azure-load-balancer-resource-group", KEPT_GROUP),
            ServiceOption::KeptAddress => {
                annotate("azure-load-balancer-resource-group", KEPT_GROUP);
                annotate("azure-pip-name", "address");
            }
            ServiceOption::Prefix => {
                let prefix = azure_types::ResourceId::group(subscription, KEPT_GROUP);
                let prefix = prefix.resource("Microsoft.Network", "publicIPPrefixes", "prefix");
                annotate("azure-pip-prefix-id", prefix.as_str());
            }
            ServiceOption::PrivateAddress => annotate("azure-load-balancer-ipv4", static_address),
            ServiceOption::Link => {
                annotate("azure-pls-create", "true");
                annotate("azure-pls-name", "link");
                annotate("azure-pls-ip-configuration-subnet", "links");
            }
            ServiceOption::Label => annotate("azure-dns-label-name", &format!("label-{name}")),
        }
    }
    json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"namespace": namespace, "name": name, "annotations": annotations}, "spec": spec})
}
