//! A controller that starts beside thousands of volumes.

use std::collections::HashMap;

use anyhow::ensure;
use csi::v1::ListVolumesRequest;
use indicatif::ProgressBar;
use serde_json::json;
use tokio::time::Instant;

use super::arguments::Arguments;
use super::driver::Driver;
use super::report::Row;
use super::requests::{GIB, attached, attachment, attachment_name, persistent_volume, volume_name};
use super::side_cars::Outcome;
use super::stage::{SLOTS, Stage};

/// Lays out volumes that are attached, starts a controller beside them and lets it list them.
///
/// # Errors
/// The driver fails, or does not list all of them.
pub async fn run(
    arguments: &Arguments,
    driver: &Driver,
    count: u32,
    bar: &ProgressBar,
) -> anyhow::Result<Vec<Row>> {
    bar.set_message(format!("{}: a start beside {count} volumes", driver.name));
    let stage = Stage::lay_out(arguments, arguments.machines).await?;
    for number in 0..count {
        lay_out(&stage, number)?;
    }
    let mut started = driver.start_controller(stage.files()).await?;
    let size = (count, arguments.machines);
    let mut rows =
        vec![Row::of_idle("controller, idle after a start beside them", Some(size), &started).await?];
    stage.cluster.azure.clear_journal();
    let begun = Instant::now();
    let mut list = started.controller();
    let listed = started.beside(async move {
        let (mut listed, mut starting_token) = (0, String::new());
        loop {
            let request = ListVolumesRequest { max_entries: 0, starting_token };
            let page = list.list_volumes(request).await?.into_inner();
            listed += page.entries.len();
            starting_token = page.next_token;
            if starting_token.is_empty() {
                return Ok(listed);
            }
        }
    });
    let listed = listed.await?;
    ensure!(listed == usize::try_from(count)?, "{} lists {listed} volumes of {count}", driver.name);
    let outcome = Outcome { took: vec![begun.elapsed()], ..Outcome::default() };
    rows.push(Row::of_work("ListVolumes", size, &outcome, &stage.cluster.azure.journal(), &started)?);
    rows.push(Row::of_most("controller, at most", size, &started)?);
    Ok(rows)
}

/// A disk with its PersistentVolume and its VolumeAttachment. The machines do not list it: they have too few slots.
fn lay_out(stage: &Stage, number: u32) -> anyhow::Result<()> {
    let at = usize::try_from(number)?;
    let name = volume_name(at);
    let id = stage.group.resource("Microsoft.Compute", "disks", &name);
    let disk = json!({
        "location": "westeurope", "sku": {"name": "Premium_ZRS"},
        "properties": {"creationData": {"createOption": "Empty"}, "diskSizeGB": GIB},
    });
    let refused = |refusal| anyhow::anyhow!("the disk is refused: {refusal}");
    stage.cluster.azure.put(&id, disk).map_err(refused)?;
    let (disk, nodes) = (id.to_string(), stage.first.len());
    let node = &stage.first[at % nodes];
    stage.kubernetes.create(persistent_volume(&name, &disk, &HashMap::new()))?;
    stage.kubernetes.create(attachment(&disk, &name, node))?;
    let lun = at / nodes % usize::try_from(SLOTS)?;
    let status = attached(&HashMap::from([("LUN".to_owned(), lun.to_string())]));
    stage.kubernetes.merge_status("VolumeAttachment", "", &attachment_name(&disk, node), &status)?;
    Ok(())
}
