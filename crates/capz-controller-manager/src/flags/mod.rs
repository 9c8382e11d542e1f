//! The command line: every flag of the program that this one replaces, with the same spelling and syntax.
//!
//! Flags without an effect here stay accepted; they are in the table of `accepted`, each with the reason.

mod accepted;
mod problems;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use capz::{Concurrency, Endpoints, Gates, Settings, Timeouts};
use clap::builder::ArgAction;
use clap::{Args as _, Command, FromArgMatches as _};
use command_line::{EarlyExit, Problem, describe};
use controllers::leader_election;
use program::environment::ProcessEnvironment;
use program::go_values::{duration, listen_address, truth};
use telemetry::tls::{Certificate, Suites, TlsOptions};

use accepted::ACCEPTED;

/// The Lease for leader election, which replicas of the replaced program use as well.
const LEASE: &str = "controller-leader-election-capz";

/// Leaves out the Secrets for Azure Service Operator.
const DISABLE_ASO_SECRETS: &str = "DisableASOSecretController";
/// Leaves out the Secrets with azure.json of machines without a template.
const DISABLE_MACHINE_SECRETS: &str = "DisableAzureJSONMachineController";

/// The output of the subcommand `migrate-aso-crds`.
pub const NOTHING_TO_MIGRATE: &str = "nothing to migrate: this program makes Azure's resources by itself, and no Azure \
                                      Service Operator stands beside it whose definitions could be outdated";

/// The flags that have an effect.
#[derive(Debug, Clone, PartialEq, clap::Args)]
#[command(next_help_heading = "Clusters")]
pub struct Flags {
    /// The only namespace whose objects are watched; all by default.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub namespace: String,
    /// The value that the label cluster.x-k8s.io/watch-filter of objects must have; any by default.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub watch_filter: String,
    /// Feature gates to turn on and off, such as EdgeZone=true,MachinePool=false.
    #[arg(long, value_delimiter = ',', action = ArgAction::Append)]
    pub feature_gates: Vec<String>,
    /// Controllers to disable: DisableASOSecretController, DisableAzureJSONMachineController.
    #[arg(long, value_delimiter = ',', action = ArgAction::Append)]
    pub disable_controllers_or_webhooks: Vec<String>,
    /// The kubeconfig of the Kubernetes API; by default KUBECONFIG, the pod's service account, or ~/.kube/config.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub kubeconfig: String,
    /// How many AzureClusters are reconciled at once.
    #[arg(help_heading = "Pace", long, default_value_t = 10)]
    pub azurecluster_concurrency: usize,
    /// How many AzureMachines are reconciled at once.
    #[arg(help_heading = "Pace", long, default_value_t = 10)]
    pub azuremachine_concurrency: usize,
    /// How many AzureMachinePools are reconciled at once.
    #[arg(help_heading = "Pace", long, default_value_t = 10)]
    pub azuremachinepool_concurrency: usize,
    /// How many AzureMachinePoolMachines are reconciled at once.
    #[arg(help_heading = "Pace", long, default_value_t = 10)]
    pub azuremachinepoolmachine_concurrency: usize,
    /// How long an object rests after it was found as desired.
    #[arg(help_heading = "Pace", long, default_value = "10s", value_parser = duration)]
    pub debouncing_timer: Duration,
    /// The interval at which all objects are reconciled if nothing happens.
    #[arg(help_heading = "Pace", long, default_value = "10m", value_parser = duration)]
    pub sync_period: Duration,
    /// The time limit of one reconcile; the next one resumes operations that run in Azure. 0 for the default.
    #[arg(help_heading = "Pace", long, default_value = "90m", value_parser = duration)]
    pub reconcile_timeout: Duration,
    /// The wait after a failure that names none.
    #[arg(help_heading = "Pace", long, default_value = "15s", value_parser = duration)]
    pub reconciler_requeue: Duration,
    /// Whether replicas use leader election. All replicas answer webhooks.
    #[arg(help_heading = "Leader election", long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub leader_elect: bool,
    /// The namespace of the Lease for leader election; by default their own.
    #[arg(help_heading = "Leader election", long, default_value = "", hide_default_value = true)]
    pub leader_election_namespace: String,
    /// How long others wait before they take over from a silent leader.
    #[arg(help_heading = "Leader election", long, default_value = "15s", value_parser = duration)]
    pub leader_elect_lease_duration: Duration,
    /// How long a leader tries to renew before it gives up.
    #[arg(help_heading = "Leader election", long, default_value = "10s", value_parser = duration)]
    pub leader_elect_renew_deadline: Duration,
    /// The interval between two attempts.
    #[arg(help_heading = "Leader election", long, default_value = "2s", value_parser = duration)]
    pub leader_elect_retry_period: Duration,
    /// The HTTPS port of webhooks; 0 for 9443.
    #[arg(help_heading = "Webhooks", long, default_value_t = 9443)]
    pub webhook_port: u16,
    /// The folder of tls.crt and tls.key, which are read again when they change.
    #[arg(help_heading = "Webhooks", long, default_value = "/tmp/k8s-webhook-server/serving-certs/")]
    pub webhook_cert_dir: PathBuf,
    /// The address of /healthz and /readyz, over HTTP; 0 for none.
    #[arg(help_heading = "Health checks and metrics", long, default_value = ":9440")]
    pub health_addr: String,
    /// The address of metrics, over HTTPS and for callers that the cluster authorizes; 0 for none.
    #[arg(help_heading = "Health checks and metrics", long, default_value = ":8443")]
    pub diagnostics_address: String,
    /// Whether metrics are served over HTTP, without authorization.
    #[arg(help_heading = "Health checks and metrics", long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub insecure_diagnostics: bool,
    /// The lowest version of TLS of webhooks and metrics: VersionTLS12 or VersionTLS13.
    #[arg(help_heading = "Health checks and metrics", long, default_value = "VersionTLS12")]
    pub tls_min_version: String,
    /// The cipher suites of TLS 1.2 of webhooks and metrics, by Go's names; all secure ones by default.
    #[arg(help_heading = "Health checks and metrics", long, value_delimiter = ',', action = ArgAction::Append)]
    pub tls_cipher_suites: Vec<String>,
    /// Whether traces are sent to a collector of OpenTelemetry, over gRPC: to opentelemetry-collector:4317, or to
    /// OTEL_EXPORTER_OTLP_ENDPOINT.
    #[arg(help_heading = "Traces", long, value_parser = truth, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    pub enable_tracing: bool,
    /// The form of log lines: text to standard error, or json to standard output.
    #[arg(help_heading = "Logging", long, value_parser = ["text", "json"], default_value = "text")]
    pub logging_format: String,
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
#[derive(Debug)]
pub enum Start {
    /// Run the manager.
    Manager(Box<CommandLine>),
    /// `--version`: print it and end.
    PrintVersion,
    /// `migrate-aso-crds`, which an init container of the replaced program runs.
    MigrateAsoCrds,
}

/// Parses a command line, which begins with the program's name.
///
/// # Errors
/// [`EarlyExit`], if help was requested. Invalid values are in [`CommandLine::problems`].
pub fn parse<I: IntoIterator<Item = OsString>>(arguments: I) -> Result<Start, EarlyExit> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if arguments.get(1).is_some_and(|first| first == "migrate-aso-crds") {
        return Ok(Start::MigrateAsoCrds);
    }
    if arguments.iter().any(|argument| argument == "--version" || argument == "--version=true") {
        return Ok(Start::PrintVersion);
    }
    let (matches, misread) = command_line::parse(&command(), arguments)?;
    let flags = Flags::from_arg_matches(&matches).map_err(|error| EarlyExit::Refuse(describe(&error)))?;
    Ok(Start::Manager(Box::new(CommandLine { flags, without_effect: ACCEPTED.set_by(&matches), misread })))
}

fn command() -> Command {
    let base = Command::new("capz-controller-manager").args_override_self(true).disable_version_flag(true);
    Flags::augment_args(base).args(ACCEPTED.arguments()).about(
        "Keeps clusters on Azure as Cluster API's objects declare them.\n\n\
         All flags of the program that it replaces are accepted. Below come first those that change something, then \
         those that do not, each group with the reason. The subcommand migrate-aso-crds does nothing; --version prints the version.",
    )
}

impl CommandLine {
    /// The settings of the controllers.
    pub fn settings(&self, environment: &ProcessEnvironment) -> Settings {
        let flags = &self.flags;
        let named = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let is_disabled =
            |name: &str| flags.disable_controllers_or_webhooks.iter().any(|entry| entry == name);
        let defaults = Settings::default();
        let token = environment.variable("AZURE_FEDERATED_TOKEN_FILE");
        Settings {
            namespace: named(&flags.namespace),
            watch_filter: named(&flags.watch_filter),
            concurrency: Concurrency {
                clusters: flags.azurecluster_concurrency.max(1),
                machines: flags.azuremachine_concurrency.max(1),
                pools: flags.azuremachinepool_concurrency.max(1),
                pool_machines: flags.azuremachinepoolmachine_concurrency.max(1),
            },
            debouncing: flags.debouncing_timer,
            sync_period: flags.sync_period,
            timeouts: Timeouts {
                reconcile: Some(flags.reconcile_timeout)
                    .filter(|limit| !limit.is_zero())
                    .unwrap_or(defaults.timeouts.reconcile),
                requeue: flags.reconciler_requeue,
            },
            // Validated before.
            gates: self.gates().unwrap_or_default(),
            machine_secrets: !is_disabled(DISABLE_MACHINE_SECRETS),
            aso_secrets: !is_disabled(DISABLE_ASO_SECRETS),
            // Secrets that were written with echo end with a line break.
            subscription: environment.variable("AZURE_SUBSCRIPTION_ID").and_then(|text| named(text.trim())),
            federated_token_file: token.map_or(defaults.federated_token_file, PathBuf::from),
            endpoints: Endpoints {
                authority_host: environment.variable("AZURE_AUTHORITY_HOST"),
                resource_manager: environment.variable("AZURE_RESOURCE_MANAGER_ENDPOINT"),
                audience: environment.variable("AZURE_RESOURCE_MANAGER_AUDIENCE"),
            },
        }
    }

    fn disabled(&self) -> impl Iterator<Item = &str> {
        let entries = self.flags.disable_controllers_or_webhooks.iter().map(String::as_str);
        entries.map(str::trim).filter(|entry| !entry.is_empty())
    }

    fn gates(&self) -> Result<Gates, capz::GateError> {
        Gates::parse(&self.flags.feature_gates.join(","), |value| truth(value).ok())
    }

    /// The configuration of leader election, for a process of this name in this namespace.
    pub fn election(&self, namespace: String, identity: String) -> leader_election::Config {
        let flags = &self.flags;
        leader_election::Config {
            namespace: match flags.leader_election_namespace.as_str() {
                "" => namespace,
                given => given.to_owned(),
            },
            name: LEASE.to_owned(),
            component: "capz-controller-manager",
            lease_duration: flags.leader_elect_lease_duration,
            renew_deadline: flags.leader_elect_renew_deadline,
            retry_period: flags.leader_elect_retry_period,
            ..leader_election::Config::new(identity)
        }
    }

    /// The TLS options of a listener.
    pub fn tls(&self, certificate: Certificate) -> TlsOptions {
        TlsOptions {
            certificate,
            only_tls13: self.flags.tls_min_version == "VersionTLS13",
            // Validated before.
            suites: self.suites().unwrap_or_default(),
            ..TlsOptions::default()
        }
    }

    fn suites(&self) -> Result<Suites, String> {
        let names = self.flags.tls_cipher_suites.iter().map(|name| name.trim());
        Suites::named(names.filter(|name| !name.is_empty()))
    }

    /// The address of health checks; `None` if they are not served.
    ///
    /// # Errors
    /// The address is invalid.
    pub fn health_address(&self) -> Result<Option<SocketAddr>, String> {
        listen_address(&self.flags.health_addr)
    }

    /// The address of metrics; `None` if they are not served.
    ///
    /// # Errors
    /// The address is invalid.
    pub fn diagnostics_address(&self) -> Result<Option<SocketAddr>, String> {
        listen_address(&self.flags.diagnostics_address)
    }

    /// The address of the webhooks.
    pub fn webhook_address(&self) -> SocketAddr {
        let port = if self.flags.webhook_port == 0 { 9443 } else { self.flags.webhook_port };
        SocketAddr::from((std::net::Ipv4Addr::UNSPECIFIED, port))
    }

    /// The kubeconfig, in the order of controller-runtime: the flag, the environment, the pod's service account (an
    /// empty path), the user's own.
    pub fn kubeconfig(&self, environment: &ProcessEnvironment) -> String {
        let flag = Some(self.flags.kubeconfig.clone()).filter(|path| !path.is_empty());
        let own = || {
            let home = PathBuf::from(environment.variable("HOME")?);
            let path = home.join(".kube/config");
            path.exists().then(|| path.to_string_lossy().into_owned())
        };
        let in_pod = environment.variable("KUBERNETES_SERVICE_HOST").is_some();
        flag.or_else(|| environment.variable("KUBECONFIG"))
            .or_else(|| if in_pod { None } else { own() })
            .unwrap_or_default()
    }
}
