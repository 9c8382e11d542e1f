//! Parameters of VolumeSnapshotClasses: one row each.

use super::disk_table::{NETWORK_POLICIES, PUBLIC_ACCESS};
use super::form::Form::{OneOf, OnlyFalse, Text, Whole};
use super::keys;
use super::table::{Parameter, parameter};

/// Who may read a snapshot's data (Azure REST reference, "Snapshots", `DataAccessAuthMode`).
pub const DATA_ACCESS_MODES: &[&str] = &["None", "AzureActiveDirectory"];
/// How many minutes a snapshot may have instant access (Azure REST reference, "Snapshots").
pub const INSTANT_ACCESS_MINUTES: (u64, u64) = (60, 300);

/// All parameters of snapshots.
pub const SNAPSHOT_PARAMETERS: &[Parameter] = &[
    parameter(
        keys::INCREMENTAL,
        OnlyFalse,
        "`true`; `false` on Azure Stack",
        "only what has changed since the last snapshot is stored",
    ),
    parameter(keys::RESOURCE_GROUP, Text, "the source disk's", "the resource group of the snapshot"),
    parameter(keys::SUBSCRIPTION_ID, Text, "the source disk's", "the subscription of the snapshot"),
    parameter(
        keys::LOCATION,
        Text,
        "the source disk's region",
        "the region; another one than the disk's makes a copy, which has to be incremental",
    ),
    parameter(keys::TAGS, Text, "none", "tags of the snapshot, as `key1=value1,key2=value2`"),
    parameter(keys::TAG_DELIMITER, Text, "`,`", "what separates the tags, so that values may contain commas"),
    parameter(keys::DATA_ACCESS, OneOf(DATA_ACCESS_MODES), "Azure's", "who may export the data"),
    parameter(keys::NETWORK_ACCESS, OneOf(NETWORK_POLICIES), "Azure's", "export over the network"),
    parameter(keys::PUBLIC_ACCESS, OneOf(PUBLIC_ACCESS), "Azure's", "export over the public network"),
    parameter(keys::USER_AGENT, Text, "the program's", "the user agent of requests to Azure"),
    parameter(
        keys::INSTANT_ACCESS,
        Whole { min: INSTANT_ACCESS_MINUTES.0, max: INSTANT_ACCESS_MINUTES.1 },
        "none",
        "minutes in which the snapshot can be restored before its data are copied",
    )
    .provisioned(),
    parameter(
        keys::SNAPSHOT_NAME,
        Text,
        "",
        "set by the snapshotter: tag `kubernetes.io-created-for-snapshot-name`",
    ),
    parameter(
        keys::SNAPSHOT_NAMESPACE,
        Text,
        "",
        "set by the snapshotter: tag `kubernetes.io-created-for-snapshot-namespace`",
    ),
    parameter(keys::CONTENT_NAME, Text, "", "set by the snapshotter; no effect"),
];
