//! Azure's built-in roles for resources: creating, changing, reading and deleting them. Names, GUIDs and permissions
//! are those that Azure itself listed in August 2026 (`GET roleDefinitions`, as `azure/built-in-roles-raw.json` of
//! github.com/iann0036/iam-dataset keeps it); the descriptions are ours.

use super::built_in_role::{Role, role, usual};
use super::role::OWNER;

pub(super) static ROLES: &[Role] = &[
    Role {
        actions: &["*"],
        ..role(
            OWNER,
            "Owner",
            "Grants full access to manage all resources, including the ability to assign roles.",
        )
    },
    Role {
        actions: &["*"],
        not_actions: &[
            "Microsoft.Authorization/*/Delete",
            "Microsoft.Authorization/*/Write",
            "Microsoft.Authorization/elevateAccess/Action",
            "Microsoft.Blueprint/blueprintAssignments/write",
            "Microsoft.Blueprint/blueprintAssignments/delete",
            "Microsoft.Compute/galleries/share/action",
            "Microsoft.Purview/consents/write",
            "Microsoft.Purview/consents/delete",
            "Microsoft.Resources/deploymentStacks/manageDenySetting/action",
            "Microsoft.Subscription/cancel/action",
            "Microsoft.Subscription/enable/action",
        ],
        ..role(
            "b24988ac-6180-42a0-ab88-20f7382dd24c",
            "Contributor",
            "Grants full access to manage all resources, but not to assign roles.",
        )
    },
    Role {
        actions: &["*/read"],
        ..role(
            "acdd72a7-3385-48ef-bd42-f606fba81ae7",
            "Reader",
            "View all resources, without making changes.",
        )
    },
    Role {
        actions: &["*/read", "Microsoft.Authorization/*", "Microsoft.Support/*"],
        ..role(
            "18d7d88d-d35e-4fb5-a5c3-7773c20a72d9",
            "User Access Administrator",
            "Manage who has access to resources.",
        )
    },
    Role {
        actions: &[
            "Microsoft.Authorization/roleAssignments/write",
            "Microsoft.Authorization/roleAssignments/delete",
            "*/read",
            "Microsoft.Support/*",
        ],
        ..role(
            "f58310d9-a9f6-439a-9e8d-f62e7b41a168",
            "Role Based Access Control Administrator",
            "Manage access to resources by assigning roles.",
        )
    },
    Role {
        actions: usual!["Microsoft.Network/*", "Microsoft.ResourceHealth/availabilityStatuses/read"],
        ..role(
            "4d97b98b-1d4f-4787-a291-c67834d212e7",
            "Network Contributor",
            "Manage networks, but not access to them.",
        )
    },
    Role {
        actions: usual!["Microsoft.Network/dnsZones/*", "Microsoft.ResourceHealth/availabilityStatuses/read"],
        ..role(
            "befefa01-2a29-4197-83a8-272ff33ce314",
            "DNS Zone Contributor",
            "Manage DNS zones and their records.",
        )
    },
    Role {
        actions: usual![
            "Microsoft.Network/privateDnsZones/*",
            "Microsoft.Network/privateDnsOperationResults/*",
            "Microsoft.Network/privateDnsOperationStatuses/*",
            "Microsoft.Network/virtualNetworks/read",
            "Microsoft.Network/virtualNetworks/join/action",
        ],
        ..role(
            "b12aa53e-6015-4669-85d0-8515ebb3ae7f",
            "Private DNS Zone Contributor",
            "Manage private DNS zones, but not the networks they are linked to.",
        )
    },
    Role {
        actions: usual![
            "Microsoft.Compute/availabilitySets/*",
            "Microsoft.Compute/locations/*",
            "Microsoft.Compute/virtualMachines/*",
            "Microsoft.Compute/virtualMachineScaleSets/*",
            "Microsoft.Compute/cloudServices/*",
            "Microsoft.Compute/disks/write",
            "Microsoft.Compute/disks/read",
            "Microsoft.Compute/disks/delete",
            "Microsoft.Compute/hostgroups/write",
            "Microsoft.Compute/hostgroups/hosts/write",
            "Microsoft.DevTestLab/schedules/*",
            "Microsoft.Network/applicationGateways/backendAddressPools/join/action",
            "Microsoft.Network/loadBalancers/backendAddressPools/join/action",
            "Microsoft.Network/loadBalancers/inboundNatPools/join/action",
            "Microsoft.Network/loadBalancers/inboundNatRules/join/action",
            "Microsoft.Network/loadBalancers/probes/join/action",
            "Microsoft.Network/loadBalancers/read",
            "Microsoft.Network/locations/*",
            "Microsoft.Network/networkInterfaces/*",
            "Microsoft.Network/networkSecurityGroups/join/action",
            "Microsoft.Network/networkSecurityGroups/read",
            "Microsoft.Network/publicIPAddresses/join/action",
            "Microsoft.Network/publicIPAddresses/read",
            "Microsoft.Network/virtualNetworks/read",
            "Microsoft.Network/virtualNetworks/subnets/join/action",
            "Microsoft.RecoveryServices/locations/*",
            "Microsoft.RecoveryServices/Vaults/backupFabrics/backupProtectionIntent/write",
            "Microsoft.RecoveryServices/Vaults/backupFabrics/protectionContainers/protectedItems/*/read",
            "Microsoft.RecoveryServices/Vaults/backupFabrics/protectionContainers/protectedItems/read",
            "Microsoft.RecoveryServices/Vaults/backupFabrics/protectionContainers/protectedItems/write",
            "Microsoft.RecoveryServices/Vaults/backupPolicies/read",
            "Microsoft.RecoveryServices/Vaults/backupPolicies/write",
            "Microsoft.RecoveryServices/Vaults/read",
            "Microsoft.RecoveryServices/Vaults/usages/read",
            "Microsoft.RecoveryServices/Vaults/write",
            "Microsoft.ResourceHealth/availabilityStatuses/read",
            "Microsoft.SerialConsole/serialPorts/connect/action",
            "Microsoft.SqlVirtualMachine/*",
            "Microsoft.Storage/storageAccounts/listKeys/action",
            "Microsoft.Storage/storageAccounts/read",
        ],
        ..role(
            "9980e02c-c2be-4d73-94e8-173b1dc7cf3c",
            "Virtual Machine Contributor",
            "Manage virtual machines and their disks, but not the networks they are in.",
        )
    },
    Role {
        actions: &[
            "Microsoft.Network/publicIPAddresses/read",
            "Microsoft.Network/virtualNetworks/read",
            "Microsoft.Network/loadBalancers/read",
            "Microsoft.Network/networkInterfaces/read",
            "Microsoft.Compute/virtualMachines/*/read",
            "Microsoft.HybridCompute/machines/*/read",
            "Microsoft.HybridConnectivity/endpoints/listCredentials/action",
        ],
        data_actions: &[
            "Microsoft.Compute/virtualMachines/login/action",
            "Microsoft.Compute/virtualMachines/loginAsAdmin/action",
            "Microsoft.HybridCompute/machines/login/action",
            "Microsoft.HybridCompute/machines/loginAsAdmin/action",
        ],
        ..role(
            "1c0163c0-47e6-4577-8991-ea5c82e286e4",
            "Virtual Machine Administrator Login",
            "Sign in to virtual machines as administrator.",
        )
    },
    Role {
        actions: &[
            "Microsoft.Authorization/*/read",
            "Microsoft.Resources/subscriptions/resourceGroups/read",
            "Microsoft.Compute/snapshots/delete",
            "Microsoft.Compute/snapshots/write",
            "Microsoft.Compute/snapshots/read",
            "Microsoft.Compute/snapshots/beginGetAccess/action",
            "Microsoft.Compute/snapshots/endGetAccess/action",
            "Microsoft.Compute/disks/beginGetAccess/action",
            "Microsoft.Storage/storageAccounts/listkeys/action",
            "Microsoft.Storage/storageAccounts/write",
            "Microsoft.Storage/storageAccounts/read",
            "Microsoft.Storage/storageAccounts/delete",
        ],
        ..role(
            "7efff54f-a5b4-42b5-a1c5-5411624893ce",
            "Disk Snapshot Contributor",
            "Lets a backup vault manage snapshots of disks.",
        )
    },
    Role {
        actions: &[
            "Microsoft.ManagedIdentity/userAssignedIdentities/read",
            "Microsoft.ManagedIdentity/userAssignedIdentities/write",
            "Microsoft.ManagedIdentity/userAssignedIdentities/delete",
            "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials/read",
            "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials/write",
            "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials/delete",
            "Microsoft.ManagedIdentity/userAssignedIdentities/revokeTokens/action",
            "Microsoft.Authorization/*/read",
            "Microsoft.Insights/alertRules/*",
            "Microsoft.Resources/subscriptions/resourceGroups/read",
            "Microsoft.Resources/deployments/*",
            "Microsoft.Support/*",
        ],
        ..role(
            "e40ec5ca-96e0-45a2-b4ff-59039f2c2b59",
            "Managed Identity Contributor",
            "Make, read, change and delete user-assigned identities.",
        )
    },
    Role {
        actions: usual![
            "Microsoft.ManagedIdentity/userAssignedIdentities/*/read",
            "Microsoft.ManagedIdentity/userAssignedIdentities/*/assign/action",
        ],
        ..role(
            "f1a07417-d97a-45cb-824c-7a7467783830",
            "Managed Identity Operator",
            "Read user-assigned identities and assign them.",
        )
    },
    Role {
        actions: usual![
            "Microsoft.Resources/subscriptions/resourceGroups/resources/read",
            "Microsoft.Resources/subscriptions/resources/read",
            "Microsoft.Resources/tags/*"
        ],
        ..role(
            "4a9ae827-6dc8-4573-8ac7-8239d42aa03f",
            "Tag Contributor",
            "Manage tags, but not what has them.",
        )
    },
    Role {
        actions: &["Microsoft.ContainerRegistry/registries/pull/read"],
        ..role("7f951dda-4ed3-4680-a7ca-43fe172d538d", "AcrPull", "acr pull")
    },
    Role {
        actions: &[
            "Microsoft.ContainerRegistry/registries/pull/read",
            "Microsoft.ContainerRegistry/registries/push/write",
        ],
        ..role("8311e382-0749-4cb8-b61a-304f252e45ec", "AcrPush", "acr push")
    },
    Role {
        actions: &["Microsoft.ContainerRegistry/registries/artifacts/delete"],
        ..role("c2f4ef07-c644-48eb-af81-4b1b4947fb11", "AcrDelete", "acr delete")
    },
    Role {
        actions: &[
            "Microsoft.ContainerService/managedClusters/listClusterAdminCredential/action",
            "Microsoft.ContainerService/managedClusters/accessProfiles/listCredential/action",
            "Microsoft.ContainerService/managedClusters/read",
            "Microsoft.ContainerService/managedClusters/runcommand/action",
        ],
        ..role(
            "0ab0b1a8-8aac-4efd-b8c2-3ee1fb270be8",
            "Azure Kubernetes Service Cluster Admin Role",
            "List cluster admin credential action.",
        )
    },
    Role {
        actions: &[
            "Microsoft.ContainerService/managedClusters/listClusterUserCredential/action",
            "Microsoft.ContainerService/managedClusters/read",
        ],
        ..role(
            "4abbcc35-e782-43d8-92c5-2d3f1bd2253f",
            "Azure Kubernetes Service Cluster User Role",
            "List cluster user credential action.",
        )
    },
    Role {
        actions: &[
            "Microsoft.Authorization/*/read",
            "Microsoft.ContainerService/locations/*",
            "Microsoft.ContainerService/managedClusters/*",
            "Microsoft.ContainerService/managedclustersnapshots/*",
            "Microsoft.ContainerService/snapshots/*",
            "Microsoft.Insights/alertRules/*",
            "Microsoft.Resources/deployments/*",
            "Microsoft.Resources/subscriptions/resourceGroups/read",
            "Microsoft.ContainerService/deploymentSafeguards/*",
        ],
        ..role(
            "ed7f3fbd-7b88-4dd4-9017-9adb7ce333f8",
            "Azure Kubernetes Service Contributor Role",
            "Read and write managed clusters.",
        )
    },
    Role {
        actions: CLUSTER_USER,
        data_actions: &["Microsoft.ContainerService/managedClusters/*"],
        ..role(
            "b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b",
            "Azure Kubernetes Service RBAC Cluster Admin",
            "Manage all resources in the cluster.",
        )
    },
    Role {
        actions: CLUSTER_USER,
        data_actions: &["Microsoft.ContainerService/managedClusters/*"],
        not_data_actions: &[
            "Microsoft.ContainerService/managedClusters/resourcequotas/write",
            "Microsoft.ContainerService/managedClusters/resourcequotas/delete",
            "Microsoft.ContainerService/managedClusters/namespaces/write",
            "Microsoft.ContainerService/managedClusters/namespaces/delete",
        ],
        ..role(
            "3498e952-d568-435e-9b2c-8d77e338d7f7",
            "Azure Kubernetes Service RBAC Admin",
            "Manage all resources in the cluster or a namespace but quotas and namespaces.",
        )
    },
    Role {
        actions: usual![
            "Microsoft.Insights/diagnosticSettings/*",
            "Microsoft.Network/virtualNetworks/subnets/joinViaServiceEndpoint/action",
            "Microsoft.ResourceHealth/availabilityStatuses/read",
            "Microsoft.Storage/storageAccounts/*",
        ],
        ..role(
            "17d1049b-9a84-46fb-8f53-869881c3d3ab",
            "Storage Account Contributor",
            "Manage storage accounts and read their keys.",
        )
    },
    Role {
        actions: &[
            "Microsoft.Storage/storageAccounts/listkeys/action",
            "Microsoft.Storage/storageAccounts/regeneratekey/action",
        ],
        ..role(
            "81a9662b-bebf-436f-a333-f67b29880f12",
            "Storage Account Key Operator Service Role",
            "List and regenerate keys of storage accounts.",
        )
    },
    Role {
        actions: usual!["Microsoft.KeyVault/*"],
        not_actions: &[
            "Microsoft.KeyVault/locations/deletedVaults/purge/action",
            "Microsoft.KeyVault/hsmPools/*",
            "Microsoft.KeyVault/managedHsms/*",
        ],
        ..role(
            "f25e0fa2-a7c8-4377-a976-54943a77a395",
            "Key Vault Contributor",
            "Manage vaults, but not what is in them.",
        )
    },
];

/// The actions outside the cluster of roles for the contents of a cluster.
const CLUSTER_USER: &[&str] = &[
    "Microsoft.Authorization/*/read",
    "Microsoft.Resources/subscriptions/operationresults/read",
    "Microsoft.Resources/subscriptions/read",
    "Microsoft.Resources/subscriptions/resourceGroups/read",
    "Microsoft.ContainerService/managedClusters/listClusterUserCredential/action",
];
