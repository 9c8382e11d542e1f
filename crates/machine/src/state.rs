//! Whether a machine runs.

use crate::document::MachineDocument;
use crate::instance_view::status;

/// Whether a word from Azure is one of `values`, in any case.
fn is_one_of(word: &str, values: &[&str]) -> bool {
    values.iter().any(|value| word.eq_ignore_ascii_case(value))
}

/// The power state in a machine's view, as Azure spells it after `PowerState/`; `unknown` if the view has none.
pub fn power_state(machine: &impl MachineDocument) -> &str {
    status(machine.view(), "PowerState").unwrap_or("unknown")
}

/// Whether Azure is deleting the machine. The cluster treats it as deleted.
pub fn is_being_deleted(machine: &impl MachineDocument) -> bool {
    machine.provisioning_state().eq_ignore_ascii_case("Deleting")
}

/// Whether the machine is off with no operation in progress.
pub fn is_shut_down(machine: &impl MachineDocument) -> bool {
    machine.provisioning_state().eq_ignore_ascii_case("Succeeded")
        && is_one_of(power_state(machine), &["stopped", "deallocated", "deallocating"])
}

/// Whether the machine cannot take part in load balancing now. If lists are configured without power states
/// (`without_views`), machines count as running.
pub fn is_inactive(machine: &impl MachineDocument, without_views: bool) -> bool {
    if is_one_of(machine.provisioning_state(), &["Deleting", "Unknown"]) {
        return true;
    }
    if machine.view().is_none() && without_views {
        return false;
    }
    is_one_of(power_state(machine), &["unknown", "stopped", "stopping", "deallocated", "deallocating"])
}
