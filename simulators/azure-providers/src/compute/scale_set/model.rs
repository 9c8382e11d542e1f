//! What the documents of scale sets and of their instances hold (Azure REST reference, "Virtual Machine Scale Sets").

use azure_engine::types::member_table::Holds::{
    Anything, Created, Derived, Duration, Flag, Kept, Number, Object, Objects, Text, Texts, Word,
};
use azure_engine::types::member_table::Member;

use crate::compute::machine::members::{NETWORK_OF_MODEL, STORAGE_OF_INSTANCE, STORAGE_OF_MODEL, system};

/// Most fault domains of any region.
const MAX_FAULT_DOMAINS: i64 = 5;

static SKU: [Member; 3] = [
    Member::new("capacity", Number(i64::MIN, i64::MAX)).or(0),
    Member::new("name", Text).required(),
    Member::new("tier", Text).or_text("Standard"),
];

pub(crate) static ENVELOPE: [Member; 1] = [Member::new("sku", Object(&SKU))];

static SYSTEM: [Member; 8] = system(
    Member::new("computerNamePrefix", Text).fixed().called("osProfile.computerNamePrefix"),
    Member::new("adminUsername", Text),
);

static OF_EXTENSION: [Member; 2] = [
    Member::new("protectedSettings", Anything).secret(),
    Member::new("protectedSettingsFromKeyVault", Anything).secret(),
];
static EXTENSION: [Member; 2] =
    [Member::new("location", Derived), Member::new("properties", Object(&OF_EXTENSION))];
static EXTENSIONS: [Member; 1] = [Member::new("extensions", Objects(&EXTENSION))];

static PROFILE: [Member; 7] = [
    Member::new("extensionProfile", Object(&EXTENSIONS)),
    Member::new("licenseType", Text),
    Member::new("networkProfile", Object(&NETWORK_OF_MODEL)).or_empty(),
    Member::new("osProfile", Object(&SYSTEM)).or_empty(),
    Member::new("priority", Text),
    Member::new("storageProfile", Object(&STORAGE_OF_MODEL)).or_empty(),
    Member::new("timeCreated", Derived),
];

static AUTOMATIC: [Member; 3] = [
    Member::new("disableAutomaticRollback", Flag).or_flag(false),
    Member::new("enableAutomaticOSUpgrade", Flag).or_flag(false),
    Member::new("useRollingUpgradePolicy", Flag).or_flag(false),
];
static ROLLING: [Member; 4] = [
    Member::new("maxBatchInstancePercent", Number(5, 100)).or(20),
    Member::new("maxUnhealthyInstancePercent", Number(5, 100)).or(20),
    Member::new("maxUnhealthyUpgradedInstancePercent", Number(0, 100)).or(20),
    Member::new("pauseTimeBetweenBatches", Duration).or_text("PT0S"),
];
static UPGRADE_POLICY: [Member; 3] = [
    Member::new("automaticOSUpgradePolicy", Object(&AUTOMATIC)),
    Member::new("mode", Word(&["Manual", "Automatic", "Rolling"], true)),
    Member::new("rollingUpgradePolicy", Object(&ROLLING)),
];
static SCALE_IN_POLICY: [Member; 2] = [
    Member::new("forceDeletion", Flag),
    Member::new("rules", Texts)
        .fits(|rule| ["Default", "OldestVM", "NewestVM"].contains(&rule), "Default, OldestVM or NewestVM"),
];

/// A scale set.
pub(crate) static MEMBERS: [Member; 12] = [
    Member::new("id", Derived),
    Member::new("doNotRunExtensionsOnOverprovisionedVMs", Flag),
    Member::new("orchestrationMode", Word(&["Uniform", "Flexible"], true)).fixed(),
    Member::new("overprovision", Flag),
    Member::new("platformFaultDomainCount", Number(1, MAX_FAULT_DOMAINS)),
    Member::new("scaleInPolicy", Object(&SCALE_IN_POLICY)),
    Member::new("singlePlacementGroup", Flag),
    Member::new("timeCreated", Created),
    Member::new("uniqueId", Kept),
    Member::new("upgradePolicy", Object(&UPGRADE_POLICY)).or_empty(),
    Member::new("virtualMachineProfile", Object(&PROFILE)),
    Member::new("zoneBalance", Flag),
];

/// The members of an instance: its own, and those that it has from its model.
pub(crate) static INSTANCE: [Member; 13] = [
    Member::new("hardwareProfile", Kept),
    Member::new("instanceView", Derived),
    Member::new("latestModelApplied", Derived),
    Member::new("licenseType", Text),
    Member::new("modelDefinitionApplied", Kept),
    Member::new("networkProfile", Derived),
    Member::new("networkProfileConfiguration", Object(&NETWORK_OF_MODEL)),
    Member::new("osProfile", Kept),
    Member::new("protectionPolicy", Anything),
    Member::new("resilientVMDeletionStatus", Kept),
    Member::new("storageProfile", Object(&STORAGE_OF_INSTANCE)),
    Member::new("timeCreated", Created),
    Member::new("vmId", Kept),
];

/// Recorded: tags sent with an instance do not come back, they are the set's.
pub(crate) static INSTANCE_ENVELOPE: [Member; 5] = [
    Member::new("location", Kept),
    Member::new("plan", Kept),
    Member::new("sku", Kept),
    Member::new("tags", Kept),
    Member::new("zones", Kept),
];
