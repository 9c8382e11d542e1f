//! How many network interfaces machines have, and when that can change.

use std::collections::BTreeSet;

use azure_types::ResourceId;

use crate::compute::tables::sizes;
use azure_engine::document::{items, stored_reference};
use azure_engine::provider::Record;
use azure_engine::refusal::{Code, Result};

/// Refuses more interfaces than the size of a machine takes. Sizes outside the catalogue are not checked.
pub(crate) fn check(size: &str, count: usize, what: &str, whose: &str) -> Result<()> {
    let most = sizes::find(size).map_or(u64::MAX, |size| size.interfaces);
    Code::azures(400, "NetworkInterfaceCountExceeded").details_when(
        count as u64 > most,
        format_args!(
            "The number of {what} for {whose} exceeds the maximum allowed for the virtual machine size {size}. The \
             number of {what} is {count} and the maximum allowed is {most}."
        ),
    )
}

/// Refuses to add interfaces to a machine that is not deallocated, or to remove some from it.
pub(crate) fn check_change(machine: &Record, interfaces: &[ResourceId]) -> Result<()> {
    let before: BTreeSet<String> = items(&machine.body, "properties/networkProfile/networkInterfaces")
        .iter()
        .filter_map(|entry| stored_reference(entry, "id"))
        .map(|id| id.to_lower())
        .collect();
    let after: BTreeSet<String> = interfaces.iter().map(ResourceId::to_lower).collect();
    // A machine whose creation never finished does not run.
    let runs = machine.hidden.get("power").is_some_and(|power| power != "deallocated");
    let why = if (before.len() == 1) == (after.len() == 1) {
        "must be stop-deallocated before network interfaces are added to it or taken from it."
    } else {
        "with a single network interface must be stop-deallocated before it can be updated to have multiple network \
         interfaces and vice-versa."
    };
    Code::azures(400, "AddingOrDeletingNetworkInterfacesOnARunningVirtualMachineNotSupported")
        .says_when(runs && before != after, format_args!("Virtual machine {} {why}", machine.id))
}
