//! The command line: every flag of the program that this one replaces, with the same spelling and syntax, and
//! `--dry-run`.
//!
//! Flags without an effect here stay accepted; they are in the table of `accepted`, each with the reason. A flag that
//! asks for an unsupported feature is refused by [`CommandLine::problems`] with a remedy, rather than ignored silently.

mod accepted;
mod problems;
pub mod ranges;

use std::net::IpAddr;
use std::time::Duration;

use clap::builder::ArgAction;
use clap::{Args as _, Command, FromArgMatches as _};
use cloud_config::CloudConfig;
use command_line::{describe, is_set};
use controllers::leader_election;
use planner::Cluster;

use crate::go_values::{duration, truth};
use accepted::ACCEPTED;

pub use command_line::{EarlyExit, Problem};

/// The controllers by their canonical names, each with its alias.
pub const CONTROLLERS: [(&str, &str); 5] = [
    ("cloud-node-controller", "cloud-node"),
    ("cloud-node-lifecycle-controller", "cloud-node-lifecycle"),
    ("service-lb-controller", "service"),
    ("node-route-controller", "route"),
    ("node-ipam", "nodeipam"),
];

/// The flags that have an effect.
#[derive(Debug, Clone, PartialEq, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub struct Flags {
    /// The file of the cloud configuration (azure.json), YAML or JSON.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub cloud_config: String,
    /// The name of the cloud provider: azure.
    #[arg(long, default_value = "azure")]
    pub cloud_provider: String,
    /// The cluster's name: the prefix of names and tags in Azure.
    #[arg(long, default_value = "kubernetes")]
    pub cluster_name: String,
    /// The controllers to run: `*` all, `name` this one, `-name` not this one.
    #[arg(long, default_value = "*", value_delimiter = ',', allow_hyphen_values = true)]
    pub controllers: Vec<String>,
    /// Show the planned writes to Azure, write nothing, and exit.
    #[arg(long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub dry_run: bool,
    /// The kubeconfig of the Kubernetes API; by default the pod's service account.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub kubeconfig: String,
    /// The address of the Kubernetes API, instead of the one in the kubeconfig.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub master: String,
    /// How many Services are synced at once; only 1 is allowed. Writes to Azure are grouped regardless.
    #[arg(long, default_value_t = 1)]
    pub concurrent_service_syncs: u32,
    /// How long after the first look-up of its machine a node that is not ready is looked up in Azure again; later
    /// intervals grow to a minute.
    #[arg(long, default_value = "5s", value_parser = duration)]
    pub node_monitor_period: Duration,
    /// How often the addresses of all nodes are compared with Azure.
    #[arg(long, default_value = "5m", value_parser = duration)]
    pub node_status_update_frequency: Duration,
    /// The interval at which the Azure resources of all Services are read and repaired if nothing happens; 0 for never.
    /// Resources that are read for any other reason are repaired at once.
    #[arg(long, default_value = "5m", value_parser = duration)]
    pub azure_resync_period: Duration,
    /// Whether this program assigns pod CIDRs to nodes, from --cluster-cidr.
    #[arg(long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub allocate_node_cidrs: bool,
    /// Whether routes to the pods of nodes are written to the route table of azure.json; by default they are if
    /// --cluster-cidr is given.
    #[arg(long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub configure_cloud_routes: Option<bool>,
    /// The interval at which the routes of all nodes are read if nothing happens; changes of nodes are handled at once.
    #[arg(long, default_value = "10s", value_parser = duration)]
    pub route_reconciliation_period: Duration,
    /// The ranges of all pods, at most one of each family.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub cluster_cidr: String,
    /// The source of the size of nodes' ranges: RangeAllocator, the two flags below; CloudAllocator, the tags
    /// kubernetesNodeCIDRMaskIPV4 and kubernetesNodeCIDRMaskIPV6 of scale sets and availability sets, 24 and 64
    /// without.
    #[arg(long, default_value = "RangeAllocator")]
    pub cidr_allocator_type: String,
    /// The prefix length of a node's IPv4 range; 0 for 24.
    #[arg(long, default_value_t = 0)]
    pub node_cidr_mask_size_ipv4: u8,
    /// The prefix length of a node's IPv6 range; 0 for 64.
    #[arg(long, default_value_t = 0)]
    pub node_cidr_mask_size_ipv6: u8,
    /// The ranges of Services, which are not assigned to nodes; at most one of each family.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub service_cluster_ip_range: String,
    /// Only nodes that match this label selector are watched.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub node_filter_requirements: String,
    /// Whether a changed cloud configuration takes effect while the program runs: the controllers end and start again
    /// with it, under the same Lease. Without it, only renewed certificates do.
    #[arg(long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub enable_dynamic_reloading: bool,
    /// The Secret with the cloud configuration; with --cloud-config its keys go over those of the file, unless
    /// cloudConfigType says otherwise.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub cloud_config_secret_name: String,
    /// The namespace of that Secret.
    #[arg(long, default_value = "kube-system")]
    pub cloud_config_secret_namespace: String,
    /// The key in the data of that Secret.
    #[arg(long, default_value = "cloud-config")]
    pub cloud_config_key: String,
    /// Whether replicas use leader election.
    #[arg(help_heading = "Leader election", long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true")]
    pub leader_elect: bool,
    /// How long others wait before they take over from a silent leader.
    #[arg(help_heading = "Leader election", long, default_value = "15s", value_parser = duration)]
    pub leader_elect_lease_duration: Duration,
    /// How long a leader tries to renew before it gives up.
    #[arg(help_heading = "Leader election", long, default_value = "10s", value_parser = duration)]
    pub leader_elect_renew_deadline: Duration,
    /// The interval between two attempts.
    #[arg(help_heading = "Leader election", long, default_value = "2s", value_parser = duration)]
    pub leader_elect_retry_period: Duration,
    /// The kind of object for leader election.
    #[arg(help_heading = "Leader election", long, default_value = "leases")]
    pub leader_elect_resource_lock: String,
    /// The name of that object.
    #[arg(help_heading = "Leader election", long, default_value = "cloud-controller-manager")]
    pub leader_elect_resource_name: String,
    /// The namespace of that object.
    #[arg(help_heading = "Leader election", long, default_value = "kube-system")]
    pub leader_elect_resource_namespace: String,
    /// The address to serve them on; 0.0.0.0 and :: both mean all addresses of both families.
    #[arg(help_heading = "Health checks and metrics", long, default_value = "0.0.0.0")]
    pub bind_address: IpAddr,
    /// The HTTPS port; 0 for none.
    #[arg(help_heading = "Health checks and metrics", long, default_value_t = 10258)]
    pub secure_port: u16,
    /// The certificate of that port; generated at start by default.
    #[arg(help_heading = "Health checks and metrics", long, default_value = "", hide_default_value = true)]
    pub tls_cert_file: String,
    /// The private key of that certificate.
    #[arg(help_heading = "Health checks and metrics", long, default_value = "", hide_default_value = true)]
    pub tls_private_key_file: String,
    /// The lowest version of TLS: VersionTLS12 or VersionTLS13.
    #[arg(help_heading = "Health checks and metrics", long, default_value = "", hide_default_value = true)]
    pub tls_min_version: String,
    /// Whether to serve only HTTP/1.1.
    #[arg(help_heading = "Health checks and metrics", long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub disable_http2_serving: bool,
    /// `text` or `json`.
    #[arg(help_heading = "Logging and version", long, default_value = "text")]
    pub log_format: String,
    /// The log level: 2 changes, 4 debugging.
    #[arg(help_heading = "Logging and version", short = 'v', long = "v", default_value_t = 0)]
    pub verbosity: u8,
    /// Print the version and exit.
    #[arg(help_heading = "Logging and version", long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub version: String,
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

/// Parses a command line, which begins with the program's name.
///
/// # Errors
/// [`EarlyExit`], if help was requested. Invalid values are in [`CommandLine::problems`].
pub fn parse<I: IntoIterator<Item = std::ffi::OsString>>(arguments: I) -> Result<CommandLine, EarlyExit> {
    let (matches, misread) = command_line::parse(&command(), arguments.into_iter().collect())?;
    let flags = Flags::from_arg_matches(&matches).map_err(|error| EarlyExit::Refuse(describe(&error)))?;
    let without_effect = ACCEPTED.set_by(&matches);
    let mut line = CommandLine { flags, without_effect, misread };
    let unheeded = line.unheeded(|flag| is_set(&matches, flag));
    line.without_effect.extend(unheeded);
    Ok(line)
}

fn command() -> Command {
    let base =
        Command::new("azure-cloud-controller-manager").args_override_self(true).disable_version_flag(true);
    Flags::augment_args(base).args(ACCEPTED.arguments()).about(
        "Turns a cluster's Services into Azure load balancers and its machines into initialised nodes.\n\n\
         All flags of the program that it replaces are accepted. Below come first those that change something, then \
         those that do not, each group with the reason.",
    )
}

impl CommandLine {
    /// Whether a controller, by its canonical name, is enabled: the first entry that names it decides, otherwise `*`.
    pub fn enabled(&self, canonical: &str) -> bool {
        let alias = CONTROLLERS.iter().find(|(name, _)| *name == canonical).map_or("", |(_, alias)| *alias);
        let entries = &self.flags.controllers;
        for entry in entries {
            let (wanted, name) = entry.strip_prefix('-').map_or((true, entry.as_str()), |name| (false, name));
            if name == canonical || name == alias {
                return wanted;
            }
        }
        entries.iter().any(|entry| entry == "*")
    }

    /// The cluster of this command line, whose zones are not known yet.
    pub fn cluster(&self, config: CloudConfig) -> Cluster {
        Cluster { config, name: self.flags.cluster_name.clone(), region_zones: Vec::new() }
    }

    /// The configuration of leader election, for a process of this name.
    pub fn election(&self, identity: String) -> leader_election::Config {
        let flags = &self.flags;
        leader_election::Config {
            namespace: flags.leader_elect_resource_namespace.clone(),
            name: flags.leader_elect_resource_name.clone(),
            lease_duration: flags.leader_elect_lease_duration,
            renew_deadline: flags.leader_elect_renew_deadline,
            retry_period: flags.leader_elect_retry_period,
            ..leader_election::Config::new(identity)
        }
    }
}

#[cfg(test)]
mod tests;
