//! The command line: every flag of the program that this one replaces, with the same spelling and syntax.
//!
//! Flags without an effect here stay accepted; they are in the table of `accepted`, each with the reason.

mod accepted;
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
use accepted::ACCEPTED;

/// The flags that have an effect (section 3.20 of the specification of the drivers).
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
    #[arg(long, default_value = "disk.csi.azure.com")]
    pub drivername: String,
    /// The kubeconfig; without it, the service account of the pod.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub kubeconfig: String,
    /// Where metrics are served, such as 0.0.0.0:29604; nowhere by default.
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
    /// What follows the user agent of calls to Azure.
    #[arg(help_heading = "Cloud configuration", long, default_value = "", hide_default_value = true)]
    pub user_agent_suffix: String,
    /// Whether an attached disk may grow.
    #[arg(help_heading = "Controller", long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true")]
    pub enable_disk_online_resize: bool,
    /// Whether volumes are listed, each with its nodes.
    #[arg(help_heading = "Controller", long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub enable_list_volumes: bool,
    /// Whether snapshots are listed.
    #[arg(help_heading = "Controller", long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub enable_list_snapshots: bool,
    /// Whether a snapshot is answered only once it is ready.
    #[arg(help_heading = "Controller", long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub wait_for_snapshot_ready: bool,
    /// Whether LUNs that VolumeAttachments name are kept free for their disks.
    #[arg(help_heading = "Controller", long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true")]
    pub check_disk_lun_collision: bool,
    /// How long an attach waits for others before a write, in ms, beside those that have begun; without the flag it does not wait.
    #[arg(help_heading = "Controller", long)]
    pub attach_detach_initial_delay_ms: Option<u64>,
    /// How long an attach waits for the disk's document.
    #[arg(help_heading = "Controller", long, default_value_t = 15)]
    pub get_disk_timeout_seconds: u64,
    /// How long a detach may take, in s, before it is forced if the node is not ready.
    #[arg(help_heading = "Controller", long, default_value_t = 200)]
    pub vmss_detach_timeout_seconds: u64,
    /// Whether a detach may be forced.
    #[arg(help_heading = "Controller", long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true")]
    pub force_detach_backoff: bool,
    /// Whether the cache of in-tree volumes is ReadOnly where they say ReadWrite.
    #[arg(help_heading = "Controller", long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub convert_rw_caching_mode_for_intree_pv: bool,
    /// How many volumes the node takes; negative for as many as its machine's size permits.
    #[arg(help_heading = "Node", long, default_value_t = -1, allow_negative_numbers = true)]
    pub volume_attach_limit: i64,
    /// Slots for data disks that are kept free.
    #[arg(help_heading = "Node", long, default_value_t = 0)]
    pub reserved_data_disk_slot_num: u32,
    /// Whether the node's zone is part of its topology.
    #[arg(help_heading = "Node", long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true")]
    pub support_zone: bool,
    /// Whether the node's zone and size come from its labels, and not from instance metadata.
    #[arg(help_heading = "Node", long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub get_node_info_from_labels: bool,
    /// Whether the node's ID comes from instance metadata.
    #[arg(help_heading = "Node", long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub get_nodeid_from_imds: bool,
    /// Whether device settings of performance profiles are applied.
    #[arg(help_heading = "Node", long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub enable_perf_optimization: bool,
    /// How many devices are formatted at once.
    #[arg(help_heading = "Node", long, default_value_t = 2)]
    pub max_concurrent_format: usize,
    /// How long, in s, a format counts among them.
    #[arg(help_heading = "Node", long, default_value_t = 300)]
    pub concurrent_format_timeout: u64,
    /// Whether the taint disk.csi.azure.com/agent-not-ready is removed once the node takes volumes.
    #[arg(help_heading = "Node", long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true")]
    pub remove_not_ready_taint: bool,
    /// How long, in s, the program waits before it removes the taint for the first time.
    #[arg(help_heading = "Node", long, default_value_t = 30)]
    pub taint_removal_initial_delay_seconds: u64,
    /// Whether the taint is looked for as long as the program runs, because it may come back.
    #[arg(help_heading = "Node", long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true")]
    pub never_stop_taint_removal: bool,
    /// Where instance metadata is.
    #[arg(help_heading = "Node", long, default_value = "http://169.254.169.254")]
    pub instance_metadata_endpoint: imds::Endpoint,
    /// Waits until no volume is attached to the node, if the node is being drained; then the program ends.
    #[arg(help_heading = "Node", long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub pre_stop_hook: bool,
    /// Whether traces are sent to the collector that OTEL_EXPORTER_OTLP_ENDPOINT names.
    #[arg(help_heading = "Traces", long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub enable_otel_tracing: bool,
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
    /// Run the driver, or its hook before the stop.
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
    let base = Command::new("azurediskplugin").args_override_self(true).disable_version_flag(true);
    Flags::augment_args(base).args(ACCEPTED.arguments()).about(
        "Volumes on Azure's disks, over the Container Storage Interface: as controller, or with --nodeid on a node.\n\n\
         All flags of the program that it replaces are accepted. Below come first those that change something, then \
         those that do not, each group with the reason. --version prints the version.",
    )
}

impl CommandLine {
    /// Everything that is wrong with the command line.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = self.misread.clone();
        let refused = |flag: &str, value: &str, reason: String, remedy: &str| Problem {
            given: format!("--{flag}={value}"),
            reason,
            arguments: vec![format!("--{flag}={remedy}")],
            note: String::new(),
        };
        let flags = &self.flags;
        if let Err(error) = flags.endpoint.parse::<Endpoint>() {
            problems.push(refused("endpoint", &flags.endpoint, error.to_string(), "unix:///csi/csi.sock"));
        }
        if let Err(reason) = self.metrics_address() {
            problems.push(refused("metrics-address", &flags.metrics_address, reason, "0.0.0.0:29604"));
        }
        if flags.drivername.is_empty() {
            let reason = "a driver needs a name".to_owned();
            problems.push(refused("drivername", "", reason, "disk.csi.azure.com"));
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

    /// The options of the controller.
    pub fn controller(&self) -> ControllerOptions {
        let flags = &self.flags;
        ControllerOptions {
            driver: flags.drivername.clone(),
            lists_volumes: flags.enable_list_volumes,
            lists_snapshots: flags.enable_list_snapshots,
            grows_attached: flags.enable_disk_online_resize,
            get_disk_timeout: Duration::from_secs(flags.get_disk_timeout_seconds),
            detach_timeout: Duration::from_secs(flags.vmss_detach_timeout_seconds),
            may_force_detach: flags.force_detach_backoff,
            waits_for_snapshots: flags.wait_for_snapshot_ready,
            reserves_luns: flags.check_disk_lun_collision,
            weakens_in_tree_caching: flags.convert_rw_caching_mode_for_intree_pv,
            batch_window: Duration::from_millis(flags.attach_detach_initial_delay_ms.unwrap_or(0)),
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
