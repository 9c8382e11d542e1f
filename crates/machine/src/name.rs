//! Names of nodes, and of zones.

use azure_types::ScaleSet;

use crate::document::MachineDocument;
use crate::id::InstanceName;

/// Length of the instance id in a node's name.
const SUFFIX_LENGTH: usize = 6;

/// The instance id in a node's name, if the name follows this scale set's pattern: the set's prefix and six digits of
/// base 36.
pub fn instance_id_of_node_name(node_name: &str, scale_set: &ScaleSet) -> Option<String> {
    let split = node_name.len().checked_sub(SUFFIX_LENGTH)?;
    let (prefix, digits) = node_name.split_at_checked(split)?;
    let number = u64::from_str_radix(digits, 36).ok().filter(|_| !digits.starts_with('+'))?;
    let profile = scale_set.properties.as_ref().and_then(|p| p.virtual_machine_profile.as_ref());
    let configured =
        profile.and_then(|p| p.os_profile.as_ref()).and_then(|p| p.computer_name_prefix.as_deref());
    let own = configured.filter(|prefix| !prefix.is_empty()).or(scale_set.name.as_deref())?;
    own.eq_ignore_ascii_case(prefix).then(|| number.to_string())
}

/// The machines that a node's name may stand for, in order of their ids. Several scale sets may use the same prefix for
/// their machines' names, so this is a guess until the machine's document confirms the name ([`is_called`]).
pub fn candidates_for_node_name<'a>(
    node_name: &str,
    scale_sets: impl IntoIterator<Item = &'a ScaleSet>,
) -> Vec<InstanceName> {
    let candidate = |set: &ScaleSet| {
        let instance_id = instance_id_of_node_name(node_name, set)?;
        Some(InstanceName { scale_set: set.id.clone()?, instance_id })
    };
    let mut candidates: Vec<InstanceName> = scale_sets.into_iter().filter_map(candidate).collect();
    candidates.sort_by(|a, b| a.scale_set.cmp(&b.scale_set));
    candidates
}

/// Whether a machine's host name is the node's name. Azure may spell the name of a Windows machine in capitals.
pub fn is_called(machine: &impl MachineDocument, node_name: &str) -> bool {
    machine.host_name().is_some_and(|name| name.eq_ignore_ascii_case(node_name))
}

/// The zone in a node's label: the region in lower case, a dash and the zone's number.
pub fn zone_label(location: &str, number: u32) -> String {
    format!("{}-{number}", location.to_lowercase())
}

/// The number of the zone in a node's label; `None` if the label is not a zone of the region, such as a fault domain.
pub fn zone_number(location: &str, label: &str) -> Option<u32> {
    label.strip_prefix(location)?.strip_prefix('-')?.parse().ok()
}
