//! Running of programs.

use std::io;
use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;
use tokio::time::timeout;

use super::command::{Command, Output, RunError};

/// How long a program may take to end after it was killed: one that waits in the kernel ends when the kernel lets it.
const END_LIMIT: Duration = Duration::from_secs(5);

/// Runs a program until it ends or its limit is over; then it is killed with all that it started, such as the helper that a
/// mount runs. Its words do not depend on the machine's language.
pub(super) async fn run(command: &Command) -> Result<Output, RunError> {
    let started = tokio::process::Command::new(&command.program)
        .args(&command.arguments)
        .envs(command.environment.iter().map(|(name, value)| (name, value)))
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn();
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => RunError::Missing(command.program.clone()),
        _ => RunError::Start { command: command.clone(), source },
    };
    let child = started.map_err(failed)?;
    let mut group = Group::of(&child);
    let mut ended = pin!(child.wait_with_output());
    let Ok(output) = timeout(command.limit, &mut ended).await else {
        group.kill();
        // What it did last, such as a mount, is complete when it has ended.
        let _ended = timeout(END_LIMIT, ended).await;
        return Err(RunError::Timeout(command.clone()));
    };
    group.release();
    let output = output.map_err(|source| RunError::Start { command: command.clone(), source })?;
    Ok(Output {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// A program and all that it started. They are killed when this is dropped.
struct Group(Option<Pid>);

impl Group {
    /// The group that a new program leads.
    fn of(child: &Child) -> Self {
        let number = child.id().and_then(|number| i32::try_from(number).ok());
        Self(number.and_then(Pid::from_raw))
    }

    /// Forgets a group whose leader has ended: its number may be another one's.
    fn release(&mut self) {
        self.0 = None;
    }

    fn kill(&mut self) {
        if let Some(leader) = self.0.take() {
            // It fails only where none of them runs any more.
            let _ended = kill_process_group(leader, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
