//! The options of the simulated Azure, which are the same for all commands that start one.

use std::path::{Path, PathBuf};

use azure_simulator::{Actor, Consistency, Fault, LatencyProfile, Options};
use clap::Args;
use clock::Clock;
use kubernetes_simulator::Token;
use simulated_cluster::{HostedAzure, HostedAzureOptions, Shape};

use super::limits::{self, Limits};
use super::ports::Ports;
use super::{input, latency, region};

/// Options of the simulated Azure.
#[derive(Debug, Args)]
#[command(next_help_heading = "Simulated Azure")]
pub struct AzureOptions {
    /// Port of plain HTTP: the page, the control API, Resource Manager and machines' metadata. 0 is any free port; by
    /// default it is the previous port, if that is free.
    #[arg(long)]
    port: Option<u16>,
    /// Port of Azure Resource Manager, over HTTPS. 0 and the default are as for --port.
    #[arg(long)]
    https_port: Option<u16>,
    /// Port of the authority (Entra), over HTTPS. 0 and the default are as for --port.
    #[arg(long)]
    authority_port: Option<u16>,
    /// Port of the proxy that leads programs to all of Azure's own names. 0 and the default are as for --port.
    #[arg(long)]
    proxy_port: Option<u16>,
    /// Serve machines' metadata there, too, such as at 127.0.0.1:8445, or at 169.254.169.254:80 in a network namespace.
    /// The port of plain HTTP serves it in any case, below /instances/NAME.
    #[arg(long, value_name = "ADDRESS:PORT")]
    metadata: Option<std::net::SocketAddr>,
    /// Client secret of the application, instead of a random one. It is not kept: a start without this option uses the
    /// random one again, which the folder keeps over restarts.
    #[arg(long, value_name = "TEXT", value_parser = input::secret)]
    client_secret: Option<Token>,
    /// Region that answers for the subscription, such as westeurope.
    #[arg(long, default_value = "westeurope", value_parser = region::parse)]
    region: String,
    /// Zones of the region; --zones= is a region without zones.
    #[arg(long, value_delimiter = ',', default_value = "1,2,3", value_parser = region::zone)]
    zones: Vec<String>,
    /// Duration of Azure's operations: instant, quick (0.8 s for networks), typical or a JSON file.
    #[arg(long, default_value = "instant", value_parser = latency::parse)]
    latency: LatencyProfile,
    /// Milliseconds by which reads lag behind writes at most, as in Azure's caches.
    #[arg(long, value_name = "MS", default_value_t = 0)]
    lag: u64,
    /// JSON file with faults that are in force from the start.
    #[arg(long, value_name = "FILE", value_parser = input::one_or_many::<Fault>)]
    faults: Option<std::vec::Vec<Fault>>,
    /// JSON file with actors: policies, operators, autoscalers and the like in addition to the clients.
    #[arg(long, value_name = "FILE", value_parser = input::one_or_many::<Actor>)]
    actors: Option<std::vec::Vec<Actor>>,
    /// Limit that differs from Azure's, as name=value, or a JSON file with an object of such limits; repeatable.
    #[arg(long, value_name = "LIMIT", value_parser = limits::parse)]
    limits: Vec<Limits>,
    /// Do not throttle.
    #[arg(long)]
    without_budgets: bool,
    /// Enforce role assignments: refuse requests that no assigned role allows. The application of the credentials is
    /// Owner.
    #[arg(long)]
    enforce_authorization: bool,
    /// Refuse api-versions that the simulated types do not list, as Azure does.
    #[arg(long)]
    strict_api_versions: bool,
    /// Maximum number of items on a page of a list of machines or scale set instances.
    #[arg(long, default_value_t = 100, value_parser = input::at_least_one)]
    page_size: usize,
    /// Write every exchange with Resource Manager to this file, a JSON line each, without tokens and secrets.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Source of all random values, such as ids and addresses.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl AzureOptions {
    /// The options by which clients find the servers, with the URLs of a started Azure.
    pub fn urls(azure: &HostedAzure) -> [(&'static str, &str); 4] {
        [
            ("port", &azure.http),
            ("https-port", &azure.https),
            ("authority-port", &azure.authority),
            ("proxy-port", &azure.proxy),
        ]
    }

    /// The ports that were chosen on the command line, by their options.
    pub fn chosen_ports(&self) -> [(&'static str, Option<u16>); 4] {
        [
            ("port", self.port),
            ("https-port", self.https_port),
            ("authority-port", self.authority_port),
            ("proxy-port", self.proxy_port),
        ]
    }

    /// The region.
    pub fn region(&self) -> &str {
        &self.region
    }

    /// The zones of the region.
    pub fn zones(&self) -> Vec<String> {
        self.zones.iter().filter(|zone| !zone.is_empty()).cloned().collect()
    }

    /// An Azure with the subscription, tenant and application of a shape, at the previous ports of its folder. Limits
    /// of the command line come before the given ones.
    pub fn hosted(
        &self,
        shape: &Shape,
        limits: Limits,
        directory: &Path,
        ports: &Ports,
    ) -> HostedAzureOptions {
        let azure = Options {
            seed: self.seed,
            zones: self.zones(),
            latency: self.latency.clone(),
            faults: self.faults.clone().unwrap_or_default(),
            actors: self.actors.clone().unwrap_or_default(),
            consistency: Consistency { reads_ms: self.lag, lists_ms: self.lag, ..Consistency::default() },
            limits: limits
                .into_iter()
                .chain(self.limits.iter().flatten().map(|(name, limit)| (name.clone(), *limit)))
                .collect(),
            budgets: if self.without_budgets { None } else { Options::default().budgets },
            page_size: self.page_size,
            strict_api_versions: self.strict_api_versions,
            enforce_authorization: self.enforce_authorization,
            start: Clock::system().now(),
            ..Options::default()
        };
        let [port, https_port, authority_port, proxy_port] =
            self.chosen_ports().map(|(option, chosen)| ports.choose(option, chosen));
        HostedAzureOptions {
            client_secret: self.client_secret.clone(),
            port,
            https_port,
            authority_port,
            proxy_port,
            metadata: self.metadata,
            record: self.record.clone(),
            ..HostedAzureOptions::of(shape, azure, directory)
        }
    }
}
