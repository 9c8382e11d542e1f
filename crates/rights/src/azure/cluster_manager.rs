//! What the manager of clusters calls in Azure, for the types of `capz_planner`'s goals.

use super::grant::{Grant, Place};
use crate::{Feature, Program};

pub(super) const CLUSTERS: Grant = Grant {
    program: Program::ClusterManager,
    actions: &[
        "Microsoft.Compute/availabilitySets/delete",
        "Microsoft.Compute/availabilitySets/read",
        "Microsoft.Compute/availabilitySets/write",
        "Microsoft.Compute/disks/delete",
        "Microsoft.Compute/disks/read",
        "Microsoft.Compute/locations/diskOperations/read",
        "Microsoft.Compute/locations/operations/read",
        "Microsoft.Compute/skus/read",
        "Microsoft.Compute/virtualMachineScaleSets/delete",
        "Microsoft.Compute/virtualMachineScaleSets/read",
        "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/delete",
        "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/read",
        "Microsoft.Compute/virtualMachineScaleSets/write",
        "Microsoft.Compute/virtualMachines/delete",
        "Microsoft.Compute/virtualMachines/extensions/read",
        "Microsoft.Compute/virtualMachines/extensions/write",
        "Microsoft.Compute/virtualMachines/read",
        "Microsoft.Compute/virtualMachines/write",
        "Microsoft.Network/bastionHosts/delete",
        "Microsoft.Network/bastionHosts/read",
        "Microsoft.Network/bastionHosts/write",
        "Microsoft.Network/loadBalancers/delete",
        "Microsoft.Network/loadBalancers/inboundNatRules/delete",
        "Microsoft.Network/loadBalancers/inboundNatRules/read",
        "Microsoft.Network/loadBalancers/inboundNatRules/write",
        "Microsoft.Network/loadBalancers/read",
        "Microsoft.Network/loadBalancers/write",
        "Microsoft.Network/locations/operationResults/read",
        "Microsoft.Network/locations/operations/read",
        "Microsoft.Network/locations/privateDnsOperationStatuses/read",
        "Microsoft.Network/natGateways/delete",
        "Microsoft.Network/natGateways/read",
        "Microsoft.Network/natGateways/write",
        "Microsoft.Network/networkInterfaces/delete",
        "Microsoft.Network/networkInterfaces/read",
        "Microsoft.Network/networkInterfaces/write",
        "Microsoft.Network/networkSecurityGroups/delete",
        "Microsoft.Network/networkSecurityGroups/read",
        "Microsoft.Network/networkSecurityGroups/write",
        "Microsoft.Network/privateDnsZones/A/delete",
        "Microsoft.Network/privateDnsZones/A/read",
        "Microsoft.Network/privateDnsZones/A/write",
        "Microsoft.Network/privateDnsZones/AAAA/delete",
        "Microsoft.Network/privateDnsZones/AAAA/read",
        "Microsoft.Network/privateDnsZones/AAAA/write",
        "Microsoft.Network/privateDnsZones/delete",
        "Microsoft.Network/privateDnsZones/read",
        "Microsoft.Network/privateDnsZones/virtualNetworkLinks/delete",
        "Microsoft.Network/privateDnsZones/virtualNetworkLinks/read",
        "Microsoft.Network/privateDnsZones/virtualNetworkLinks/write",
        "Microsoft.Network/privateDnsZones/write",
        "Microsoft.Network/privateEndpoints/delete",
        "Microsoft.Network/privateEndpoints/read",
        "Microsoft.Network/privateEndpoints/write",
        "Microsoft.Network/publicIPAddresses/delete",
        "Microsoft.Network/publicIPAddresses/read",
        "Microsoft.Network/publicIPAddresses/write",
        "Microsoft.Network/routeTables/delete",
        "Microsoft.Network/routeTables/read",
        "Microsoft.Network/routeTables/write",
        "Microsoft.Network/virtualNetworks/delete",
        "Microsoft.Network/virtualNetworks/read",
        "Microsoft.Network/virtualNetworks/subnets/delete",
        "Microsoft.Network/virtualNetworks/subnets/read",
        "Microsoft.Network/virtualNetworks/subnets/write",
        "Microsoft.Network/virtualNetworks/virtualNetworkPeerings/delete",
        "Microsoft.Network/virtualNetworks/virtualNetworkPeerings/read",
        "Microsoft.Network/virtualNetworks/virtualNetworkPeerings/write",
        "Microsoft.Network/virtualNetworks/write",
        "Microsoft.Resources/subscriptions/operationresults/read",
        "Microsoft.Resources/subscriptions/resourceGroups/delete",
        "Microsoft.Resources/subscriptions/resourceGroups/read",
        "Microsoft.Resources/subscriptions/resourceGroups/resources/read",
        "Microsoft.Resources/subscriptions/resourceGroups/write",
    ],
    place: Place::Clusters,
    features: &[&[Feature::Clusters]],
    purpose: "the resources of clusters, machines and pools",
    is_join: false,
};

pub(super) const CLUSTER_JOINS: Grant = Grant {
    actions: &[
        "Microsoft.Network/loadBalancers/backendAddressPools/join/action",
        "Microsoft.Network/loadBalancers/inboundNatRules/join/action",
        "Microsoft.Network/natGateways/join/action",
        "Microsoft.Network/networkInterfaces/join/action",
        "Microsoft.Network/networkSecurityGroups/join/action",
        "Microsoft.Network/publicIPAddresses/join/action",
        "Microsoft.Network/routeTables/join/action",
        "Microsoft.Network/virtualNetworks/join/action",
        "Microsoft.Network/virtualNetworks/peer/action",
        "Microsoft.Network/virtualNetworks/subnets/join/action",
    ],
    purpose: "resources of clusters refer to one another",
    is_join: true,
    ..CLUSTERS
};

pub(super) const MACHINE_IDENTITIES: Grant = Grant {
    actions: &[
        "Microsoft.Authorization/roleAssignments/read",
        "Microsoft.Authorization/roleAssignments/write",
    ],
    features: &[&[Feature::MachineIdentities]],
    purpose: "roles of system-assigned identities. Limit it by a condition of the assignment to the roles that machines \
              may have",
    ..CLUSTERS
};

pub(super) const USER_ASSIGNED: Grant = Grant {
    actions: &["Microsoft.ManagedIdentity/userAssignedIdentities/read"],
    features: &[&[Feature::UserAssignedIdentities]],
    purpose: "the ids of the identities that machines get",
    ..CLUSTERS
};

pub(super) const USER_ASSIGNED_JOIN: Grant = Grant {
    actions: &["Microsoft.ManagedIdentity/userAssignedIdentities/assign/action"],
    purpose: "machines and managed clusters get identities",
    is_join: true,
    ..USER_ASSIGNED
};

pub(super) const MANAGED_CLUSTERS: Grant = Grant {
    actions: &[
        "Microsoft.Compute/virtualMachineScaleSets/read",
        "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/read",
        "Microsoft.ContainerService/locations/operationresults/read",
        "Microsoft.ContainerService/locations/operations/read",
        "Microsoft.ContainerService/managedClusters/agentPools/delete",
        "Microsoft.ContainerService/managedClusters/agentPools/read",
        "Microsoft.ContainerService/managedClusters/agentPools/write",
        "Microsoft.ContainerService/managedClusters/delete",
        "Microsoft.ContainerService/managedClusters/listClusterAdminCredential/action",
        "Microsoft.ContainerService/managedClusters/listClusterUserCredential/action",
        "Microsoft.ContainerService/managedClusters/read",
        "Microsoft.ContainerService/managedClusters/write",
        "Microsoft.Network/locations/operations/read",
        "Microsoft.Network/privateEndpoints/delete",
        "Microsoft.Network/privateEndpoints/read",
        "Microsoft.Network/privateEndpoints/write",
        "Microsoft.Network/virtualNetworks/delete",
        "Microsoft.Network/virtualNetworks/read",
        "Microsoft.Network/virtualNetworks/subnets/delete",
        "Microsoft.Network/virtualNetworks/subnets/read",
        "Microsoft.Network/virtualNetworks/subnets/write",
        "Microsoft.Network/virtualNetworks/write",
        "Microsoft.Resources/subscriptions/operationresults/read",
        "Microsoft.Resources/subscriptions/resourceGroups/delete",
        "Microsoft.Resources/subscriptions/resourceGroups/read",
        "Microsoft.Resources/subscriptions/resourceGroups/resources/read",
        "Microsoft.Resources/subscriptions/resourceGroups/write",
    ],
    features: &[&[Feature::ManagedClusters]],
    purpose: "managed clusters with their groups, networks and private endpoints, node pools, and their kubeconfigs",
    ..CLUSTERS
};

pub(super) const MANAGED_CLUSTER_JOINS: Grant = Grant {
    actions: &["Microsoft.Network/virtualNetworks/subnets/join/action"],
    purpose: "node pools and private endpoints are in subnets",
    is_join: true,
    ..MANAGED_CLUSTERS
};

pub(super) const FLEETS: Grant = Grant {
    actions: &[
        "Microsoft.ContainerService/fleets/members/delete",
        "Microsoft.ContainerService/fleets/members/read",
        "Microsoft.ContainerService/fleets/members/write",
    ],
    features: &[&[Feature::Fleets]],
    purpose: "the membership of a managed cluster in a fleet",
    ..CLUSTERS
};

pub(super) const CLUSTER_EXTENSIONS: Grant = Grant {
    actions: &[
        "Microsoft.KubernetesConfiguration/extensions/delete",
        "Microsoft.KubernetesConfiguration/extensions/operations/read",
        "Microsoft.KubernetesConfiguration/extensions/read",
        "Microsoft.KubernetesConfiguration/extensions/write",
        "Microsoft.KubernetesConfiguration/locations/operations/read",
    ],
    features: &[&[Feature::ClusterExtensions]],
    purpose: "extensions of a managed cluster",
    ..CLUSTERS
};

pub(super) const RESOURCE_HEALTH: Grant = Grant {
    actions: &["Microsoft.ResourceHealth/availabilityStatuses/read"],
    features: &[&[Feature::ResourceHealth]],
    purpose: "the health of a managed cluster",
    ..CLUSTERS
};

/// Beside those of managed clusters: what [`FLEETS`] and [`CLUSTER_EXTENSIONS`] have, and all other kinds that raw
/// resources may have.
pub(super) const RAW_RESOURCES: Grant = Grant {
    actions: &[
        "Microsoft.ContainerRegistry/registries/delete",
        "Microsoft.ContainerRegistry/registries/read",
        "Microsoft.ContainerRegistry/registries/write",
        "Microsoft.ContainerService/fleets/autoUpgradeProfiles/delete",
        "Microsoft.ContainerService/fleets/autoUpgradeProfiles/read",
        "Microsoft.ContainerService/fleets/autoUpgradeProfiles/write",
        "Microsoft.ContainerService/fleets/delete",
        "Microsoft.ContainerService/fleets/listCredentials/action",
        "Microsoft.ContainerService/fleets/members/delete",
        "Microsoft.ContainerService/fleets/members/read",
        "Microsoft.ContainerService/fleets/members/write",
        "Microsoft.ContainerService/fleets/read",
        "Microsoft.ContainerService/fleets/updateRuns/delete",
        "Microsoft.ContainerService/fleets/updateRuns/read",
        "Microsoft.ContainerService/fleets/updateRuns/write",
        "Microsoft.ContainerService/fleets/updateStrategies/delete",
        "Microsoft.ContainerService/fleets/updateStrategies/read",
        "Microsoft.ContainerService/fleets/updateStrategies/write",
        "Microsoft.ContainerService/fleets/write",
        "Microsoft.ContainerService/managedClusters/maintenanceConfigurations/delete",
        "Microsoft.ContainerService/managedClusters/maintenanceConfigurations/read",
        "Microsoft.ContainerService/managedClusters/maintenanceConfigurations/write",
        "Microsoft.ContainerService/managedClusters/trustedAccessRoleBindings/delete",
        "Microsoft.ContainerService/managedClusters/trustedAccessRoleBindings/read",
        "Microsoft.ContainerService/managedClusters/trustedAccessRoleBindings/write",
        "Microsoft.KubernetesConfiguration/extensions/delete",
        "Microsoft.KubernetesConfiguration/extensions/operations/read",
        "Microsoft.KubernetesConfiguration/extensions/read",
        "Microsoft.KubernetesConfiguration/extensions/write",
        "Microsoft.KubernetesConfiguration/fluxConfigurations/delete",
        "Microsoft.KubernetesConfiguration/fluxConfigurations/operations/read",
        "Microsoft.KubernetesConfiguration/fluxConfigurations/read",
        "Microsoft.KubernetesConfiguration/fluxConfigurations/write",
        "Microsoft.KubernetesConfiguration/locations/operations/read",
        "Microsoft.ManagedIdentity/userAssignedIdentities/delete",
        "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials/delete",
        "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials/read",
        "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials/write",
        "Microsoft.ManagedIdentity/userAssignedIdentities/read",
        "Microsoft.ManagedIdentity/userAssignedIdentities/write",
        "Microsoft.Network/applicationSecurityGroups/delete",
        "Microsoft.Network/applicationSecurityGroups/read",
        "Microsoft.Network/applicationSecurityGroups/write",
        "Microsoft.Network/locations/privateDnsOperationStatuses/read",
        "Microsoft.Network/natGateways/delete",
        "Microsoft.Network/natGateways/read",
        "Microsoft.Network/natGateways/write",
        "Microsoft.Network/networkSecurityGroups/delete",
        "Microsoft.Network/networkSecurityGroups/read",
        "Microsoft.Network/networkSecurityGroups/securityRules/delete",
        "Microsoft.Network/networkSecurityGroups/securityRules/read",
        "Microsoft.Network/networkSecurityGroups/securityRules/write",
        "Microsoft.Network/networkSecurityGroups/write",
        "Microsoft.Network/privateDnsZones/delete",
        "Microsoft.Network/privateDnsZones/read",
        "Microsoft.Network/privateDnsZones/virtualNetworkLinks/delete",
        "Microsoft.Network/privateDnsZones/virtualNetworkLinks/read",
        "Microsoft.Network/privateDnsZones/virtualNetworkLinks/write",
        "Microsoft.Network/privateDnsZones/write",
        "Microsoft.Network/privateEndpoints/privateDnsZoneGroups/delete",
        "Microsoft.Network/privateEndpoints/privateDnsZoneGroups/read",
        "Microsoft.Network/privateEndpoints/privateDnsZoneGroups/write",
        "Microsoft.Network/publicIPAddresses/delete",
        "Microsoft.Network/publicIPAddresses/read",
        "Microsoft.Network/publicIPAddresses/write",
        "Microsoft.Network/publicIPPrefixes/delete",
        "Microsoft.Network/publicIPPrefixes/read",
        "Microsoft.Network/publicIPPrefixes/write",
        "Microsoft.Network/routeTables/delete",
        "Microsoft.Network/routeTables/read",
        "Microsoft.Network/routeTables/routes/delete",
        "Microsoft.Network/routeTables/routes/read",
        "Microsoft.Network/routeTables/routes/write",
        "Microsoft.Network/routeTables/write",
        "Microsoft.Network/virtualNetworks/virtualNetworkPeerings/delete",
        "Microsoft.Network/virtualNetworks/virtualNetworkPeerings/read",
        "Microsoft.Network/virtualNetworks/virtualNetworkPeerings/write",
        "Microsoft.OperationalInsights/workspaces/delete",
        "Microsoft.OperationalInsights/workspaces/read",
        "Microsoft.OperationalInsights/workspaces/sharedKeys/action",
        "Microsoft.OperationalInsights/workspaces/write",
    ],
    features: &[&[Feature::RawResources]],
    purpose: "resources in spec.resources of AzureASOManaged* objects. Leave out the types that your objects do not have",
    ..CLUSTERS
};

pub(super) const RAW_RESOURCE_JOINS: Grant = Grant {
    actions: &[
        "Microsoft.ManagedIdentity/userAssignedIdentities/assign/action",
        "Microsoft.Network/applicationSecurityGroups/joinNetworkSecurityRule/action",
        "Microsoft.Network/natGateways/join/action",
        "Microsoft.Network/networkSecurityGroups/join/action",
        "Microsoft.Network/privateDnsZones/join/action",
        "Microsoft.Network/publicIPAddresses/join/action",
        "Microsoft.Network/publicIPPrefixes/join/action",
        "Microsoft.Network/routeTables/join/action",
        "Microsoft.Network/virtualNetworks/join/action",
        "Microsoft.Network/virtualNetworks/peer/action",
    ],
    purpose: "raw resources refer to one another",
    is_join: true,
    ..RAW_RESOURCES
};

pub(super) const RAW_ROLE_ASSIGNMENTS: Grant = Grant {
    actions: &[
        "Microsoft.Authorization/roleAssignments/delete",
        "Microsoft.Authorization/roleAssignments/read",
        "Microsoft.Authorization/roleAssignments/write",
    ],
    features: &[&[Feature::RawRoleAssignments]],
    purpose: "RoleAssignments in spec.resources. Limit it by a condition of the assignment to the roles that they may have",
    ..CLUSTERS
};
