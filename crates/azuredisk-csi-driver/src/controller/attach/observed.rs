//! A machine as Azure has it: its list of data disks, and what decides about attaches.

use std::collections::BTreeSet;

use serde_json::Value;
use volume_planner::Code;
use volume_planner::attach::data_disk;
use volume_planner::id::DiskId;

/// States of a machine in which an operation works on it.
const WORKING: [&str; 4] = ["Creating", "Updating", "Migrating", "Deleting"];
const FAILED: &str = "Failed";
const DELETING: &str = "Deleting";

/// The machine.
#[derive(Debug, Clone)]
pub(crate) struct ObservedMachine {
    /// The version that was read.
    pub(super) etag: Option<String>,
    /// The list.
    pub(super) data_disks: Vec<Value>,
    pub(super) size: Option<String>,
    pub(super) location: String,
    pub(super) os_encryption_set: Option<String>,
    pub(super) has_ultra: Option<bool>,
    /// Disks that were proven not to exist right before this reading, because Azure had refused a list for one of them. A later
    /// reading knows none: a disk of the same name may have been made since.
    pub(super) absent_disks: BTreeSet<DiskId>,
    state: String,
}

impl ObservedMachine {
    pub(super) fn of(document: &Value) -> Self {
        let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let profile = |member: &str| format!("/properties/storageProfile/{member}");
        let disks = document.pointer(&profile("dataDisks")).and_then(Value::as_array);
        Self {
            etag: text("/etag"),
            data_disks: disks.cloned().unwrap_or_default(),
            // An instance of a scale set has its size in `sku`, too.
            size: text("/properties/hardwareProfile/vmSize").or_else(|| text("/sku/name")),
            location: text("/location").unwrap_or_default(),
            os_encryption_set: text(&profile("osDisk/managedDisk/diskEncryptionSet/id")),
            has_ultra: document
                .pointer("/properties/additionalCapabilities/ultraSSDEnabled")
                .and_then(Value::as_bool),
            absent_disks: BTreeSet::new(),
            state: text("/properties/provisioningState").unwrap_or_default(),
        }
    }

    /// Whether an operation works on it.
    pub(super) fn is_working(&self) -> bool {
        WORKING.iter().any(|state| self.state.eq_ignore_ascii_case(state))
    }

    /// Whether Azure is deleting it.
    pub(super) fn is_being_deleted(&self) -> bool {
        self.state.eq_ignore_ascii_case(DELETING)
    }

    /// Whether the last operation on it has failed: what its list says may not be so.
    pub(super) fn has_failed(&self) -> bool {
        self.state.eq_ignore_ascii_case(FAILED)
    }

    /// The managed disks of the list, each with its entry.
    pub(super) fn disks(&self) -> impl Iterator<Item = (DiskId, &Value)> {
        disks(&self.data_disks)
    }

    /// The LUN of a disk that the machine has.
    pub(super) fn lun(&self, disk: &DiskId) -> Option<u32> {
        data_disk::find(&self.data_disks, disk)
            .filter(|entry| !data_disk::is_leaving(entry))
            .and_then(data_disk::lun)
    }

    /// Whether the list has the disk, even if it is leaving.
    pub(super) fn has(&self, disk: &DiskId) -> bool {
        data_disk::find(&self.data_disks, disk).is_some()
    }
}

/// The managed disks of a list, each with its entry.
pub(super) fn disks(list: &[Value]) -> impl Iterator<Item = (DiskId, &Value)> {
    list.iter().filter_map(|entry| {
        let id = entry.pointer("/managedDisk/id").and_then(Value::as_str)?;
        Some((DiskId::parse(id, Code::Internal).ok()?, entry))
    })
}
