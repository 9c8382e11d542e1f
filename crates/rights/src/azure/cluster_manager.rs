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
    purpose: "machines get identities",
    is_join: true,
    ..USER_ASSIGNED
};
