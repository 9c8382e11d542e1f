//! What the members of disks and snapshots hold.

use azure_engine::refusal::Refusal;
use azure_engine::refusal::words::Wrong;
use azure_engine::types::member_table::Holds::{Created, Derived, Flag, Number, Object, Text, UsesId, Word};
use azure_engine::types::member_table::{Holds, Member};

use crate::compute::disk::sku::{MAX_GIB, SKUS};
use crate::compute::tables::codes::BAD_REQUEST;

/// A number that the type itself checks.
const ANY: Holds = Number(i64::MIN, i64::MAX);

const ACCESS: Holds = Word(&["AllowAll", "AllowPrivate", "DenyAll"], false);
const GENERATION: Holds = Word(&["V1", "V2"], false);
const SYSTEM: Holds = Word(&["Linux", "Windows"], false);
const PUBLIC: Holds = Word(&["Enabled", "Disabled"], false);

static DISK_SKU: [Member; 2] = [Member::new("name", Word(&SKUS, false)), Member::new("tier", Derived)];
static SNAPSHOT_SKU: [Member; 2] =
    [Member::new("name", Text).or_text("Standard_LRS"), Member::new("tier", Derived)];

pub(crate) static DISK_ENVELOPE: [Member; 1] = [Member::new("sku", Object(&DISK_SKU))];
pub(crate) static SNAPSHOT_ENVELOPE: [Member; 1] = [Member::new("sku", Object(&SNAPSHOT_SKU)).or_empty()];

/// The source of a disk or snapshot cannot change after creation. Clients look for `existing disk` in this message,
/// which calls snapshots disks, too.
fn fixed(wrong: &Wrong<'_>) -> Refusal {
    let (member, name) = (wrong.member.rsplit('.').next().unwrap_or_default(), wrong.id.name());
    BAD_REQUEST.says(format_args!("Changing property '{member}' is not allowed for existing disk '{name}'."))
}

/// The member `creationData` with the allowed ways of creation.
const fn creation(option: &'static str, options: &'static [&'static str]) -> [Member; 8] {
    [
        Member::new("createOption", Word(options, false)).required().called(option).fixed_as(fixed),
        Member::new("instantAccessDurationMinutes", ANY),
        Member::new("logicalSectorSize", ANY),
        Member::new("performancePlus", Flag),
        Member::new("sourceResourceId", Text).fixed_as(fixed),
        Member::new("sourceUri", Text).fixed_as(fixed),
        Member::new("storageAccountId", Text),
        Member::new("uploadSizeBytes", ANY),
    ]
}

static DISK_CREATION: [Member; 8] = creation(
    "disk.creationData.createOption",
    &[
        "Empty",
        "Attach",
        "FromImage",
        "Import",
        "ImportSecure",
        "Copy",
        "CopyStart",
        "Restore",
        "Upload",
        "UploadPreparedSecure",
    ],
);
static SNAPSHOT_CREATION: [Member; 8] =
    creation("snapshot.creationData.createOption", &["Copy", "CopyStart", "Import", "Empty"]);

/// The ways in which a set of keys encrypts, the default first; disks without such a set have the platform's keys.
pub(crate) const ENCRYPTION_OF_SETS: [&str; 3] = [
    "EncryptionAtRestWithCustomerKey",
    "EncryptionAtRestWithPlatformAndCustomerKeys",
    "ConfidentialVmEncryptedWithCustomerKey",
];
pub(crate) const PLATFORM_KEY: &str = "EncryptionAtRestWithPlatformKey";
const ENCRYPTION_OF_DISKS: [&str; 3] = [PLATFORM_KEY, ENCRYPTION_OF_SETS[0], ENCRYPTION_OF_SETS[1]];

static ENCRYPTION: [Member; 2] = [
    Member::new("diskEncryptionSetId", UsesId("diskEncryptionSets")),
    Member::new("type", Word(&ENCRYPTION_OF_DISKS, false)),
];

/// Azure REST reference, "Disks".
pub(crate) static DISK: [Member; 23] = [
    Member::new("burstingEnabled", Flag),
    Member::new("completionPercent", Derived),
    Member::new("creationData", Object(&DISK_CREATION))
        .required()
        .called("disk.creationData")
        .fixed_as(fixed),
    Member::new("diskAccessId", UsesId("diskAccesses")),
    Member::new("diskIOPSReadWrite", ANY),
    Member::new("diskMBpsReadWrite", ANY),
    Member::new("diskSizeBytes", Derived),
    Member::new("diskSizeGB", Number(1, MAX_GIB)).called("disk.diskSizeGB"),
    Member::new("diskState", Derived),
    Member::new("encryption", Object(&ENCRYPTION)),
    Member::new("hyperVGeneration", GENERATION),
    Member::new("LastOwnershipUpdateTime", Derived),
    Member::new("maxShares", ANY),
    Member::new("networkAccessPolicy", ACCESS),
    Member::new("optimizedForFrequentAttach", Flag),
    Member::new("osType", SYSTEM),
    Member::new("osTypeInUse", Derived),
    Member::new("publicNetworkAccess", PUBLIC),
    Member::new("shareInfo", Derived),
    Member::new("supportsHibernation", Flag),
    Member::new("tier", Derived),
    Member::new("timeCreated", Created),
    Member::new("uniqueId", Derived),
];

/// Azure REST reference, "Snapshots".
pub(crate) static SNAPSHOT: [Member; 17] = [
    Member::new("completionPercent", Derived),
    Member::new("copyCompletionError", Derived),
    Member::new("creationData", Object(&SNAPSHOT_CREATION))
        .required()
        .called("snapshot.creationData")
        .fixed_as(fixed),
    Member::new("diskAccessId", UsesId("diskAccesses")),
    Member::new("diskSizeBytes", Derived),
    Member::new("diskSizeGB", Number(1, MAX_GIB)).called("snapshot.diskSizeGB"),
    Member::new("diskState", Derived),
    Member::new("encryption", Object(&ENCRYPTION)),
    Member::new("hyperVGeneration", GENERATION),
    Member::new("incremental", Flag).or_flag(false).fixed_as(fixed),
    Member::new("incrementalSnapshotFamilyId", Derived),
    Member::new("networkAccessPolicy", ACCESS),
    Member::new("osType", SYSTEM),
    Member::new("publicNetworkAccess", PUBLIC),
    Member::new("snapshotAccessState", Derived),
    Member::new("timeCreated", Created),
    Member::new("uniqueId", Derived),
];
