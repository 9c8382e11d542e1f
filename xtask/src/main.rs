//! Developer tasks that need code: end-to-end tests, replays of recorded conversations, tests with Azure's own clients,
//! and searches for failures.

mod admission;
mod azure_clients;
mod charts;
mod e2e;
mod explore;
mod fuzz;
mod guide;
mod images;
mod kubernetes;
mod manifests;
mod monitoring;
mod print;
mod program;
mod provenance;
mod record;
mod release;
mod replay;
mod rights;
mod rules;
mod seam;
mod takeover;
mod webhooks;
mod world;

use std::process::ExitCode;

use clap::Parser;

/// Tasks of the Cerulean workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
enum Chore {
    /// Judge a corpus of Cluster API's objects for Azure, and compare the result with the established provider's.
    Admission(admission::Arguments),
    /// Run everyday commands of the Azure CLI, fetched from PyPI, against the simulated Azure.
    AzureCli(azure_clients::Arguments),
    /// Print the tables of the charts' pages, and manifests from the charts, to docs/ and deploy/.
    Charts(charts::Arguments),
    /// Run a scenario with the release binaries against simulators over TLS.
    E2e(e2e::Arguments),
    /// Run generated histories of Services, nodes and faults in simulated worlds, and judge their ends.
    Explore(explore::Arguments),
    /// Send hostile requests to the simulated Azure, which must refuse them without a crash.
    Fuzz(fuzz::Arguments),
    /// Build images of the programs without a container engine, the same bytes from the same commit.
    Images(images::Arguments),
    /// Print manifests from the code that they describe, such as custom resource definitions, to deploy/.
    Manifests(manifests::Arguments),
    /// Print, check and try the dashboards and alert rules of deploy/monitoring.
    Monitoring(monitoring::Arguments),
    /// Record the state of Azure and Kubernetes after the established provider has created clusters.
    Record(record::Arguments),
    /// Build everything that a release has into one folder: programs, images, charts, manifests, sums, notes.
    Release(release::Arguments),
    /// Replay recorded conversations with Azure against the simulator; skipped if there are none.
    Replay(replay::Arguments),
    /// Compare roles in Kubernetes with an API server's audit log.
    #[command(subcommand)]
    Rights(rights::Command),
    /// Count the acceptance cases of `docs/rules` by their relation to ours.
    Rules(rules::Arguments),
    /// Drive the simulated Azure with Azure's SDK for Python, fetched from PyPI.
    Sdk(azure_clients::Arguments),
    /// Hand clusters over between the established provider with its operator and our manager of clusters.
    Seam(seam::Arguments),
    /// Hand clusters over between the program that Cerulean replaces and ours; neither may write anything.
    Takeover(takeover::Arguments),
}

fn main() -> ExitCode {
    // The runner speaks TLS to the programs that it starts, which requires a crypto provider before the first client.
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
    let done = match Chore::parse() {
        Chore::Admission(arguments) => admission::run(&arguments),
        Chore::AzureCli(arguments) => azure_clients::CLI.prove(&arguments),
        Chore::Charts(arguments) => charts::run(&arguments),
        Chore::E2e(arguments) => e2e::run(&arguments),
        Chore::Explore(arguments) => explore::run(&arguments),
        Chore::Fuzz(arguments) => fuzz::run(&arguments),
        Chore::Images(arguments) => images::run(&arguments),
        Chore::Manifests(arguments) => manifests::run(&arguments),
        Chore::Monitoring(arguments) => monitoring::run(&arguments),
        Chore::Record(arguments) => record::run(&arguments),
        Chore::Release(arguments) => release::run(&arguments),
        Chore::Replay(arguments) => replay::run(&arguments),
        Chore::Rights(command) => rights::run(&command),
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
