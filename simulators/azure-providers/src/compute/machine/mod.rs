//! Which records are machines, and their names.

pub(crate) mod data_disk;
pub(crate) mod disk_change;
pub(crate) mod disk_list;
pub(crate) mod ending;
pub(crate) mod fault_domain;
pub mod guest;
pub(crate) mod image;
pub(crate) mod instance_view;
pub(crate) mod interface_configuration;
pub(crate) mod interface_count;
pub(crate) mod members;
pub(crate) mod network_profile;
pub(crate) mod os_profile;
pub mod power;
pub(crate) mod spot;

use azure_types::ResourceId;

use azure_engine::provider::{AzureState, Record};

/// Whether a record is a machine.
pub fn is_machine(record: &Record) -> bool {
    record.resource_type.name().rsplit('/').next() == Some("virtualMachines")
}

/// The name of a machine: that of a scale set instance consists of its set and number.
pub fn machine_name(id: &ResourceId) -> String {
    match id.parent().filter(|parent| parent.namespace().is_some()) {
        Some(set) => format!("{}_{}", set.name(), id.name()),
        None => id.name().to_owned(),
    }
}

/// The id of a machine with its full name, as disks show it: that of a scale set instance ends in set and number.
pub fn full_id(id: &ResourceId) -> ResourceId {
    match id.parent().filter(|parent| parent.namespace().is_some()) {
        Some(set) => set.child("virtualMachines", &machine_name(id)),
        None => id.clone(),
    }
}

/// Whether a machine uses its disks: not while it is deallocated.
pub(crate) fn uses_disks(azure: &AzureState, machine: &ResourceId) -> bool {
    let power = azure.store.get(machine).and_then(|machine| machine.hidden.get("power")?.as_str());
    power != Some("deallocated")
}
