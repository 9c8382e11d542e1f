//! The cluster on sockets: Azure over HTTPS with its own certificate authority and over plain HTTP for browsers, Entra,
//! Kubernetes, and the files that programs are configured with.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use azure_simulator::imds::MetadataService;
use azure_simulator::packet::{FlowPlan, FlowReport, Packet, Verdict};
use azure_simulator::page::{self, PageSource};
use azure_simulator::view::Topology;
use azure_simulator::{Azure, LatencyProfile, Options, serve};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use kubernetes_simulator::{Kubernetes, Token};
use serde_json::json;
use stand_ins::Pace;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::files::{HostError, Reader, listen, remove, write};
use crate::hosted_azure::as_named;
use crate::hosted_kubernetes::{HostedKubernetes, HostedKubernetesOptions};
use crate::managed_clusters;
use crate::node_answers::NodeAnswers;
use crate::shape::Shape;
use crate::sign_in::{Applicant, SignIn};
use crate::stand_ins::spawn_stand_ins;

/// The ports of a served cluster; 0 for any.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ports {
    /// The page, the control API and Resource Manager without TLS.
    pub control: u16,
    /// Resource Manager over HTTPS.
    pub resource_manager: u16,
    /// Entra.
    pub authority: u16,
    /// The simulated Kubernetes.
    pub kubernetes: u16,
    /// The control API of the simulated Kubernetes.
    pub kubernetes_control: u16,
    /// A separate listener for the machines' metadata, such as 169.254.169.254:80 in a network namespace. The control
    /// listener serves it in any case.
    pub metadata: Option<SocketAddr>,
}

/// The credentials that programs use. Those that are `None` are generated at the first start and kept in the directory,
/// so that a kubeconfig and an azure.json stay valid over restarts.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    /// The secret in azure.json.
    pub client_secret: Option<Token>,
    /// The bearer token in the kubeconfig of the simulated Kubernetes.
    pub token: Option<Token>,
}

/// How the cluster is served.
#[derive(Debug, Clone)]
pub struct HostedOptions {
    /// The resources in Azure before the first Service.
    pub shape: Shape,
    /// How long Azure's operations take.
    pub latency: LatencyProfile,
    /// Source of every id and address.
    pub seed: u64,
    /// The intervals of kubelets and of the node monitor.
    pub pace: Pace,
    /// The directory of the files; it keeps the certificate authorities over restarts.
    pub directory: PathBuf,
    /// A kubeconfig of another Kubernetes to use instead of the simulated one.
    pub kubeconfig: Option<PathBuf>,
    /// The ports of all listeners.
    pub ports: Ports,
    /// The credentials that programs use.
    pub credentials: Credentials,
    /// The time at the start.
    pub now: jiff::Timestamp,
}

/// A served cluster. It stops with the token that it was started with.
pub struct HostedCluster {
    /// The simulated Azure.
    pub azure: Azure,
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
    /// The URL of machines' metadata alone, where it was asked for.
    pub metadata: Option<String>,
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

/// Only this machine can reach the simulators.
const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

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
        let HostedOptions { shape, latency, seed, pace, directory, kubeconfig, ports, credentials, now } =
            options;
        let files = Files::in_directory(&directory);
        // Readers wait for this file: an old one would give them old addresses.
        remove(&files.endpoints)?;

        let options = Options {
            seed,
            latency,
            start: now,
            require_auth: true,
            owners: vec![shape.object_id.clone()],
            ..Options::default()
        };
        let options = as_named(&shape, options);
        let applicant = Applicant {
            client_id: &shape.client_id,
            object_id: &shape.object_id,
            secret: credentials.client_secret,
        };
        let authority = SocketAddr::new(LOOPBACK, ports.authority);
        let login = SignIn::start(&directory, &options, applicant, authority, stop).await?;
        let azure = Azure::new(Options { authority: login.url.clone(), ..options });
        login.join(&azure, true)?;
        shape.lay_out(&azure).map_err(|refusal| HostError::LayOut(refusal.to_string()))?;
        let manager = login
            .serve(SocketAddr::new(LOOPBACK, ports.resource_manager), azure.router(), &azure.host_suffixes())
            .await?;

        let (hosted, config_text) = match kubeconfig {
            Some(path) => {
                let text =
                    std::fs::read_to_string(&path).map_err(|source| HostError::File { path, source })?;
                (None, text)
            }
            None => {
                let options = HostedKubernetesOptions {
                    seed,
                    directory: directory.clone(),
                    port: ports.kubernetes,
                    dual_stack: shape.dual_stack,
                    token: credentials.token,
                    now,
                    control_port: ports.kubernetes_control,
                    ..HostedKubernetesOptions::default()
                };
                let hosted = HostedKubernetes::start(options, stop).await?;
                let text = hosted.kubeconfig_text.clone();
                (Some(hosted), text)
            }
        };
        let client = client_of(&config_text).await?;
        managed_clusters::attach(&azure, &config_text)?;
        let answers = spawn_stand_ins(&azure, &client, pace, stop);
        let page = Arc::new(Page::new(azure.clone(), answers.clone(), stop.clone()));
        let control = SocketAddr::new(LOOPBACK, ports.control);
        let metadata = MetadataService::new(azure.clone()).with_tokens(login.entra.clone());
        let routes = azure.router().merge(page::router(page)).merge(metadata.routes());
        let control = serve::serve(control, routes, None, stop.clone()).await.map_err(listen)?;
        let alone = match ports.metadata {
            None => None,
            Some(address) => {
                let server = serve::serve(address, metadata.router(), None, stop.clone());
                Some(server.await.map_err(listen)?.url())
            }
        };

        let cluster = Self {
            azure,
            kubernetes_url: hosted.as_ref().map(|hosted| hosted.url.clone()),
            kubernetes_control: hosted.as_ref().map(|hosted| hosted.control.clone()),
            kubernetes: hosted.map(|hosted| hosted.kubernetes),
            client,
            answers,
            resource_manager: manager.url(),
            authority: login.url.clone(),
            control: control.url(),
            metadata: alone,
            files,
        };
        let mut azure_json = shape.azure_json(&cluster.resource_manager, &login.secret);
        azure_json["tenantId"] = TENANT.into();
        write(&cluster.files.azure_json, &format!("{azure_json:#}\n"), Reader::Owner)?;
        write(&cluster.files.kubeconfig, &config_text, Reader::Owner)?;
        write(&cluster.files.certificate_authority, login.certificates.certificate_pem(), Reader::Everyone)?;
        let endpoints = json!({
            "resourceManager": cluster.resource_manager,
            "entra": login.url,
            "control": cluster.control,
            "kubernetesControl": cluster.kubernetes_control,
            "metadata": cluster.metadata.as_ref().unwrap_or(&cluster.control),
            "page": format!("{}{}", cluster.control, page::PATH),
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

/// The page's view, which changes with Azure and with what nodes answer.
struct Page {
    azure: page::AzurePage<NodeAnswers>,
    answers: NodeAnswers,
    changed: watch::Receiver<u64>,
}

impl Page {
    fn new(azure: Azure, answers: NodeAnswers, stop: CancellationToken) -> Self {
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
        Self { azure: page::AzurePage::new(azure, answers.clone()), answers, changed }
    }
}

impl PageSource for Page {
    fn topology(&self) -> Topology {
        self.azure.topology().with_services(self.answers.services())
    }

    fn packet(&self, packet: &Packet) -> Verdict {
        self.azure.packet(packet)
    }

    fn flows(&self, plan: &FlowPlan) -> FlowReport {
        self.azure.flows(plan)
    }

    fn changed(&self) -> watch::Receiver<u64> {
        self.changed.clone()
    }
}
