//! `azure-cloud-controller-manager`: turns Services into Azure load balancers and machines into nodes.

use std::io::Write;
use std::process::ExitCode;

use clock::Clock;
use cloud_controller_manager::flags::{self, CommandLine, Instead};
use cloud_controller_manager::surroundings::Surroundings;
use cloud_controller_manager::{last_words, run};
use logs::Format;
use tokio::signal::unix::{SignalKind, signal};
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
    block_on(until_stopped(line))?
}

/// Runs `future` to its end, and then waits for nothing else.
fn block_on<T>(future: impl Future<Output = T>) -> std::io::Result<T> {
    // One thread: the program waits for others nearly all of the time, and a second thread's memory pools
    // would double what it holds.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(future);
    // The system's resolver blocks a thread until its name servers answer, which may take minutes. A runtime
    // that is dropped waits for such threads.
    runtime.shutdown_background();
    Ok(outcome)
}

/// Runs until SIGTERM or SIGINT, then stops in good order and releases the lease.
async fn until_stopped(line: CommandLine) -> anyhow::Result<String> {
    let stop = CancellationToken::new();
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let stopping = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("Stopping");
        stopping.cancel();
    });
    let plan = run::run(line, Surroundings::of_this_process(), stop).await?;
    Ok(plan.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_look_up_that_never_ends_does_not_hold_up_the_end() {
        let (answer, resolver) = mpsc::channel::<()>();
        let (ended, end) = mpsc::channel();
        std::thread::spawn(move || {
            let program = async {
                let (begun, begins) = tokio::sync::oneshot::channel();
                tokio::task::spawn_blocking(move || {
                    let _begins = begun.send(());
                    resolver.recv()
                });
                begins.await
            };
            ended.send(block_on(program).is_ok())
        });
        assert_eq!(end.recv_timeout(Duration::from_secs(20)), Ok(true));
        drop(answer);
    }
}
