//! `acr-credential-provider`: gives the kubelet the credentials for pulling an image.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::ExitCode;

use acr_credential_provider::command_line::{self, Request};
use acr_credential_provider::identity_binding::CLUSTER_AUTHORITY;
use acr_credential_provider::{Error, PluginEnvironment, answer, install};

fn main() -> ExitCode {
    let outcome = run().and_then(|text| {
        let written = std::io::stdout().write_all(text.as_bytes());
        written.map_err(|source| Error::Stream { stream: "standard output", source })
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If standard error is closed, the message is lost.
            let _closed_pipe = writeln!(std::io::stderr(), "acr-credential-provider: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The output on standard output.
fn run() -> Result<String, Error> {
    let line = match command_line::parse(std::env::args().skip(1))? {
        Request::Print(text) => return Ok(text),
        Request::Install(installation) => {
            let program = std::env::current_exe();
            let program =
                program.map_err(|source| Error::Stream { stream: "this program's own file", source })?;
            return Ok(install::install(&installation, &program)?);
        }
        Request::Answer(line) => line,
    };
    let mut input = Vec::new();
    std::io::stdin()
        .read_to_end(&mut input)
        .map_err(|source| Error::Stream { stream: "standard input", source })?;
    arm::install_crypto_provider();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Error::Stream { stream: "runtime", source })?;
    let environment = PluginEnvironment {
        variable: &|name| std::env::var(name).ok(),
        cluster_authority: Path::new(CLUSTER_AUTHORITY),
        extra_roots: Vec::new(),
        redirects: Vec::new(),
        log: &|level, message| {
            if level <= line.verbosity {
                let _closed_pipe = writeln!(std::io::stderr(), "acr-credential-provider: {message}");
            }
        },
    };
    (environment.log)(2, format_args!("v{}: answering the kubelet", version::Version));
    let outcome = runtime.block_on(answer(&line, &input, &environment));
    // A name look-up blocks a thread until its servers answer, and its result is no longer needed.
    runtime.shutdown_background();
    Ok(outcome?.to_json())
}
