//! A staged volume at a second path, for one pod.

use std::io;
use std::path::{Path, PathBuf};

use super::error::MountError;
use super::mounter::Mounts;
use super::table::{MountEntry, MountTable};

/// The folder above those of a pod's volumes, each of which has its volume's name.
const POD_VOLUMES: &str = "kubernetes.io~csi";

/// What becomes of a mount at the target path that does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stale {
    /// It is made again.
    Renewed,
    /// It stays, and the request fails: a container that starts meanwhile would write into the machine's own folder.
    Kept,
}

/// A volume to show to a pod, with paths as the kernel has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// Where it is staged.
    pub staging: PathBuf,
    /// Where the pod sees it.
    pub target: PathBuf,
    /// Whether the pod only reads.
    pub is_read_only: bool,
    /// Whether one pod alone may have it.
    pub is_single_writer: bool,
}

/// A volume cannot be shown to a pod.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// It is not staged.
    #[error("nothing is mounted at the staging path {}; stage the volume first", .0.display())]
    NotStaged(PathBuf),
    /// Another pod has it.
    #[error(
        "the volume is published at {} already, and its access mode SINGLE_NODE_SINGLE_WRITER (ReadWriteOncePod) allows one pod \
         alone; wait for the end of the other pod",
        .0.display()
    )]
    Taken(PathBuf),
    /// The mount at the target path does not answer.
    #[error(
        "what is mounted at {} does not answer ({source}); it stays, because the pod would write to the machine's own disk \
         without it; restart the pod",
        path.display()
    )]
    Stale {
        /// The target path.
        path: PathBuf,
        /// The kernel's words.
        source: io::Error,
    },
    /// A step fails.
    #[error(transparent)]
    Mount(#[from] MountError),
}

impl Publication {
    /// Where else the volume is published, among mounts of which `is_same` says that they are the whole volume. Other copies of
    /// the tree of mounts, such as a second path to the kubelet's folder, are left out, and other volumes with the same
    /// contents, too.
    pub fn elsewhere<'a>(
        &self,
        table: &'a MountTable,
        is_same: impl Fn(&MountEntry) -> bool,
    ) -> Vec<&'a MountEntry> {
        let mut common = self.staging.ancestors();
        let common = common.find(|above| self.target.starts_with(above)).unwrap_or(Path::new("/"));
        let name = volume_name(&self.target);
        let others = table.entries().iter().filter(|entry| {
            entry.mount_point != self.target
                && entry.mount_point != self.staging
                && entry.mount_point.starts_with(common)
                && (name.is_none() || volume_name(&entry.mount_point) == name)
        });
        others.filter(|entry| is_same(entry)).collect()
    }
}

/// The name of the volume at `…/kubernetes.io~csi/NAME/mount`.
fn volume_name(target: &Path) -> Option<&std::ffi::OsStr> {
    let folder = target.parent()?;
    (folder.parent()?.file_name()? == POD_VOLUMES).then(|| folder.file_name()).flatten()
}

impl Mounts {
    /// Shows a staged folder at the target path. What is there already is completed.
    ///
    /// # Errors
    /// [`PublishError`].
    pub async fn publish_folder(&self, publication: &Publication, stale: Stale) -> Result<(), PublishError> {
        let Publication { staging, target, .. } = publication;
        let table = self.table().await?;
        let staged = table.at(staging).ok_or_else(|| PublishError::NotStaged(staging.clone()))?;
        let is_staged = |entry: &MountEntry| entry.device == staged.device && entry.root == staged.root;
        if stale == Stale::Kept
            && table.at(target).is_some()
            && let Err(source) = self.answers(target).await
        {
            return Err(PublishError::Stale { path: target.clone(), source });
        }
        while let Some(entry) = self.prepare_folder(target).await? {
            if is_staged(&entry) {
                return Ok(self.complete(publication).await?);
            }
            tracing::warn!(path = %target.display(), "another volume is mounted at the target path and is taken away");
            self.release(target).await?;
        }
        if publication.is_single_writer
            && let Some(other) = publication.elsewhere(&table, is_staged).first()
        {
            // The path was made for this request.
            self.release(target).await?;
            return Err(PublishError::Taken(other.mount_point.clone()));
        }
        self.bind(staging, target).await?;
        Ok(self.complete(publication).await?)
    }

    /// What is left after the bind: a mount for reading is made so by a second step.
    ///
    /// # Errors
    /// The kernel refuses.
    pub async fn complete(&self, publication: &Publication) -> Result<(), MountError> {
        if !publication.is_read_only {
            return Ok(());
        }
        match self.at(&publication.target).await? {
            Some(entry) if !entry.options.iter().any(|option| option == "ro") => {
                self.make_read_only(&entry).await
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FILE-135. Two volumes of one share have the same contents; each may have its own pod.
    #[test]
    fn other_volumes_with_the_same_contents_are_not_the_volume() {
        let table = MountTable::parse(
            "1 1 0:50 / /k/staging/a rw - cifs //s/share rw\n\
             2 1 0:50 / /k/pods/1/volumes/kubernetes.io~csi/a/mount rw - cifs //s/share rw\n\
             3 1 0:50 / /k/pods/2/volumes/kubernetes.io~csi/b/mount rw - cifs //s/share rw\n",
        );
        let others = |target: &str| {
            let publication = Publication {
                staging: "/k/staging/a".into(),
                target: target.into(),
                is_read_only: false,
                is_single_writer: true,
            };
            let others = publication.elsewhere(&table, |_| true);
            others.into_iter().map(|entry| entry.mount_point.display().to_string()).collect::<Vec<_>>()
        };
        let first = "/k/pods/1/volumes/kubernetes.io~csi/a/mount";
        assert_eq!(others("/k/pods/3/volumes/kubernetes.io~csi/a/mount"), [first]);
        assert!(others(first).is_empty());
        assert_eq!(others("/k/anywhere").len(), 2);
    }
}
