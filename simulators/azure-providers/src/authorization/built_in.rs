//! Azure's own roles, as far as clusters and those who run them are told to use them ("Azure built-in roles").

use azure_types::ResourceId;
use jiff::Timestamp;
use serde_json::json;

use super::definition::RoleDefinitions;
use super::role::{BUILT_IN, OWNER, id_in};
use azure_engine::provider::{AzureState, Record};

struct Role {
    guid: &'static str,
    name: &'static str,
    description: &'static str,
    actions: &'static [&'static str],
    not_actions: &'static [&'static str],
    data_actions: &'static [&'static str],
    not_data_actions: &'static [&'static str],
}

const fn role(guid: &'static str, name: &'static str, description: &'static str) -> Role {
    Role { guid, name, description, actions: &[], not_actions: &[], data_actions: &[], not_data_actions: &[] }
}

/// What most roles may read and do besides.
macro_rules! usual {
    ($($action:literal),* $(,)?) => {
        &[
            "Microsoft.Authorization/*/read",
            "Microsoft.Insights/alertRules/*",
            "Microsoft.Resources/deployments/*",
            "Microsoft.Resources/subscriptions/resourceGroups/read",
            "Microsoft.Support/*",
            $($action),*
        ]
    };
}

/// Puts them into each subscription.
pub(super) fn give(azure: &mut AzureState) {
    let options = azure.options.clone();
    for subscription in std::iter::once(&options.subscription).chain(&options.more_subscriptions) {
        let subscription = ResourceId::subscription(subscription);
        for role in &ROLES {
            let id = id_in(&subscription, role.guid);
            if azure.store.get(&id).is_some() {
                continue;
            }
            let body = json!({ "properties": {
                "roleName": role.name,
                "type": BUILT_IN,
                "description": role.description,
                "assignableScopes": ["/"],
                "permissions": [{
                    "actions": role.actions,
                    "notActions": role.not_actions,
                    "dataActions": role.data_actions,
                    "notDataActions": role.not_data_actions,
                }],
            } });
            // Before any cluster was.
            let created = Timestamp::from_second(1_422_835_200).unwrap_or(Timestamp::UNIX_EPOCH);
            azure.store.insert(Record::new(&RoleDefinitions, &id, body, created));
        }
    }
}

static ROLES: [Role; 41] = [
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
        actions: usual![
            "Microsoft.Compute/snapshots/delete",
            "Microsoft.Compute/snapshots/write",
            "Microsoft.Compute/snapshots/read",
            "Microsoft.Compute/snapshots/beginGetAccess/action",
            "Microsoft.Compute/snapshots/endGetAccess/action",
            "Microsoft.Compute/disks/beginGetAccess/action",
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
            "Microsoft.ContainerService/locations/*/read",
            "Microsoft.ContainerService/managedClusters/*",
            "Microsoft.Resources/deployments/*",
        ],
        ..role(
            "ed7f3fbd-7b88-4dd4-9017-9adb7ce333f8",
            "Azure Kubernetes Service Contributor Role",
            "Read and write managed clusters.",
        )
    },
    Role {
        actions: usual!["Microsoft.ContainerService/managedClusters/listClusterUserCredential/action"],
        data_actions: &["Microsoft.ContainerService/managedClusters/*"],
        ..role(
            "b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b",
            "Azure Kubernetes Service RBAC Cluster Admin",
            "Manage all resources in the cluster.",
        )
    },
    Role {
        actions: usual!["Microsoft.ContainerService/managedClusters/listClusterUserCredential/action"],
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
            "Microsoft.ClassicStorage/storageAccounts/*",
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
        actions: &[
            "Microsoft.Storage/storageAccounts/blobServices/containers/*",
            "Microsoft.Storage/storageAccounts/blobServices/generateUserDelegationKey/action",
        ],
        data_actions: &["Microsoft.Storage/storageAccounts/blobServices/containers/blobs/*"],
        ..role(
            "b7e6dc6d-f1e8-4753-8033-0f276bb0955b",
            "Storage Blob Data Owner",
            "Full access to blobs and containers.",
        )
    },
    Role {
        actions: &[
            "Microsoft.Storage/storageAccounts/blobServices/containers/delete",
            "Microsoft.Storage/storageAccounts/blobServices/containers/read",
            "Microsoft.Storage/storageAccounts/blobServices/containers/write",
            "Microsoft.Storage/storageAccounts/blobServices/generateUserDelegationKey/action",
        ],
        data_actions: &[
            "Microsoft.Storage/storageAccounts/blobServices/containers/blobs/delete",
            "Microsoft.Storage/storageAccounts/blobServices/containers/blobs/read",
            "Microsoft.Storage/storageAccounts/blobServices/containers/blobs/write",
            "Microsoft.Storage/storageAccounts/blobServices/containers/blobs/move/action",
            "Microsoft.Storage/storageAccounts/blobServices/containers/blobs/add/action",
        ],
        ..role(
            "ba92f5b4-2d11-453d-a403-e96b0029c9fe",
            "Storage Blob Data Contributor",
            "Read, write and delete containers and blobs.",
        )
    },
    Role {
        actions: &[
            "Microsoft.Storage/storageAccounts/blobServices/containers/read",
            "Microsoft.Storage/storageAccounts/blobServices/generateUserDelegationKey/action",
        ],
        data_actions: &["Microsoft.Storage/storageAccounts/blobServices/containers/blobs/read"],
        ..role(
            "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1",
            "Storage Blob Data Reader",
            "Read containers and blobs.",
        )
    },
    Role {
        data_actions: &[
            "Microsoft.Storage/storageAccounts/fileServices/fileshares/files/read",
            "Microsoft.Storage/storageAccounts/fileServices/fileshares/files/write",
            "Microsoft.Storage/storageAccounts/fileServices/fileshares/files/delete",
        ],
        ..role(
            "0c867c2a-1d8c-454a-a3db-ab2ea1bdc8bb",
            "Storage File Data SMB Share Contributor",
            "Read, write and delete files in shares over SMB.",
        )
    },
    Role {
        data_actions: &[
            "Microsoft.Storage/storageAccounts/fileServices/fileshares/files/read",
            "Microsoft.Storage/storageAccounts/fileServices/fileshares/files/write",
            "Microsoft.Storage/storageAccounts/fileServices/fileshares/files/delete",
            "Microsoft.Storage/storageAccounts/fileServices/fileshares/files/modifypermissions/action",
        ],
        ..role(
            "a7264617-510b-434b-a828-9731dc254ea7",
            "Storage File Data SMB Share Elevated Contributor",
            "Read, write, delete and change permissions of files in shares over SMB.",
        )
    },
    Role {
        data_actions: &["Microsoft.Storage/storageAccounts/fileServices/fileshares/files/read"],
        ..role(
            "aba4ae5f-2193-4029-9191-0cb91df5e314",
            "Storage File Data SMB Share Reader",
            "Read files in shares over SMB.",
        )
    },
    Role {
        data_actions: &[
            "Microsoft.Storage/storageAccounts/fileServices/fileshares/files/read",
            "Microsoft.Storage/storageAccounts/fileServices/fileshares/files/write",
            "Microsoft.Storage/storageAccounts/fileServices/fileshares/files/delete",
            "Microsoft.Storage/storageAccounts/fileServices/fileshares/files/modifypermissions/action",
            "Microsoft.Storage/storageAccounts/fileServices/readFileBackupSemantics/action",
            "Microsoft.Storage/storageAccounts/fileServices/writeFileBackupSemantics/action",
        ],
        ..role(
            "69566ab7-960f-475b-8e7c-b3118f30c6bd",
            "Storage File Data Privileged Contributor",
            "Read, write, delete and change permissions of files in shares, whatever their own permissions say.",
        )
    },
    Role {
        data_actions: &[
            "Microsoft.Storage/storageAccounts/fileServices/fileshares/files/read",
            "Microsoft.Storage/storageAccounts/fileServices/readFileBackupSemantics/action",
        ],
        ..role(
            "b8eda974-7b85-4f76-af95-65846b26df6d",
            "Storage File Data Privileged Reader",
            "Read files in shares, whatever their own permissions say.",
        )
    },
    Role {
        actions: VAULT_READ,
        data_actions: &["Microsoft.KeyVault/vaults/*"],
        ..role(
            "00482a5a-887f-4fb3-b363-3b7fe8e74483",
            "Key Vault Administrator",
            "Do everything with what is in a vault, but not with the vault itself.",
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
    Role {
        actions: VAULT_READ,
        data_actions: &[
            "Microsoft.KeyVault/vaults/*/read",
            "Microsoft.KeyVault/vaults/secrets/readMetadata/action",
        ],
        ..role(
            "21090545-7ca7-4776-b22c-e363652d74d2",
            "Key Vault Reader",
            "Read what a vault says of its contents, but no secrets.",
        )
    },
    Role {
        data_actions: &[
            "Microsoft.KeyVault/vaults/secrets/getSecret/action",
            "Microsoft.KeyVault/vaults/secrets/readMetadata/action",
        ],
        ..role("4633458b-17de-408a-b874-0445c86b69e6", "Key Vault Secrets User", "Read secrets.")
    },
    Role {
        actions: VAULT_READ,
        data_actions: &["Microsoft.KeyVault/vaults/secrets/*"],
        ..role(
            "b86a8fe4-44ce-4948-aee5-eccb2c155cd7",
            "Key Vault Secrets Officer",
            "Do everything with secrets but manage permissions.",
        )
    },
    Role {
        actions: VAULT_READ,
        data_actions: &[
            "Microsoft.KeyVault/vaults/certificatecas/*",
            "Microsoft.KeyVault/vaults/certificates/*",
            "Microsoft.KeyVault/vaults/certificatecontacts/write",
        ],
        ..role(
            "a4417e6f-fecd-4de8-b567-7b0420556985",
            "Key Vault Certificates Officer",
            "Do everything with certificates but manage permissions.",
        )
    },
    Role {
        actions: VAULT_READ,
        data_actions: &[
            "Microsoft.KeyVault/vaults/keys/*",
            "Microsoft.KeyVault/vaults/keyrotationpolicies/*",
        ],
        ..role(
            "14b46e9e-c2b7-41b4-b07b-48a6ebf60603",
            "Key Vault Crypto Officer",
            "Do everything with keys but manage permissions.",
        )
    },
    Role {
        data_actions: &[
            "Microsoft.KeyVault/vaults/keys/read",
            "Microsoft.KeyVault/vaults/keys/update/action",
            "Microsoft.KeyVault/vaults/keys/backup/action",
            "Microsoft.KeyVault/vaults/keys/encrypt/action",
            "Microsoft.KeyVault/vaults/keys/decrypt/action",
            "Microsoft.KeyVault/vaults/keys/wrap/action",
            "Microsoft.KeyVault/vaults/keys/unwrap/action",
            "Microsoft.KeyVault/vaults/keys/sign/action",
            "Microsoft.KeyVault/vaults/keys/verify/action",
        ],
        ..role("12338af0-0e69-4776-bea7-57ae8d297424", "Key Vault Crypto User", "Use keys.")
    },
    Role {
        actions: &[
            "Microsoft.EventGrid/eventSubscriptions/write",
            "Microsoft.EventGrid/eventSubscriptions/read",
            "Microsoft.EventGrid/eventSubscriptions/delete",
        ],
        data_actions: &[
            "Microsoft.KeyVault/vaults/keys/read",
            "Microsoft.KeyVault/vaults/keys/wrap/action",
            "Microsoft.KeyVault/vaults/keys/unwrap/action",
        ],
        ..role(
            "e147488a-f6f5-4113-8e2d-b22465e65bf6",
            "Key Vault Crypto Service Encryption User",
            "Read what a vault says of keys, and wrap and unwrap with them.",
        )
    },
];

/// What roles for a vault's contents may read of the vault.
const VAULT_READ: &[&str] = usual![
    "Microsoft.KeyVault/checkNameAvailability/read",
    "Microsoft.KeyVault/deletedVaults/read",
    "Microsoft.KeyVault/locations/*/read",
    "Microsoft.KeyVault/vaults/*/read",
    "Microsoft.KeyVault/operations/read",
];
