//! What the documents of Azure say about disks: their sizes, and which machine has them where. Pure.

use std::collections::BTreeMap;

use azure_simulator::Documents;
use serde_json::Value;

const DISKS: &str = "Microsoft.Compute/disks";
const SNAPSHOTS: &str = "Microsoft.Compute/snapshots";
const MACHINES: &str = "Microsoft.Compute/virtualMachines";
const INSTANCES: &str = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines";

/// The first version of sizes whose machines have NVMe controllers ("Supported virtual machine sizes for remote NVMe").
const FIRST_NVME_VERSION: u32 = 6;

/// The size of a system disk that does not say its own.
const SYSTEM_GIB: u64 = 30;

/// How a machine sees its disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Controller {
    Scsi,
    Nvme,
}

/// Where a disk is in a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Slot {
    /// The system disk.
    System,
    /// A data disk, with its LUN.
    Data(u64),
}

/// A machine that runs, with the unique IDs of its disks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Machine {
    pub(crate) controller: Controller,
    pub(crate) disks: BTreeMap<Slot, String>,
}

/// Disks, snapshots and machines at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Observed {
    /// The sizes of disks and snapshots in bytes, by unique ID.
    pub(crate) sizes: BTreeMap<String, u64>,
    /// The machines by name.
    pub(crate) machines: BTreeMap<String, Machine>,
}

impl Observed {
    /// Reads the documents. `name` returns the name of a machine that runs.
    pub(crate) fn read(documents: &dyn Documents, name: &dyn Fn(&Value) -> Option<String>) -> Self {
        let mut all = Self::default();
        documents.at_once(&mut |documents| all = Self::of(documents, name));
        all
    }

    fn of(documents: &dyn Documents, name: &dyn Fn(&Value) -> Option<String>) -> Self {
        let mut observed = Self::default();
        let mut by_id = BTreeMap::new();
        for document in [DISKS, SNAPSHOTS].iter().flat_map(|kind| documents.of_type(kind)) {
            let properties = &document["properties"];
            let unique = properties["uniqueId"].as_str();
            let (Some(unique), Some(bytes)) = (unique, properties["diskSizeBytes"].as_u64()) else {
                continue;
            };
            observed.sizes.insert(unique.to_owned(), bytes);
            if let Some(id) = document["id"].as_str() {
                by_id.insert(id.to_ascii_lowercase(), unique.to_owned());
            }
        }
        for document in [MACHINES, INSTANCES].iter().flat_map(|kind| documents.of_type(kind)) {
            let Some(name) = name(&document).filter(|name| is_folder(name)) else { continue };
            let find = |entry: &Value| {
                let id = entry.pointer("/managedDisk/id")?.as_str()?;
                by_id.get(&id.to_ascii_lowercase()).cloned()
            };
            let mut disks = disks(&document, find);
            // Azure's simulator has no resources for the system disks of some machines.
            disks.entry(Slot::System).or_insert_with(|| {
                let unique = format!("system-of-{name}");
                let gib =
                    document.pointer("/properties/storageProfile/osDisk/diskSizeGB").and_then(Value::as_u64);
                observed.sizes.insert(unique.clone(), gib.unwrap_or(SYSTEM_GIB) << 30);
                unique
            });
            let machine = Machine { controller: controller(&document), disks };
            observed.machines.entry(name).or_insert(machine);
        }
        observed
    }
}

/// Whether a machine can have a folder of this name: clients of Azure choose it.
fn is_folder(name: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    name.chars().next().is_some_and(|first| first.is_ascii_alphanumeric()) && name.chars().all(is_inner)
}

/// The disks of a machine. One that leaves has its place until it is gone, also where another one comes there.
fn disks(machine: &Value, find: impl Fn(&Value) -> Option<String>) -> BTreeMap<Slot, String> {
    let storage = &machine["properties"]["storageProfile"];
    let list = storage["dataDisks"].as_array().map_or(&[] as &[Value], Vec::as_slice);
    let leaves = |entry: &&Value| entry["toBeDetached"] == true;
    let mut disks = BTreeMap::new();
    if let Some(system) = find(&storage["osDisk"]) {
        disks.insert(Slot::System, system);
    }
    for entry in list.iter().filter(|entry| !leaves(entry)).chain(list.iter().filter(leaves)) {
        if let (Some(lun), Some(unique)) = (entry["lun"].as_u64(), find(entry)) {
            disks.insert(Slot::Data(lun), unique);
        }
    }
    disks
}

/// The controller of a machine: as its document says, or else as usual for its size.
fn controller(machine: &Value) -> Controller {
    let properties = &machine["properties"];
    let size = properties["hardwareProfile"]["vmSize"].as_str().or_else(|| machine["sku"]["name"].as_str());
    match properties["storageProfile"]["diskControllerType"].as_str() {
        Some(word) if word.eq_ignore_ascii_case("NVMe") => Controller::Nvme,
        Some(_) => Controller::Scsi,
        None if version(size.unwrap_or_default()) >= FIRST_NVME_VERSION => Controller::Nvme,
        None => Controller::Scsi,
    }
}

/// The version in the name of a size, such as 5 of `Standard_D2s_v5`; a name without a version has 1.
fn version(size: &str) -> u32 {
    let last = size.rsplit('_').next().unwrap_or_default();
    last.strip_prefix(['v', 'V']).and_then(|version| version.parse().ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Controller, Slot, controller, disks, is_folder, version};

    #[test]
    fn no_name_of_a_machine_leads_out_of_the_folder() {
        for (name, expected) in [
            ("node-1.a", true),
            ("..", false),
            (".contents", false),
            ("a/../..", false),
            ("/dev", false),
            ("", false),
        ] {
            assert_eq!(is_folder(name), expected, "{name}");
        }
    }

    #[test]
    fn sizes_of_version_6_and_later_have_nvme_unless_the_machine_says_otherwise() {
        for (size, expected) in [
            ("Standard_D2s_v5", 5),
            ("Standard_D2s_v6", 6),
            ("Standard_B1s", 1),
            ("standard_nc24ads_a100_V4", 4),
        ] {
            assert_eq!(version(size), expected, "{size}");
        }
        let of = |size: &str, word: Option<&str>| {
            controller(&json!({ "properties": {
                "hardwareProfile": { "vmSize": size },
                "storageProfile": { "diskControllerType": word },
            } }))
        };
        assert_eq!(of("Standard_D2s_v6", None), Controller::Nvme);
        assert_eq!(of("Standard_D2s_v5", None), Controller::Scsi);
        assert_eq!(of("Standard_D2s_v5", Some("NVMe")), Controller::Nvme);
        assert_eq!(of("Standard_D2s_v6", Some("SCSI")), Controller::Scsi);
        assert_eq!(controller(&json!({ "sku": { "name": "Standard_E4s_v6" } })), Controller::Nvme);
    }

    #[test]
    fn a_disk_that_leaves_keeps_its_place_until_it_is_gone() {
        let machine = json!({ "properties": { "storageProfile": {
            "osDisk": { "managedDisk": { "id": "system" } },
            "dataDisks": [
                { "lun": 1, "managedDisk": { "id": "old" }, "toBeDetached": true },
                { "lun": 1, "managedDisk": { "id": "new" } },
                { "lun": 2, "managedDisk": { "id": "other" } },
                { "lun": 3 },
            ],
        } } });
        let found = disks(&machine, |entry| Some(entry.pointer("/managedDisk/id")?.as_str()?.to_owned()));
        let expected = [(Slot::System, "system"), (Slot::Data(1), "old"), (Slot::Data(2), "other")];
        assert_eq!(found, expected.map(|(slot, id)| (slot, id.to_owned())).into());
    }
}
