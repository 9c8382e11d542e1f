//! `azure-cloud-node-manager`: describes the node that it runs on.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clock::Clock;
use cloud_node_manager::flags::{self, Instead};
use cloud_node_manager::run;
use logs::Format;
use program::in_one_line;
use program::surroundings::Surroundings;
use tokio_util::sync::CancellationToken;

fn main() -> ExitCode {
    let problem = match flags::parse(std::env::args().skip(1)) {
        Ok(flags) => match start(flags) {
            Ok(()) => return ExitCode::SUCCESS,
            Err(problem) => in_one_line(&problem),
        },
        Err(Instead::Print(text)) => {
            // A closed pipe is the reader's own choice.
            let _closed_pipe = io::stdout().write_all(text.as_bytes());
            return ExitCode::SUCCESS;
        }
        Err(Instead::Refuse(problem)) => problem,
    };
    let _closed_pipe = writeln!(io::stderr(), "azure-cloud-node-manager: {problem}");
    ExitCode::FAILURE
}

fn start(flags: flags::Flags) -> anyhow::Result<()> {
    logs::start(Format::Text, flags.verbosity, Clock::system());
    arm::install_crypto_provider();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        let stop = CancellationToken::new();
        tokio::spawn(stop_on_signal(stop.clone())?);
        run::run(flags, Surroundings::of_this_process(), stop).await
    });
    // A look-up of a name blocks a thread until its servers answer, and nobody waits for it any more.
    runtime.shutdown_background();
    outcome
}

/// Waits for whoever ends the container.
#[cfg(unix)]
fn stop_on_signal(stop: CancellationToken) -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("Stopping");
        stop.cancel();
    })
}

/// Waits for whoever ends the container.
#[cfg(not(unix))]
fn stop_on_signal(stop: CancellationToken) -> io::Result<impl Future<Output = ()>> {
    Ok(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stop.cancel();
        }
    })
}
