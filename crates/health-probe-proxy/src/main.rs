//! `health-probe-proxy`: removes the PROXY protocol from health probes and forwards them to kube-proxy.

use std::fmt;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use health_probe_proxy::flags::{Flags, Instead};
use health_probe_proxy::{Forwarder, bind, serve};
use tokio_util::sync::CancellationToken;

/// The exit code of the program that this one replaces, for scripts that check it.
const FAILURE: u8 = 2;

fn main() -> ExitCode {
    let flags = match Flags::parse(std::env::args().skip(1)) {
        Ok(flags) => flags,
        Err(instead) => {
            if instead == Instead::Version {
                // If standard output is closed, the text is lost.
                let _closed_pipe = writeln!(io::stdout(), "health-probe-proxy {instead}");
                return ExitCode::SUCCESS;
            }
            tell(format_args!("{instead}"));
            return if instead == Instead::Help { ExitCode::SUCCESS } else { ExitCode::from(FAILURE) };
        }
    };
    match run(flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell(format_args!("{error}"));
            ExitCode::from(FAILURE)
        }
    }
}

fn tell(message: fmt::Arguments<'_>) {
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
        tell(format_args!("v{version}: listening on port {port}, forwarding to port {target_port}"));
        let stop = CancellationToken::new();
        tokio::spawn(stop_on_signal(stop.clone())?);
        serve(listener, Arc::new(Forwarder::new(target_port)), stop).await;
        Ok(())
    })
}

/// Waits for a stop signal.
#[cfg(unix)]
fn stop_on_signal(stop: CancellationToken) -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stop.cancel();
    })
}

/// Waits for a stop signal.
#[cfg(not(unix))]
fn stop_on_signal(stop: CancellationToken) -> io::Result<impl Future<Output = ()>> {
    Ok(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stop.cancel();
        }
    })
}
