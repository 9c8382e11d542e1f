//! `azure-cloud-controller-manager`: turns Services into Azure load balancers and machines into nodes.

use std::io::Write;
use std::process::ExitCode;

use clock::Clock;
use cloud_controller_manager::flags::{self, CommandLine, Instead};
use cloud_controller_manager::surroundings::Surroundings;
use cloud_controller_manager::{last_words, run};
use logs::Format;
use program::process;
use tokio_util::sync::CancellationToken;

/// In images (docs/running.md). Its options are in `.cargo/config.toml`.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    match start() {
        Ok(text) => {
            // A closed pipe is the reader's own choice.
            let _closed_pipe = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(problem) => {
            let words = last_words(&problem);
            let _closed_pipe = writeln!(std::io::stderr(), "azure-cloud-controller-manager: {words}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the program; what it returns goes to standard output.
fn start() -> anyhow::Result<String> {
    let line = match flags::parse(std::env::args_os()) {
        Ok(line) => line,
        Err(Instead::Print(text)) => return Ok(text),
        Err(Instead::Refuse(text)) => anyhow::bail!(text),
    };
    if line.flags.version != "false" {
        return Ok(format!("Cloud Provider Azure v{}\n", env!("CARGO_PKG_VERSION")));
    }
    let format = if line.flags.log_format == "json" { Format::Json } else { Format::Text };
    logs::start(format, line.flags.verbosity, Clock::system());
    arm::install_crypto_provider();
    process::block_on(until_stopped(line))?
}

/// Runs until SIGTERM or SIGINT, then stops in good order and releases the lease.
async fn until_stopped(line: CommandLine) -> anyhow::Result<String> {
    let stop = CancellationToken::new();
    process::stop_on_signal(stop.clone())?;
    let plan = run::run(line, Surroundings::of_this_process(), stop).await?;
    Ok(plan.unwrap_or_default())
}
