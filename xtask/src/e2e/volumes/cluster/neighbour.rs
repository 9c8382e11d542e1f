//! A disk of another owner, attached by hand to a node's machine.

use anyhow::{Context as _, ensure};
use azure_types::ResourceId;
use serde_json::json;

use super::place::{MACHINES, Place};

/// The name of the disk.
const NAME: &str = "attached-by-hand";
/// Where it is on its machine.
const LUN: u64 = 2;

/// Creates the disk, and attaches it to the first machine.
///
/// # Errors
/// What Azure refuses.
pub fn attach(place: &Place) -> anyhow::Result<()> {
    let disk = disk(place);
    place.azure.azure.put(
        &disk,
        json!({
            "location": place.shape.region, "zones": ["1"], "sku": {"name": "Premium_LRS"},
            "properties": {"diskSizeGB": 1, "creationData": {"createOption": "Empty"}},
        }),
    )?;
    place.azure.azure.edit(&machine(place)?, |document| {
        let disks = &mut document["properties"]["storageProfile"]["dataDisks"];
        let one = json!({"lun": LUN, "createOption": "Attach", "managedDisk": {"id": disk.to_string()}});
        match disks.as_array_mut() {
            Some(disks) => disks.push(one),
            None => *disks = json!([one]),
        }
    })?;
    Ok(())
}

/// Fails unless the disk is attached as in the beginning.
///
/// # Errors
/// It is not.
pub fn stays(place: &Place) -> anyhow::Result<()> {
    let machine = place.azure.azure.document(&machine(place)?).context("the machine is gone")?;
    let disks = machine["properties"]["storageProfile"]["dataDisks"].as_array().cloned().unwrap_or_default();
    let wanted = disk(place).to_string();
    let is_it = |id: &str| id.eq_ignore_ascii_case(&wanted);
    let found = disks.iter().find(|one| one["managedDisk"]["id"].as_str().is_some_and(is_it));
    ensure!(
        found.is_some_and(|one| one["lun"] == LUN),
        "{NAME} is not at LUN {LUN} of {} any more, which has {disks:?}",
        MACHINES[0]
    );
    ensure!(place.azure.azure.document(&disk(place)).is_some(), "{NAME} was deleted");
    Ok(())
}

fn disk(place: &Place) -> ResourceId {
    place.shape.group().resource("Microsoft.Compute", "disks", NAME)
}

fn machine(place: &Place) -> anyhow::Result<ResourceId> {
    let first = place.shape.machines.first().context("there are no machines")?;
    Ok(place.shape.machine(first))
}
