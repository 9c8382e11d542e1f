//! Chores that need code: end-to-end tests and replays of recorded conversations.

mod e2e;
mod print;
mod program;
mod replay;

use std::process::ExitCode;

use clap::Parser;

/// Chores of the Cerulean workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
enum Chore {
    /// Run the release binaries against simulators over TLS, through one scenario.
    E2e(e2e::Arguments),
    /// Replay recorded conversations with Azure against the simulator; skipped where there are none.
    Replay,
}

fn main() -> ExitCode {
    // The runner speaks TLS to what it starts; it needs a provider of cryptography before the first client.
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
    let done = match Chore::parse() {
        Chore::E2e(arguments) => e2e::run(&arguments),
        Chore::Replay => replay::run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            print::line(format_args!("FAILED: {problem:#}"));
            ExitCode::FAILURE
        }
    }
}
