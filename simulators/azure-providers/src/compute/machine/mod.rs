//! Which records are machines, and their names.

pub(crate) mod data_disk;
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

use crate::compute::tables::type_names::MACHINE_TYPE;
use azure_engine::provider::{AzureState, Record};
use azure_engine::store::State;

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

/// Ends the creation or change of a machine or an instance.
pub(crate) fn settle(azure: &mut AzureState, id: &ResourceId, failed: bool) {
    let Some(record) = azure.store.get_mut(id).filter(|record| record.state != State::Deleting) else {
        return;
    };
    record.state = if failed { State::Failed } else { State::Succeeded };
    if !failed && record.hidden.get("power").is_none() {
        record.hidden.insert("power".into(), "running".into());
        // Recorded: the end of a machine's creation is a change of its own, that of an instance's is not.
        record.version += u64::from(record.resource_type.name() == MACHINE_TYPE);
    }
    azure.revision += 1;
}

/// Whether a machine uses its disks: not while it is deallocated.
pub(crate) fn uses_disks(azure: &AzureState, machine: &ResourceId) -> bool {
    let power = azure.store.get(machine).and_then(|machine| machine.hidden.get("power")?.as_str());
    power != Some("deallocated")
}
