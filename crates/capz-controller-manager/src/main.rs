//! `capz-controller-manager`: keeps clusters on Azure as Cluster API's objects declare them.

use std::process::ExitCode;

use capz_controller_manager::flags::{self, Start};
use capz_controller_manager::run;
use clock::Clock;
use command_line::{Instead, end};
use logs::Format;
use program::process;
use program::surroundings::Surroundings;
use tokio_util::sync::CancellationToken;

/// In images (docs/running.md). Its options are in `.cargo/config.toml`.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    end("capz-controller-manager", start())
}

/// Runs the program; what it returns goes to standard output.
fn start() -> anyhow::Result<String> {
    let line = match flags::parse(std::env::args_os()) {
        Ok(Start::Manager(line)) => line,
        Ok(Start::MigrateAsoCrds) => return Ok(format!("{}\n", flags::NOTHING_TO_MIGRATE)),
        Err(Instead::Print(text)) => return Ok(text),
        Err(Instead::Refuse(text)) => anyhow::bail!(text),
    };
    logs::start(Format::Text, line.flags.verbosity, Clock::system());
    arm::install_crypto_provider();
    process::block_on(async {
        let stop = CancellationToken::new();
        process::stop_on_signal(stop.clone())?;
        run::run(*line, Surroundings::of_this_process(), stop).await
    })??;
    Ok(String::new())
}
