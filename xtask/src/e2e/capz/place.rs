//! What the programs run against: Azure, the management cluster, and the workload clusters that come of their machines.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use azure_simulator::{LatencyProfile, Options as AzureOptions};
use capz_api::crd::{KINDS, definition};
use cluster_api_stand_in::{ClusterApi, ConversionWebhook, Part, conversion_router, install_parts};
use kube::Client;
use kubernetes_simulator::{Kubernetes, Options, Token, WebhookHost};
use serde_json::json;
use simulated_cluster::{
    Boot, HostedAzure, HostedAzureOptions, Outcome, Shape, WorkloadClusters, WorkloadOptions,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::objects::create;

/// The secret of the application that the cluster's identity names.
pub const CLIENT_SECRET: &str = "of-the-end-to-end-test";
/// Where the stand-in converts its kinds, in this process.
const CONVERSION: &str = "cluster-api-stand-in.example";
const SEED: u64 = 1;
/// How long Azure takes for each write.
const LATENCY: Duration = Duration::from_millis(300);

/// All of it; it ends with this value.
pub struct Place {
    /// Azure on sockets.
    pub azure: HostedAzure,
    /// The management cluster.
    pub kubernetes: Kubernetes,
    /// A client of it.
    pub client: Client,
    /// How programs reach it.
    pub kubeconfig: PathBuf,
    /// The clusters that come of machines.
    pub workloads: WorkloadClusters,
    /// A proxy by which programs reach their API servers.
    pub proxy: String,
    stop: CancellationToken,
    _ends: DropGuard,
}

impl Place {
    /// Starts it, with our definitions and those of the stand-in for Cluster API: all, or those of kubeadm's providers.
    ///
    /// # Errors
    /// What does not start.
    pub async fn start(directory: &Path, with_core: bool) -> anyhow::Result<Self> {
        let stop = CancellationToken::new();
        let ends = stop.clone().drop_guard();
        let shape = Shape::default();
        let options = HostedAzureOptions {
            azure: AzureOptions {
                seed: SEED,
                // Those of the example.
                subscription: shape.subscription.clone(),
                tenant: shape.tenant.clone(),
                region: shape.region.clone(),
                latency: LatencyProfile::instant().with("*", "*", LATENCY),
                ..AzureOptions::default()
            },
            client_id: shape.client_id.clone(),
            object_id: shape.object_id.clone(),
            client_secret: Some(Token::new(CLIENT_SECRET)),
            directory: directory.to_owned(),
            port: 0,
            https_port: 0,
            authority_port: 0,
            proxy_port: 0,
            metadata: None,
            check_tokens: true,
        };
        let azure = HostedAzure::start(options, &stop).await?;
        let kubernetes = Kubernetes::new(Options { seed: SEED, ..Options::default() });
        let address = kubernetes.serve_https(([127, 0, 0, 1], 0).into(), stop.clone()).await?;
        let kubeconfig = directory.join("kubeconfig");
        std::fs::write(&kubeconfig, kubernetes.kubeconfig(&format!("https://{address}"))?)?;
        let client = Client::new(kubernetes.router(), "default");

        kubernetes.webhook_host(CONVERSION, WebhookHost::InProcess(conversion_router()));
        let authority = kubernetes.authority()?.certificate_pem().to_owned();
        let webhook = ConversionWebhook { url: format!("https://{CONVERSION}/convert"), authority };
        let parts = if with_core { Part::ALL } else { KUBEADM };
        install_parts(parts, &client, &webhook).await.context("the stand-in's definitions")?;
        for kind in &KINDS {
            create(&client, &definition(kind)).await?;
        }
        for namespace in ["capi-system", "capz-system"] {
            let object =
                json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
            create(&client, &object).await?;
        }
        let boot = |_: &_| Boot {
            system: Duration::from_millis(300),
            bootstrap: Duration::from_millis(300),
            outcome: Outcome::Works,
        };
        let options = WorkloadOptions { seed: SEED, boot: Arc::new(boot), ..WorkloadOptions::default() };
        let workloads = WorkloadClusters::start(azure.azure.clone(), options, stop.clone());
        let proxy = format!("http://{}", workloads.proxy(([127, 0, 0, 1], 0).into()).await?);
        Ok(Self { azure, kubernetes, client, kubeconfig, workloads, proxy, stop, _ends: ends })
    }

    /// Plays Cluster API: all of it, or kubeadm's providers alone.
    pub fn play_cluster_api(&self, with_core: bool) {
        ClusterApi::start_parts(
            if with_core { Part::ALL } else { KUBEADM },
            self.client.clone(),
            Arc::new(self.workloads.clone()),
            self.kubernetes.clock(),
            SEED,
            self.stop.clone(),
        );
    }
}

const KUBEADM: &[Part] = &[Part::Kubeadm];
