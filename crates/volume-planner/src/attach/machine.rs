//! The machine whose list is written: its identity, and the documents that are sent.

use std::collections::{BTreeMap, BTreeSet};

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::model::id::DiskId;

const SCALE_SETS: &str = "virtualMachineScaleSets";

/// What is known of a machine besides its list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Its ID.
    pub id: ResourceId,
    /// How many data disks it takes ([`super::capacity`]).
    pub capacity: u32,
    /// LUNs that Kubernetes' VolumeAttachments give to disks: another disk may not take them, because the node may still
    /// have them mounted.
    pub reserved_luns: BTreeMap<u32, DiskId>,
    /// The encryption set of its OS disk, for data disks without one.
    pub os_encryption_set: Option<String>,
    /// Whether it can use ultra disks, if that is known.
    pub has_ultra: Option<bool>,
    /// Whether it is one of Azure Stack, where entries are removed instead of marked.
    pub is_stack: bool,
    /// Disks that are proven not to exist. Azure refuses every list that contains one.
    pub absent_disks: BTreeSet<DiskId>,
}

/// The ID of the machine that a disk names as its manager. Of an instance of a uniform scale set, disks give the name
/// `<set>_<number>` where the instance's ID has the number.
pub fn manager_id(manager: &ResourceId) -> ResourceId {
    let pairs = manager.type_and_name_pairs();
    let [(kind, set), (_, name)] = pairs.as_slice() else { return manager.clone() };
    let prefix = name.get(..set.len()).is_some_and(|prefix| prefix.eq_ignore_ascii_case(set));
    let number = name.get(set.len()..).and_then(|rest| rest.strip_prefix('_'));
    match (number, manager.parent()) {
        (Some(number), Some(parent)) if prefix && kind.eq_ignore_ascii_case(SCALE_SETS) => {
            parent.child("virtualMachines", number)
        }
        _ => manager.clone(),
    }
}

/// Whether the machine is an instance of a uniform scale set.
pub fn is_uniform_instance(machine: &ResourceId) -> bool {
    machine.type_and_name_pairs().first().is_some_and(|(kind, _)| kind.eq_ignore_ascii_case(SCALE_SETS))
}

/// The document that writes a machine's list: machines take a document with their region and whatever is to change, instances of
/// uniform scale sets one without it. The list is always whole.
pub fn list_document(machine: &ResourceId, location: &str, data_disks: Vec<Value>) -> Value {
    let mut document = json!({ "properties": { "storageProfile": { "dataDisks": data_disks } } });
    if !is_uniform_instance(machine) {
        document["location"] = location.into();
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    const INSTANCES: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/pool/virtualMachines/";
    const MACHINES: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/";

    fn id(text: &str) -> ResourceId {
        ResourceId::parse(text).unwrap()
    }

    /// The baseline's second difference: a disk's `managedBy` ends in the instance's name.
    #[test]
    fn a_disk_names_an_instance_by_its_name() {
        for (manager, expected) in [
            (format!("{INSTANCES}pool_12"), format!("{INSTANCES}12")),
            (format!("{INSTANCES}POOL_12"), format!("{INSTANCES}12")),
            (format!("{INSTANCES}12"), format!("{INSTANCES}12")),
            (format!("{INSTANCES}other_12"), format!("{INSTANCES}other_12")),
            (format!("{INSTANCES}abcd_12"), format!("{INSTANCES}abcd_12")),
            (format!("{INSTANCES}p"), format!("{INSTANCES}p")),
            (format!("{MACHINES}vm_1"), format!("{MACHINES}vm_1")),
            (format!("{MACHINES}vm/extensions/vm_1"), format!("{MACHINES}vm/extensions/vm_1")),
        ] {
            assert_eq!(manager_id(&id(&manager)), id(&expected));
        }
    }

    /// Section 3.10: bodies by the kind of machine.
    #[test]
    fn instances_of_uniform_sets_are_written_without_a_region() {
        let list = vec![json!({ "lun": 0 })];
        let machine = list_document(&id(&format!("{MACHINES}vm")), "westus2", list.clone());
        let expected = json!({ "location": "westus2", "properties": { "storageProfile": { "dataDisks": [{ "lun": 0 }] } } });
        assert_eq!(machine, expected);
        let instance = list_document(&id(&format!("{INSTANCES}0")), "westus2", list);
        assert_eq!(instance.get("location"), None);
    }
}
