//! Names of a machine's resources.

use azure_types::ResourceId;
use capz_api::azure_machine::AzureMachineSpec;

use crate::image::WINDOWS;
use crate::profile::PROVIDER_ID;

/// The longest computer name of Windows.
const WINDOWS_NAME: usize = 15;

/// The name of the virtual machine: its existing one, otherwise the AzureMachine's, shortened for Windows.
pub(super) fn virtual_machine(name: &str, spec: &AzureMachineSpec) -> String {
    let known = spec.provider_id.as_deref().and_then(|id| id.strip_prefix(PROVIDER_ID));
    if let Some(id) = known.and_then(|id| ResourceId::parse(id).ok()) {
        return id.name().to_owned();
    }
    let windows = spec.os_disk.as_ref().and_then(|disk| disk.os_type.as_deref()) == Some(WINDOWS);
    match (name.get(..9), name.get(name.len().saturating_sub(5)..)) {
        (Some(begin), Some(end)) if windows && name.len() > WINDOWS_NAME => {
            format!("{}-{end}", begin.strip_suffix('-').unwrap_or(begin))
        }
        _ => name.to_owned(),
    }
}

/// The name of a network interface.
pub(super) fn interface(machine: &str, index: usize, count: usize) -> String {
    if count > 1 { format!("{machine}-nic-{index}") } else { format!("{machine}-nic") }
}

/// The name of the OS disk.
pub(super) fn os_disk(machine: &str) -> String {
    format!("{machine}_OSDisk")
}

/// The name of the public IP.
pub(super) fn public_ip(machine: &str) -> String {
    format!("pip-{machine}")
}

/// The name of the availability set of a group of machines.
pub(super) fn availability_set(cluster: &str, group: &str) -> String {
    format!("{cluster}_{group}-as")
}
