//! A mount outlives the key that it was made with: a changed key is given to the mount while pods use it.
//!
//! The kubelet publishes each volume again about every minute (`requiresRepublish`). Then a mount that refuses to answer, or whose key is
//! another one now, is given the key as it is now by a remount in place: open files stay open, and the mounts of all pods have the
//! new key, because they are one. Nothing is unmounted: a container that starts meanwhile would write to the machine's own disk.

use std::io;
use std::path::Path;

use csi::secrets::Secrets;
use tonic::Status;

use super::access::Freshness;
use super::plan::attributes::{Attributes, Protocol};
use super::remembered::fingerprint;
use super::service::NodeService;
use super::usage::Usage;

/// Numbers of the kernel that a mount answers with when its login is not taken any more (errno(3)): EACCES, EHOSTDOWN, ENOKEY,
/// EKEYEXPIRED, EKEYREVOKED, EKEYREJECTED.
const LOGIN_ENDED: [i32; 6] = [13, 112, 126, 127, 128, 129];

/// The remedy where the kernel cannot do it.
const REMEDY: &str =
    "this kernel does not give a mount another key; restart the pods of this node that use the volume";

fn is_about_login(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|number| LOGIN_ENDED.contains(&number))
}

impl NodeService {
    /// Gives a mount the key as it is now, if it needs it.
    pub(super) async fn refresh(
        &self,
        attributes: &Attributes,
        usage: &Usage,
        secrets: &Secrets,
        staging: &Path,
    ) -> Result<(), Status> {
        let folder = Self::share_folder(attributes, staging);
        if attributes.protocol != Protocol::Smb || attributes.identity.is_some() {
            return Ok(());
        }
        match self.mounts.answers(&folder).await {
            // An identity of a pod's own would list the keys again and again.
            Ok(()) if attributes.needs_token() => Ok(()),
            Ok(()) => {
                self.renew_early(attributes, usage, secrets, &folder).await;
                Ok(())
            }
            Err(error) if is_about_login(&error) => {
                tracing::warn!(path = %folder.display(), %error, "a mount's login has ended; it gets the account's key as it is now");
                let (access, share) = self.prepared(attributes, usage, secrets, Freshness::Now).await?;
                self.remount(attributes, &access, &share, &folder).await
            }
            Err(_) => Ok(()),
        }
    }

    /// A mount that answers gets a changed key before the old one is taken away. A failure is logged alone: the volume works.
    async fn renew_early(&self, attributes: &Attributes, usage: &Usage, secrets: &Secrets, folder: &Path) {
        let Some(used) = self.remembered.used_key(folder) else { return };
        let (access, share) = match self.prepared(attributes, usage, secrets, Freshness::Lately).await {
            Ok(prepared) => prepared,
            Err(status) => {
                tracing::debug!(
                    error = status.message(),
                    "the key of a mount that answers cannot be compared"
                );
                return;
            }
        };
        if access.key.as_ref().is_none_or(|key| fingerprint(key) == used) {
            return;
        }
        if let Err(status) = self.remount(attributes, &access, &share, folder).await {
            // Once for each key: it is tried again when the mount does not answer.
            self.remembered.keep_used_key(folder, access.key.as_ref());
            tracing::warn!(path = %folder.display(), error = status.message(), "a mount keeps its old key, with which it works yet");
        }
    }

    async fn remount(
        &self,
        attributes: &Attributes,
        access: &super::access::Access,
        share: &super::mount::Share,
        folder: &Path,
    ) -> Result<(), Status> {
        let options = std::iter::once("remount".to_owned()).chain(share.options.clone()).collect();
        match self.run_helper(attributes, access, share, folder, options).await {
            Ok(()) => {
                tracing::info!(path = %folder.display(), "a mount has the account's key as it is now");
                self.remembered.keep_used_key(folder, access.key.as_ref());
                Ok(())
            }
            Err(status) if status.code() == tonic::Code::InvalidArgument => Err(Status::internal(format!(
                "the key of the mount at {} was changed: {REMEDY}",
                folder.display()
            ))),
            Err(status) => Err(status),
        }
    }
}
