//! The command line: every flag of the program that this one replaces, spelled and parsed as there
//! (`spec/config-and-cli.md` section 4), and `--dry-run`.
//!
//! Flags without an effect here stay accepted, because charts and managed clusters pass them; they stand
//! in the table of accepted flags, each with the reason. A flag that asks for something that this release does not do is
//! refused by [`CommandLine::problems`] with a remedy: silence would be worse.

use std::net::IpAddr;
use std::time::Duration;

use clap::builder::{ArgAction, ArgPredicate};
use clap::{Arg, ArgMatches, Args as _, Command, FromArgMatches as _};

use crate::go_values::{duration, truth};

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
pub struct Flags {
    /// The cloud configuration (azure.json), YAML or JSON.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub cloud_config: String,
    /// The name of the cloud provider.
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
    /// How often nodes that are not ready are looked up in Azure.
    #[arg(long, default_value = "5s", value_parser = duration)]
    pub node_monitor_period: Duration,
    /// How often the addresses of all nodes are compared with Azure.
    #[arg(long, default_value = "5m", value_parser = duration)]
    pub node_status_update_frequency: Duration,
    /// Whether nodes get pod ranges from this program.
    #[arg(long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub allocate_node_cidrs: bool,
    /// Whether routes for pod ranges are written to Azure.
    #[arg(long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true")]
    pub configure_cloud_routes: bool,
    /// The cluster's pod ranges.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub cluster_cidr: String,
    /// Only nodes that match this label selector are looked at.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub node_filter_requirements: String,
    /// Whether a change of the cloud configuration restarts the controllers.
    #[arg(long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub enable_dynamic_reloading: bool,
    /// Whether replicas elect the one that works.
    #[arg(long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true")]
    pub leader_elect: bool,
    /// How long others wait before they take over from a silent leader.
    #[arg(long, default_value = "15s", value_parser = duration)]
    pub leader_elect_lease_duration: Duration,
    /// How long a leader tries to renew before it gives up.
    #[arg(long, default_value = "10s", value_parser = duration)]
    pub leader_elect_renew_deadline: Duration,
    /// How long to wait between two tries.
    #[arg(long, default_value = "2s", value_parser = duration)]
    pub leader_elect_retry_period: Duration,
    /// The kind of object that replicas elect with.
    #[arg(long, default_value = "leases")]
    pub leader_elect_resource_lock: String,
    /// The name of that object.
    #[arg(long, default_value = "cloud-controller-manager")]
    pub leader_elect_resource_name: String,
    /// The namespace of that object.
    #[arg(long, default_value = "kube-system")]
    pub leader_elect_resource_namespace: String,
    /// The address to serve health checks and metrics on.
    #[arg(long, default_value = "0.0.0.0")]
    pub bind_address: IpAddr,
    /// The HTTPS port for health checks and metrics; 0 for none.
    #[arg(long, default_value_t = 10258)]
    pub secure_port: u16,
    /// The certificate of that port; made at start where not given.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub tls_cert_file: String,
    /// The private key of that certificate.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub tls_private_key_file: String,
    /// `text` or `json`.
    #[arg(long, default_value = "text")]
    pub log_format: String,
    /// How much to log: 2 changes, 4 debugging.
    #[arg(short = 'v', long = "v", default_value_t = 0)]
    pub verbosity: u8,
    /// Print the version and end.
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub version: String,
}

/// How an accepted flag takes its value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Value,
    Truth,
}

use Takes::{Truth, Value};

/// Flags that are accepted and change nothing, by the reason for it.
const ACCEPTED: &[(&str, &[(&str, Takes)])] = &[
    (
        "this program uses JSON, watches and its own pacing",
        &[
            ("kube-api-content-type", Value),
            ("kube-api-qps", Value),
            ("kube-api-burst", Value),
            ("min-resync-period", Value),
            ("controller-start-interval", Value),
            ("http2-max-streams-per-connection", Value),
            ("disable-http2-serving", Truth),
            ("permit-port-sharing", Truth),
            ("permit-address-sharing", Truth),
            ("cert-dir", Value),
            ("tls-cipher-suites", Value),
            ("tls-min-version", Value),
            ("tls-curve-preferences", Value),
            ("tls-sni-cert-key", Value),
            ("vmodule", Value),
            ("log-flush-frequency", Value),
            ("profiling", Truth),
            ("contention-profiling", Truth),
        ],
    ),
    (
        "only the pod's own service account and the kubeconfig are used",
        &[
            ("use-service-account-credentials", Truth),
            ("authentication-kubeconfig", Value),
            ("authorization-kubeconfig", Value),
            ("authentication-skip-lookup", Truth),
            ("authentication-token-webhook-cache-ttl", Value),
            ("authentication-tolerate-lookup-failure", Truth),
            ("authorization-always-allow-paths", Value),
            ("authorization-webhook-cache-authorized-ttl", Value),
            ("authorization-webhook-cache-unauthorized-ttl", Value),
            ("client-ca-file", Value),
            ("requestheader-allowed-names", Value),
            ("requestheader-client-ca-file", Value),
            ("requestheader-extra-headers-prefix", Value),
            ("requestheader-group-headers", Value),
            ("requestheader-uid-headers", Value),
            ("requestheader-username-headers", Value),
        ],
    ),
    (
        "without effect in the program that this one replaces, too",
        &[
            ("external-cloud-volume-plugin", Value),
            ("allow-untagged-cloud", Truth),
            ("enable-leader-migration", Truth),
            ("leader-migration-config", Value),
            ("feature-gates", Value),
            ("node-sync-period", Value),
            ("node-cidr-mask-size", Value),
        ],
    ),
    (
        "belongs to the route and IPAM controllers, which this release does not have",
        &[
            ("route-reconciliation-period", Value),
            ("cidr-allocator-type", Value),
            ("service-cluster-ip-range", Value),
            ("node-cidr-mask-size-ipv4", Value),
            ("node-cidr-mask-size-ipv6", Value),
        ],
    ),
    (
        "belongs to dynamic reloading, which this release does not have",
        &[
            ("cloud-config-secret-name", Value),
            ("cloud-config-secret-namespace", Value),
            ("cloud-config-key", Value),
        ],
    ),
];

/// A command line that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandLine {
    /// The flags that have an effect.
    pub flags: Flags,
    /// Accepted flags that somebody gave, each with the reason why it changes nothing.
    pub without_effect: Vec<(String, &'static str)>,
    /// Flags that somebody gave, by name; the others have their defaults.
    pub given: Vec<String>,
}

/// What a command line asks for instead of running.
#[derive(Debug)]
pub enum Instead {
    /// Print this text and end well.
    Print(String),
    /// One line that says what is wrong with the command line.
    Refuse(String),
}

/// Reads a command line, the program's name first.
///
/// # Errors
/// [`Instead`], where help was asked for or something is wrong.
pub fn parse<I: IntoIterator<Item = std::ffi::OsString>>(arguments: I) -> Result<CommandLine, Instead> {
    let matches = command().try_get_matches_from(arguments).map_err(|error| match error.kind() {
        clap::error::ErrorKind::DisplayHelp => Instead::Print(error.render().to_string()),
        _ => Instead::Refuse(one_line(&error)),
    })?;
    let flags = Flags::from_arg_matches(&matches).map_err(|error| Instead::Refuse(one_line(&error)))?;
    let without_effect = ACCEPTED
        .iter()
        .flat_map(|(reason, flags)| flags.iter().map(move |(name, _)| (*name, *reason)))
        .filter(|(name, _)| given(&matches, name))
        .map(|(name, reason)| (name.to_owned(), reason))
        .collect();
    let names = matches
        .ids()
        .map(|id| id.as_str().replace('_', "-"))
        .filter(|name| given(&matches, &name.replace('-', "_")) || given(&matches, name));
    Ok(CommandLine { flags, without_effect, given: names.collect() })
}

fn given(matches: &ArgMatches, id: &str) -> bool {
    matches.try_contains_id(id).is_ok()
        && matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine)
}

fn command() -> Command {
    let accepted = ACCEPTED
        .iter()
        .flat_map(|(reason, flags)| flags.iter().map(move |flag| (reason, flag)))
        .map(|(reason, (name, takes))| {
            let argument =
                Arg::new(*name).long(*name).help(format!("Accepted; {reason}.")).action(ArgAction::Set);
            match takes {
                Value => argument.allow_hyphen_values(true),
                Truth => argument
                    .num_args(0..=1)
                    .require_equals(true)
                    .default_missing_value("true")
                    .default_value_if(*name, ArgPredicate::IsPresent, None)
                    .value_parser(truth),
            }
        });
    let base = Command::new("azure-cloud-controller-manager")
        .about(
            "Turns a cluster's Services into Azure load balancers and its machines into initialised nodes.",
        )
        .args_override_self(true)
        .disable_version_flag(true);
    Flags::augment_args(base).args(accepted)
}

/// The part of clap's message that says what is wrong, without usage and tips.
fn one_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let paragraph: Vec<&str> =
        text.lines().take_while(|line| !line.trim().is_empty()).map(str::trim).collect();
    let sentence = paragraph.join(" ");
    format!("{}; --help lists the flags", sentence.strip_prefix("error: ").unwrap_or(&sentence))
}

impl CommandLine {
    /// Everything that is wrong with the values, each with its remedy; empty where all is well.
    pub fn problems(&self) -> Vec<String> {
        let flags = &self.flags;
        let was_given = |name: &str| self.given.iter().any(|given| given == name);
        let mut problems = Vec::new();
        if flags.cloud_provider.is_empty() {
            problems.push("--cloud-provider cannot be empty; leave it out or set it to azure".to_owned());
        }
        if flags.cloud_config.is_empty() {
            problems.push("--cloud-config cannot be empty; name the file that holds azure.json".to_owned());
        }
        if flags.concurrent_service_syncs != 1 {
            problems.push(format!(
                "--concurrent-service-syncs is limited to 1 only, not {}; Services are grouped into one write anyway",
                flags.concurrent_service_syncs
            ));
        }
        if flags.leader_elect && flags.leader_elect_resource_lock != "leases" {
            problems.push(format!(
                "--leader-elect-resource-lock: resourceLock value must be \"leases\", not {:?}",
                flags.leader_elect_resource_lock
            ));
        }
        if flags.leader_elect && flags.leader_elect_lease_duration <= flags.leader_elect_renew_deadline {
            problems.push(
                "--leader-elect-lease-duration must be longer than --leader-elect-renew-deadline".to_owned(),
            );
        }
        if flags.leader_elect
            && flags.leader_elect_renew_deadline <= flags.leader_elect_retry_period.mul_f64(1.2)
        {
            problems.push(
                "--leader-elect-renew-deadline must be longer than 1.2 times --leader-elect-retry-period"
                    .to_owned(),
            );
        }
        if flags.tls_cert_file.is_empty() != flags.tls_private_key_file.is_empty() {
            problems.push("--tls-cert-file and --tls-private-key-file must be given together".to_owned());
        }
        for entry in &flags.controllers {
            let name = entry.strip_prefix('-').unwrap_or(entry);
            if name != "*"
                && !CONTROLLERS.iter().any(|(canonical, alias)| name == *canonical || name == *alias)
            {
                let known: Vec<&str> = CONTROLLERS.iter().map(|(canonical, _)| *canonical).collect();
                problems.push(format!(
                    "--controllers: {name:?} is not in the list of known controllers: {}",
                    known.join(", ")
                ));
            }
        }
        if flags.enable_dynamic_reloading {
            problems.push("--enable-dynamic-reloading is not supported by this release; set it to false and restart the program after a change".to_owned());
        }
        if flags.allocate_node_cidrs && self.enabled("node-ipam") {
            problems.push("--allocate-node-cidrs is not supported by this release; set it to false and let another controller allocate pod ranges".to_owned());
        }
        if flags.configure_cloud_routes
            && (was_given("configure-cloud-routes") || !flags.cluster_cidr.is_empty())
            && self.enabled("node-route-controller")
        {
            problems.push("--configure-cloud-routes is not supported by this release; set it to false (or add -route to --controllers) where pods do not need Azure routes".to_owned());
        }
        problems
    }

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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str]) -> Result<CommandLine, Instead> {
        parse(std::iter::once("ccm").chain(arguments.iter().copied()).map(Into::into))
    }

    fn good(arguments: &[&str]) -> CommandLine {
        read(arguments).unwrap_or_else(|instead| panic!("{arguments:?}: {instead:?}"))
    }

    #[test]
    fn flags_are_taken_in_all_of_gos_spellings() {
        let line = good(&[
            "--cloud-config",
            "a.json",
            "--cluster-name=x",
            "--leader-elect=false",
            "--v=4",
            "--dry-run",
        ]);
        assert_eq!(line.flags.cloud_config, "a.json");
        assert_eq!(line.flags.cluster_name, "x");
        assert!(!line.flags.leader_elect && line.flags.dry_run);
        assert_eq!(line.flags.verbosity, 4);
        assert_eq!(good(&["-v=2"]).flags.verbosity, 2);
        assert_eq!(good(&["-v", "3"]).flags.verbosity, 3);
        assert_eq!(
            good(&["--cluster-name=a", "--cluster-name=b"]).flags.cluster_name,
            "b",
            "the last one wins"
        );
    }

    #[test]
    fn defaults_are_those_of_the_program_that_this_one_replaces() {
        let flags = good(&[]).flags;
        assert_eq!(flags.cluster_name, "kubernetes");
        assert_eq!(flags.secure_port, 10258);
        assert_eq!(flags.leader_elect_lease_duration, Duration::from_secs(15));
        assert_eq!(flags.leader_elect_resource_name, "cloud-controller-manager");
        assert_eq!(flags.node_status_update_frequency, Duration::from_secs(300));
        assert!(flags.leader_elect && flags.configure_cloud_routes && !flags.allocate_node_cidrs);
    }

    #[test]
    fn every_flag_of_the_usual_chart_is_accepted() {
        let line = good(&[
            "--allocate-node-cidrs=false",
            "--cloud-config=/etc/kubernetes/azure.json",
            "--cloud-provider=azure",
            "--cluster-cidr=10.244.0.0/16",
            "--cluster-name=k",
            "--configure-cloud-routes=false",
            "--controllers=*,-cloud-node",
            "--leader-elect=true",
            "--route-reconciliation-period=10s",
            "--secure-port=10268",
            "--bind-address=127.0.0.1",
            "--v=2",
            "--profiling",
            "--feature-gates=A=true",
            "--kube-api-qps=50",
            "--use-service-account-credentials=true",
            "--tls-cipher-suites=TLS_A,TLS_B",
        ]);
        assert_eq!(line.problems(), Vec::<String>::new());
        assert!(!line.enabled("cloud-node-controller") && line.enabled("service-lb-controller"));
        assert_eq!(line.without_effect.len(), 6, "{:?}", line.without_effect);
    }

    #[test]
    fn what_is_wrong_is_said_in_one_line() {
        for (arguments, word) in [
            (&["--no-such-flag"][..], "--no-such-flag"),
            (&["--leader-elect-lease-duration=10"], "is no duration"),
            (&["--leader-elect=maybe"], "neither true nor false"),
            (&["--secure-port=70000"], "70000"),
            (&["stray"], "stray"),
        ] {
            let Err(Instead::Refuse(text)) = read(arguments) else { panic!("{arguments:?} was taken") };
            assert!(text.contains(word) && !text.contains('\n'), "{text}");
        }
        assert!(matches!(read(&["--help"]), Err(Instead::Print(text)) if text.contains("--cloud-config")));
    }

    #[test]
    fn what_this_release_does_not_do_is_refused_with_a_remedy() {
        for (arguments, word) in [
            (&["--allocate-node-cidrs=true"][..], "--allocate-node-cidrs"),
            (&["--configure-cloud-routes=true"], "--configure-cloud-routes"),
            (&["--cluster-cidr=10.0.0.0/8"], "--configure-cloud-routes"),
            (&["--enable-dynamic-reloading"], "restart the program"),
            (&["--concurrent-service-syncs=5"], "limited to 1 only"),
            (&["--leader-elect-resource-lock=endpoints"], "must be \"leases\""),
            (&["--leader-elect-lease-duration=5s"], "must be longer than"),
            (&["--controllers=nonsense"], "known controllers"),
            (&["--tls-cert-file=x"], "given together"),
        ] {
            let mut all = vec!["--cloud-config=x"];
            all.extend(arguments);
            let problems = good(&all).problems();
            assert!(problems.len() == 1 && problems[0].contains(word), "{arguments:?}: {problems:?}");
        }
        assert_eq!(good(&["--cloud-config=x"]).problems(), Vec::<String>::new(), "the defaults are fine");
        let without = [
            "--cloud-config=x",
            "--controllers=*,-route,-node-ipam",
            "--cluster-cidr=10.0.0.0/8",
            "--allocate-node-cidrs",
        ];
        assert_eq!(good(&without).problems(), Vec::<String>::new());
    }

    #[test]
    fn the_first_entry_that_names_a_controller_decides() {
        assert!(!good(&["--controllers=-service,service"]).enabled("service-lb-controller"));
        assert!(!good(&["--controllers=cloud-node"]).enabled("service-lb-controller"));
        assert!(good(&["--controllers=cloud-node"]).enabled("cloud-node-controller"));
    }
}
