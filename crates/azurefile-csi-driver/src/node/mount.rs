//! A share becomes a folder of the machine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use csi::secrets::Secrets;
use secrecy::ExposeSecret as _;
use tonic::Status;
use volumes_node::mounts::{HelperMount, PublishError, Stale};

use super::access::{Access, Freshness};
use super::diagnosis::ending;
use super::outside::{Folder, ProxyMount};
use super::plan::attributes::{Attributes, Protocol};
use super::plan::inline;
use super::plan::login::Login;
use super::plan::mount_options;
use super::service::NodeService;
use super::status::{of_mount, of_publish};
use super::usage::Usage;

/// How long a mount may take (section 4.7).
pub(super) const MOUNT_LIMIT: Duration = Duration::from_secs(90);

/// The variable of `mount.cifs` for the password.
const PASSWORD: &str = "PASSWD";

/// A share to mount.
#[derive(Debug)]
pub(super) struct Share {
    pub host: String,
    pub source: String,
    pub options: Vec<String>,
    /// The type of the file system, which names the helper; `aznfs` goes to the proxy.
    pub kind: &'static str,
}

impl NodeService {
    /// What is to be mounted, and with which options.
    pub(super) fn share(
        &self,
        attributes: &Attributes,
        access: &Access,
        usage: &Usage,
    ) -> Result<Share, Status> {
        let mut named = attributes.clone();
        named.account.clone_from(&access.account);
        if named.share.is_empty() {
            return Err(Status::invalid_argument("the volume names no share; set shareName"));
        }
        if named.account.is_empty() && named.server.is_empty() {
            return Err(Status::invalid_argument(
                "the volume names no account; set storageAccount or server",
            ));
        }
        let host = named.host(&access.place.suffix);
        let source = named.source(&host);
        let flags = usage.flags.iter().map(String::as_str);
        let (options, kind) = match attributes.protocol {
            Protocol::Smb => {
                let flags = flags.chain(attributes.is_inline.then_some(attributes.inline_options.as_str()));
                let is_disk = attributes.disk.is_some();
                let mut options = mount_options::smb(flags, &usage.group, is_disk, self.options.appended);
                options.extend(login_options(access)?);
                (options, "cifs")
            }
            Protocol::Nfs => {
                let (mut options, encrypts) = mount_options::nfs(flags, self.options.appended);
                let encrypts = encrypts || attributes.encrypts;
                let by_proxy = encrypts || self.options.always_by_proxy;
                if by_proxy && !encrypts {
                    options.push("notls".to_owned());
                }
                (options, if by_proxy { "aznfs" } else { "nfs" })
            }
        };
        Ok(Share { host, source, options, kind })
    }

    /// Mounts a share at a folder, which exists and at which nothing is mounted.
    pub(super) async fn mount(
        &self,
        volume: &str,
        attributes: &Attributes,
        access: &Access,
        share: &Share,
        secrets: &Secrets,
        target: &Path,
    ) -> Result<(), Status> {
        if share.kind == "aznfs" {
            return self.mount_by_proxy(share, target).await;
        }
        if !access.login.has_token() {
            self.ticket(volume, attributes, access, &share.host, secrets).await?;
        }
        self.run_helper(attributes, access, share, target, share.options.clone()).await?;
        self.remembered.keep_used_key(target, access.key.as_ref());
        Ok(())
    }

    /// Runs the helper with these options.
    pub(super) async fn run_helper(
        &self,
        attributes: &Attributes,
        access: &Access,
        share: &Share,
        target: &Path,
        options: Vec<String>,
    ) -> Result<(), Status> {
        let key = access.key.iter().filter(|_| attributes.protocol == Protocol::Smb);
        let mount = HelperMount {
            kind: share.kind,
            source: share.source.clone(),
            target: target.to_owned(),
            options,
            environment: key.map(|key| (PASSWORD.to_owned(), key.expose_secret().to_owned())).collect(),
            limit: MOUNT_LIMIT,
        };
        match ending(self.mounts.mount_by_helper(&mount).await) {
            None => Ok(()),
            Some(ending) => {
                let status =
                    self.failed(attributes, access, (&share.host, &share.source, target), ending).await;
                // The next attempt looks for the key again.
                self.remembered.forget_key(&access.account);
                Err(status)
            }
        }
    }

    async fn mount_by_proxy(&self, share: &Share, target: &Path) -> Result<(), Status> {
        let Some(proxy) = &self.outside.proxy else {
            return Err(Status::invalid_argument(
                "aznfs mounts (encryptInTransit or --use-aznfs-for-nfs-mounts) need the proxy on the node; start the driver with \
                 --enable-azurefile-proxy, or do without encryption",
            ));
        };
        let mount = ProxyMount {
            source: share.source.clone(),
            target: target.to_owned(),
            kind: share.kind.to_owned(),
            options: share.options.clone(),
        };
        let failed = |reason: String| {
            Status::internal(format!(
                "the proxy cannot mount {} at {}: {reason}",
                share.source,
                target.display()
            ))
        };
        match tokio::time::timeout(MOUNT_LIMIT, proxy.mount(&mount)).await {
            Ok(mounted) => mounted.map_err(failed),
            Err(_) => Err(failed(format!("it did not answer within {} s", MOUNT_LIMIT.as_secs()))),
        }
    }

    /// Makes the volume's folder in the share, if the volume says so. A failure is logged alone: the folder may be there.
    pub(super) async fn make_folder(&self, attributes: &Attributes, access: &Access) {
        if !attributes.creates_folder || attributes.folder.is_empty() {
            return;
        }
        let made = match (&self.outside.azure, &access.key) {
            (Some(azure), Some(key)) => {
                let suffix =
                    if attributes.suffix.is_empty() { &access.place.suffix } else { &attributes.suffix };
                let folder = Folder {
                    account: access.account.clone(),
                    key: key.clone(),
                    suffix: suffix.clone(),
                    share: attributes.share.clone(),
                    path: attributes.folder.clone(),
                };
                azure.create_folder(&folder).await
            }
            _ => Err("there is no key or no cloud configuration".to_owned()),
        };
        if let Err(error) = made {
            tracing::warn!(
                error,
                path = attributes.folder,
                "the folder in the share was not made; it may be there"
            );
        }
    }

    /// A volume as one request needs it: with its credential, its folder and its share.
    pub(super) async fn prepared(
        &self,
        attributes: &Attributes,
        usage: &Usage,
        secrets: &Secrets,
        freshness: Freshness,
    ) -> Result<(Access, Share), Status> {
        if attributes.disk.is_some() && !self.options.has_disks {
            return Err(Status::invalid_argument("disks in shares are switched off (--enable-vhd=false)"));
        }
        if attributes.is_inline {
            inline::check(attributes).map_err(super::status::invalid)?;
        }
        let access = self.access(attributes, secrets, freshness).await?;
        let share = self.share(attributes, &access, usage)?;
        Ok((access, share))
    }

    /// Where the share of a disk is mounted: beside the staging path.
    pub(super) fn share_folder(attributes: &Attributes, staging: &Path) -> PathBuf {
        match attributes.disk {
            Some(_) => staging.with_file_name(PROXY_MOUNT),
            None => staging.to_owned(),
        }
    }

    /// Makes the folder ready to be mounted over; whether something that answers is mounted there.
    pub(super) async fn is_mounted(&self, target: &Path, stale: Stale) -> Result<bool, Status> {
        if stale == Stale::Kept && self.mounts.at(target).await.map_err(of_mount)?.is_some() {
            let path = target.to_owned();
            let answers = self.mounts.answers(target).await;
            return answers.map(|()| true).map_err(|source| of_publish(PublishError::Stale { path, source }));
        }
        Ok(self.mounts.prepare_folder(target).await.map_err(of_mount)?.is_some())
    }
}

/// The name of the folder in which the share of a disk is mounted.
pub(super) const PROXY_MOUNT: &str = "proxy-mount";

/// Options that say who logs in; the key is not among them.
fn login_options(access: &Access) -> Result<Vec<String>, Status> {
    const TICKET: [&str; 3] = ["sec=krb5", "cruid=0", "upcall_target=mount"];
    let ticket = || TICKET.map(str::to_owned).to_vec();
    Ok(match &access.login {
        Login::None => Vec::new(),
        Login::Managed { client } => ticket().into_iter().chain([format!("username={client}")]).collect(),
        Login::Token { .. } | Login::Workload { .. } => ticket(),
        Login::KeyByToken { .. } | Login::Request | Login::Key { .. } => {
            let has_key = access.key.as_ref().is_some_and(|key| !key.expose_secret().is_empty());
            if access.account.is_empty() || !has_key {
                let text = format!("account {:?} or its key is empty; correct the Secret", access.account);
                return Err(Status::invalid_argument(text));
            }
            vec![format!("username={}", access.account)]
        }
    })
}
