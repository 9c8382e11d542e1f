//! `cerulean simulate kubernetes`: Kubernetes alone.

use std::path::PathBuf;

use clap::Args;
use clock::Clock;
use kubernetes_simulator::{Fault, Token};
use simulated_cluster::{HostError, HostedKubernetes, HostedKubernetesOptions};

use super::folder::Folder;
use super::input;
use super::ports::Ports;
use super::state_file::StateFile;
use crate::screen::Screen;
use crate::signals;

/// How to simulate Kubernetes alone.
#[derive(Debug, Args)]
pub struct KubernetesArguments {
    /// Folder of the kubeconfig; it keeps the certificate authority over restarts.
    #[arg(long, default_value = "cerulean-kubernetes")]
    directory: PathBuf,
    /// Port of the API. 0 is any free port; by default it is the previous port, if that is free.
    #[arg(long)]
    port: Option<u16>,
    /// Port of the control API, over plain HTTP. 0 and the default are as for --port.
    #[arg(long)]
    control_port: Option<u16>,
    /// JSON file with faults that are in force from the start.
    #[arg(long, value_name = "FILE", value_parser = input::one_or_many::<Fault>)]
    faults: Option<std::vec::Vec<Fault>>,
    /// Restore the state from this file if it exists, and save it there at the end. It holds Secrets.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Let Services have IPv6 addresses in addition to IPv4 ones.
    #[arg(long)]
    dual_stack: bool,
    /// Bearer token in the kubeconfig, instead of a random one. It is not kept: a start without this option uses the
    /// random one again, which the folder keeps over restarts.
    #[arg(long, value_name = "TEXT", value_parser = input::secret)]
    token: Option<Token>,
    /// Source of all random values, such as UIDs, addresses and ports.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of threads that serve it.
    #[arg(long, default_value_t = 2, value_parser = input::at_least_one)]
    threads: usize,
}

impl KubernetesArguments {
    /// How many threads serve it.
    pub fn threads(&self) -> usize {
        self.threads
    }
}

/// Serves it until it is stopped.
///
/// # Errors
/// A listener, file or certificate cannot be opened.
pub async fn run(screen: Screen, arguments: KubernetesArguments) -> anyhow::Result<()> {
    let stop = signals::stop_token()?;
    let folder = Folder::take(&arguments.directory)?;
    let state = arguments.state.as_deref().map(StateFile::at).transpose()?;
    let ports = Ports::of(&folder)?;
    let options = HostedKubernetesOptions {
        seed: arguments.seed,
        directory: folder.path().to_owned(),
        port: ports.choose("port", arguments.port),
        dual_stack: arguments.dual_stack,
        token: arguments.token,
        now: Clock::system().now(),
        control_port: ports.choose("control-port", arguments.control_port),
        faults: arguments.faults.unwrap_or_default(),
        state: state.as_ref().map(StateFile::read).transpose()?.flatten(),
    };
    let hosted = HostedKubernetes::start(options, &stop).await.map_err(|error| match (&error, &state) {
        (HostError::State(_), Some(state)) => anyhow::Error::from(error).context(state.remedy()),
        _ => error.into(),
    })?;
    ports.keep(&[("port", &hosted.url), ("control-port", &hosted.control)])?;
    hosted.spawn_stand_ins(&stop).await?;
    screen.line(format_args!("Kubernetes API  {}", hosted.url));
    screen.line(format_args!("control API     {}/_cerulean/", hosted.control));
    screen.line("");
    screen.line("Use it:");
    screen.line(format_args!("  export KUBECONFIG={}", hosted.kubeconfig.display()));
    screen.line("  kubectl get namespaces");
    screen.line("");
    screen.line("Stop with Ctrl-C.");
    stop.cancelled().await;
    match &state {
        Some(state) => state.write(&hosted.kubernetes.save()),
        None => Ok(()),
    }
}
