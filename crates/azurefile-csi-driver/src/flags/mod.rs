//! The command line: every flag of the program that this one replaces, with the same spelling and syntax.
//!
//! Flags without an effect here stay accepted; they are in the table of `accepted`, each with the reason.

mod accepted;
mod permissions;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::time::Duration;

use clap::builder::ArgAction;
use clap::{Args as _, Command, FromArgMatches as _};
use command_line::{EarlyExit, Problem, describe, is_version, with_two_dashes};
use csi::endpoint::Endpoint;
use program::go_values::{listen_address, truth};

use crate::controller::ControllerOptions;
use crate::node::plan::attributes::{Defaults, owner};
use crate::node::plan::mount_options::Appended;
use crate::node::{InlineRights, NodeOptions};
use accepted::ACCEPTED;
pub use permissions::Permissions;

/// The flags that have an effect (section 4.9 of the specification of the drivers).
#[derive(Debug, Clone, PartialEq, clap::Args)]
#[command(next_help_heading = "Driver")]
pub struct Flags {
    /// The socket: unix:///csi/csi.sock, or tcp://127.0.0.1:10000.
    #[arg(long, default_value = "unix://tmp/csi.sock")]
    pub endpoint: String,
    /// The name of the node that the program runs on; empty for the controller.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub nodeid: String,
    /// The driver's name.
    #[arg(long, default_value = "file.csi.azure.com")]
    pub drivername: String,
    /// The kubeconfig; without it, the service account of the pod. `no-need-kubeconfig` for no Kubernetes.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub kubeconfig: String,
    /// Where metrics are served, such as 0.0.0.0:29614; nowhere by default.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub metrics_address: String,
    /// The Secret with the cloud configuration; empty for none.
    #[arg(help_heading = "Cloud configuration", long, default_value = "azure-cloud-provider")]
    pub cloud_config_secret_name: String,
    /// The namespace of that Secret.
    #[arg(help_heading = "Cloud configuration", long, default_value = "kube-system")]
    pub cloud_config_secret_namespace: String,
    /// Whether the program starts without a cloud configuration.
    #[arg(help_heading = "Cloud configuration", long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true")]
    pub allow_empty_cloud_config: bool,
    /// The user agent of calls to Azure; by default the driver's name and version.
    #[arg(help_heading = "Cloud configuration", long, default_value = "", hide_default_value = true)]
    pub custom_user_agent: String,
    /// What is added to the user agent.
    #[arg(help_heading = "Cloud configuration", long, default_value = "", hide_default_value = true)]
    pub user_agent_suffix: String,
    /// How long, in minutes, an account that is full is not looked at again.
    #[arg(help_heading = "Controller", long, default_value_t = 30)]
    pub skip_matching_tag_cache_expire_in_minutes: u64,
    /// How long, in minutes, a signed token for a copy is valid.
    #[arg(help_heading = "Controller", long, default_value_t = 1440)]
    pub sas_token_expiration_minutes: u64,
    /// How long, in minutes, a request waits for a copy.
    #[arg(help_heading = "Controller", long, default_value_t = 19)]
    pub wait_for_azcopy_timeout_minutes: u64,
    /// Whether a share may contain a disk (fsType ext4, diskName).
    #[arg(help_heading = "Node", long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true")]
    pub enable_vhd: bool,
    /// Whether the driver sets the pod's group itself.
    #[arg(help_heading = "Node", long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true")]
    pub enable_volume_mount_group: bool,
    /// Whether statistics of volumes are given.
    #[arg(help_heading = "Node", long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true")]
    pub enable_get_volume_stats: bool,
    /// How long, in minutes, statistics of a share are kept.
    #[arg(help_heading = "Node", long, default_value_t = 10)]
    pub vol_stats_cache_expire_in_minutes: u64,
    /// Whether each reading of statistics is logged.
    #[arg(help_heading = "Node", long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub print_volume_stats_call_logs: bool,
    /// Permissions of the root of a share over NFS, in octal; 0 leaves them.
    #[arg(help_heading = "Node", long, default_value = "0777")]
    pub mount_permissions: Permissions,
    /// When files become the pod's group's: None, Always or OnRootMismatch, which is the default.
    #[arg(help_heading = "Node", long, default_value = "", hide_default_value = true)]
    pub fsgroup_change_policy: String,
    /// Whether errors of mounts have the link to the help page.
    #[arg(help_heading = "Node", long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true")]
    pub append_mount_error_help_link: bool,
    /// Whether closetimeo=0 is added to the options of SMB.
    #[arg(help_heading = "Node", long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub append_closetimeo_option: bool,
    /// Whether nosharesock is added to the options of SMB.
    #[arg(help_heading = "Node", long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true")]
    pub append_nosharesock_option: bool,
    /// Whether noresvport is added to the options of NFS.
    #[arg(help_heading = "Node", long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true")]
    pub append_noresvport_option: bool,
    /// Whether actimeo=30 is added to the options of NFS.
    #[arg(help_heading = "Node", long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true")]
    pub append_actimeo_option: bool,
    /// Whether the proxy on the node mounts what is encrypted in transit.
    #[arg(help_heading = "Node", long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub enable_azurefile_proxy: bool,
    /// The proxy's socket.
    #[arg(help_heading = "Node", long, default_value = "unix://tmp/azurefile-proxy.sock")]
    pub azurefile_proxy_endpoint: String,
    /// Whether the proxy mounts all shares over NFS.
    #[arg(help_heading = "Node", long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub use_aznfs_for_nfs_mounts: bool,
    /// Whether the cluster's identity lists keys for volumes in pods' own definitions.
    #[arg(help_heading = "Node", long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub allow_inline_volume_key_access_with_identity: bool,
    /// Whether a pod's service account must be allowed to read the Secret of such a volume: off, warn or enforce.
    #[arg(help_heading = "Node", long, default_value = "off")]
    pub inline_volume_secret_authz: String,
    /// Whether confidential containers mount their shares themselves.
    #[arg(help_heading = "Node", long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub enable_kata_cc_mount: bool,
    /// The log level: 2 changes, 4 debugging.
    #[arg(help_heading = "Logging", short = 'v', long = "v", default_value_t = 0)]
    pub verbosity: u8,
}

/// A parsed command line.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandLine {
    /// The flags that have an effect.
    pub flags: Flags,
    /// The given flags that have no effect, by the reason.
    pub without_effect: Vec<(Vec<&'static str>, &'static str)>,
    /// Arguments that cannot be parsed. They are ignored.
    pub misread: Vec<Problem>,
}

/// The requested action.
#[derive(Debug, PartialEq)]
pub enum Start {
    /// Run the driver.
    Driver(Box<CommandLine>),
    /// `--version`: print it and end.
    PrintVersion {
        /// The driver's name.
        driver: String,
    },
}

/// Parses a command line, which begins with the program's name.
///
/// # Errors
/// [`EarlyExit`], if help was requested. Invalid values are in [`CommandLine::problems`].
pub fn parse<I: IntoIterator<Item = OsString>>(arguments: I) -> Result<Start, EarlyExit> {
    let arguments: Vec<OsString> = arguments.into_iter().map(with_two_dashes).collect();
    let asks = |argument: &OsString| argument == "--version" || argument == "--version=true";
    let prints_version = arguments.iter().any(asks);
    let arguments: Vec<OsString> = arguments.into_iter().filter(|one| !is_version(one)).collect();
    let (matches, misread) = command_line::parse(&command(), arguments)?;
    let flags = Flags::from_arg_matches(&matches).map_err(|error| EarlyExit::Refuse(describe(&error)))?;
    if prints_version {
        return Ok(Start::PrintVersion { driver: flags.drivername });
    }
    Ok(Start::Driver(Box::new(CommandLine { flags, without_effect: ACCEPTED.set_by(&matches), misread })))
}

fn command() -> Command {
    let base = Command::new("azurefileplugin").args_override_self(true).disable_version_flag(true);
    Flags::augment_args(base).args(ACCEPTED.arguments()).about(
        "Volumes on Azure Files, over the Container Storage Interface: as controller, or with --nodeid on a node.\n\n\
         All flags of the program that it replaces are accepted. Below come first those that change something, then \
         those that do not, each group with the reason. --version prints the version.",
    )
}

impl CommandLine {
    /// Everything that is wrong with the command line.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = self.misread.clone();
        let mut refused = |flag: &str, value: &str, reason: String, remedy: &str| {
            problems.push(Problem {
                given: format!("--{flag}={value}"),
                reason,
                arguments: vec![format!("--{flag}={remedy}")],
                note: String::new(),
            });
        };
        let flags = &self.flags;
        if let Err(error) = flags.endpoint.parse::<Endpoint>() {
            refused("endpoint", &flags.endpoint, error.to_string(), "unix:///csi/csi.sock");
        }
        if flags.enable_azurefile_proxy
            && let Err(error) = flags.azurefile_proxy_endpoint.parse::<Endpoint>()
        {
            let (flag, value) = ("azurefile-proxy-endpoint", &flags.azurefile_proxy_endpoint);
            refused(flag, value, error.to_string(), "unix:///csi/azurefile-proxy.sock");
        }
        if let Err(reason) = self.metrics_address() {
            refused("metrics-address", &flags.metrics_address, reason, "0.0.0.0:29614");
        }
        if flags.drivername.is_empty() {
            refused("drivername", "", "a driver needs a name".to_owned(), "file.csi.azure.com");
        }
        if let Err(error) = owner("the policy", &flags.fsgroup_change_policy) {
            let (flag, value) = ("fsgroup-change-policy", &flags.fsgroup_change_policy);
            refused(flag, value, error.to_string(), "OnRootMismatch");
        }
        if let Err(reason) = flags.inline_volume_secret_authz.parse::<InlineRights>() {
            refused("inline-volume-secret-authz", &flags.inline_volume_secret_authz, reason, "enforce");
        }
        problems
    }

    /// Whether the program runs on a node.
    pub fn is_node(&self) -> bool {
        !self.flags.nodeid.is_empty()
    }

    /// Where metrics are served; `None` if the flag is empty.
    ///
    /// # Errors
    /// The address is invalid.
    pub fn metrics_address(&self) -> Result<Option<SocketAddr>, String> {
        listen_address(&self.flags.metrics_address)
    }

    /// The options of the node. Invalid values, which [`Self::problems`] reports, count as absent.
    pub fn node(&self) -> NodeOptions {
        let flags = &self.flags;
        let usual = NodeOptions::default();
        NodeOptions {
            node_id: flags.nodeid.clone(),
            defaults: Defaults {
                permissions: flags.mount_permissions.0,
                owner: owner("the policy", &flags.fsgroup_change_policy).unwrap_or(usual.defaults.owner),
            },
            appended: Appended {
                nosharesock: flags.append_nosharesock_option,
                closetimeo: flags.append_closetimeo_option,
                noresvport: flags.append_noresvport_option,
                actimeo: flags.append_actimeo_option,
            },
            has_disks: flags.enable_vhd,
            has_mount_group: flags.enable_volume_mount_group,
            has_statistics: flags.enable_get_volume_stats,
            statistics_age: Duration::from_secs(flags.vol_stats_cache_expire_in_minutes.saturating_mul(60)),
            logs_statistics: flags.print_volume_stats_call_logs,
            always_by_proxy: flags.use_aznfs_for_nfs_mounts,
            has_confidential: flags.enable_kata_cc_mount,
            has_help_link: flags.append_mount_error_help_link,
            lists_keys_for_inline: flags.allow_inline_volume_key_access_with_identity,
            inline_rights: flags.inline_volume_secret_authz.parse().unwrap_or_default(),
            ..usual
        }
    }

    /// The options of the controller.
    pub fn controller(&self) -> ControllerOptions {
        let minutes = self.flags.skip_matching_tag_cache_expire_in_minutes;
        ControllerOptions {
            driver: self.flags.drivername.clone(),
            full_for: Duration::from_secs(minutes.saturating_mul(60)),
        }
    }

    /// The user agent of calls to Azure.
    pub fn user_agent(&self) -> String {
        let flags = &self.flags;
        let own = match flags.custom_user_agent.as_str() {
            "" => format!("{}/v{}", flags.drivername, version::RELEASE),
            custom => custom.to_owned(),
        };
        format!("{own} {}", flags.user_agent_suffix).trim_end().to_owned()
    }
}
