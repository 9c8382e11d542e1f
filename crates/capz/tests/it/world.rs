//! A management cluster, an Azure, and the controllers between them.

use std::sync::Arc;
use std::time::Duration;

use arm::Credential;
use azure_simulator::{Azure, Budgets, LatencyProfile};
use azure_types::ResourceId;
use kube::Client;
use kubernetes_simulator::Kubernetes;
use serde_json::{Value, json};
use testkit::KillSwitch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000123";
pub const NAMESPACE: &str = "default";
/// How often a test looks.
const LOOK: Duration = Duration::from_millis(500);

const SSH_KEY: &str = "c3NoLWVkMjU1MTkgQUFBQUMzTnphQzFsWkRJMU5URTVBQUFBSUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUEgbWU=";

/// What is drawn at random at admission, always the same.
struct Fixed;

impl capz_api::Random for Fixed {
    fn guid(&mut self) -> String {
        "5e5e5e5e-0000-4000-8000-000000000000".into()
    }
    fn ssh_public_key(&mut self) -> String {
        SSH_KEY.into()
    }
}

pub struct World {
    pub azure: Azure,
    pub kubernetes: Kubernetes,
    pub settings: capz::Settings,
    running: Option<(JoinHandle<()>, CancellationToken)>,
}

/// A definition that takes anything, for kinds of Cluster API's core.
fn definition(kind: &str) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.cluster.x-k8s.io") },
        "spec": {
            "group": "cluster.x-k8s.io", "scope": "Namespaced",
            "names": { "kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase() },
            "versions": [{ "name": "v1beta2", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } } }],
        },
    })
}

impl World {
    pub fn new() -> Self {
        Self::with(LatencyProfile::instant(), 1)
    }

    pub fn with(latency: LatencyProfile, seed: u64) -> Self {
        if std::env::var_os("CERULEAN_LOG").is_some_and(|it| it == "1") {
            let _ = tracing_subscriber::fmt()
                .with_max_level(tracing_subscriber::filter::LevelFilter::DEBUG)
                .try_init();
        }
        let kubernetes = Kubernetes::new(kubernetes_simulator::Options { seed, ..Default::default() });
        let azure = Azure::new(azure_simulator::Options {
            seed,
            subscription: SUBSCRIPTION.to_owned(),
            region: "eastus".to_owned(),
            latency,
            budgets: Some(Budgets::default()),
            start: kubernetes.now(),
            ..Default::default()
        });
        for kind in capz_api::crd::KINDS.iter() {
            kubernetes.create(capz_api::crd::definition(kind)).unwrap();
        }
        for kind in ["Cluster", "Machine"] {
            kubernetes.create(definition(kind)).unwrap();
        }
        let settings = capz::Settings { subscription: Some(SUBSCRIPTION.into()), ..Default::default() };
        let world = Self { azure, kubernetes, settings, running: None };
        world.create(json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AzureClusterIdentity",
            "metadata": { "name": "identity", "namespace": NAMESPACE },
            "spec": { "type": "WorkloadIdentity", "clientID": "c", "tenantID": "t", "allowedNamespaces": {} },
        }));
        world
    }

    pub fn start(&mut self) {
        self.start_with(&KillSwitch::never());
    }

    pub fn start_with(&mut self, switch: &KillSwitch) {
        let stop = CancellationToken::new();
        let client = Client::new(self.kubernetes.router(), "default");
        let since = Duration::try_from(self.kubernetes.now().as_duration()).unwrap();
        let clock = arm::Clock::following_tokio(since);
        let transport = switch.transport(&self.azure);
        let azure = capz::Azure::new(transport, clock.clone(), self.settings.clone())
            .with_credentials(Box::new(|_, _| Ok(Credential::fixed("token"))));
        let (settings, token) = (self.settings.clone(), stop.clone());
        let task = tokio::spawn(async move {
            capz::run(client, azure, settings, clock, None, token).await.unwrap();
        });
        self.running = Some((task, stop));
    }

    pub async fn kill(&mut self) {
        let (task, _) = self.running.take().unwrap();
        task.abort();
        let _ = task.await;
    }

    pub fn create(&self, object: Value) -> Arc<kubernetes_simulator::Object> {
        self.kubernetes.create(object.clone()).unwrap_or_else(|error| panic!("{error:?}: {object}"))
    }

    /// A Cluster with its AzureCluster, as they are after admission and the core's first look.
    pub fn cluster(&self, name: &str, spec: Value) {
        let cluster = self.create(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": { "name": name, "namespace": NAMESPACE },
            "spec": { "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AzureCluster", "name": name } },
        }));
        let mut spec = spec;
        spec["location"] = json!("eastus");
        spec["identityRef"] = json!({ "kind": "AzureClusterIdentity", "name": "identity" });
        let object = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AzureCluster",
            "metadata": {
                "name": name, "namespace": NAMESPACE,
                "labels": { "cluster.x-k8s.io/cluster-name": name },
                "ownerReferences": [{ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": name,
                    "uid": cluster["metadata"]["uid"] }],
            },
            "spec": spec,
        });
        self.admit("AzureCluster", object);
    }

    /// A Machine with its AzureMachine and bootstrap data, as the core makes them in a cluster with infrastructure.
    pub fn machine(&self, cluster: &str, name: &str, labels: Value, spec: Value) {
        self.create(json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": format!("{name}-data"), "namespace": NAMESPACE },
            "data": { "value": "I2Nsb3VkLWNvbmZpZw==" },
        }));
        let mut all = json!({ "cluster.x-k8s.io/cluster-name": cluster });
        all.as_object_mut().unwrap().extend(labels.as_object().unwrap().clone());
        let machine = self.create(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": { "name": name, "namespace": NAMESPACE, "labels": all },
            "spec": { "clusterName": cluster, "version": "v1.33.0", "bootstrap": { "dataSecretName": format!("{name}-data") },
                "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AzureMachine", "name": name } },
        }));
        let mut object = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AzureMachine",
            "metadata": {
                "name": name, "namespace": NAMESPACE, "labels": all,
                "ownerReferences": [{ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": name,
                    "uid": machine["metadata"]["uid"] }],
            },
            "spec": spec,
        });
        for (member, value) in [
            ("vmSize", json!("Standard_D2s_v3")),
            ("osDisk", json!({ "osType": "Linux", "diskSizeGB": 30 })),
            ("sshPublicKey", json!(SSH_KEY)),
        ] {
            object["spec"].as_object_mut().unwrap().entry(member).or_insert(value);
        }
        self.admit("AzureMachine", object);
    }

    fn admit(&self, kind: &str, mut object: Value) {
        capz_api::crd::fill_defaults(kind, &mut object);
        let context = capz_api::Context {
            subscription: capz_api::Lookup::Found(SUBSCRIPTION.to_owned()),
            ..Default::default()
        };
        let object = capz_api::admission::set_defaults(kind, object, &context, &mut Fixed).unwrap();
        capz_api::admission::validate(kind, &object, None, &context).unwrap();
        self.create(object);
    }

    /// The core has seen that the network is there.
    pub fn provisioned(&self, cluster: &str) {
        let status = json!({ "status": { "initialization": { "infrastructureProvisioned": true } } });
        self.kubernetes.merge_status("Cluster", NAMESPACE, cluster, &status).unwrap();
    }

    /// Deletes an object, as a user does.
    pub fn delete(&self, kind: &str, name: &str) {
        self.kubernetes.delete(kind, NAMESPACE, name).unwrap();
    }

    pub fn get(&self, kind: &str, name: &str) -> Option<Value> {
        self.kubernetes.get(kind, NAMESPACE, name).map(|object| object.value().clone())
    }

    pub fn group(&self, name: &str) -> ResourceId {
        ResourceId::group(SUBSCRIPTION, name)
    }

    /// Status and reason of a condition.
    pub fn condition(&self, kind: &str, name: &str, condition: &str) -> Option<(String, String)> {
        let object = self.get(kind, name)?;
        let found =
            object["status"]["conditions"].as_array()?.iter().find(|it| it["type"] == condition)?.clone();
        let text = |member: &str| found[member].as_str().unwrap_or_default().to_owned();
        Some((text("status"), text("reason")))
    }

    /// Waits on virtual time until this holds.
    pub async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) -> Duration {
        let begin = Instant::now();
        while !holds(self) {
            if let Some((task, _)) = &self.running {
                assert!(!task.is_finished(), "the manager has ended");
            }
            if begin.elapsed() > Duration::from_secs(3600) {
                let clusters: Vec<_> =
                    self.kubernetes.list("AzureCluster").iter().map(|it| it.value().clone()).collect();
                let machines: Vec<_> =
                    self.kubernetes.list("AzureMachine").iter().map(|it| it.value().clone()).collect();
                panic!(
                    "not within an hour: {what}\n{:#}\n{:#}",
                    Value::from(clusters),
                    Value::from(machines)
                );
            }
            tokio::time::sleep(LOOK).await;
        }
        begin.elapsed()
    }

    /// How many requests came to Azure after this one, and how many of them write.
    pub fn requests_after(&self, sequence: u64) -> (usize, usize) {
        let journal = self.azure.journal_after(sequence);
        let writes = journal.entries.iter().filter(|entry| entry.method != "GET").count();
        (journal.entries.len(), writes)
    }

    pub fn sequence(&self) -> u64 {
        self.azure.journal().entries.last().map_or(0, |entry| entry.sequence)
    }
}
