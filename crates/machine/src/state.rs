//! Whether a machine runs.

use azure_types::InstanceView;

use crate::document::MachineDocument;

/// Whether a word of Azure's is one of these, in any case.
fn is_one_of(word: &str, values: &[&str]) -> bool {
    values.iter().any(|value| word.eq_ignore_ascii_case(value))
}

/// What a view says of one kind of state, as Azure spells it behind `<kind>/`.
pub(crate) fn status<'a>(view: Option<&'a InstanceView>, kind: &str) -> Option<&'a str> {
    let statuses = view.and_then(|view| view.statuses.as_deref()).unwrap_or_default();
    let codes = statuses.iter().filter_map(|status| status.code.as_deref()?.split_once('/'));
    codes.into_iter().find(|(this, _)| this.eq_ignore_ascii_case(kind)).map(|(_, state)| state)
}

/// The power state in a machine's view, as Azure spells it behind `PowerState/`; `unknown` where there is none.
pub fn power_state(machine: &impl MachineDocument) -> &str {
    status(machine.view(), "PowerState").unwrap_or("unknown")
}

/// Whether Azure is deleting the machine: to the cluster it is gone already.
pub fn is_being_deleted(machine: &impl MachineDocument) -> bool {
    machine.provisioning_state().eq_ignore_ascii_case("Deleting")
}

/// Whether the machine is off and nothing is happening to it.
pub fn is_shut_down(machine: &impl MachineDocument) -> bool {
    machine.provisioning_state().eq_ignore_ascii_case("Succeeded")
        && is_one_of(power_state(machine), &["stopped", "deallocated", "deallocating"])
}

/// Whether the machine cannot take part in load balancing now. Where lists come without power states by
/// configuration (`without_views`), machines count as running.
pub fn is_inactive(machine: &impl MachineDocument, without_views: bool) -> bool {
    if is_one_of(machine.provisioning_state(), &["Deleting", "Unknown"]) {
        return true;
    }
    if machine.view().is_none() && without_views {
        return false;
    }
    is_one_of(power_state(machine), &["unknown", "stopped", "stopping", "deallocated", "deallocating"])
}
