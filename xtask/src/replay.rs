//! Recorded conversations with the real Azure, replayed against the simulator.
//!
//! The recordings and the script that compares live beside the checkout (`../shared`), not in it; where
//! they are missing, this chore says so and succeeds.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail};

use crate::print;
use crate::program::{Program, build_release, root};

/// Conversations about what the simulator serves whole, and the percentage that both scores must reach.
const CONVERSATIONS: [&str; 6] =
    ["loadbalancer", "publicipaddress", "securitygroup", "virtualnetwork", "subnet", "resourcegroup"];
const WANT: &str = "97";

/// Replays them.
///
/// # Errors
/// The simulator does not start, or a score is too low.
pub fn run() -> anyhow::Result<()> {
    let shared = root().join("../shared");
    let script = shared.join("tools/arm_replay.py");
    if !script.exists() {
        print::line("skipped: no recorded conversations beside this checkout (../shared)");
        return Ok(());
    }
    let cerulean = build_release()?.join("cerulean");
    let directory = tempfile::tempdir()?;
    let address = directory.path().join("address");
    let mut simulator = Program::start(
        "simulate-azure",
        directory.path(),
        Command::new(cerulean)
            .args(["simulate", "azure", "--without-tokens", "--address-file"])
            .arg(&address),
    )?;
    let url = wait_for(&address, &mut simulator)?;
    let files = CONVERSATIONS.map(|name| shared.join(format!("recordings/{name}.jsonl")));
    let status = Command::new("python3")
        .arg(script)
        .args(["--base", url.trim(), "--want", WANT])
        .args(files)
        .status()
        .context("cannot run python3")?;
    if !status.success() {
        bail!("the simulated Azure differs from the recorded one by more than {WANT} % allows");
    }
    Ok(())
}

/// Waits until the simulator has written where it listens.
fn wait_for(address: &std::path::Path, simulator: &mut Program) -> anyhow::Result<String> {
    for _ in 0..200 {
        if let Ok(text) = std::fs::read_to_string(address)
            && text.ends_with('\n')
        {
            return Ok(text);
        }
        simulator.must_run()?;
        pause(Duration::from_millis(50));
    }
    bail!("the simulated Azure did not start:\n{}", simulator.last_words())
}

#[allow(clippy::disallowed_methods, reason = "a chore without a runtime that waits for another process")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}
