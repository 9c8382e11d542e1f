//! Developer tasks that need code: end-to-end tests, replays of recorded conversations, tests with Azure's own clients,
//! and searches for failures.

mod admission;
mod azure_clients;
mod e2e;
mod explore;
mod fuzz;
mod manifests;
mod print;
mod program;
mod record;
mod replay;
mod rules;
mod seam;
mod takeover;

use std::process::ExitCode;

use clap::Parser;

/// Chores of the Cerulean workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
enum Chore {
    /// Judge a corpus of Cluster API's objects for Azure, and compare with what the established provider says.
    Admission(admission::Arguments),
    /// Run everyday commands of the Azure CLI, fetched from PyPI, against the simulated Azure.
    AzureCli(azure_clients::Arguments),
    /// Run the release binaries against simulators over TLS, through one scenario.
    E2e(e2e::Arguments),
    /// Run generated histories of Services, nodes and faults in simulated worlds; all of them must end well.
    Explore(explore::Arguments),
    /// Send hostile requests to the simulated Azure; it must refuse them without falling over.
    Fuzz(fuzz::Arguments),
    /// Print manifests from the code that they describe: custom resource definitions, into deploy/.
    Manifests(manifests::Arguments),
    /// Let the established provider make clusters, and keep what it leaves in Azure and Kubernetes.
    Record(record::Arguments),
    /// Replay recorded conversations with Azure against the simulator; skipped where there are none.
    Replay(replay::Arguments),
    /// Count the acceptance cases of `docs/rules` by how ours relates to them.
    Rules(rules::Arguments),
    /// Drive the simulated Azure with Azure's SDK for Python, fetched from PyPI.
    Sdk(azure_clients::Arguments),
    /// Let the established provider with its operator and our manager of clusters take over clusters from each other.
    Seam(seam::Arguments),
    /// Let the program that Cerulean replaces and ours take over clusters from each other; nothing may be written.
    Takeover(takeover::Arguments),
}

fn main() -> ExitCode {
    // The runner speaks TLS to the programs that it starts, which requires a crypto provider before the first client.
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
    let done = match Chore::parse() {
        Chore::Admission(arguments) => admission::run(&arguments),
        Chore::AzureCli(arguments) => azure_clients::CLI.prove(&arguments),
        Chore::E2e(arguments) => e2e::run(&arguments),
        Chore::Explore(arguments) => explore::run(&arguments),
        Chore::Fuzz(arguments) => fuzz::run(&arguments),
        Chore::Manifests(arguments) => manifests::run(&arguments),
        Chore::Record(arguments) => record::run(&arguments),
        Chore::Replay(arguments) => replay::run(&arguments),
        Chore::Rules(arguments) => rules::run(&arguments),
        Chore::Sdk(arguments) => azure_clients::SDK.prove(&arguments),
        Chore::Seam(arguments) => seam::run(&arguments),
        Chore::Takeover(arguments) => takeover::run(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            print::line(format_args!("FAILED: {problem:#}"));
            ExitCode::FAILURE
        }
    }
}
