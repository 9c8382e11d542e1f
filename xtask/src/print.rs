//! Output of a task.

use std::fmt::Display;
use std::io::{IsTerminal, Write};

/// Writes a line to standard output; a closed pipe is ignored.
pub fn line(text: impl Display) {
    let _closed_pipe = writeln!(std::io::stdout().lock(), "{text}");
}

/// Replaces the progress line on a terminal; silent elsewhere.
pub fn progress(text: String) {
    let mut out = std::io::stderr().lock();
    if out.is_terminal() {
        let _closed = write!(out, "\r\x1b[K{text}").and_then(|()| out.flush());
    }
}
