//! `health-probe-proxy`: removes the PROXY protocol from health probes and forwards them to kube-proxy.

use std::fmt;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use health_probe_proxy::flags::{EarlyExit, Flags};
use health_probe_proxy::{Forwarder, bind, serve};
use tokio_util::sync::CancellationToken;

/// The exit code of the program that this one replaces, for scripts that check it.
const FAILURE: u8 = 2;

fn main() -> ExitCode {
    let flags = match Flags::parse(std::env::args().skip(1)) {
        Ok(flags) => flags,
        Err(exit) => {
            if exit == EarlyExit::Version {
                // If standard output is closed, the text is lost.
                let _closed_pipe = writeln!(io::stdout(), "health-probe-proxy {exit}");
                return ExitCode::SUCCESS;
            }
            log(format_args!("{exit}"));
            return if exit == EarlyExit::Help { ExitCode::SUCCESS } else { ExitCode::from(FAILURE) };
        }
    };
    match run(flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log(format_args!("{error}"));
            ExitCode::from(FAILURE)
        }
    }
}

fn log(message: fmt::Arguments<'_>) {
    // If standard error is closed, the message is lost.
    let _closed_pipe = writeln!(io::stderr(), "health-probe-proxy: {message}");
}

fn run(flags: Flags) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let Flags { health_check_port: port, target_port } = flags;
        let listener = bind(port).await.map_err(|error| {
            let remedy = "free the port, or choose another one with --health-check-port";
            io::Error::new(error.kind(), format!("cannot listen on port {port}: {error}: {remedy}"))
        })?;
        let version = version::Version;
        log(format_args!("v{version}: listening on port {port}, forwarding to port {target_port}"));
        let stop = CancellationToken::new();
        let (signal, stopping) = (process::stop_signal()?, stop.clone());
        tokio::spawn(async move {
            signal.await;
            stopping.cancel();
        });
        serve(listener, Arc::new(Forwarder::new(target_port)), stop).await;
        Ok(())
    })
}
