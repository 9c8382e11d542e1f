//! Histories that failed before.

use std::path::Path;

use super::{Failure, History};

/// Their folder, below the workspace's root.
pub const FOLDER: &str = "tests/corpus/histories";

/// A history that failed before, and is tested before all others.
#[derive(Debug, Clone)]
pub struct Kept {
    /// The name of its file, without its extension.
    pub name: String,
    /// The history.
    pub history: History,
    /// The bug because of which it still fails: what follows `# known:` in the file.
    pub known: Option<String>,
}

impl Kept {
    /// Runs it.
    ///
    /// # Errors
    /// Its problems, with the file's contents; or that a known bug does not occur any more.
    pub fn explore(&self) -> Result<(), String> {
        let complaints = self.history.complaints();
        match (&self.known, complaints.is_empty()) {
            (None, true) | (Some(_), false) => Ok(()),
            (Some(bug), true) => {
                Err(format!("{FOLDER}/{}.txt ends well: take `# known: {bug}` out of it", self.name))
            }
            (None, false) => {
                let failure = Failure { history: self.history.clone(), complaints };
                Err(format!("{FOLDER}/{}.txt ends badly again:\n{failure}", self.name))
            }
        }
    }
}

/// All kept histories, by name.
///
/// # Errors
/// A file cannot be read, or a line of it cannot be parsed.
pub fn kept() -> Result<Vec<Kept>, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(FOLDER);
    let failed = |path: &Path, problem: String| format!("{}: {problem}", path.display());
    let entries = std::fs::read_dir(&folder).map_err(|error| failed(&folder, error.to_string()))?;
    let mut all = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| failed(&folder, error.to_string()))?.path();
        if path.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(|error| failed(&path, error.to_string()))?;
        let known = text.lines().find_map(|line| line.strip_prefix("# known:"));
        all.push(Kept {
            name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            history: text.parse().map_err(|problem| failed(&path, problem))?,
            known: known.map(|bug| bug.trim().to_owned()),
        });
    }
    all.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(all)
}
