//! Clients of API servers on this machine.

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::files::HostError;

/// A client of the API server that this kubeconfig, YAML, leads to on this machine.
///
/// # Errors
/// The kubeconfig is invalid.
pub async fn client_of(kubeconfig: &str) -> Result<Client, HostError> {
    let failed = |error: &dyn std::fmt::Display| HostError::Kubernetes(error.to_string());
    let file = Kubeconfig::from_yaml(kubeconfig).map_err(|error| failed(&error))?;
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .map_err(|error| failed(&error))?;
    // It runs on this machine, whatever proxy the environment names.
    config.proxy_url = None;
    Client::try_from(config).map_err(|error| failed(&error))
}
