//! Files that the program's own user alone may read.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Writes a file with mode 0600. It has the old text or the new one at any time, and never another mode.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut name = path.file_name().map(ToOwned::to_owned).unwrap_or_default();
    name.push(".new");
    let new = path.with_file_name(name);
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = fs::OpenOptions::new().create_new(true).write(true).mode(0o600).open(&new)?;
    file.write_all(text.as_bytes())?;
    fs::rename(new, path)
}
