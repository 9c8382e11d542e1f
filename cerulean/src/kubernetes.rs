//! The connection to a cluster, found as kubectl finds it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use cloud_controller_manager::environment::ProcessEnvironment;
use cloud_controller_manager::kubeconfig::{self, Route};
use kube::Client;
use kube::config::Kubeconfig;
use simulated_cluster::manifests::describe_api_error;

/// The time limit for the API server to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The time limit for any response.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// Which cluster.
#[derive(Debug, clap::Args)]
pub struct ClusterArguments {
    /// The kubeconfig of the cluster; otherwise $KUBECONFIG or ~/.kube/config.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig to use instead of its current one.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// A cluster with a connection.
pub struct Cluster {
    /// The client.
    pub client: Client,
    /// The namespace of the context.
    pub namespace: String,
    /// How the API server is reached.
    route: Route,
}

impl ClusterArguments {
    /// The current context of a kubeconfig.
    pub fn of_file(kubeconfig: &Path) -> Self {
        Self { kubeconfig: Some(kubeconfig.to_owned()), context: None }
    }

    /// Whether a cluster is named.
    pub fn is_given(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some()
    }

    /// Reads the kubeconfig; nothing is sent yet.
    ///
    /// # Errors
    /// There is no kubeconfig, or it cannot be used.
    pub async fn connect(&self) -> anyhow::Result<Cluster> {
        let environment = ProcessEnvironment::of_this_process();
        let (named, file) = match &self.kubeconfig {
            Some(path) => {
                let named = format!("--kubeconfig {}", path.display());
                std::fs::metadata(path).with_context(|| named.clone())?;
                (named.clone(), Kubeconfig::read_from(path).context(named)?)
            }
            None => {
                let named = match environment.variable("KUBECONFIG") {
                    Some(files) => format!("KUBECONFIG={files}"),
                    None => "~/.kube/config".to_owned(),
                };
                let none = || format!("{named}: no usable kubeconfig; name one with --kubeconfig");
                (named.clone(), Kubeconfig::read().with_context(none)?)
            }
        };
        let mut config = kubeconfig::config_of(self.in_context(file, &named)?).context(named)?;
        let route = kubeconfig::apply_proxy(&mut config, &environment.proxy()?)?;
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        config.read_timeout = Some(READ_TIMEOUT);
        let namespace = config.default_namespace.clone();
        let client = Client::try_from(config).context("the Kubernetes client cannot be set up")?;
        Ok(Cluster { client, namespace, route })
    }

    /// The kubeconfig with the requested context as its current one.
    fn in_context(&self, mut file: Kubeconfig, named: &str) -> anyhow::Result<Kubeconfig> {
        if let Some(context) = &self.context {
            let names: Vec<&str> = file.contexts.iter().map(|context| context.name.as_str()).collect();
            if !names.contains(&context.as_str()) {
                let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                bail!("--context {context}: {named} has no such context; it has: {names}");
            }
            file.current_context = Some(context.clone());
        }
        Ok(file)
    }
}

impl Cluster {
    #[cfg(test)]
    pub fn new(client: Client, namespace: &str) -> Self {
        Self { client, namespace: namespace.to_owned(), route: Route::default() }
    }

    /// Describes an error of the API: the server, the request and the answer.
    pub fn failed(&self, what: &str, error: &kube::Error) -> anyhow::Error {
        let route = &self.route;
        let said = describe_api_error(error);
        match error {
            kube::Error::Api(status) if status.code == 401 => anyhow!(
                "{what}: the Kubernetes API at {route} does not know the credentials of the kubeconfig: {said}"
            ),
            kube::Error::Api(_) => anyhow!("{what}: {said}"),
            _ => anyhow!("{what}: {}: {said}", route.failed("does not answer")),
        }
    }
}
