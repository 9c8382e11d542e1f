//! `cerulean`: run a demo, simulate Azure and Kubernetes, show plans, measure, compare runs.

mod bench;
mod check;
mod demo;
mod http_client;
mod journal;
mod kubernetes;
mod leftover_variables;
mod management;
mod manifests;
mod not_served;
mod plan;
mod runtime;
mod screen;
mod signals;
mod simulate;
mod watch_writes;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use cloud_controller_manager::last_words;
use screen::Screen;

/// Kubernetes on Azure, on your own machine: both are simulated.
#[derive(Debug, Parser)]
#[command(name = "cerulean", version = version_line())]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

fn version_line() -> String {
    version::Version.to_string()
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Turn manifests into load balancers that pass traffic, in this process.
    Demo(demo::Arguments),
    /// Simulate Azure, Kubernetes or both for other programs.
    #[command(subcommand)]
    Simulate(simulate::Simulate),
    /// Show what the controller manager would write to Azure, and write nothing.
    Plan(plan::Arguments),
    /// Check for obstacles to a change, before it is made.
    #[command(subcommand)]
    Check(check::Command),
    /// Measure the programs and the simulators: times, memory, calls to Azure.
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Export a run's requests to Azure, and compare two runs.
    #[command(subcommand)]
    Journal(journal::Command),
}

fn main() -> ExitCode {
    arm::install_crypto_provider();
    let screen = Screen::of_this_process();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // Clap's own exit code for errors is 2, which means "some changes" for `plan`.
        Err(problem)
            if problem.use_stderr() && std::env::args_os().nth(1).is_some_and(|name| name == "plan") =>
        {
            let _closed_pipe = problem.print();
            return ExitCode::FAILURE;
        }
        Err(instead) => instead.exit(),
    };
    let done = match cli.command {
        Command::Demo(arguments) => demo::run(screen, arguments).map(|()| ExitCode::SUCCESS),
        Command::Simulate(simulate) => simulate::run(screen, simulate).map(|()| ExitCode::SUCCESS),
        Command::Plan(arguments) => plan::run(screen, &arguments),
        Command::Check(command) => check::run(screen, &command),
        Command::Bench(bench) => bench::run(screen, bench).map(|()| ExitCode::SUCCESS),
        Command::Journal(command) => journal::run(screen, command),
    };
    done.unwrap_or_else(|problem| {
        screen.complain(last_words(&problem));
        ExitCode::FAILURE
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn commands_and_flags_fit_together() {
        super::Cli::command().debug_assert();
    }

    #[test]
    fn what_cannot_be_simulated_is_refused_with_the_flag_and_the_value() {
        let refused = [
            ("--region", "West Europe"),
            ("--zones", "1,b"),
            ("--subscriptions", "prod"),
            ("--page-size", "0"),
            ("--threads", "0"),
        ];
        for (flag, value) in refused {
            let parsed =
                super::Cli::command().try_get_matches_from(["cerulean", "simulate", "azure", flag, value]);
            let said = parsed.expect_err(flag).to_string();
            assert!(
                said.contains(flag) && said.contains(value.rsplit(',').next().unwrap_or(value)),
                "{said}"
            );
        }
        let empty = ["cerulean", "simulate", "azure", "--zones=", "--region", "eastus2"];
        super::Cli::command().try_get_matches_from(empty).expect("no zones at all");
    }
}
