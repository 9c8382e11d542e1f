//! `cerulean simulate azure`: Azure alone.

use std::path::PathBuf;

use anyhow::Context as _;
use azure_simulator::{Actor, Consistency, Fault, LatencyProfile, Options};
use clap::Args;
use clock::Clock;
use kubernetes_simulator::Token;
use simulated_cluster::{HostedAzure, HostedAzureOptions, Shape};

use super::folder::Folder;
use super::limits::Limits;
use super::ports::Ports;
use super::state_file::StateFile;
use super::{input, latency, limits};
use crate::screen::Screen;
use crate::signals;

/// How to simulate Azure alone.
#[derive(Debug, Args)]
pub struct AzureArguments {
    /// The port for plain HTTP; 0 for any. By default the previous one, if it is free.
    #[arg(long)]
    port: Option<u16>,
    /// The port for HTTPS; 0 for any. By default the previous one, if it is free.
    #[arg(long)]
    https_port: Option<u16>,
    /// The port of the authority (Entra), over HTTPS; 0 for any. By default the previous one, if it is free.
    #[arg(long)]
    authority_port: Option<u16>,
    /// The port of the proxy that leads programs to all of Azure's own names; 0 for any. By default the previous one,
    /// if it is free.
    #[arg(long)]
    proxy_port: Option<u16>,
    /// Serve machines' metadata only there, such as 127.0.0.1:8445, or 169.254.169.254:80 inside a network
    /// namespace.
    #[arg(long, value_name = "ADDRESS:PORT")]
    metadata: Option<std::net::SocketAddr>,
    /// Where ca.pem and credentials.json go; the certificate authority is kept there over restarts.
    #[arg(long, default_value = "cerulean-azure")]
    directory: PathBuf,
    /// The secret to sign in with, instead of a random one. It is not kept: a start without this option has the
    /// random one again, which the folder keeps over restarts.
    #[arg(long, value_name = "TEXT", value_parser = input::secret)]
    client_secret: Option<Token>,
    /// Accept any bearer token, and requests without one.
    #[arg(long)]
    without_tokens: bool,
    /// How long operations take: instant, quick, typical or a JSON file.
    #[arg(long, default_value = "instant", value_parser = latency::parse)]
    latency: LatencyProfile,
    /// A JSON file with faults that are in force from the start.
    #[arg(long, value_name = "FILE", value_parser = input::one_or_many::<Fault>)]
    faults: Option<std::vec::Vec<Fault>>,
    /// A JSON file with actors: policies, operators, autoscalers and the like in addition to the clients.
    #[arg(long, value_name = "FILE", value_parser = input::one_or_many::<Actor>)]
    actors: Option<std::vec::Vec<Actor>>,
    /// Let reads lag behind writes by up to this many milliseconds, as Azure's caches do.
    #[arg(long, value_name = "MS", default_value_t = 0)]
    lag: u64,
    /// A limit that is not Azure's, as name=value, or a JSON file with an object of such; repeatable.
    #[arg(long, value_name = "LIMIT", value_parser = limits::parse)]
    limits: Vec<Limits>,
    /// Restore the state from this file if it exists, and save it there at the end.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Write every exchange with Resource Manager into this file, a JSON line each, without tokens and secrets.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Do not throttle.
    #[arg(long)]
    without_budgets: bool,
    /// Enforce role assignments: refuse what no assigned role allows. The application of the credentials is Owner.
    #[arg(long)]
    enforce_authorization: bool,
    /// Refuse api-versions that the simulated types do not list, as Azure does.
    #[arg(long)]
    strict_api_versions: bool,
    /// The region that answers for the subscription, such as westeurope.
    #[arg(long, default_value = "westeurope", value_parser = region)]
    region: String,
    /// The region's zones; none for `--zones=`.
    #[arg(long, value_delimiter = ',', default_value = "1,2,3", value_parser = zone)]
    zones: Vec<String>,
    /// The subscription, and further ones after commas.
    #[arg(long, value_delimiter = ',', value_parser = subscription)]
    subscriptions: Vec<String>,
    /// Most items of one page of a list of machines or scale set instances.
    #[arg(long, default_value_t = 100, value_parser = input::at_least_one)]
    page_size: usize,
    /// Source of every id and address.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many threads serve it.
    #[arg(long, default_value_t = 2, value_parser = input::at_least_one)]
    threads: usize,
    /// Write the URL of plain HTTP into this file once it answers.
    #[arg(long)]
    address_file: Option<PathBuf>,
}

impl AzureArguments {
    /// How many threads serve it.
    pub fn threads(&self) -> usize {
        self.threads
    }

    fn options(&self) -> Options {
        let mut options = Options {
            seed: self.seed,
            region: self.region.clone(),
            region_display_name: azure_simulator::region_display_name(&self.region).to_owned(),
            zones: self.zones.iter().filter(|zone| !zone.is_empty()).cloned().collect(),
            latency: self.latency.clone(),
            faults: self.faults.clone().unwrap_or_default(),
            actors: self.actors.clone().unwrap_or_default(),
            consistency: Consistency { reads_ms: self.lag, lists_ms: self.lag, ..Consistency::default() },
            limits: self.limits.iter().flatten().map(|(name, value)| (name.clone(), *value)).collect(),
            page_size: self.page_size,
            strict_api_versions: self.strict_api_versions,
            enforce_authorization: self.enforce_authorization,
            tenant: Shape::default().tenant,
            start: Clock::system().now(),
            ..Options::default()
        };
        if self.without_budgets {
            options.budgets = None;
        }
        // By default it is the subscription of only zeros, as in examples.
        if let Some((first, more)) = self.subscriptions.split_first() {
            options.subscription.clone_from(first);
            options.more_subscriptions = more.to_vec();
        }
        options
    }
}

/// A region by its name, such as `westeurope`.
///
/// # Errors
/// Azure has no such region; names the one that was probably meant.
pub fn region(text: &str) -> Result<String, String> {
    if azure_simulator::region_names().any(|name| name == text) {
        return Ok(text.to_owned());
    }
    let written: String = text.to_ascii_lowercase().split_whitespace().collect();
    let distance = |name: &&str| strsim::osa_distance(&written, name);
    let nearest = azure_simulator::region_names().min_by_key(distance).filter(|name| distance(name) <= 2);
    Err(match nearest {
        Some(name) => format!("Azure has no region of this name; did you mean {name}?"),
        None => "Azure has no region of this name; names are written like westeurope or eastus2".to_owned(),
    })
}

/// An empty text stands for no zones at all.
fn zone(text: &str) -> Result<String, String> {
    let fits = text.bytes().all(|byte| byte.is_ascii_digit());
    fits.then(|| text.to_owned()).ok_or_else(|| "zones are numbers, such as 1,2,3".to_owned())
}

fn subscription(text: &str) -> Result<String, String> {
    let parts: Vec<usize> = text.split('-').map(str::len).collect();
    let fits = parts == [8, 4, 4, 4, 12] && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
    fits.then(|| text.to_owned())
        .ok_or_else(|| "must be a GUID, such as 00000000-0000-0000-0000-000000000000".to_owned())
}

/// Serves it until it is stopped.
///
/// # Errors
/// A listener, file or certificate cannot be opened.
pub async fn run(screen: Screen, arguments: AzureArguments) -> anyhow::Result<()> {
    let stop = signals::stop_token()?;
    let folder = Folder::take(&arguments.directory)?;
    let state = arguments.state.as_deref().map(StateFile::at).transpose()?;
    let ports = Ports::of(&folder)?;
    let shape = Shape::default();
    let hosted = HostedAzure::start(
        HostedAzureOptions {
            azure: arguments.options(),
            client_id: shape.client_id,
            object_id: shape.object_id,
            client_secret: arguments.client_secret.clone(),
            directory: folder.path().to_owned(),
            port: ports.choose("port", arguments.port),
            https_port: ports.choose("https-port", arguments.https_port),
            authority_port: ports.choose("authority-port", arguments.authority_port),
            proxy_port: ports.choose("proxy-port", arguments.proxy_port),
            metadata: arguments.metadata,
            check_tokens: !arguments.without_tokens,
            record: arguments.record.clone(),
        },
        &stop,
    )
    .await?;
    ports.keep(&[
        ("port", &hosted.http),
        ("https-port", &hosted.https),
        ("authority-port", &hosted.authority),
        ("proxy-port", &hosted.proxy),
    ])?;
    if let Some(state) = &state
        && let Some(saved) = state.read()?
    {
        hosted.azure.restore(saved).with_context(|| state.remedy())?;
    }
    if let Some(path) = &arguments.address_file {
        std::fs::write(path, format!("{}\n", hosted.http)).with_context(|| path.display().to_string())?;
    }
    screen.line(format_args!("HTTPS, with Entra       {}", hosted.https));
    screen.line(format_args!("authority               {}", hosted.authority));
    screen.line(format_args!("plain HTTP              {}", hosted.http));
    screen.line(format_args!("proxy for Azure's names {}", hosted.proxy));
    if let Some(metadata) = &hosted.metadata {
        screen.line(format_args!("metadata of machines    {metadata}"));
    }
    screen.line(format_args!("page                    {}{}", hosted.http, azure_simulator::page::PATH));
    screen.line(format_args!("certificate authority   {}", hosted.certificate_authority.display()));
    screen.line(format_args!("credentials             {}", hosted.credentials.display()));
    screen.line("Stop with Ctrl-C.");
    stop.cancelled().await;
    match &state {
        Some(state) => state.write(&hosted.azure.save()?),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_azures_and_misspelt_ones_are_corrected() {
        assert_eq!(region("swedencentral").unwrap(), "swedencentral");
        assert_eq!(region("usgovvirginia").unwrap(), "usgovvirginia");
        for (written, meant) in
            [("West Europe", "westeurope"), ("westeurop", "westeurope"), ("EastUS2", "eastus2")]
        {
            let problem = region(written).unwrap_err();
            assert!(problem.ends_with(&format!("did you mean {meant}?")), "{written}: {problem}");
        }
        assert!(region("atlantis").unwrap_err().contains("no region"));
    }
}
