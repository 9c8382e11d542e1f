//! `azure-cloud-node-manager`: describes the node that it runs on.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clock::Clock;
use cloud_node_manager::flags::{self, Instead};
use cloud_node_manager::run;
use logs::Format;
use program::environment::ProcessEnvironment;
use program::{in_one_line, process};
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
    process::block_on(async {
        let stop = CancellationToken::new();
        process::stop_on_signal(stop.clone())?;
        run::run(flags, ProcessEnvironment::of_this_process(), stop).await
    })?
}
