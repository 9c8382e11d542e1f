//! The command line: every flag of the program that this one replaces, spelled and parsed as there,
//! and `--dry-run`.
//!
//! Flags without an effect here stay accepted; they stand in the table of `accepted`, each with the reason. A
//! flag that asks for something that this release does not do is refused by [`CommandLine::problems`] with a
//! remedy: silence would be worse.

mod accepted;
mod problems;
mod ranges;

use std::net::IpAddr;
use std::time::Duration;

use clap::builder::ArgAction;
use clap::{Args as _, Command, FromArgMatches as _};
use command_line::{describe, given};
use controllers::leader_election;

use crate::go_values::{duration, truth};
use accepted::ACCEPTED;

pub use command_line::{Instead, Problem};
pub use ranges::Ranges;

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
    /// The cloud configuration (azure.json), YAML or JSON.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub cloud_config: String,
    /// The name of the cloud provider: azure.
    #[arg(long, default_value = "azure")]
    pub cloud_provider: String,
    /// The cluster's name: names and tags in Azure begin with it.
    #[arg(long, default_value = "kubernetes")]
    pub cluster_name: String,
    /// The controllers to run: `*` all, `name` this one, `-name` not this one.
    #[arg(long, default_value = "*", value_delimiter = ',', allow_hyphen_values = true)]
    pub controllers: Vec<String>,
    /// Show what would be written to Azure, write nothing, and end.
    #[arg(long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub dry_run: bool,
    /// How to reach the Kubernetes API; without it the pod's service account.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub kubeconfig: String,
    /// The address of the Kubernetes API, instead of the one in the kubeconfig.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub master: String,
    /// How many Services are synced at once; only 1 is allowed. Writes to Azure are grouped regardless.
    #[arg(long, default_value_t = 1)]
    pub concurrent_service_syncs: u32,
    /// How long after the first look for its machine a node that is not ready is looked up in Azure again; later
    /// pauses grow to a minute.
    #[arg(long, default_value = "5s", value_parser = duration)]
    pub node_monitor_period: Duration,
    /// How often the addresses of all nodes are compared with Azure.
    #[arg(long, default_value = "5m", value_parser = duration)]
    pub node_status_update_frequency: Duration,
    /// How often all that Services have in Azure is looked at and repaired where nothing happens; 0 for never. What is read
    /// for any other reason is repaired at once.
    #[arg(long, default_value = "5m", value_parser = duration)]
    pub azure_resync_period: Duration,
    /// Whether nodes get the ranges of their pods from this program, out of --cluster-cidr.
    #[arg(long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub allocate_node_cidrs: bool,
    /// Whether routes to the pods of nodes are written to the route table of azure.json; without a word they are if
    /// --cluster-cidr is given.
    #[arg(long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub configure_cloud_routes: Option<bool>,
    /// How often the routes of all nodes are looked at where nothing happens; what happens to a node is seen at once.
    #[arg(long, default_value = "10s", value_parser = duration)]
    pub route_reconciliation_period: Duration,
    /// The ranges of all pods, at most one of each family.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub cluster_cidr: String,
    /// Who says how large the ranges of nodes are: RangeAllocator, the two flags below; CloudAllocator, the tags
    /// kubernetesNodeCIDRMaskIPV4 and kubernetesNodeCIDRMaskIPV6 of scale sets and availability sets, 24 and 64 without.
    #[arg(long, default_value = "RangeAllocator")]
    pub cidr_allocator_type: String,
    /// How long the prefix of a node's IPv4 range is; 0 for 24.
    #[arg(long, default_value_t = 0)]
    pub node_cidr_mask_size_ipv4: u8,
    /// How long the prefix of a node's IPv6 range is; 0 for 64.
    #[arg(long, default_value_t = 0)]
    pub node_cidr_mask_size_ipv6: u8,
    /// The ranges of Services, which no node gets for its pods; at most one of each family.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub service_cluster_ip_range: String,
    /// Only nodes that match this label selector are looked at.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub node_filter_requirements: String,
    /// Whether a change of the cloud configuration restarts the controllers; this release refuses true.
    #[arg(long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub enable_dynamic_reloading: bool,
    /// Whether replicas elect the one that works.
    #[arg(help_heading = "Leader election", long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true")]
    pub leader_elect: bool,
    /// How long others wait before they take over from a silent leader.
    #[arg(help_heading = "Leader election", long, default_value = "15s", value_parser = duration)]
    pub leader_elect_lease_duration: Duration,
    /// How long a leader tries to renew before it gives up.
    #[arg(help_heading = "Leader election", long, default_value = "10s", value_parser = duration)]
    pub leader_elect_renew_deadline: Duration,
    /// How long to wait between two tries.
    #[arg(help_heading = "Leader election", long, default_value = "2s", value_parser = duration)]
    pub leader_elect_retry_period: Duration,
    /// The kind of object that replicas elect with.
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
    /// The certificate of that port; made at start where not given.
    #[arg(help_heading = "Health checks and metrics", long, default_value = "", hide_default_value = true)]
    pub tls_cert_file: String,
    /// The private key of that certificate.
    #[arg(help_heading = "Health checks and metrics", long, default_value = "", hide_default_value = true)]
    pub tls_private_key_file: String,
    /// The lowest version of TLS: VersionTLS12 or VersionTLS13.
    #[arg(help_heading = "Health checks and metrics", long, default_value = "", hide_default_value = true)]
    pub tls_min_version: String,
    /// Whether to serve HTTP/1.1 alone.
    #[arg(help_heading = "Health checks and metrics", long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub disable_http2_serving: bool,
    /// `text` or `json`.
    #[arg(help_heading = "Logging and version", long, default_value = "text")]
    pub log_format: String,
    /// How much to log: 2 changes, 4 debugging.
    #[arg(help_heading = "Logging and version", short = 'v', long = "v", default_value_t = 0)]
    pub verbosity: u8,
    /// Print the version and end.
    #[arg(help_heading = "Logging and version", long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub version: String,
}

/// A command line that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandLine {
    /// The flags that have an effect.
    pub flags: Flags,
    /// Accepted flags that somebody gave, under the reason why they change nothing.
    pub without_effect: Vec<(Vec<&'static str>, &'static str)>,
    /// Arguments that say nothing. The flags are as without them.
    pub misread: Vec<Problem>,
}

/// Reads a command line, the program's name first.
///
/// # Errors
/// [`Instead`], where help was asked for. What is wrong is among [`CommandLine::problems`].
pub fn parse<I: IntoIterator<Item = std::ffi::OsString>>(arguments: I) -> Result<CommandLine, Instead> {
    let (matches, misread) = command_line::read(&command(), arguments.into_iter().collect())?;
    let flags = Flags::from_arg_matches(&matches).map_err(|error| Instead::Refuse(describe(&error)))?;
    let without_effect = ACCEPTED.given(&matches);
    let mut line = CommandLine { flags, without_effect, misread };
    let unheeded = line.unheeded(|flag| given(&matches, flag));
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
    /// Whether a controller, by its canonical name, shall run: the first entry that names it decides, else `*`.
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

    /// The lease that replicas hold in turn, for a process of this name.
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
