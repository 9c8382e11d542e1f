//! `capz-controller-manager`: reconciles clusters on Azure with Cluster API's objects.

use std::process::ExitCode;

use capz_controller_manager::flags::{self, CommandLine, Start};
use capz_controller_manager::run;
use clock::Clock;
use command_line::{EarlyExit, end};
use logs::Format;
use program::environment::ProcessEnvironment;
use program::process;
use tokio_util::sync::CancellationToken;
use traces::{Service, Traces};

/// Used in images (docs/running.md). Its options are in `.cargo/config.toml`.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The service name and default endpoint of traces, as in the program that this one replaces.
const TRACED: Service =
    Service { name: "capz", version: version::RELEASE, collector: "http://opentelemetry-collector:4317" };

fn main() -> ExitCode {
    end("capz-controller-manager", start())
}

/// Runs the program; the result is written to standard output.
fn start() -> anyhow::Result<String> {
    let line = match flags::parse(std::env::args_os()) {
        Ok(Start::Manager(line)) => line,
        Ok(Start::PrintVersion) => return Ok(format!("capz-controller-manager v{}\n", version::Version)),
        Ok(Start::MigrateAsoCrds) => return Ok(format!("{}\n", flags::NOTHING_TO_MIGRATE)),
        Err(EarlyExit::Print(text)) => return Ok(text),
        Err(EarlyExit::Refuse(text)) => anyhow::bail!(text),
    };
    arm::install_crypto_provider();
    process::block_on(async {
        let environment = ProcessEnvironment::of_this_process();
        let traces = start_logging(&line, &environment)?;
        let stop = CancellationToken::new();
        process::stop_on_signal(stop.clone())?;
        let outcome = run::run(*line, environment, stop).await;
        if let Some(traces) = traces {
            traces.end().await;
        }
        outcome
    })??;
    Ok(String::new())
}

/// Starts logging, and tracing if the command line enables it.
fn start_logging(line: &CommandLine, environment: &ProcessEnvironment) -> anyhow::Result<Option<Traces>> {
    let format = if line.flags.logging_format == "json" { Format::Json } else { Format::Text };
    let (verbosity, clock) = (line.flags.verbosity, Clock::system());
    if !line.flags.enable_tracing {
        logs::start(format, verbosity, clock);
        return Ok(None);
    }
    let traces = Traces::prepare(TRACED, |name| environment.variable(name))?;
    logs::start_beside(format, verbosity, clock, Some(traces::TARGET), traces.layer());
    Ok(Some(traces))
}
