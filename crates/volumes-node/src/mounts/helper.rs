//! Mounts that a program makes: the helper of a network file system, or `mount` for an image.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::MountError;
use super::mounter::Mounts;
use super::options::MountOptions;
use crate::system::{Command, Output, OwnerChange, RunError};

/// A mount by the helper of a file system (mount.cifs(8), mount.nfs(8)).
#[derive(Debug, Clone)]
pub struct HelperMount {
    /// The type of the file system: the helper is `mount.` and this.
    pub kind: &'static str,
    /// What is mounted, in the helper's form.
    pub source: String,
    /// An existing folder.
    pub target: PathBuf,
    /// Options; none of them is secret.
    pub options: Vec<String>,
    /// Variables for the helper, whose values may be secret.
    pub environment: Vec<(String, String)>,
    /// How long it may take.
    pub limit: Duration,
}

impl HelperMount {
    fn command(&self) -> Command {
        let command = Command::new(format!("mount.{}", self.kind), self.limit);
        let command = command.argument(&self.source).argument(&self.target);
        let command = match self.options.is_empty() {
            true => command,
            false => command.argument("-o").argument(self.options.join(",")),
        };
        let variables = self.environment.iter();
        variables.fold(command, |command, (name, value)| command.variable(name, value))
    }
}

impl Mounts {
    /// Lets a helper mount something. How it ended is for the caller to judge.
    ///
    /// # Errors
    /// The helper is not installed, does not start, or took too long and was killed.
    pub async fn mount_by_helper(&self, mount: &HelperMount) -> Result<Output, RunError> {
        self.system.run(&mount.command()).await
    }

    /// Mounts an image with a file system at a folder, over a loop device that goes with the mount.
    ///
    /// # Errors
    /// The program does not run, or fails.
    pub async fn mount_image(
        &self,
        image: &Path,
        target: &Path,
        file_system: &str,
        options: &MountOptions,
        limit: Duration,
    ) -> Result<(), MountError> {
        let words = options.list().into_iter().chain(["loop".to_owned()]).collect::<Vec<_>>().join(",");
        let command = Command::new("mount", limit)
            .arguments(["-t", file_system, "-o", &words])
            .argument(image)
            .argument(target);
        let failed = |text: String| MountError::Mount {
            device: image.to_owned(),
            target: target.to_owned(),
            kind: file_system.to_owned(),
            options: words.clone(),
            source: io::Error::other(text),
        };
        let output = self.system.run(&command).await.map_err(|error| failed(error.to_string()))?;
        if output.has_code(0) { Ok(()) } else { Err(failed(output.summary())) }
    }

    /// Whether what is mounted at a path answers.
    ///
    /// # Errors
    /// The kernel's words, if it does not.
    pub async fn answers(&self, path: &Path) -> io::Result<()> {
        self.system.entries(path, 1).await.map(drop)
    }

    /// Gives a folder these permissions, unless it has them.
    ///
    /// # Errors
    /// The file system refuses.
    pub async fn set_permissions(&self, path: &Path, mode: u32) -> Result<(), MountError> {
        let own =
            self.system.permissions(path).await.map_err(MountError::step("read permissions of", path))?;
        if own & 0o777 == mode & 0o777 {
            return Ok(());
        }
        self.system.set_permissions(path, mode).await.map_err(MountError::step("set permissions of", path))
    }

    /// Makes what is mounted a group's.
    ///
    /// # Errors
    /// The file system refuses.
    pub async fn change_group(&self, path: &Path, group: u32, when: OwnerChange) -> Result<(), MountError> {
        self.system
            .change_group(path, group, when)
            .await
            .map_err(MountError::step("change the group of", path))
    }

    /// Whether a plain file is at a path, and no link.
    ///
    /// # Errors
    /// Nothing is there, or it does not answer.
    pub async fn is_plain_file(&self, path: &Path) -> Result<bool, MountError> {
        self.system.is_plain_file(path).await.map_err(MountError::step("look at", path))
    }
}
