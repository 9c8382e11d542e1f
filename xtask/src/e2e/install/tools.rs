//! Programs of the reader of our guides.

use std::path::Path;

/// Programs of the reader of our guides.
pub struct Tools<'a> {
    /// The folder of kubectl, and of the real cluster's programs.
    pub assets: &'a Path,
    /// Helm.
    pub helm: &'a Path,
    /// Our own program for users.
    pub cerulean: &'a Path,
}

impl Tools<'_> {
    /// The value of `PATH` of a shell that has them all.
    pub fn path(&self) -> String {
        let folders = [Some(self.assets), self.helm.parent(), self.cerulean.parent()];
        let own = folders.into_iter().flatten().map(|folder| folder.display().to_string());
        own.chain(std::env::var("PATH")).collect::<Vec<_>>().join(":")
    }
}
