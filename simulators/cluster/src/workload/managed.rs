//! Clusters that Azure manages (AKS): each has a Kubernetes of its own, under the host that Azure gives its API server.
//! The machines of its pools are its nodes, initialized as by AKS's own cloud controller manager.
//!
//! Left out: load balancers of their Services, add-ons, the API servers of private clusters inside their networks, and
//! who may use an API: any token is accepted, so that Entra's are, too.

use std::collections::BTreeMap;
use std::sync::Arc;

use azure_simulator::managed_clusters::{AttachedKubernetes, KubernetesOfClusters};
use azure_types::ResourceId;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use certificate_authority::{CertificateAuthority, TlsError};
use cluster_api_stand_in::administrator_token;
use jiff::SignedDuration;
use kubernetes_simulator::{Kubernetes, Options};
use serde_json::{Value, json};
use stand_ins::Machine;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::etcd::Etcd;
use super::hash::hash;
use super::road;
use super::state::{Cluster, WorkloadClusters};
use crate::instance::INSTANCES;
use crate::machines::AzureMachines;
use crate::managed_clusters::{CLUSTERS, cluster_of, forget_lost_nodes};

/// The port of API servers.
const API_PORT: u16 = 443;

fn host(cluster: &Value) -> Option<&str> {
    let properties = &cluster["properties"];
    properties["fqdn"].as_str().or_else(|| properties["privateFQDN"].as_str())
}

fn id_of(cluster: &Value) -> Option<ResourceId> {
    cluster["id"].as_str()?.parse().ok()
}

impl WorkloadClusters {
    /// Makes Azure's kubeconfigs of managed clusters lead to their Kubernetes here.
    pub(super) fn stand_behind_managed_clusters(&self) {
        let this = self.clone();
        self.inner.azure.attach(KubernetesOfClusters::new(move |id| match this.attached(id) {
            Ok(attached) => Some(attached),
            Err(error) => {
                tracing::warn!(%error, cluster = id.name(), "no Kubernetes for a managed cluster");
                None
            }
        }));
    }

    /// The Kubernetes of a managed cluster, which is created at first use. Reads nothing from Azure, because Azure calls
    /// it.
    fn attached(&self, id: &ResourceId) -> Result<AttachedKubernetes, TlsError> {
        let mut clusters = self.inner.clusters.lock();
        let found = clusters.values().find(|cluster| cluster.managed.as_ref() == Some(id));
        let (certificate, token) = match found {
            Some(cluster) => (cluster.authority_files.0.clone(), cluster.token.clone()),
            None => {
                let cluster = self.new_managed(id)?;
                let parts = (cluster.authority_files.0.clone(), cluster.token.clone());
                clusters.insert(parts.0.clone(), cluster);
                parts
            }
        };
        Ok(AttachedKubernetes {
            cluster: json!({ "certificate-authority-data": STANDARD.encode(certificate) }),
            user: json!({ "token": token }),
        })
    }

    fn new_managed(&self, id: &ResourceId) -> Result<Cluster, TlsError> {
        let authority = CertificateAuthority::generate()?;
        let files = (authority.certificate_pem().to_owned(), authority.key_pem());
        let (begun, instant) = self.inner.begun;
        let passed = SignedDuration::try_from(instant.elapsed()).unwrap_or_default();
        let kubernetes = Kubernetes::new(Options {
            seed: self.inner.options.seed ^ hash(&id.to_string().to_lowercase()),
            start: begun.checked_add(passed).unwrap_or(begun),
            dual_stack: false,
            root_certificate: Some(files.0.clone()),
            ..Options::default()
        });
        Ok(Cluster {
            name: id.name().to_owned(),
            endpoint: String::new(),
            kubernetes,
            token: administrator_token(&files.1),
            authority: Arc::new(authority),
            authority_files: files,
            etcd: Etcd::default(),
            etcd_authority: None,
            members: BTreeMap::new(),
            changed: watch::Sender::new(0),
            answers: None,
            managed: Some(id.clone()),
            pooled: Vec::new(),
            stop: self.inner.stop.child_token(),
        })
    }

    /// Creates the Kubernetes of new managed clusters, follows the machines of their pools, and deletes the Kubernetes of
    /// those that are gone.
    pub(super) fn look_at_managed(&self) {
        // A cluster that is created after this is not in the documents, and must not be taken for one that is gone.
        let known: Vec<ResourceId> =
            self.inner.clusters.lock().values().filter_map(|cluster| cluster.managed.clone()).collect();
        let azure = &self.inner.azure;
        let documents = azure.documents_of_type(CLUSTERS);
        let present: Vec<(ResourceId, Value)> =
            documents.into_iter().filter_map(|document| Some((id_of(&document)?, document))).collect();
        let mut pooled: BTreeMap<ResourceId, Vec<Machine>> = BTreeMap::new();
        if !present.is_empty() {
            let machines = AzureMachines::all(azure.clone());
            for instance in azure.documents_of_type(INSTANCES) {
                if let Some(of) = cluster_of(&instance)
                    && let Some(machine) = machines.machine(&instance)
                {
                    pooled.entry(of).or_default().push(machine);
                }
            }
        }
        let mut new = Vec::new();
        for (id, document) in &present {
            if let Err(error) = self.attached(id) {
                tracing::warn!(%error, cluster = id.name(), "no Kubernetes for a managed cluster");
            }
            let mut clusters = self.inner.clusters.lock();
            let found = clusters.iter_mut().find(|(_, cluster)| cluster.managed.as_ref() == Some(id));
            let Some((at, cluster)) = found else { continue };
            if let Some(host) = host(document) {
                cluster.endpoint = format!("{host}:{API_PORT}");
            }
            let machines = pooled.remove(id).unwrap_or_default();
            if machines != cluster.pooled {
                cluster.pooled = machines;
                cluster.changed.send_modify(|revision| *revision += 1);
            }
            if cluster.answers.is_none() {
                new.push((
                    at.clone(),
                    road::direct(&cluster.kubernetes, &cluster.token),
                    cluster.stop.clone(),
                ));
            }
        }
        for (at, client, stop) in new {
            self.run_controllers(&at);
            let _lost = tokio::spawn(forget_lost_nodes(azure.clone(), client, stop));
        }
        self.inner.clusters.lock().retain(|_, cluster| {
            let gone = |id: &ResourceId| known.contains(id) && !present.iter().any(|(there, _)| there == id);
            let stays = !cluster.managed.as_ref().is_some_and(gone);
            if !stays {
                cluster.stop.cancel();
            }
            stays
        });
    }

    /// The managed cluster with this host.
    pub(super) fn managed_at(&self, at: &str) -> Option<Value> {
        let documents = self.inner.azure.documents_of_type(CLUSTERS);
        documents.into_iter().find(|cluster| {
            let hosts = ["fqdn", "privateFQDN"].map(|member| cluster["properties"][member].as_str());
            hosts.into_iter().flatten().any(|host| host.eq_ignore_ascii_case(at))
        })
    }

    /// The API server of a managed cluster: the key of the cluster, its Kubernetes, and a token that is cancelled when the
    /// cluster goes.
    ///
    /// # Errors
    /// Why it does not answer.
    pub(super) fn managed_api_server(
        &self,
        cluster: &Value,
        port: u16,
    ) -> Result<(String, Kubernetes, CancellationToken), String> {
        let properties = &cluster["properties"];
        let name = cluster["name"].as_str().unwrap_or_default();
        if properties["apiServerAccessProfile"]["enablePrivateCluster"] == true {
            return Err(format!(
                "managed cluster {name} is private: its API server answers in its network alone"
            ));
        }
        if properties["powerState"]["code"] == "Stopped" {
            return Err(format!("managed cluster {name} is stopped"));
        }
        let id = id_of(cluster).filter(|_| port == API_PORT);
        let clusters = self.inner.clusters.lock();
        let found = clusters.iter().find(|(_, one)| id.is_some() && one.managed == id);
        let found = found.map(|(at, one)| (at.clone(), one.kubernetes.clone(), one.stop.clone()));
        found.ok_or_else(|| {
            format!("connection refused: no API server of managed cluster {name} at port {port}")
        })
    }
}
