//! Words for whoever runs a chore.

use std::fmt::Display;
use std::io::Write;

/// Writes a line to standard output; a closed pipe is the reader's own choice.
pub fn line(text: impl Display) {
    let _closed_pipe = writeln!(std::io::stdout().lock(), "{text}");
}
