//! A child process with its log in a file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::error::{StartError, failed};

/// The number of last log lines in an error.
const MAX_LOG_LINES: usize = 25;

/// A running program, which is killed when this value is dropped.
#[derive(Debug)]
pub(crate) struct Program {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Program {
    /// Starts `command` in `directory`, and appends its output to a log there.
    pub(crate) fn start(
        name: &'static str,
        directory: &Path,
        command: &mut Command,
    ) -> Result<Self, StartError> {
        let log = directory.join(format!("{name}.log"));
        let file = fs::File::options().create(true).append(true).open(&log).map_err(failed(&log))?;
        let errors = file.try_clone().map_err(failed(&log))?;
        let path = PathBuf::from(command.get_program());
        let child = command
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(errors)
            .spawn()
            .map_err(failed(&path))?;
        Ok(Self { name, child, log })
    }

    /// Fails if the program has ended by itself.
    pub(crate) fn must_run(&mut self) -> Result<(), StartError> {
        match self.child.try_wait() {
            Ok(Some(status)) => Err(self.complaint(format!("has ended by itself with {status}"))),
            _ => Ok(()),
        }
    }

    /// An error for this program, with the end of its log.
    pub(crate) fn complaint(&self, what: String) -> StartError {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let last = lines.get(lines.len().saturating_sub(MAX_LOG_LINES)..).unwrap_or_default();
        StartError::NotReady { name: self.name, what, log: last.join("\n") }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // An error means that the program has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
