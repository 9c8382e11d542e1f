//! Follows a simulated Azure.

use std::fs;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use azure_simulator::{Azure, FileAccount, ShareFolders};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::error::SharesError;
use crate::helper::{ACCOUNTS, CLOSED_PORTS};

/// Mode of the file with the accounts' keys.
const PRIVATE: u32 = 0o600;

/// The shares of an Azure as folders, until this value is dropped or the token is cancelled.
#[derive(Debug)]
pub struct MachineShares {
    azure: Azure,
    folders: ShareFolders,
    folder: PathBuf,
    _stop: DropGuard,
}

impl MachineShares {
    /// Keeps the files of shares below `folder`, and follows `azure` until `stop`.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn start(azure: &Azure, folder: &Path, stop: &CancellationToken) -> Result<Self, SharesError> {
        fs::create_dir_all(folder).map_err(SharesError::of(folder))?;
        let folders = ShareFolders::new(folder.to_owned());
        azure.attach(folders.clone());
        let stop = stop.child_token();
        let shares = Self {
            azure: azure.clone(),
            folders,
            folder: folder.to_owned(),
            _stop: stop.clone().drop_guard(),
        };
        shares.update()?;
        let (azure, folders, folder) = (azure.clone(), shares.folders.clone(), shares.folder.clone());
        let mut changed = azure.subscribe();
        tokio::spawn(stop.run_until_cancelled_owned(async move {
            while changed.changed().await.is_ok() {
                if let Err(error) = update(&azure, &folders, &folder) {
                    tracing::warn!(%error, "the folders of shares are not as in Azure");
                }
            }
        }));
        Ok(shares)
    }

    /// Brings accounts and folders to what Azure has now; the helpers read them.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn update(&self) -> Result<(), SharesError> {
        update(&self.azure, &self.folders, &self.folder)
    }

    /// The folder of a share.
    pub fn share(&self, account: &str, share: &str) -> PathBuf {
        self.folders.share(account, share)
    }

    /// The folder of all shares, which the helpers need.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Lets these ports take no connections, as behind a firewall.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn close_ports(&self, ports: &[u16]) -> Result<(), SharesError> {
        let path = self.folder.join(CLOSED_PORTS);
        let text: String = ports.iter().map(|port| format!("{port}\n")).collect();
        fs::write(&path, text).map_err(SharesError::of(&path))
    }
}

fn update(azure: &Azure, folders: &ShareFolders, folder: &Path) -> Result<(), SharesError> {
    let accounts = azure.file_accounts();
    write_private(&folder.join(ACCOUNTS), &accounts)?;
    for account in &accounts {
        for share in account.shares.keys() {
            let path = folders.share(&account.name, share);
            if path.is_dir() {
                continue;
            }
            fs::create_dir_all(&path).map_err(SharesError::of(&path))?;
            // The root of a share is everyone's; options of a mount narrow it.
            fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).map_err(SharesError::of(&path))?;
        }
        remove_others(&folder.join(account.name.to_ascii_lowercase()), account)?;
    }
    Ok(())
}

/// Removes the folders of shares that were deleted.
fn remove_others(folder: &Path, account: &FileAccount) -> Result<(), SharesError> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !account.shares.contains_key(&name) {
            fs::remove_dir_all(entry.path()).map_err(SharesError::of(&entry.path()))?;
        }
    }
    Ok(())
}

/// Writes accounts with their keys; a helper that reads meanwhile sees the old ones or the new ones.
fn write_private(path: &Path, accounts: &[FileAccount]) -> Result<(), SharesError> {
    let new = path.with_extension("new");
    let text = serde_json::to_vec(accounts).map_err(|error| SharesError::of(path)(error.into()))?;
    let write = || {
        let mut file =
            fs::OpenOptions::new().create(true).truncate(true).write(true).mode(PRIVATE).open(&new)?;
        std::io::Write::write_all(&mut file, &text)?;
        fs::rename(&new, path)
    };
    write().map_err(SharesError::of(path))
}
