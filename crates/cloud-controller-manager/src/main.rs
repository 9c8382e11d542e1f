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
use version::Version;

/// Used in images (docs/running.md). Its options are in `.cargo/config.toml`.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

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
    let format = if line.flags.log_format == "json" { Format::Json } else { Format::Text };
    logs::start(format, line.flags.verbosity, Clock::system());
    arm::install_crypto_provider();
    process::block_on(until_stopped(line))?
}

/// Runs until SIGTERM or SIGINT, then stops gracefully and releases the lease.
async fn until_stopped(line: CommandLine) -> anyhow::Result<String> {
    let stop = CancellationToken::new();
    process::stop_on_signal(stop.clone())?;
    let plan = run::run(line, ProcessEnvironment::of_this_process(), stop).await?;
    Ok(plan.unwrap_or_default())
}
