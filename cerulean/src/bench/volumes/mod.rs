//! `cerulean bench volumes`: the cost of disks, compared with the driver that ours replaces.
//!
//! Each driver runs as in production, in the role of the controller, and each number of volumes has a cluster of its own, created
//! with the same seed. What side-cars do at once comes at once: volumes are created, attached, moved to other machines and deleted.
//! The drivers run one after the other, so that they do not compete for the processor.

mod arguments;
mod driver;
mod in_turn;
mod report;
mod requests;
mod restart;
mod side_cars;
mod stage;

use indicatif::ProgressBar;

pub use self::arguments::Arguments;
use self::driver::Driver;
use self::report::{Row, Table};
use self::side_cars::SideCars;
use self::stage::{SLOTS, Stage};
use crate::runtime::{TWO_THREADS, runtime};
use crate::screen::Screen;

/// More volumes than the slots of a machine: what the rest is answered.
const TOO_MANY: u32 = 40;

/// Measures and prints a table.
///
/// # Errors
/// A binary is missing or fails.
pub fn run(screen: Screen, arguments: &Arguments) -> anyhow::Result<()> {
    let mut drivers = vec![Driver::ours(arguments.driver.clone())?];
    if let Some(peer) = arguments.peer.clone() {
        drivers.push(Driver::peer(peer)?);
    }
    let bar = screen.waiting("laying out");
    let table = runtime(TWO_THREADS)?.block_on(measure(arguments, &drivers, &bar));
    bar.finish_and_clear();
    table?.print(screen);
    Ok(())
}

async fn measure(arguments: &Arguments, drivers: &[Driver], bar: &ProgressBar) -> anyhow::Result<Table> {
    if let (true, [ours, peer]) = (arguments.in_turn, drivers) {
        let volumes = arguments.volumes.iter().copied().max().unwrap_or(1);
        return in_turn::run(arguments, (ours, peer), volumes, bar).await;
    }
    let mut table = Table::default();
    for driver in drivers {
        let mut rows = vec![node_role(arguments, driver, bar).await?];
        for &volumes in &arguments.volumes {
            rows.extend(together(arguments, driver, volumes, bar).await?);
        }
        rows.push(too_many(arguments, driver, bar).await?);
        if let Some(count) = arguments.restart_with {
            rows.extend(restart::run(arguments, driver, count, bar).await?);
        }
        table.add(driver.name, rows);
    }
    Ok(table)
}

/// The role of a node while it has nothing to do.
async fn node_role(arguments: &Arguments, driver: &Driver, bar: &ProgressBar) -> anyhow::Result<Row> {
    bar.set_message(format!("{}: the role of a node", driver.name));
    let stage = Stage::lay_out(arguments, 1).await?;
    let started = driver.start_on_node(stage.files(), &stage.first[0]).await?;
    Row::of_idle("node role, idle", None, &started).await
}

/// Volumes are created, attached, moved and deleted, all at once.
async fn together(
    arguments: &Arguments,
    driver: &Driver,
    volumes: u32,
    bar: &ProgressBar,
) -> anyhow::Result<Vec<Row>> {
    let machines = arguments.machines.max(volumes.div_ceil(SLOTS));
    let stage = Stage::lay_out(arguments, machines).await?;
    let mut started = driver.start_controller(stage.files()).await?;
    let mut rows = vec![Row::of_idle("controller, idle", Some((volumes, machines)), &started).await?];
    let side_cars = SideCars::new(&stage, &started, volumes);
    let (first, second) = (&stage.first, &stage.second);
    for what in ["create", "attach", "detach", "attach elsewhere", "detach again", "delete"] {
        bar.set_message(format!("{}, {volumes} volumes: {what}", driver.name));
        stage.cluster.azure.clear_journal();
        let work = async {
            match what {
                "create" => side_cars.create().await,
                "attach" => side_cars.attach(first).await,
                "detach" => side_cars.detach(first).await,
                "attach elsewhere" => side_cars.attach(second).await,
                "detach again" => side_cars.detach(second).await,
                _ => side_cars.delete().await,
            }
        };
        let outcome = started.beside(work).await?;
        rows.push(Row::of_work(
            what,
            (volumes, machines),
            &outcome,
            &stage.cluster.azure.journal(),
            &started,
        )?);
    }
    rows.push(Row::of_most("controller, at most", (volumes, machines), &started)?);
    Ok(rows)
}

/// More volumes than a machine has slots, and no second attempt.
async fn too_many(arguments: &Arguments, driver: &Driver, bar: &ProgressBar) -> anyhow::Result<Row> {
    bar.set_message(format!("{}: {TOO_MANY} volumes for one machine", driver.name));
    let stage = Stage::lay_out(arguments, 1).await?;
    let mut started = driver.start_controller(stage.files()).await?;
    let side_cars = SideCars::new(&stage, &started, TOO_MANY);
    started.beside(side_cars.create()).await?;
    stage.cluster.azure.clear_journal();
    let outcome = started.beside(side_cars.attach_once(&stage.first)).await?;
    let what = format!("attach to {SLOTS} slots");
    Row::of_work(&what, (TOO_MANY, 1), &outcome, &stage.cluster.azure.journal(), &started)
}
