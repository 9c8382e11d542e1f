//! A driver for disks on simulated hardware: `cargo xtask e2e volumes`.
//!
//! Azure and Kubernetes are simulated; the disks of their machine are loop devices. The driver runs as on that machine, in a
//! mount namespace with its `/dev`, and answers csi-sanity, the checks of the Container Storage Interface.
//!
//! Then it serves a real Kubernetes on two such machines: [`cluster`].
//!
//! ```text
//! cerulean simulate cluster --volumes ─▶ scripts/in_machine.sh DRIVER ◀─unix─ csi-sanity ─▶ report
//! ```

mod cluster;
mod place;
mod report;
mod sanity;

use std::path::PathBuf;

use anyhow::ensure;

use crate::print;
use crate::program::{ProgramArguments, given_or_built, in_folder, of_script, runtime};
use place::DRIVER;
use sanity::AccessType;

/// How to run it.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Binary of the driver, ours or the established one; by default azurediskplugin among the programs.
    #[arg(long, value_name = "PATH")]
    driver: Option<PathBuf>,
    /// Further argument of the driver; repeatable.
    #[arg(long, value_name = "ARGUMENT", allow_hyphen_values = true)]
    driver_argument: Vec<String>,
    /// Size of the machine: those of version 6 and later have NVMe.
    #[arg(long, value_name = "SIZE", default_value = place::SIZE)]
    size: String,
    /// How volumes are used; by default in each way, one after the other.
    #[arg(long, value_enum)]
    access: Option<AccessType>,
    /// Run only checks whose name matches this regular expression.
    #[arg(long, value_name = "REGEX")]
    focus: Option<String>,
    /// Keep the folder with logs and reports, and print its path.
    #[arg(long)]
    keep: bool,
    /// What to run; by default both, one after the other.
    #[arg(long, value_enum)]
    only: Option<Part>,
    /// Folder with the side-cars of kubernetes-csi; by default they are built from their Go modules.
    #[arg(long, value_name = "FOLDER")]
    side_cars: Option<PathBuf>,
    /// Run the story of a real Kubernetes itself, which the task starts in namespaces of its own.
    #[arg(long, hide = true, requires = "programs", requires = "side_cars")]
    inside: bool,
    #[command(flatten)]
    programs: ProgramArguments,
}

/// A part of the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// The checks of the Container Storage Interface.
    Checks,
    /// The story of a real Kubernetes.
    Kubernetes,
}

/// Runs the checks, or says why this machine cannot.
///
/// # Errors
/// A check fails or is skipped that must not be.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if let (true, Some(side_cars), Some(programs)) =
        (arguments.inside, &arguments.side_cars, arguments.programs.given())
    {
        return cluster::inside(programs, side_cars);
    }
    if let Some(lack) = place::lacks() {
        print::line(format_args!("skipped: volumes on loop devices: {lack}"));
        return Ok(());
    }
    if arguments.only != Some(Part::Kubernetes) {
        check(arguments)?;
    }
    if arguments.only != Some(Part::Checks) {
        let programs = given_or_built(arguments.programs.given(), "")?;
        cluster::run(&programs, arguments.side_cars.as_deref(), arguments.keep)?;
    }
    Ok(())
}

/// Runs csi-sanity.
fn check(arguments: &Arguments) -> anyhow::Result<()> {
    let Some(checks) = of_script("csi_sanity.sh")? else { return Ok(()) };
    let built = arguments.programs.or_built()?;
    let driver = arguments.driver.clone().unwrap_or_else(|| built.programs.join(DRIVER)).canonicalize();
    let driver = driver.map_err(|error| anyhow::anyhow!("{DRIVER}: {error}; name one with --driver"))?;
    let runtime = runtime()?;
    let each = arguments.access.map_or_else(|| AccessType::ALL.to_vec(), |one| vec![one]);
    for access in each {
        print::line(format_args!("csi-sanity, access type {}", access.word()));
        in_folder("cerulean-e2e-volumes-", arguments.keep, |directory| {
            let settings = place::Settings {
                driver: &driver,
                arguments: &arguments.driver_argument,
                size: &arguments.size,
            };
            let reached =
                sanity::run(&built, directory, &settings, &checks, access, arguments.focus.as_deref());
            let report = runtime.block_on(reached)?;
            report.print();
            ensure!(report.is_good(), "{}", report.sentence());
            Ok(())
        })?;
    }
    print::line("all checks passed");
    Ok(())
}
