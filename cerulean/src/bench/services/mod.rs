//! `cerulean bench services`: the cost of a controller manager's everyday work, compared with the program that it
//! replaces.
//!
//! Each program has a simulated cluster of its own, created with the same seed, and runs the same
//! [scenarios](scenario::SCENARIOS); in the end ours takes over what the other one has built. The programs run one
//! after the other, so that they do not compete for the processor.

mod arguments;
pub(super) mod calls;
mod chart;
pub(super) mod critical_path;
mod machine;
mod report;
mod scenario;
mod stage;

use std::path::Path;

use anyhow::Context as _;
use indicatif::ProgressBar;

use super::process::Manager;
use crate::runtime::{TWO_THREADS, runtime};
use crate::screen::Screen;
pub use arguments::{Arguments, Latency};
use machine::Machine;
use report::{Program, Report, Row};
use scenario::{CHAIN, SCENARIOS, TAKEOVER};
use stage::Stage;

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
