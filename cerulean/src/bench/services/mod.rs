//! `cerulean bench services`: the cost of a controller manager's everyday work, compared with the program that it
//! replaces.
//!
//! Each program has a simulated cluster of its own, created with the same seed, and runs the same
//! [scenarios](scenario::SCENARIOS); in the end ours takes over what the other one has built. The programs run one
//! after the other, so that they do not compete for the processor.

pub(super) mod calls;
mod chart;
pub(super) mod critical_path;
mod machine;
mod report;
mod scenario;
mod stage;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use azure_simulator::LatencyProfile;
use indicatif::ProgressBar;

use super::process::Manager;
use crate::screen::Screen;
use crate::simulate::latency;
use crate::{TWO_THREADS, runtime};
use machine::Machine;
pub use report::percentile;
use report::{Program, Report, Row};
use scenario::{CHAIN, SCENARIOS, TAKEOVER};
use stage::Stage;

/// What to measure.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// The controller manager's binary; by default the one next to this program.
    #[arg(long, value_name = "PATH")]
    manager: Option<PathBuf>,
    /// A build of the program that Cerulean replaces, to go through the same. Ours takes over from it in the end.
    #[arg(long, value_name = "PATH")]
    peer: Option<PathBuf>,
    /// How many Services are applied at once.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    services: u32,
    /// How many Services are created one after the other, and then deleted one after the other. Unless given, 50 where
    /// Azure answers at once, and none where it takes its time.
    #[arg(long, value_name = "N")]
    chain: Option<u32>,
    /// How many machines the scale set has, each of them a node. One of them dies, and another one joins.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=999))]
    nodes: u64,
    /// How long Azure's operations take: instant, quick, typical or a JSON file.
    #[arg(long, default_value = "instant", value_parser = latency)]
    latency: Latency,
    /// Let load balancers hold the nodes' addresses instead of their network interfaces.
    #[arg(long)]
    by_address: bool,
    /// Write all figures as JSON to this file; `-` prints them instead of the tables.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draw the Services that have their address over time, as an SVG file.
    #[arg(long, value_name = "FILE")]
    chart: Option<PathBuf>,
}

/// A latency profile, with its name on the command line.
#[derive(Debug, Clone)]
struct Latency {
    name: String,
    profile: LatencyProfile,
}

fn latency(text: &str) -> Result<Latency, String> {
    Ok(Latency { name: text.to_owned(), profile: latency::parse(text)? })
}

impl Arguments {
    fn chain(&self) -> u32 {
        self.chain.unwrap_or(if self.latency.name == "instant" { 50 } else { 0 })
    }

    /// The command line without the paths, which differ from machine to machine.
    fn command(&self) -> String {
        let mut words = vec![
            "cerulean bench services".to_owned(),
            format!("--services {}", self.services),
            format!("--latency {}", self.latency.name),
        ];
        words.extend(self.chain.map(|chain| format!("--chain {chain}")));
        words.extend((self.nodes != 3).then(|| format!("--nodes {}", self.nodes)));
        words.extend(self.by_address.then(|| "--by-address".to_owned()));
        words.extend(self.peer.is_some().then(|| "--peer PATH".to_owned()));
        words.join(" ")
    }
}

/// Measures, and prints tables or the requested output.
///
/// # Errors
/// A binary is missing or fails, or a file cannot be written.
pub fn run(screen: Screen, arguments: Arguments) -> anyhow::Result<()> {
    let ours = Manager::ours(arguments.manager.clone())?;
    let peer = arguments.peer.clone().map(Manager::peer).transpose()?;
    let bar = screen.waiting("laying out");
    let report = runtime(TWO_THREADS)?.block_on(measure(&arguments, &ours, peer.as_ref(), &bar));
    bar.finish_and_clear();
    let report = report?;
    if let Some(path) = &arguments.chart {
        let chart = chart::draw(&report);
        std::fs::write(path, chart).with_context(|| format!("--chart {}", path.display()))?;
    }
    match &arguments.json {
        Some(path) if path == Path::new("-") => screen.line(serde_json::to_string_pretty(&report)?),
        Some(path) => {
            let text = format!("{}\n", serde_json::to_string_pretty(&report)?);
            std::fs::write(path, text).with_context(|| format!("--json {}", path.display()))?;
            report.print(screen);
        }
        None => report.print(screen),
    }
    Ok(())
}

async fn measure(
    arguments: &Arguments,
    ours: &Manager,
    peer: Option<&Manager>,
    bar: &ProgressBar,
) -> anyhow::Result<Report> {
    // Read before anything is started here, so that the load is that of other programs.
    let machine = Machine::of_this_process();
    let mut rows = Vec::new();
    let stage = play(ours, arguments, bar, &mut rows).await?;
    drop(stage);
    if let Some(peer) = peer {
        let mut stage = play(peer, arguments, bar, &mut rows).await?;
        rows.push(TAKEOVER.run(&mut stage, ours).await?);
    }
    let programs = std::iter::once(ours).chain(peer).map(Program::of).collect::<anyhow::Result<_>>()?;
    Ok(Report {
        command: arguments.command(),
        machine,
        latency: arguments.latency.name.clone(),
        services: arguments.services,
        chain: arguments.chain(),
        nodes: arguments.nodes,
        programs,
        rows,
    })
}

/// Runs all scenarios with one program, on a cluster of its own.
async fn play(
    manager: &Manager,
    arguments: &Arguments,
    bar: &ProgressBar,
    rows: &mut Vec<Row>,
) -> anyhow::Result<Stage> {
    let mut stage = Stage::lay_out(arguments, bar.clone()).await?;
    let has_chain = stage.chain > 0;
    for scenario in SCENARIOS.into_iter().filter(|one| one.name != CHAIN || has_chain) {
        rows.push(scenario.run(&mut stage, manager).await?);
    }
    Ok(stage)
}
