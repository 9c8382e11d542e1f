//! What flags decide about a node.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use volumes_node::system::OwnerChange;

use super::plan::attributes::Defaults;
use super::plan::mount_options::Appended;

/// Whether the author of a pod must be allowed to read the Secret that an inline volume names (`--inline-volume-secret-authz`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum InlineRights {
    /// It is not checked.
    #[default]
    Off,
    /// A warning is logged.
    Warn,
    /// The volume is refused.
    Enforce,
}

impl FromStr for InlineRights {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "" | "off" => Ok(Self::Off),
            "warn" => Ok(Self::Warn),
            "enforce" => Ok(Self::Enforce),
            _ => Err("expected off, warn or enforce".to_owned()),
        }
    }
}

/// What flags decide about a node (section 4.9 of the specification of the drivers).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeOptions {
    /// `--nodeid`: the node's name.
    pub node_id: String,
    /// `--mount-permissions` and `--fsgroup-change-policy`.
    pub defaults: Defaults,
    /// `--append-…-option`.
    pub appended: Appended,
    /// `--enable-vhd`: whether a share may contain disks.
    pub has_disks: bool,
    /// `--enable-volume-mount-group`
    pub has_mount_group: bool,
    /// `--enable-get-volume-stats`
    pub has_statistics: bool,
    /// `--vol-stats-cache-expire-in-minutes`
    pub statistics_age: Duration,
    /// `--print-volume-stats-call-logs`
    pub logs_statistics: bool,
    /// `--use-aznfs-for-nfs-mounts`
    pub always_by_proxy: bool,
    /// `--enable-kata-cc-mount`
    pub has_confidential: bool,
    /// `--append-mount-error-help-link`
    pub has_help_link: bool,
    /// `--allow-inline-volume-key-access-with-identity`
    pub lists_keys_for_inline: bool,
    /// `--inline-volume-secret-authz`
    pub inline_rights: InlineRights,
    /// The folder of tokens of service accounts: that of the plugin.
    pub token_folder: PathBuf,
    /// The folder of the mounts of confidential containers.
    pub confidential_folder: PathBuf,
}

impl Default for NodeOptions {
    fn default() -> Self {
        Self {
            node_id: String::new(),
            defaults: Defaults { permissions: 0o777, owner: Some(OwnerChange::OnRootMismatch) },
            appended: Appended { nosharesock: true, closetimeo: false, noresvport: true, actimeo: true },
            has_disks: true,
            has_mount_group: true,
            has_statistics: true,
            statistics_age: Duration::from_secs(600),
            logs_statistics: false,
            always_by_proxy: false,
            has_confidential: false,
            has_help_link: true,
            lists_keys_for_inline: false,
            inline_rights: InlineRights::Off,
            token_folder: "/var/lib/kubelet/plugins/file.csi.azure.com".into(),
            confidential_folder: "/run/kata-containers/shared/direct-volumes".into(),
        }
    }
}
