//! Histories that ended badly once.

use std::path::Path;

use super::{Failure, History};

/// Where they are kept, below the workspace's root.
pub const FOLDER: &str = "tests/corpus/histories";

/// A history that ended badly once, and is tried again before all others.
#[derive(Debug, Clone)]
pub struct Kept {
    /// The name of its file, without its ending.
    pub name: String,
    /// What happens.
    pub history: History,
    /// The bug for which it still ends badly: what follows `# known:` in the file.
    pub known: Option<String>,
}

impl Kept {
    /// Runs it.
    ///
    /// # Errors
    /// What is wrong with it, as it stands in its file; or that a bug is known no longer.
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

/// All that are kept, by name.
///
/// # Errors
/// A file cannot be read, or a line of it means nothing.
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
