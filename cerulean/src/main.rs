//! `cerulean`: run a demo, simulate Azure and Kubernetes, show plans and rights, measure, compare runs.

mod bench;
mod check;
mod completion;
mod demo;
mod http_client;
mod journal;
mod kubernetes;
mod leftover_variables;
mod management;
mod manifests;
mod plan;
mod rights;
mod runtime;
mod screen;
mod signals;
mod simulate;
mod watch_writes;

use std::process::ExitCode;

use clap::builder::Styles;
use clap::builder::styling::AnsiColor;
use clap::{CommandFactory as _, Parser, Subcommand};
use cloud_controller_manager::last_words;
use screen::Screen;

/// Kubernetes on Azure, on your own machine: both are simulated.
#[derive(Debug, Parser)]
#[command(name = "cerulean", version = version_line(), styles = STYLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// The colours of help and of refused command lines: those of cargo.
const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default())
    .error(AnsiColor::Red.on_default().bold())
    .valid(AnsiColor::Green.on_default())
    .invalid(AnsiColor::Yellow.on_default());

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
    /// Print what a cluster's configuration needs in Azure and in Kubernetes: actions with their scopes, and roles.
    Rights(rights::Arguments),
    /// Check for obstacles to a change, before it is made.
    #[command(subcommand)]
    Check(check::Command),
    /// Measure the programs and the simulators: times, memory, calls to Azure.
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Export a run's requests to Azure, and compare two runs.
    #[command(subcommand)]
    Journal(journal::Command),
    /// Print the completions of this command line for a shell.
    Completion(completion::Arguments),
    /// Print the version, with the commit that it was built from.
    Version,
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
        Command::Rights(arguments) => rights::run(screen, &arguments).map(|()| ExitCode::SUCCESS),
        Command::Check(command) => check::run(screen, &command),
        Command::Bench(bench) => bench::run(screen, bench).map(|()| ExitCode::SUCCESS),
        Command::Journal(command) => journal::run(screen, command),
        Command::Completion(arguments) => {
            completion::run(screen, &arguments, Cli::command());
            Ok(ExitCode::SUCCESS)
        }
        Command::Version => {
            screen.line(format_args!("cerulean {}", version_line()));
            Ok(ExitCode::SUCCESS)
        }
    };
    done.unwrap_or_else(|problem| {
        screen.complain(last_words(&problem));
        ExitCode::FAILURE
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_flags_fit_together() {
        Cli::command().debug_assert();
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
            let parsed = Cli::command().try_get_matches_from(["cerulean", "simulate", "azure", flag, value]);
            let said = parsed.expect_err(flag).to_string();
            assert!(
                said.contains(flag) && said.contains(value.rsplit(',').next().unwrap_or(value)),
                "{said}"
            );
        }
        let empty = ["cerulean", "simulate", "azure", "--zones=", "--region", "eastus2"];
        Cli::command().try_get_matches_from(empty).expect("no zones at all");
    }
}
