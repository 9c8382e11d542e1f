//! Both drivers in turn on one cluster, as in an update and a rollback: what one has made the other one uses, without a needless write.
//!
//! Beside them are a disk that was attached by hand to one of the machines, and disks of a neighbour in another group, which have the
//! same names.

use anyhow::{Context as _, ensure};
use azure_simulator::Journal;
use azure_types::ResourceId;
use indicatif::ProgressBar;
use serde_json::{Value, json};

use super::arguments::Arguments;
use super::driver::{Driver, Started};
use super::report::{Row, Table};
use super::requests::{GIB, volume_name};
use super::side_cars::SideCars;
use super::stage::{SLOTS, Stage};

/// The name of the disk that was attached by hand.
const BY_HAND: &str = "by-hand";
/// The LUN of this disk.
const LUN: u32 = SLOTS - 1;
/// The neighbour's group.
const NEIGHBOUR: &str = "neighbour";

/// Steps of a driver's turn.
#[derive(Clone, Copy)]
enum Step {
    Create,
    Attach,
    /// What the other driver was asked for is asked for again.
    CreateAgain,
    AttachAgain,
    Detach,
    Delete,
}

/// Lets the established driver make volumes, ours take them over, the established one take them back, and ours end them.
///
/// # Errors
/// A driver fails; ours writes where there is nothing to change; or something that belongs to others changes.
pub async fn run(
    arguments: &Arguments,
    (ours, peer): (&Driver, &Driver),
    volumes: u32,
    bar: &ProgressBar,
) -> anyhow::Result<Table> {
    use Step::{Attach, AttachAgain, Create, CreateAgain, Delete, Detach};
    let machines = arguments.machines.max(volumes.div_ceil(SLOTS - 1));
    let stage = Stage::lay_out(arguments, machines).await?;
    let others = Others::lay_out(&stage, volumes)?;
    let turns: [(&Driver, &[Step]); 4] = [
        (peer, &[Create, Attach]),
        (ours, &[CreateAgain, AttachAgain, Detach, Attach]),
        (peer, &[CreateAgain, AttachAgain, Detach, Attach]),
        (ours, &[CreateAgain, AttachAgain, Detach, Delete]),
    ];
    let mut table = Table::default();
    let (mut here, mut elsewhere) = (&stage.first, &stage.second);
    let mut made = None;
    for (turn, (driver, steps)) in turns.into_iter().enumerate() {
        let mut started = driver.start_controller(stage.files()).await?;
        let side_cars = match &made {
            None => SideCars::new(&stage, &started, volumes),
            Some(former) => SideCars::handed_to(former, &started),
        };
        for step in steps {
            let what = format!("turn {}: {}", turn + 1, step.words());
            bar.set_message(format!("{}, {what}", driver.name));
            stage.cluster.azure.clear_journal();
            let work = async {
                match step {
                    Create => side_cars.create().await,
                    Attach => side_cars.attach(here).await,
                    CreateAgain => side_cars.create_again().await,
                    AttachAgain => side_cars.attach_again(here).await,
                    Detach => side_cars.detach(here).await,
                    Delete => side_cars.delete().await,
                }
            };
            let outcome = started.beside(work).await?;
            let journal = stage.cluster.azure.journal();
            let is_again = matches!(step, CreateAgain | AttachAgain);
            let writes = writes(&journal);
            ensure!(
                !is_again || writes.is_empty() || std::ptr::eq(driver, peer),
                "{what}: ours writes where there is nothing to change: {}",
                writes.join(", ")
            );
            let row = Row::of_work(&what, (volumes, machines), &outcome, &journal, &started)?;
            table.add(driver.name, vec![row]);
            others.must_be_as_before(&stage, &what)?;
            if matches!(step, Detach) {
                std::mem::swap(&mut here, &mut elsewhere);
            }
        }
        end(started);
        made = Some(side_cars);
    }
    others.must_be_all(&stage)?;
    Ok(table)
}

/// A driver is killed: the next one starts without a word from it.
fn end(started: Started) {
    drop(started);
}

/// The writes to Azure; requests for tokens are none.
fn writes(journal: &Journal) -> Vec<String> {
    let is_write = |method: &str| matches!(method, "PUT" | "PATCH" | "DELETE");
    let entries = journal.entries.iter().filter(|entry| is_write(&entry.method));
    entries.map(|entry| format!("{} {}", entry.method, entry.path)).collect()
}

/// What belongs to others, as it was at the beginning.
struct Others {
    machine: ResourceId,
    disks: Vec<(ResourceId, Value)>,
}

impl Others {
    fn lay_out(stage: &Stage, volumes: u32) -> anyhow::Result<Self> {
        let azure = &stage.cluster.azure;
        let refused = |refusal| anyhow::anyhow!("Azure refuses it: {refusal}");
        let node = stage.kubernetes.get("Node", "", &stage.first[0]).context("the node is gone")?;
        let provider_id = node.value()["spec"]["providerID"].as_str().unwrap_or_default().to_owned();
        let machine = ResourceId::parse(provider_id.trim_start_matches("azure://"))?;
        let group = ResourceId::group(stage.group.subscription_id(), NEIGHBOUR);
        azure.put(&group, json!({"location": "westeurope"})).map_err(refused)?;
        let of = |group: &ResourceId, name: &str| group.resource("Microsoft.Compute", "disks", name);
        let mut ids: Vec<_> = (0..volumes as usize).map(|number| of(&group, &volume_name(number))).collect();
        let by_hand = of(&stage.group, BY_HAND);
        ids.push(by_hand.clone());
        for id in &ids {
            let disk = json!({
                "location": "westeurope", "sku": {"name": "Premium_ZRS"}, "tags": {"owner": "others"},
                "properties": {"creationData": {"createOption": "Empty"}, "diskSizeGB": GIB},
            });
            azure.put(id, disk).map_err(refused)?;
        }
        let entry = json!({"lun": LUN, "createOption": "Attach", "managedDisk": {"id": by_hand}});
        azure
            .edit(&machine, |document| {
                let list = &mut document["properties"]["storageProfile"]["dataDisks"];
                let mut entries = list.as_array().cloned().unwrap_or_default();
                entries.push(entry);
                *list = entries.into();
            })
            .map_err(refused)?;
        let disks = ids.into_iter().map(|id| {
            let document = azure.document(&id).unwrap_or_default();
            (id, document)
        });
        Ok(Self { machine, disks: disks.collect() })
    }

    /// Fails if a disk of others has changed, or the one that was attached by hand is elsewhere.
    fn must_be_as_before(&self, stage: &Stage, what: &str) -> anyhow::Result<()> {
        for (id, before) in &self.disks {
            let now = stage.cluster.azure.document(id).unwrap_or_default();
            ensure!(now == *before, "{what}: {id} belongs to others, and has changed to {now}");
        }
        let machine = stage.cluster.azure.document(&self.machine).context("the machine is gone")?;
        let list = machine["properties"]["storageProfile"]["dataDisks"].as_array();
        let is_there = list.into_iter().flatten().any(|entry| {
            let id = entry["managedDisk"]["id"].as_str().unwrap_or_default();
            id.ends_with(BY_HAND) && entry["lun"] == LUN && entry["toBeDetached"] != true
        });
        ensure!(is_there, "{what}: the disk that was attached by hand is not at its LUN any more");
        Ok(())
    }

    /// Fails if there are other disks than those of others.
    fn must_be_all(&self, stage: &Stage) -> anyhow::Result<()> {
        let left = stage.cluster.azure.documents_of_type("Microsoft.Compute/disks");
        let left: Vec<&str> = left.iter().filter_map(|disk| disk["id"].as_str()).collect();
        let is_others = |id: &&&str| self.disks.iter().any(|(own, _)| own.as_str().eq_ignore_ascii_case(id));
        let ours: Vec<_> = left.iter().filter(|id| !is_others(id) && id.contains("/pvc-")).collect();
        ensure!(ours.is_empty(), "volumes are left: {ours:?}");
        Ok(())
    }
}

impl Step {
    fn words(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Attach => "attach",
            Self::CreateAgain => "create again",
            Self::AttachAgain => "attach again",
            Self::Detach => "detach",
            Self::Delete => "delete",
        }
    }
}
