//! The established provider's manager, with its own definitions and webhooks.

use std::path::{Path, PathBuf};
use std::process::Command;

use simulated_cluster::WebhookServer;

use super::place::Place;
use crate::e2e::capz::objects::{create, read, read_all};
use crate::program::Program;
use crate::webhooks::{ports, served};

/// The labels of all its definitions.
const LABELS: [(&str, &str); 2] =
    [("cluster.x-k8s.io/provider", "infrastructure-azure"), ("cluster.x-k8s.io/v1beta1", "v1beta1")];

/// The manager as installed in a management cluster.
pub struct Provider {
    server: WebhookServer,
    program: PathBuf,
    sources: PathBuf,
    directory: PathBuf,
}

impl Provider {
    /// Applies its definitions, which are in the folder with its sources.
    ///
    /// # Errors
    /// There are no definitions, or the API server refuses them.
    pub async fn install(
        program: &Path,
        sources: &Path,
        directory: &Path,
        place: &Place,
    ) -> anyhow::Result<Self> {
        for mut definition in read_all(&sources.join("config/crd/bases"))? {
            for (label, value) in LABELS {
                definition["metadata"]["labels"][label] = value.into();
            }
            create(&place.client, &definition).await?;
        }
        let server = WebhookServer::new(directory.join("provider-webhooks"))?;
        let owned = Path::to_owned;
        Ok(Self { server, program: owned(program), sources: owned(sources), directory: owned(directory) })
    }

    /// Starts it as its manifest does, with shorter sync periods.
    ///
    /// # Errors
    /// It does not start.
    pub async fn start(&self, place: &Place) -> anyhow::Result<Program> {
        let arguments = ["--reconciler-requeue=2s", "--debouncing-timer=1s"];
        self.swap(&self.program, "provider", &arguments, place).await
    }

    /// Replaces the manager with another program, as a changed image in its Deployment would.
    ///
    /// # Errors
    /// It does not start.
    pub async fn swap(
        &self,
        program: &Path,
        name: &str,
        more: &[&str],
        place: &Place,
    ) -> anyhow::Result<Program> {
        let mut running = Program::start(
            name,
            &self.directory,
            Command::new(program)
                .args(ports(&self.server)?)
                .args(["--insecure-diagnostics", "--v=4", "--feature-gates=MachinePool=true,EdgeZone=true"])
                .args(more)
                .env_clear()
                .env("KUBECONFIG", &place.kubeconfig)
                .env("SSL_CERT_FILE", &place.world.azure.certificate_authority)
                .env("POD_NAMESPACE", "capz-system")
                // Go connects to this machine without the proxy; our program needs the variable for that.
                .env("HTTPS_PROXY", &place.world.proxy)
                .env("NO_PROXY", "127.0.0.1"),
        )?;
        served(&self.server, &mut running).await?;
        Ok(running)
    }

    /// Registers its webhooks, which must be served already.
    ///
    /// # Errors
    /// The API server refuses them.
    pub async fn register(&self, place: &Place) -> anyhow::Result<()> {
        for registration in read(&self.sources.join("config/webhook/manifests.yaml"))? {
            create(&place.client, &self.server.registration(registration)).await?;
        }
        Ok(())
    }
}
