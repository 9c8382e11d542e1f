//! The names of kinds of resources in messages and plans.

use azure_types::ResourceId;

/// Types and their nouns: of the kinds that goals are made of, and of those that users declare as whole resources.
const NOUNS: [(&str, &str); 44] = [
    ("Microsoft.Authorization/roleAssignments", "role assignment"),
    ("Microsoft.Compute/availabilitySets", "availability set"),
    ("Microsoft.Compute/disks", "disk"),
    ("Microsoft.Compute/virtualMachines", "virtual machine"),
    ("Microsoft.Compute/virtualMachines/extensions", "extension"),
    ("Microsoft.Compute/virtualMachineScaleSets", "scale set"),
    ("Microsoft.Compute/virtualMachineScaleSets/virtualMachines", "instance"),
    ("Microsoft.ContainerRegistry/registries", "container registry"),
    ("Microsoft.ContainerService/fleets", "fleet"),
    ("Microsoft.ContainerService/fleets/autoUpgradeProfiles", "upgrade profile"),
    ("Microsoft.ContainerService/fleets/members", "fleet member"),
    ("Microsoft.ContainerService/fleets/updateRuns", "update run"),
    ("Microsoft.ContainerService/fleets/updateStrategies", "update strategy"),
    ("Microsoft.ContainerService/managedClusters", "managed cluster"),
    ("Microsoft.ContainerService/managedClusters/agentPools", "node pool"),
    ("Microsoft.ContainerService/managedClusters/maintenanceConfigurations", "maintenance window"),
    ("Microsoft.ContainerService/managedClusters/trustedAccessRoleBindings", "trusted access"),
    ("Microsoft.KubernetesConfiguration/extensions", "cluster extension"),
    ("Microsoft.KubernetesConfiguration/fluxConfigurations", "Flux configuration"),
    ("Microsoft.ManagedIdentity/userAssignedIdentities", "identity"),
    ("Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials", "federated credential"),
    ("Microsoft.Network/applicationSecurityGroups", "application security group"),
    ("Microsoft.Network/bastionHosts", "bastion host"),
    ("Microsoft.Network/loadBalancers", "load balancer"),
    ("Microsoft.Network/loadBalancers/inboundNatRules", "inbound NAT rule"),
    ("Microsoft.Network/natGateways", "NAT gateway"),
    ("Microsoft.Network/networkInterfaces", "network interface"),
    ("Microsoft.Network/networkSecurityGroups", "security group"),
    ("Microsoft.Network/networkSecurityGroups/securityRules", "security rule"),
    ("Microsoft.Network/privateDnsZones", "private DNS zone"),
    ("Microsoft.Network/privateDnsZones/A", "DNS record"),
    ("Microsoft.Network/privateDnsZones/AAAA", "DNS record"),
    ("Microsoft.Network/privateDnsZones/virtualNetworkLinks", "link of a private DNS zone"),
    ("Microsoft.Network/privateEndpoints", "private endpoint"),
    ("Microsoft.Network/privateEndpoints/privateDnsZoneGroups", "DNS zones of a private endpoint"),
    ("Microsoft.Network/publicIPAddresses", "public IP"),
    ("Microsoft.Network/publicIPPrefixes", "public IP prefix"),
    ("Microsoft.Network/routeTables", "route table"),
    ("Microsoft.Network/routeTables/routes", "route"),
    ("Microsoft.Network/virtualNetworks", "virtual network"),
    ("Microsoft.Network/virtualNetworks/subnets", "subnet"),
    ("Microsoft.Network/virtualNetworks/virtualNetworkPeerings", "peering"),
    ("Microsoft.OperationalInsights/workspaces", "Log Analytics workspace"),
    ("Microsoft.Resources/resourceGroups", "resource group"),
];

/// The noun for the resource with this ID, such as `subnet`; `resource` for types that no goal is made of.
pub fn noun(id: &ResourceId) -> &'static str {
    of_type(&id.resource_type()).unwrap_or("resource")
}

/// The noun of a type, in any case.
pub(crate) fn of_type(resource_type: &str) -> Option<&'static str> {
    NOUNS.iter().find(|(name, _)| name.eq_ignore_ascii_case(resource_type)).map(|(_, noun)| *noun)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_are_found_by_id_in_any_case() {
        for (id, expected) in [
            ("/subscriptions/s/resourceGroups/g", "resource group"),
            (
                "/subscriptions/s/resourcegroups/g/providers/microsoft.network/VIRTUALNETWORKS/v",
                "virtual network",
            ),
            (
                "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v/subnets/n",
                "subnet",
            ),
            (
                "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/privateDnsZones/z/A/apiserver",
                "DNS record",
            ),
            ("/subscriptions/s/providers/Microsoft.Authorization/roleAssignments/r", "role assignment"),
            (
                "/subscriptions/s/resourceGroups/g/providers/Microsoft.ContainerService/managedClusters/c\
                 /providers/Microsoft.KubernetesConfiguration/extensions/e",
                "cluster extension",
            ),
            ("/subscriptions/s/resourceGroups/g/providers/Microsoft.Else/things/t", "resource"),
        ] {
            let id = ResourceId::parse(id).unwrap();
            assert_eq!(noun(&id), expected, "{id}");
        }
    }
}
