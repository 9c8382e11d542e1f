//! The files of the contract, and judging by them.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::beyond;
use crate::check::Check;
use crate::shape::File;
use crate::violation::{Side, Violation};

/// All files of a folder.
pub struct Contract {
    /// The files that have a type, by the type in lower case and the version.
    types: HashMap<String, BTreeMap<String, Arc<File>>>,
}

/// Why a folder is no contract.
#[derive(Debug, thiserror::Error)]
pub enum BadContract {
    /// The folder cannot be listed.
    #[error("cannot list the folder {0} of Azure's contract: {1}")]
    Folder(PathBuf, #[source] std::io::Error),
    /// A file cannot be read.
    #[error("cannot read {0}: {1}")]
    Read(PathBuf, #[source] std::io::Error),
    /// A file is not of this form.
    #[error("{0} is not a file of Azure's contract: {1}")]
    Parse(PathBuf, #[source] serde_json::Error),
    /// The folder has no file `NAMESPACE@VERSION.json`.
    #[error("the folder {0} has no file NAMESPACE@VERSION.json")]
    Empty(PathBuf),
}

/// What comes of holding one document against the contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The version whose types judged: the one that was asked for; where that is not at hand the next later one, else
    /// the last.
    pub version: String,
    /// What departs from it.
    pub violations: Vec<Violation>,
}

impl Contract {
    /// Reads a folder of files `NAMESPACE@VERSION.json`.
    ///
    /// # Errors
    ///
    /// The file that cannot be read or understood.
    pub fn read(folder: &Path) -> Result<Self, BadContract> {
        let listed =
            std::fs::read_dir(folder).map_err(|error| BadContract::Folder(folder.to_owned(), error))?;
        let mut types: HashMap<String, BTreeMap<String, Arc<File>>> = HashMap::new();
        for entry in listed {
            let path = entry.map_err(|error| BadContract::Folder(folder.to_owned(), error))?.path();
            let stem =
                path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".json"));
            let Some((_, version)) = stem.and_then(|stem| stem.split_once('@')) else { continue };
            let text = std::fs::read(&path).map_err(|error| BadContract::Read(path.clone(), error))?;
            let file: File =
                serde_json::from_slice(&text).map_err(|error| BadContract::Parse(path.clone(), error))?;
            let file = Arc::new(file);
            for resource_type in file.resources.keys() {
                types.entry(resource_type.clone()).or_default().insert(version.to_owned(), file.clone());
            }
        }
        if types.is_empty() {
            return Err(BadContract::Empty(folder.to_owned()));
        }
        Ok(Self { types })
    }

    /// The versions in which a type is at hand, the oldest first.
    pub fn versions(&self, resource_type: &str) -> Vec<&str> {
        let versions = self.types.get(&resource_type.to_ascii_lowercase());
        versions.into_iter().flat_map(BTreeMap::keys).map(String::as_str).collect()
    }

    /// Holds a document against its type; nothing where the contract has no such type. What Azure itself is known to
    /// take or show beyond the contract ([`BEYOND`](crate::BEYOND)) is no violation.
    pub fn judge(
        &self,
        resource_type: &str,
        version: &str,
        side: Side,
        document: &Value,
    ) -> Option<Judgement> {
        let resource_type = resource_type.to_ascii_lowercase();
        let versions = self.types.get(&resource_type)?;
        let (version, file) = versions.range(version.to_owned()..).next().or(versions.last_key_value())?;
        let mut check = Check { file, side, found: Vec::new() };
        check.value(document, *file.resources.get(&resource_type)?, "", 0);
        let violations = check.found.into_iter();
        let violations = violations.filter(|found| !beyond::is_known(&resource_type, side, found)).collect();
        Some(Judgement { version: version.clone(), violations })
    }
}
