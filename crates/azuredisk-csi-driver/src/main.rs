//! `azurediskplugin`: the driver for volumes on Azure's disks.

use std::process::ExitCode;

use azuredisk_csi_driver::flags::{self, CommandLine, Start};
use azuredisk_csi_driver::run;
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

/// The service name of traces.
const TRACED: Service = Service {
    name: run::PROGRAM,
    version: version::RELEASE,
    collector: "http://opentelemetry-collector:4317",
};

fn main() -> ExitCode {
    end("azurediskplugin", start())
}

/// Runs the program; the result is written to standard output.
fn start() -> anyhow::Result<String> {
    let line = match flags::parse(std::env::args_os()) {
        Ok(Start::Driver(line)) => line,
        Ok(Start::PrintVersion { driver }) => {
            return Ok(format!("Driver Name: {driver}\nDriver Version: v{}\n", version::Version));
        }
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
    let (verbosity, clock) = (line.flags.verbosity, Clock::system());
    if !line.flags.enable_otel_tracing {
        logs::start(Format::Text, verbosity, clock);
        return Ok(None);
    }
    let traces = Traces::prepare(TRACED, |name| environment.variable(name))?;
    logs::start_beside(Format::Text, verbosity, clock, Some(traces::TARGET), traces.layer());
    Ok(Some(traces))
}
