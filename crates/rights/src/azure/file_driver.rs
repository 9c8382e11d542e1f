//! What the driver for file shares does. Only its controller makes something in Azure.

use super::grant::{Grant, Place};
use crate::Feature::{AccountKeys, KeysFromAzure, PrivateEndpoints, ServiceEndpoints, ShareCopies, Shares};
use crate::{Feature, Program};

const fn call(
    actions: &'static [&'static str],
    place: Place,
    features: &'static [&'static [Feature]],
    purpose: &'static str,
) -> Grant {
    Grant { program: Program::FileController, actions, place, features, purpose, is_join: false }
}

const fn join(
    actions: &'static [&'static str],
    place: Place,
    features: &'static [&'static [Feature]],
    purpose: &'static str,
) -> Grant {
    Grant { is_join: true, ..call(actions, place, features, purpose) }
}

pub(super) const ACCOUNTS: Grant = call(
    &["Microsoft.Storage/storageAccounts/read", "Microsoft.Storage/storageAccounts/write"],
    Place::Accounts,
    &[&[Shares]],
    "accounts that suit a class, new ones, and tags of full ones; without `write`, every class names an account",
);

pub(super) const SHARES: Grant = call(
    &[
        "Microsoft.Storage/storageAccounts/fileServices/read",
        "Microsoft.Storage/storageAccounts/fileServices/write",
        "Microsoft.Storage/storageAccounts/fileServices/shares/read",
        "Microsoft.Storage/storageAccounts/fileServices/shares/write",
        "Microsoft.Storage/storageAccounts/fileServices/shares/delete",
    ],
    Place::Accounts,
    &[&[Shares]],
    "shares and their snapshots; settings of a new account's file service",
);

pub(super) const KEYS: Grant = call(
    &["Microsoft.Storage/storageAccounts/listKeys/action"],
    Place::Accounts,
    &[&[Shares, AccountKeys]],
    "keys for Secrets, and for the file endpoint",
);

pub(super) const SUBNETS: Grant = call(
    &[
        "Microsoft.Network/virtualNetworks/read",
        "Microsoft.Network/virtualNetworks/subnets/read",
        "Microsoft.Network/virtualNetworks/subnets/write",
    ],
    Place::ShareNetworks,
    &[&[Shares, ServiceEndpoints]],
    "subnets get the service endpoint `Microsoft.Storage`; without `write`, they have it already",
);

pub(super) const SUBNET_JOINS: Grant = join(
    &[
        "Microsoft.Network/virtualNetworks/subnets/joinViaServiceEndpoint/action",
        "Microsoft.Network/networkSecurityGroups/join/action",
        "Microsoft.Network/routeTables/join/action",
        "Microsoft.Network/natGateways/join/action",
        "Microsoft.Network/serviceEndpointPolicies/join/action",
    ],
    Place::ShareNetworks,
    &[&[Shares, ServiceEndpoints]],
    "an account names subnets, and a subnet that is written names these",
);

pub(super) const ENDPOINTS: Grant = call(
    &[
        "Microsoft.Network/privateEndpoints/read",
        "Microsoft.Network/privateEndpoints/write",
        "Microsoft.Network/privateEndpoints/privateDnsZoneGroups/read",
        "Microsoft.Network/privateEndpoints/privateDnsZoneGroups/write",
        "Microsoft.Network/virtualNetworks/subnets/read",
        "Microsoft.Network/virtualNetworks/subnets/write",
        "Microsoft.Network/locations/operations/read",
        "Microsoft.Storage/storageAccounts/PrivateEndpointConnectionsApproval/action",
    ],
    Place::ShareNetworks,
    &[&[Shares, PrivateEndpoints]],
    "endpoints, with their names; the approval is needed in the groups of accounts",
);

pub(super) const ENDPOINT_JOINS: Grant = join(
    &[
        "Microsoft.Network/virtualNetworks/join/action",
        "Microsoft.Network/virtualNetworks/subnets/join/action",
        "Microsoft.Network/privateDnsZones/join/action",
    ],
    Place::ShareNetworks,
    &[&[Shares, PrivateEndpoints]],
    "endpoints are in subnets, and zones are linked with networks and endpoints",
);

pub(super) const ZONES: Grant = call(
    &[
        "Microsoft.Network/privateDnsZones/read",
        "Microsoft.Network/privateDnsZones/write",
        "Microsoft.Network/privateDnsZones/virtualNetworkLinks/read",
        "Microsoft.Network/privateDnsZones/virtualNetworkLinks/write",
        "Microsoft.Network/privateDnsOperationStatuses/read",
    ],
    Place::DnsZones,
    &[&[Shares, PrivateEndpoints]],
    "the zone of endpoints, and its link with the network",
);

pub(super) const COPIES: Grant = call(
    &[
        "Microsoft.Storage/storageAccounts/fileServices/fileshares/files/read",
        "Microsoft.Storage/storageAccounts/fileServices/fileshares/files/write",
        "Microsoft.Storage/storageAccounts/fileServices/readFileBackupSemantics/action",
        "Microsoft.Storage/storageAccounts/fileServices/writeFileBackupSemantics/action",
    ],
    Place::Accounts,
    &[&[Shares, ShareCopies]],
    "files of both shares, by a token; the built-in role `Storage File Data Privileged Contributor` has the same and more",
);

pub(super) const NODE_KEYS: Grant = Grant {
    program: Program::FileNode,
    ..call(
        &["Microsoft.Storage/storageAccounts/listKeys/action"],
        Place::Accounts,
        &[&[KeysFromAzure]],
        "the key of a share that is mounted over SMB. Each node then can have the keys of all accounts there",
    )
};
