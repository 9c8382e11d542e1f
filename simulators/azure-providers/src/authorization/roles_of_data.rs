//! Azure's built-in roles for the contents of vaults and accounts, from the same list as those for resources.

use super::built_in_role::{Role, role, usual};

pub(super) static ROLES: &[Role] = &[
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
        actions: &[
            "Microsoft.Authorization/*/read",
            "Microsoft.Insights/alertRules/*",
            "Microsoft.Resources/subscriptions/resourceGroups/read",
            "Microsoft.Support/*",
            "Microsoft.KeyVault/checkNameAvailability/read",
            "Microsoft.KeyVault/deletedVaults/read",
            "Microsoft.KeyVault/locations/*/read",
            "Microsoft.KeyVault/vaults/*/read",
            "Microsoft.KeyVault/operations/read",
        ],
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

/// The actions of vault roles that read the vault itself.
const VAULT_READ: &[&str] = usual![
    "Microsoft.KeyVault/checkNameAvailability/read",
    "Microsoft.KeyVault/deletedVaults/read",
    "Microsoft.KeyVault/locations/*/read",
    "Microsoft.KeyVault/vaults/*/read",
    "Microsoft.KeyVault/operations/read",
];
