//! The cluster on sockets: Azure over HTTPS with its own certificate authority and over plain HTTP for browsers, Entra,
//! Kubernetes, and the files that programs are configured with.

use std::path::{Path, PathBuf};

use azure_simulator::entra::Entra;
use azure_simulator::packet::{Packet, Verdict};
use azure_simulator::page::{self, AzurePage};
use azure_simulator::view::Topology;
use azure_simulator::{Azure, Options};
use kube::Client;
use kubernetes_simulator::{Kubernetes, Token};
use machine_disks::MachineDisks;
use machine_shares::MachineShares;
use serde_json::json;
use stand_ins::Pace;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::client::client_of;
use crate::files::{HostError, Reader, remove, write};
use crate::hosted_azure::{HostedAzure, HostedAzureOptions};
use crate::hosted_kubernetes::{HostedKubernetes, HostedKubernetesOptions};
use crate::machines::running_host;
use crate::managed_clusters;
use crate::node_answers::NodeAnswers;
use crate::page::ClusterPage;
use crate::shape::Shape;
use crate::stand_ins::spawn_stand_ins;

/// The folder of the shares, in that of the machines' disks.
const SHARES: &str = "shares";

/// How the cluster is served.
#[derive(Debug, Clone)]
pub struct HostedOptions {
    /// The resources in Azure before the first Service.
    pub shape: Shape,
    /// Azure. Its directory has all files of the cluster, and keeps certificate authorities and generated credentials
    /// over restarts; its seed and start are those of Kubernetes, too.
    pub azure: HostedAzureOptions,
    /// The intervals of kubelets and of the node monitor.
    pub pace: Pace,
    /// A kubeconfig of another Kubernetes to use instead of the simulated one.
    pub kubeconfig: Option<PathBuf>,
    /// The port of the simulated Kubernetes; 0 for any.
    pub kubernetes_port: u16,
    /// The port of the control API of the simulated Kubernetes; 0 for any.
    pub kubernetes_control_port: u16,
    /// The bearer token in the kubeconfig of the simulated Kubernetes; if `None`, it is generated at the first start and
    /// kept in the directory.
    pub token: Option<Token>,
    /// Faults of the simulated Kubernetes that are in force from the start.
    pub kubernetes_faults: Vec<kubernetes_simulator::Fault>,
    /// The disks of the machines as devices, if they are wanted.
    pub disks: Option<machine_disks::Options>,
}

impl HostedOptions {
    /// A cluster of this shape on any ports, with a simulated Kubernetes.
    pub fn of(shape: Shape, azure: Options, directory: &Path) -> Self {
        Self {
            azure: HostedAzureOptions::of(&shape, azure, directory),
            shape,
            pace: Pace::default(),
            kubeconfig: None,
            kubernetes_port: 0,
            kubernetes_control_port: 0,
            token: None,
            kubernetes_faults: Vec::new(),
            disks: None,
        }
    }
}

/// A served cluster. It stops with the token that it was started with.
pub struct HostedCluster {
    /// The simulated Azure.
    pub azure: Azure,
    /// The simulated Entra.
    pub entra: Entra,
    /// The simulated Kubernetes, unless another one is used.
    pub kubernetes: Option<Kubernetes>,
    /// Its URL.
    pub kubernetes_url: Option<String>,
    /// The control API of the simulated Kubernetes.
    pub kubernetes_control: Option<String>,
    /// A client of the simulated or the other Kubernetes.
    pub client: Client,
    /// The nodes' responses to probes.
    pub answers: NodeAnswers,
    /// Resource Manager over HTTPS.
    pub resource_manager: String,
    /// Entra over HTTPS.
    pub authority: String,
    /// The page, the control API and Resource Manager without TLS.
    pub control: String,
    /// The URL of a proxy that leads to Resource Manager for any of Azure's host names.
    pub proxy: String,
    /// The URL of machines' metadata alone, where it was asked for.
    pub metadata: Option<String>,
    /// The disks of the machines as devices, if they were wanted.
    pub disks: Option<MachineDisks>,
    /// The shares as folders that machines mount; with the disks.
    pub shares: Option<MachineShares>,
    /// The files.
    pub files: Files,
}

impl std::fmt::Debug for HostedCluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostedCluster").field("control", &self.control).finish_non_exhaustive()
    }
}

/// Where the files are.
#[derive(Debug, Clone)]
pub struct Files {
    /// azure.json.
    pub azure_json: PathBuf,
    /// The kubeconfig.
    pub kubeconfig: PathBuf,
    /// The certificate authority of the simulated Azure.
    pub certificate_authority: PathBuf,
    /// The addresses of everything; written last.
    pub endpoints: PathBuf,
}

impl Files {
    fn in_directory(directory: &Path) -> Self {
        Self {
            azure_json: directory.join("azure.json"),
            kubeconfig: directory.join("kubeconfig"),
            certificate_authority: directory.join("ca.pem"),
            endpoints: directory.join("endpoints.json"),
        }
    }
}

/// The tenant in azure.json. Go's identity library asks the public cloud about every authority that it
/// does not know, except in tenants of this name: with it, controller managers
/// that are not ours can sign in here, too.
const TENANT: &str = "adfs";

impl HostedCluster {
    /// Lays everything out, opens all listeners, starts the stand-ins and writes the files.
    ///
    /// # Errors
    /// The first step that fails.
    pub async fn start(options: HostedOptions, stop: &CancellationToken) -> Result<Self, HostError> {
        let HostedOptions { shape, azure, pace, kubeconfig, token, .. } = options;
        let files = Files::in_directory(&azure.directory);
        // Readers wait for this file: an old one would give them old addresses.
        remove(&files.endpoints)?;

        let (hosted, config_text) = match kubeconfig {
            Some(path) => {
                let text =
                    std::fs::read_to_string(&path).map_err(|source| HostError::File { path, source })?;
                (None, text)
            }
            None => {
                let kubernetes = HostedKubernetesOptions {
                    seed: azure.azure.seed,
                    directory: azure.directory.clone(),
                    port: options.kubernetes_port,
                    dual_stack: shape.dual_stack,
                    token,
                    now: azure.azure.start,
                    control_port: options.kubernetes_control_port,
                    faults: options.kubernetes_faults,
                    state: None,
                };
                let hosted = HostedKubernetes::start(kubernetes, stop).await?;
                let text = hosted.kubeconfig_text.clone();
                (Some(hosted), text)
            }
        };
        let client = client_of(&config_text).await?;
        let (mut answers, mut disks, mut shares) = (None, None, None);
        let azure = HostedAzure::start_with_page(azure, stop, |azure| {
            shape.lay_out(azure).map_err(|refusal| HostError::LayOut(refusal.to_string()))?;
            managed_clusters::attach(azure, &config_text)?;
            let wanted = options.disks.map(|disks| MachineDisks::start(azure, disks, running_host, stop));
            disks = wanted.transpose()?;
            let folder = disks.as_ref().map(|disks| disks.folder().join(SHARES));
            shares = folder.map(|folder| MachineShares::start(azure, &folder, stop)).transpose()?;
            let of_nodes = spawn_stand_ins(azure, &client, pace, stop);
            answers = Some(of_nodes.clone());
            Ok(page_of(azure, of_nodes, stop.clone()))
        })
        .await?;
        let answers = answers.ok_or_else(|| HostError::LayOut("no stand-ins were started".to_owned()))?;

        if let Some(disks) = &disks {
            // Programs may look for the devices as soon as the files are there.
            let mut changed = disks.changed();
            let _ended = changed.wait_for(|looks| *looks > 0).await;
        }

        let cluster = Self {
            kubernetes_url: hosted.as_ref().map(|hosted| hosted.url.clone()),
            kubernetes_control: hosted.as_ref().map(|hosted| hosted.control.clone()),
            kubernetes: hosted.map(|hosted| hosted.kubernetes),
            client,
            answers,
            resource_manager: azure.https,
            authority: azure.authority,
            control: azure.http,
            proxy: azure.proxy,
            metadata: azure.metadata,
            azure: azure.azure,
            entra: azure.entra,
            disks,
            shares,
            files,
        };
        let mut azure_json = shape.azure_json(&cluster.resource_manager, azure.client_secret.reveal());
        azure_json["tenantId"] = TENANT.into();
        write(&cluster.files.azure_json, &format!("{azure_json:#}\n"), Reader::Owner)?;
        write(&cluster.files.kubeconfig, &config_text, Reader::Owner)?;
        let endpoints = json!({
            "resourceManager": cluster.resource_manager,
            "entra": cluster.authority,
            "control": cluster.control,
            "kubernetesControl": cluster.kubernetes_control,
            "metadata": cluster.metadata.as_ref().unwrap_or(&cluster.control),
            "page": format!("{}{}", cluster.control, page::PATH),
            "volumes": cluster.disks.as_ref().map(MachineDisks::folder),
            "shares": cluster.shares.as_ref().map(MachineShares::folder),
        });
        write(&cluster.files.endpoints, &format!("{endpoints:#}\n"), Reader::Everyone)?;
        Ok(cluster)
    }

    /// The URL of the page for browsers.
    pub fn page(&self) -> String {
        format!("{}{}", self.control, page::PATH)
    }

    /// The fate of a packet in the current state.
    pub fn send(&self, packet: &Packet) -> Verdict {
        azure_simulator::packet::trace(&self.azure, &self.answers, packet)
    }

    /// The current topology, as the page shows it.
    pub fn topology(&self) -> Topology {
        Topology::read(&self.azure, &self.answers)
    }
}

/// The page, which changes with Azure and with the nodes' responses to probes.
fn page_of(azure: &Azure, answers: NodeAnswers, stop: CancellationToken) -> ClusterPage<NodeAnswers> {
    let (changes, changed) = watch::channel(0);
    let (mut in_azure, mut in_answers) = (azure.subscribe(), answers.changed());
    tokio::spawn(stop.run_until_cancelled_owned(async move {
        loop {
            let both_alive = tokio::select! {
                alive = in_azure.changed() => alive,
                alive = in_answers.changed() => alive,
            };
            if both_alive.is_err() {
                return;
            }
            changes.send_modify(|revision| *revision += 1);
        }
    }));
    let page = AzurePage::new(azure.clone(), answers.clone());
    ClusterPage::new(page, move |topology| topology.with_services(answers.services()), changed)
}
