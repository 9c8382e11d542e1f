//! The trees of devices, `/dev` and `/sys`, which may be below another folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::system::{FileKind, System};

/// More entries than a folder of these trees has.
const MOST: usize = 16 * 1024;

/// The trees, read leniently: what cannot be read is not there.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    pub system: Arc<dyn System>,
    root: PathBuf,
}

impl Tree {
    pub fn new(system: Arc<dyn System>, root: PathBuf) -> Self {
        Self { system, root }
    }

    /// The place of an absolute path.
    pub fn path(&self, absolute: &str) -> PathBuf {
        self.root.join(absolute.trim_start_matches('/'))
    }

    /// The folder of a block device in sysfs.
    pub fn block(&self, name: &str) -> PathBuf {
        self.path("/sys/class/block").join(name)
    }

    pub async fn entries(&self, folder: &Path) -> Vec<String> {
        self.system.entries(folder, MOST).await.unwrap_or_default()
    }

    pub async fn text(&self, file: PathBuf) -> Option<String> {
        let text = self.system.read(&file).await.ok()?;
        Some(text.trim().to_owned())
    }

    /// The name of what a path leads to in the end.
    pub async fn target_name(&self, path: &Path) -> Option<String> {
        name_of(&self.system.canonical(path).await.ok()?)
    }

    /// The block device at a path, with links followed, if it is one and has a size.
    pub async fn block_device(&self, path: &Path) -> Option<PathBuf> {
        let node = self.system.canonical(path).await.ok()?;
        let is_device = matches!(self.system.kind(&node).await, Ok(FileKind::BlockDevice(_)));
        let has_size = is_device && self.system.size(&node).await.is_ok_and(|size| size > 0);
        has_size.then_some(node)
    }
}

/// The last part of a path.
pub(super) fn name_of(path: &Path) -> Option<String> {
    path.file_name().map(|name| name.to_string_lossy().into_owned())
}
