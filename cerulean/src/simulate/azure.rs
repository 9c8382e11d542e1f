//! `cerulean simulate azure`: Azure alone.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use simulated_cluster::{HostedAzure, HostedAzureOptions, Shape};

use super::azure_options::AzureOptions;
use super::folder::Folder;
use super::input;
use super::limits::Limits;
use super::ports::{self, Ports};
use super::state_file::StateFile;
use crate::screen::Screen;
use crate::signals;

/// How to simulate Azure alone.
#[derive(Debug, Args)]
pub struct AzureArguments {
    /// Folder of ca.pem and credentials.json; it keeps the certificate authority over restarts.
    #[arg(long, default_value = "cerulean-azure")]
    directory: PathBuf,
    /// Accept any bearer token, and requests without one.
    #[arg(long)]
    without_tokens: bool,
    /// Restore the state from this file if it exists, and save it there at the end.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// IDs of the subscription and, after commas, of further ones; by default an ID of zeros, as in examples.
    #[arg(long, value_delimiter = ',', value_parser = subscription)]
    subscriptions: Vec<String>,
    /// Number of threads that serve it.
    #[arg(long, default_value_t = 2, value_parser = input::at_least_one)]
    threads: usize,
    /// Write the URL of plain HTTP to this file once it answers.
    #[arg(long)]
    address_file: Option<PathBuf>,
    #[command(flatten)]
    azure: AzureOptions,
}

impl AzureArguments {
    /// How many threads serve it.
    pub fn threads(&self) -> usize {
        self.threads
    }

    fn options(&self, folder: &Folder, ports: &Ports) -> HostedAzureOptions {
        let (subscription, more) = match self.subscriptions.split_first() {
            Some((first, more)) => (first.clone(), more.to_vec()),
            None => (azure_simulator::Options::default().subscription, Vec::new()),
        };
        let shape = Shape { subscription, region: self.azure.region().to_owned(), ..Shape::default() };
        let mut hosted = self.azure.hosted(&shape, Limits::default(), folder.path(), ports);
        hosted.azure.more_subscriptions = more;
        hosted.check_tokens = !self.without_tokens;
        hosted
    }
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
    let hosted = HostedAzure::start(arguments.options(&folder, &ports), &stop).await;
    let hosted = hosted.map_err(|error| ports::explain(error.into(), &arguments.azure.chosen_ports()))?;
    ports.keep(&AzureOptions::urls(&hosted))?;
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
