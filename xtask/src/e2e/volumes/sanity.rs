//! csi-sanity against the driver.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::place::{Place, Settings};
use super::report::Report;
use crate::program::{Built, Program, with_logs};

/// How volumes are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum AccessType {
    /// With a file system.
    Mount,
    /// As a device.
    Block,
}

impl AccessType {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Mount, Self::Block];

    /// The word of csi-sanity.
    pub fn word(self) -> &'static str {
        match self {
            Self::Mount => "mount",
            Self::Block => "block",
        }
    }
}

/// What a volume can be changed to while it exists.
const MUTABLE: &str = "skuName: Premium_LRS\n";
/// The time limit of all checks: each attach of some drivers waits for a second.
const PATIENCE: Duration = Duration::from_secs(1800);

/// Runs the checks on a new cluster and a new driver.
///
/// # Errors
/// The checks do not come to an end: failed ones are in the report.
pub async fn run(
    built: &Built,
    directory: &Path,
    settings: &Settings<'_>,
    checks: &Path,
    access: AccessType,
    focus: Option<&str>,
) -> anyhow::Result<Report> {
    let mut place = Place::start(built, directory, settings).await?;
    let (report, mutable) = (directory.join("report.json"), directory.join("mutable.yaml"));
    std::fs::write(&mutable, MUTABLE)?;
    let mut command = place.beside_the_driver(checks);
    command
        .arg(format!("--csi.endpoint=unix://{}", place.socket.display()))
        .arg(format!("--csi.mountdir={}", directory.join("mount").display()))
        .arg(format!("--csi.stagingdir={}", directory.join("staging").display()))
        .arg(format!("--csi.testvolumeaccesstype={}", access.word()))
        .arg(format!("--csi.testvolumemutableparameters={}", mutable.display()))
        .arg("--csi.testnodevolumeattachlimit")
        .arg(format!("--ginkgo.json-report={}", report.display()))
        .args(["--ginkgo.no-color", "--ginkgo.v"])
        .args(focus.map(|focus| format!("--ginkgo.focus={focus}")))
        .stdin(Stdio::null());
    let mut run = Program::start("csi-sanity", directory, &mut command)?;
    let ended = run.ends_within(PATIENCE).await?;
    place.driver.must_run().context("the driver has to survive the checks")?;
    let Some(ended) = ended else {
        let problem = anyhow::anyhow!("csi-sanity did not end within {} s", PATIENCE.as_secs());
        return Err(with_logs(problem, &[&run, &place.driver]));
    };
    let read = std::fs::read_to_string(&report).context("csi-sanity wrote no report").and_then(|text| {
        let report = Report::parse(&text)?;
        if !ended.success() && report.is_good() {
            bail!("csi-sanity ended with {ended}, and its report has no failure");
        }
        Ok(if focus.is_some() { report.of_a_choice() } else { report })
    });
    let report = read.map_err(|problem| with_logs(problem, &[&run, &place.driver]))?;
    place.stop().await?;
    Ok(report)
}
