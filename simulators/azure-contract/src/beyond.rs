//! What Azure takes or shows beyond its published contract, each with the recording that proves it.

use crate::violation::{Problem, Side, Violation};

/// One departure of Azure's own.
#[derive(Debug, Clone, Copy)]
pub struct Beyond {
    /// The type, in lower case.
    pub resource_type: &'static str,
    /// Whether Azure takes it or shows it.
    pub side: Side,
    /// The member, as in [`Violation::member`].
    pub member: &'static str,
    /// The recorded conversation in which it is seen.
    pub recording: &'static str,
}

const fn shown(resource_type: &'static str, member: &'static str, recording: &'static str) -> Beyond {
    Beyond { resource_type, side: Side::Answer, member, recording }
}

/// All of them.
pub const BEYOND: &[Beyond] = &[
    shown("microsoft.containerregistry/registries", "properties.policies.softDeletePolicy", "registry"),
    shown("microsoft.network/natgateways", "properties.type", "natgateway"),
    shown("microsoft.network/natgateways", "sku.tier", "natgateway"),
    shown("microsoft.network/networkinterfaces", "kind", "virtualmachine"),
    shown("microsoft.network/networkinterfaces", "properties.allowPort25Out", "virtualmachine"),
    shown("microsoft.network/privateendpoints", "properties.isIPv6EnabledPrivateEndpoint", "privateendpoint"),
    shown("microsoft.network/privateendpoints", "properties.resourceGuid", "privateendpoint"),
    shown(
        "microsoft.network/privateendpoints/privatednszonegroups",
        "properties.privateDnsZoneConfigs[].etag",
        "privatednszonegroup",
    ),
    shown(
        "microsoft.network/privateendpoints/privatednszonegroups",
        "properties.privateDnsZoneConfigs[].id",
        "privatednszonegroup",
    ),
    shown(
        "microsoft.network/privateendpoints/privatednszonegroups",
        "properties.privateDnsZoneConfigs[].properties.provisioningState",
        "privatednszonegroup",
    ),
    shown(
        "microsoft.network/privateendpoints/privatednszonegroups",
        "properties.privateDnsZoneConfigs[].type",
        "privatednszonegroup",
    ),
    shown("microsoft.network/privatelinkservices", "properties.resourceGuid", "privatelinkservice"),
    Beyond {
        resource_type: "microsoft.compute/virtualmachinescalesets/virtualmachines",
        side: Side::Request,
        member: "location",
        recording: "virtualmachinescalesetvm",
    },
];

/// Members that take fractions. Bicep, from whose types the contract was extracted, has whole numbers alone.
const FRACTIONS: [(&str, &str); 3] = [
    ("microsoft.compute/virtualmachines", "properties.billingProfile.maxPrice"),
    ("microsoft.compute/virtualmachinescalesets", "properties.virtualMachineProfile.billingProfile.maxPrice"),
    ("microsoft.containerservice/managedclusters/agentpools", "properties.spotMaxPrice"),
];

/// Whether a departure is one of Azure's own. What Azure shows may be sent back to it.
pub(crate) fn is_known(resource_type: &str, side: Side, violation: &Violation) -> bool {
    let member = violation.member.as_str();
    let of_azure = |beyond: &&Beyond| beyond.resource_type == resource_type && beyond.member == member;
    match violation.problem {
        Problem::Unknown => BEYOND.iter().filter(of_azure).any(|beyond| beyond.side == Side::Answer),
        Problem::Missing => BEYOND.iter().filter(of_azure).any(|beyond| beyond.side == side),
        Problem::JsonType("number", "integer") => FRACTIONS.contains(&(resource_type, member)),
        _ => false,
    }
}
