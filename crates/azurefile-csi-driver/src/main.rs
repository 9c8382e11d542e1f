//! `azurefileplugin`: the driver for volumes on Azure Files.

use std::process::ExitCode;

use azurefile_csi_driver::flags::{self, Start};
use azurefile_csi_driver::run;
use clock::Clock;
use command_line::{EarlyExit, end};
use logs::Format;
use program::environment::ProcessEnvironment;
use program::process;
use tokio_util::sync::CancellationToken;

/// Used in images (docs/running.md). Its options are in `.cargo/config.toml`.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    end("azurefileplugin", start())
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
        logs::start(Format::Text, line.flags.verbosity, Clock::system());
        let stop = CancellationToken::new();
        process::stop_on_signal(stop.clone())?;
        run::run(*line, ProcessEnvironment::of_this_process(), stop).await
    })??;
    Ok(String::new())
}
