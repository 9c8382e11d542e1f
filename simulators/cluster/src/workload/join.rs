//! Simulates kubeadm: creating a cluster and joining one.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use azure_simulator::GuestStart;
use azure_simulator::packet::Source;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use certificate_authority::CertificateAuthority;
use cluster_api_stand_in::administrator_token;
use kubernetes_simulator::{Kubernetes, Options, Token};
use serde_json::{Value, json};
use stand_ins::{Controllers, EndpointSlices, Kubelets, NodeMonitor};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::cloud_config::CloudConfig;
use super::etcd::Etcd;
use super::hash::hash;
use super::members::Members;
use super::ports::Doors;
use super::registration::Registration;
use super::state::{Cluster, Member, WorkloadClusters};
use super::{road, static_pods};
use crate::node_answers::NodeAnswers;

/// How long kubeadm waits for a cluster, and for the new node.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(300);
/// Interval between attempts.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// The port of API servers.
const API_PORT: u16 = 6443;
const OF_ETCD: [&str; 2] = ["/etc/kubernetes/pki/etcd/ca.crt", "/etc/kubernetes/pki/etcd/ca.key"];
const AUTHORITY: [&str; 2] = ["/etc/kubernetes/pki/ca.crt", "/etc/kubernetes/pki/ca.key"];

fn document<'a>(documents: &'a [Value], kind: &str) -> Option<&'a Value> {
    documents.iter().find(|one| one["kind"] == kind)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn api_port(endpoint: &Value) -> u16 {
    endpoint["bindPort"].as_u64().and_then(|port| port.try_into().ok()).unwrap_or(API_PORT)
}

impl WorkloadClusters {
    /// Creates a cluster with its first machine.
    pub(super) fn init(
        &self,
        start: &GuestStart,
        config: &CloudConfig,
        documents: &[Value],
    ) -> Result<(), String> {
        let cluster =
            document(documents, "ClusterConfiguration").ok_or("there is no ClusterConfiguration")?;
        let init = document(documents, "InitConfiguration").cloned().unwrap_or_default();
        let [Some(certificate), Some(key)] = AUTHORITY.map(|path| config.file(path)) else {
            return Err("there is no certificate authority".to_owned());
        };
        let authority =
            CertificateAuthority::from_kept(certificate, key).map_err(|error| error.to_string())?;
        let (name, token) = (text(&cluster["clusterName"]).to_owned(), administrator_token(key));
        let options = &self.inner.options;
        let dual_stack = text(&cluster["networking"]["serviceSubnet"]).contains(',');
        let kubernetes = Kubernetes::new(Options {
            seed: options.seed ^ hash(&name),
            start: self.inner.azure.now(),
            dual_stack,
            root_certificate: Some(certificate.to_owned()),
            tokens: vec![Token::new(token.as_str())],
            ..Options::default()
        });
        let written = serde_saphyr::to_string(cluster).map_err(|error| error.to_string())?;
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"namespace": "kube-system", "name": "kubeadm-config"},
            "data": {"ClusterConfiguration": written}});
        kubernetes.create(map).map_err(|error| error.to_string())?;
        let (changed, stop) = (watch::Sender::new(0), self.inner.stop.child_token());
        let etcd = Etcd::default();
        let etcd_authority = match OF_ETCD.map(|path| config.file(path)) {
            [Some(certificate), Some(key)] => Some(
                CertificateAuthority::from_kept(certificate, key)
                    .map_err(|error| format!("etcd: {error}"))?,
            ),
            _ => None,
        };
        let mut made = Cluster {
            name,
            endpoint: text(&cluster["controlPlaneEndpoint"]).to_owned(),
            kubernetes,
            token,
            authority: Arc::new(authority),
            authority_files: (certificate.to_owned(), key.to_owned()),
            etcd,
            etcd_authority: etcd_authority.map(Arc::new),
            members: BTreeMap::new(),
            changed,
            answers: None,
            managed: None,
            pooled: Vec::new(),
            stop,
        };
        let registration = Registration::read(&init["nodeRegistration"], start, true);
        let port = api_port(&init["localAPIEndpoint"]);
        made.etcd.join(&registration.node);
        made.members.insert(registration.host.clone(), member(start, registration, Some(port)));
        let at = certificate.to_owned();
        made.kubernetes.answer_at_ports(Arc::new(Doors::new(self, &at)));
        self.inner.clusters.lock().insert(at.clone(), made);
        self.look_at_members();
        self.run_controllers(&at);
        Ok(())
    }

    /// Runs the parts of a cluster beside its API server: kubelets and controllers.
    pub(super) fn run_controllers(&self, at: &str) {
        let parts = |cluster: &Cluster| {
            let client = road::direct(&cluster.kubernetes, &cluster.token);
            (client, cluster.kubernetes.clock(), cluster.changed.clone(), cluster.stop.clone())
        };
        let Some((client, clock, changed, stop)) = self.inner.clusters.lock().get(at).map(parts) else {
            return;
        };
        let pace = self.inner.options.pace;
        let members = Arc::new(Members { clusters: self.clone(), at: at.to_owned(), changed });
        let _kubelets = Kubelets::spawn_at(pace, client.clone(), members, clock.clone(), stop.clone());
        let _monitor = NodeMonitor::spawn_at(pace, client.clone(), clock.clone(), stop.clone());
        let _controllers = Controllers::spawn(client.clone(), clock, stop.clone());
        let _slices = EndpointSlices::spawn_evenly(client.clone(), 1, stop.clone());
        let answers = NodeAnswers::follow(self.inner.azure.clone(), &client, &stop);
        if let Some(cluster) = self.inner.clusters.lock().get_mut(at) {
            cluster.answers = Some(answers);
        }
    }

    /// Joins the cluster of the bootstrap data.
    pub(super) async fn join(
        &self,
        start: &GuestStart,
        config: &CloudConfig,
        documents: &[Value],
    ) -> Result<(), String> {
        let join = document(documents, "JoinConfiguration").ok_or("there is no JoinConfiguration")?;
        let discovery = &join["discovery"]["bootstrapToken"];
        let endpoint = text(&discovery["apiServerEndpoint"]);
        let hosts = config.hosts(true);
        let end = Instant::now() + DISCOVERY_TIMEOUT;
        let control_plane = join["controlPlane"].is_object();
        loop {
            let why = match self.discover(start, &hosts, endpoint, text(&discovery["token"])) {
                Ok(at) => {
                    let registration = Registration::read(&join["nodeRegistration"], start, control_plane);
                    let port = control_plane.then(|| api_port(&join["controlPlane"]["localAPIEndpoint"]));
                    let mut clusters = self.inner.clusters.lock();
                    let cluster = clusters.get_mut(&at).ok_or("the cluster is gone")?;
                    if control_plane {
                        cluster.etcd.join(&registration.node);
                    }
                    cluster.members.insert(registration.host.clone(), member(start, registration, port));
                    drop(clusters);
                    self.look_at_members();
                    return Ok(());
                }
                Err(why) => why,
            };
            if Instant::now() >= end {
                return Err(format!("couldn't validate the identity of the API Server: {why}"));
            }
            tracing::debug!(machine = start.computer_name, why, "a machine cannot join yet");
            sleep(RETRY_INTERVAL).await;
        }
    }

    /// The cluster behind an endpoint, if it accepts the token.
    fn discover(
        &self,
        start: &GuestStart,
        hosts: &BTreeMap<String, IpAddr>,
        endpoint: &str,
        token: &str,
    ) -> Result<String, String> {
        let from = Source::node(start.computer_name.as_str());
        let (at, kubernetes, _) = self.api_server(&from, hosts, endpoint)?;
        let (id, secret) = token.split_once('.').ok_or("there is no token")?;
        let known = kubernetes.get("Secret", "kube-system", &format!("bootstrap-token-{id}"));
        let known = known.ok_or_else(|| format!("there is no token with the id {id}"))?;
        let part = |name: &str| {
            let bytes = STANDARD.decode(text(&known["data"][name])).unwrap_or_default();
            String::from_utf8(bytes).unwrap_or_default()
        };
        if part("token-secret") != secret {
            return Err("the token is another".to_owned());
        }
        let end: Option<jiff::Timestamp> = part("expiration").parse().ok();
        if end.is_some_and(|end| end < kubernetes.now()) {
            return Err("the token has expired".to_owned());
        }
        Ok(at)
    }

    /// Waits until the Node of a machine exists, and creates the mirror pods of its control plane.
    pub(super) async fn registered(&self, host: &str) -> Result<(), String> {
        let end = Instant::now() + DISCOVERY_TIMEOUT;
        loop {
            let found = self.inner.clusters.lock().values().find_map(|cluster| {
                let registration = &cluster.members.get(host)?.registration;
                let node = cluster.kubernetes.get("Node", "", &registration.node)?;
                Some((cluster.kubernetes.clone(), node, registration.control_plane))
            });
            if let Some((kubernetes, node, control_plane)) = found {
                let pods = if control_plane { static_pods::mirrored(&node) } else { Vec::new() };
                for pod in pods {
                    // A machine that returns under the same name finds its former pods.
                    if let Err(error) = kubernetes.create(pod) {
                        tracing::debug!(host, %error, "a pod of the control plane is not shown");
                    }
                }
                return Ok(());
            }
            if Instant::now() >= end {
                return Err("the kubelet does not register its node".to_owned());
            }
            sleep(Duration::from_secs(1)).await;
        }
    }
}

fn member(start: &GuestStart, registration: Registration, api_port: Option<u16>) -> Member {
    Member {
        machine: start.machine.clone(),
        node: None,
        registration,
        api_port,
        up: CancellationToken::new(),
    }
}
