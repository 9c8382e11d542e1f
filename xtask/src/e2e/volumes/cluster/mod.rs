//! Volumes of a real Kubernetes: kubelets on simulated machines whose disks are loop devices, our driver, and the side-cars of
//! kubernetes-csi.
//!
//! ```text
//! this program ─▶ the same in namespaces of its own (real_kubernetes::Enclosure) ─▶ place ─▶ story
//! ```

mod accounts;
mod neighbour;
mod objects;
mod place;
mod registrar;
mod side_cars;
mod story;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use real_kubernetes::Enclosure;
use tokio::time::Instant;

use crate::e2e::managers::{CONTROLLER_ACCOUNT, NODE_ACCOUNT};
use crate::e2e::{machines, rights};
use crate::kubernetes::{Api, Kubernetes};
use crate::print;
use crate::program::{in_folder, of_script, runtime, with_logs};
use place::Place;
use side_cars::SideCars;

/// Runs the story, or says why this machine cannot. `given` is a folder of side-cars; by default they are built.
///
/// # Errors
/// The first failed step; in CI also missing requirements of this machine.
pub fn run(programs: &Path, given: Option<&Path>, keep: bool) -> anyhow::Result<()> {
    let Some(api) = Api::find(Kubernetes::Real)? else { return Ok(()) };
    let assets = api.assets().context("there is no folder of programs")?;
    if !machines::is_possible(assets)? {
        return Ok(());
    }
    let folder = match given {
        Some(folder) => folder.to_owned(),
        None => match of_script("side_cars.sh")? {
            Some(folder) => folder,
            None => return Ok(()),
        },
    };
    let Some(side_cars) = SideCars::find(&folder) else { return Ok(()) };
    side_cars.announce();
    let whole = |path: &Path| path.canonicalize().with_context(|| path.display().to_string());
    let (programs, folder) = (whole(programs)?, whole(&folder)?);
    let mut options = ["e2e", "volumes", "--inside", "--programs"].map(str::to_owned).to_vec();
    options.extend([programs.display().to_string(), "--side-cars".to_owned(), folder.display().to_string()]);
    in_folder("cerulean-e2e-volumes-", keep, |directory| {
        let ended = Enclosure::run(&std::env::current_exe()?, &options, directory)?;
        ensure!(ended.success(), "the story ended with {ended}");
        Ok(())
    })
}

/// The part that runs in separate namespaces.
///
/// # Errors
/// The first failed step.
pub fn inside(programs: &Path, side_cars: &Path) -> anyhow::Result<()> {
    let Some(api) = Api::find(Kubernetes::Real)? else { return Ok(()) };
    let assets: PathBuf = api.assets().context("there is no folder of programs")?.to_owned();
    let side_cars = SideCars::find(side_cars).context("a side-car is missing")?;
    runtime()?.block_on(async {
        let begun = Instant::now();
        let enclosure = Enclosure::enter(machines::GATEWAY, &[machines::METADATA])?;
        let mut place = Place::start(&enclosure, &assets, programs, &side_cars).await?;
        print::line(format_args!(
            "  ok  {:5.1} s  a cluster of two nodes, driver and side-cars",
            begun.elapsed().as_secs_f64()
        ));
        let played = story::play(&mut place).await;
        let words: Vec<_> = place.programs.iter().collect();
        played.map_err(|problem| with_logs(problem, &words))?;
        let log = place.folder.join(rights::AUDIT_LOG);
        place.stop().await?;
        let accounts =
            [CONTROLLER_ACCOUNT, NODE_ACCOUNT, accounts::CONTROLLER, accounts::NODE, accounts::SNAPSHOTS];
        let audit = rights::audit(&log, &accounts)?;
        print::line(format_args!("  ok  {} requests to Kubernetes, none denied", audit.requests));
        print::line(format_args!("all steps passed in {:.1} s", begun.elapsed().as_secs_f64()));
        Ok(())
    })
}
