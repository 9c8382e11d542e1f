//! `azure-cloud-controller-manager`: turns Services into Azure load balancers and machines into nodes.

use std::process::ExitCode;

use clock::Clock;
use cloud_controller_manager::environment::ProcessEnvironment;
use cloud_controller_manager::flags::{self, CommandLine, EarlyExit};
use cloud_controller_manager::run;
use command_line::end;
use logs::Format;
use program::process;
use tokio_util::sync::CancellationToken;
use traces::{Service, Traces};
use version::Version;

/// Used in images (docs/running.md). Its options are in `.cargo/config.toml`.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The service name of traces. A variable names the collector, or there are no traces.
const TRACED: Service = Service {
    name: "azure-cloud-controller-manager",
    version: version::RELEASE,
    collector: "http://opentelemetry-collector:4317",
};

fn main() -> ExitCode {
    end("azure-cloud-controller-manager", start())
}

/// Runs the program; the result is written to standard output.
fn start() -> anyhow::Result<String> {
    let line = match flags::parse(std::env::args_os()) {
        Ok(line) => line,
        Err(EarlyExit::Print(text)) => return Ok(text),
        Err(EarlyExit::Refuse(text)) => anyhow::bail!(text),
    };
    if line.flags.version != "false" {
        return Ok(format!("Cloud Provider Azure v{Version}\n"));
    }
    arm::install_crypto_provider();
    process::block_on(async {
        let environment = ProcessEnvironment::of_this_process();
        let traces = start_logging(&line, &environment)?;
        let outcome = until_stopped(line, environment).await;
        if let Some(traces) = traces {
            traces.end().await;
        }
        outcome
    })?
}

/// Starts logging, and tracing if a variable names a collector.
fn start_logging(line: &CommandLine, environment: &ProcessEnvironment) -> anyhow::Result<Option<Traces>> {
    let format = if line.flags.log_format == "json" { Format::Json } else { Format::Text };
    let (verbosity, clock) = (line.flags.verbosity, Clock::system());
    let variable = |name: &str| environment.variable(name);
    if !traces::are_requested(variable) {
        logs::start(format, verbosity, clock);
        return Ok(None);
    }
    let traces = Traces::prepare(TRACED, variable)?;
    logs::start_beside(format, verbosity, clock, Some(traces::TARGET), traces.layer());
    Ok(Some(traces))
}

/// Runs until SIGTERM or SIGINT, then stops gracefully and releases the lease.
async fn until_stopped(line: CommandLine, environment: ProcessEnvironment) -> anyhow::Result<String> {
    let stop = CancellationToken::new();
    process::stop_on_signal(stop.clone())?;
    let plan = run::run(line, environment, stop).await?;
    Ok(plan.unwrap_or_default())
}
