//! Runs commands of the system.

use std::process::{Command, Output, Stdio};

use crate::error::StartError;

/// Runs a command and waits for its end.
pub(crate) fn run(command: &[&str]) -> Result<Output, StartError> {
    let refused = |said: String| StartError::Command { command: command.join(" "), said };
    let Some((program, arguments)) = command.split_first() else { return Err(refused("no program".into())) };
    let done = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let done = done.map_err(|error| refused(error.to_string()))?;
    match done.status.success() {
        true => Ok(done),
        false => Err(refused(String::from_utf8_lossy(&done.stderr).trim().to_owned())),
    }
}
