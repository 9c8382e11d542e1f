//! `cerulean simulate kubernetes`: Kubernetes alone.

use std::path::PathBuf;

use clap::Args;
use clock::Clock;
use kubernetes_simulator::Token;
use simulated_cluster::{HostedKubernetes, HostedKubernetesOptions};

use super::folder::Folder;
use super::input;
use crate::screen::Screen;
use crate::signals;

/// How to simulate Kubernetes alone.
#[derive(Debug, Args)]
pub struct KubernetesArguments {
    /// Where the kubeconfig goes; the certificate authority is kept there over restarts.
    #[arg(long, default_value = "cerulean-kubernetes")]
    directory: PathBuf,
    /// The port of the API; 0 for any.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Let Services have IPv6 addresses beside IPv4 ones.
    #[arg(long)]
    dual_stack: bool,
    /// The bearer token of the kubeconfig, instead of a random one. It is not kept: a start without this option has
    /// the random one again, which the folder keeps over restarts.
    #[arg(long, value_name = "TEXT", value_parser = input::secret)]
    token: Option<Token>,
    /// Source of every UID, address and port.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Serves it until told to stop.
///
/// # Errors
/// A listener, file or certificate that cannot be had.
pub async fn run(screen: Screen, arguments: KubernetesArguments) -> anyhow::Result<()> {
    let KubernetesArguments { directory, port, dual_stack, token, seed } = arguments;
    let stop = signals::stop_token()?;
    let folder = Folder::take(&directory)?;
    let directory = folder.path().to_owned();
    let now = Clock::system().now();
    let options = HostedKubernetesOptions { seed, directory, port, dual_stack, token, now };
    let hosted = HostedKubernetes::start(options, &stop).await?;
    screen.line(format_args!("Kubernetes API  {}", hosted.url));
    screen.line("");
    screen.line("Use it:");
    screen.line(format_args!("  export KUBECONFIG={}", hosted.kubeconfig.display()));
    screen.line("  kubectl get namespaces");
    screen.line("");
    screen.line("Stop with Ctrl-C.");
    stop.cancelled().await;
    Ok(())
}
