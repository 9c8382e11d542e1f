//! Running of programs.

use std::io;
use std::process::Stdio;

use tokio::time::timeout;

use super::command::{Command, Output, RunError};

/// Runs a program until it ends or its limit is over; then it is killed. Its words do not depend on the machine's language.
pub(super) async fn run(command: &Command) -> Result<Output, RunError> {
    let started = tokio::process::Command::new(&command.program)
        .args(&command.arguments)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn();
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => RunError::Missing(command.program.clone()),
        _ => RunError::Start { command: command.clone(), source },
    };
    let child = started.map_err(failed)?;
    match timeout(command.limit, child.wait_with_output()).await {
        Err(_) => Err(RunError::Timeout(command.clone())),
        Ok(Err(source)) => Err(RunError::Start { command: command.clone(), source }),
        Ok(Ok(output)) => Ok(Output {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }),
    }
}
