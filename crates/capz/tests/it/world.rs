//! A management cluster, an Azure, and the controllers between them.

use std::sync::Arc;
use std::time::Duration;

use arm::{Credential, CredentialMethod, Transport};
use azure_simulator::entra::{Application, Entra, EntraOptions};
use azure_simulator::{Azure, Budgets, LatencyProfile};
use azure_types::ResourceId;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::Client;
use kubernetes_simulator::Kubernetes;
use parking_lot::Mutex;
use serde_json::{Value, json};
use testkit::KillSwitch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::tokens::issued;

pub const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000123";
pub const NAMESPACE: &str = "default";
/// The interval between two checks.
const LOOK: Duration = Duration::from_millis(500);

/// The cases that a test covers of so many: one of `every`, or those that `CERULEAN_CASES` names, `all` or `FROM..TO`.
pub fn cases(count: usize, every: usize) -> Vec<usize> {
    let number = |text: &str| text.parse::<usize>().unwrap();
    match std::env::var("CERULEAN_CASES").ok() {
        None => (0..count).step_by(every).collect(),
        Some(all) if all == "all" => (0..count).collect(),
        Some(some) => {
            let (from, to) = some.split_once("..").unwrap();
            (number(from)..number(to).min(count)).collect()
        }
    }
}

pub const SSH_KEY: &str = "c3NoLWVkMjU1MTkgQUFBQUMzTnphQzFsWkRJMU5URTVBQUFBSUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUEgbWU=";

/// The random values of admission, always the same.
pub struct Fixed;

impl capz_api::Random for Fixed {
    fn guid(&mut self) -> String {
        "5e5e5e5e-0000-4000-8000-000000000000".into()
    }
    fn ssh_public_key(&mut self) -> String {
        SSH_KEY.into()
    }
}

/// A layer in front of Azure.
pub type Front = Box<dyn Fn(axum::Router) -> axum::Router>;

pub struct World {
    pub azure: Azure,
    pub kubernetes: Kubernetes,
    pub settings: capz::Settings,
    /// The client secrets with which clients of Azure were created.
    pub client_secrets: Arc<Mutex<Vec<String>>>,
    /// The manager's token, if no directory issues them.
    pub token: String,
    /// How long tokens are valid; without it one is valid for ever.
    pub token_life: Option<Duration>,
    /// A layer in front of Azure that changes its answers, or records requests.
    pub front: Option<Front>,
    /// The directory that issues tokens; without it every client has one.
    pub directory: Option<Entra>,
    running: Option<(JoinHandle<()>, CancellationToken)>,
}

/// A definition without a schema, for kinds of Cluster API's core.
pub fn definition(kind: &str) -> Value {
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
        Self::tuned(seed, |azure| azure.latency = latency)
    }

    /// A world whose Azure has other options.
    pub fn tuned(seed: u64, tune: impl FnOnce(&mut azure_simulator::Options)) -> Self {
        let world = Self::bare(seed, tune);
        for kind in ["Cluster", "Machine", "MachinePool"] {
            world.kubernetes.create(definition(kind)).unwrap();
        }
        world
    }

    /// A world without Cluster API's core.
    pub fn bare(seed: u64, tune: impl FnOnce(&mut azure_simulator::Options)) -> Self {
        if std::env::var_os("CERULEAN_LOG").is_some_and(|it| it == "1") {
            let _ = tracing_subscriber::fmt()
                .with_max_level(tracing_subscriber::filter::LevelFilter::DEBUG)
                .try_init();
        }
        let kubernetes = Kubernetes::new(kubernetes_simulator::Options { seed, ..Default::default() });
        let mut options = azure_simulator::Options {
            seed,
            subscription: SUBSCRIPTION.to_owned(),
            region: "eastus".to_owned(),
            latency: LatencyProfile::instant(),
            budgets: Some(Budgets::default()),
            start: kubernetes.now(),
            ..Default::default()
        };
        tune(&mut options);
        let azure = Azure::new(options);
        for kind in capz_api::crd::KINDS.iter() {
            kubernetes.create(capz_api::crd::definition(kind)).unwrap();
        }
        let settings = capz::Settings { subscription: Some(SUBSCRIPTION.into()), ..Default::default() };
        let world = Self {
            azure,
            kubernetes,
            settings,
            client_secrets: Arc::default(),
            token: "token".to_owned(),
            token_life: None,
            front: None,
            directory: None,
            running: None,
        };
        world.create(json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AzureClusterIdentity",
            "metadata": { "name": "identity", "namespace": NAMESPACE },
            "spec": { "type": "WorkloadIdentity", "clientID": "c", "tenantID": "t", "allowedNamespaces": {} },
        }));
        world
    }

    /// From now on clients must prove that they are this application.
    pub fn demand_proof_of(&mut self, application: Application) {
        let mut options = EntraOptions::new(self.azure.options().tenant.clone(), self.azure.clock());
        options.applications.push(application);
        let directory = Entra::new(options).unwrap();
        self.azure.set_verifier(Arc::new(directory.clone()));
        self.directory = Some(directory);
    }

    pub fn start(&mut self) {
        self.start_with(&KillSwitch::never());
    }

    pub fn start_with(&mut self, switch: &KillSwitch) {
        let stop = CancellationToken::new();
        let client = Client::new(self.kubernetes.router(), "default");
        let since = Duration::try_from(self.kubernetes.now().as_duration()).unwrap();
        let clock = arm::Clock::following_tokio(since);
        let azure = match &self.directory {
            Some(directory) => {
                let transport = Transport::in_process(self.azure.router().merge(directory.router()));
                capz::Azure::new(transport, clock.clone(), self.settings.clone())
            }
            None => {
                let (secrets, token) = (Arc::clone(&self.client_secrets), self.token.clone());
                let (life, dated) = (self.token_life, clock.clone());
                let transport = match &self.front {
                    Some(front) => Transport::in_process(front(self.azure.router())),
                    None => switch.transport(&self.azure),
                };
                let azure = capz::Azure::new(transport, clock.clone(), self.settings.clone());
                azure.with_credentials(Box::new(move |spec, _| {
                    if let CredentialMethod::ClientSecret(secret) = &spec.method {
                        secrets.lock().push(secret.reveal().to_owned());
                    }
                    Ok(life.map_or_else(|| Credential::fixed(&token), |life| issued(&dated, life)))
                }))
            }
        };
        let (settings, token) = (self.settings.clone(), stop.clone());
        // The management cluster stands in for each managed cluster, too.
        let workloads = capz::Workloads::only(Client::new(self.kubernetes.router(), "default"));
        let task = tokio::spawn(async move {
            capz::run(client, azure, settings, clock, workloads, None, token).await.unwrap();
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

    /// A Cluster with its AzureCluster, as they are after admission and the core's first reconcile.
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

    /// A Machine with its AzureMachine and bootstrap data, as the core creates them in a cluster with infrastructure.
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

    /// A machine template of a Cluster, with the core's owner reference.
    pub fn template(&self, cluster: &str, name: &str, spec: Value) {
        let mut object = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AzureMachineTemplate",
            "metadata": {
                "name": name, "namespace": NAMESPACE,
                "labels": { "cluster.x-k8s.io/cluster-name": cluster },
                "ownerReferences": [{ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": cluster,
                    "uid": self.get("Cluster", cluster).unwrap()["metadata"]["uid"] }],
            },
            "spec": { "template": { "spec": spec } },
        });
        let machine = object["spec"]["template"]["spec"].as_object_mut().unwrap();
        for (member, value) in [
            ("vmSize", json!("Standard_D2s_v3")),
            ("osDisk", json!({ "osType": "Linux", "diskSizeGB": 30 })),
            ("sshPublicKey", json!(SSH_KEY)),
        ] {
            machine.entry(member).or_insert(value);
        }
        self.admit("AzureMachineTemplate", object);
    }

    /// The reasons of the events about an object.
    pub fn events(&self, kind: &str, name: &str) -> Vec<String> {
        let all = self.kubernetes.list("Event");
        let about = |event: &Value| {
            let object =
                if event["regarding"].is_object() { &event["regarding"] } else { &event["involvedObject"] };
            object["kind"] == kind && object["name"] == name
        };
        all.iter()
            .map(|event| event.value())
            .filter(|event| about(event))
            .map(|event| event["reason"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// A member of a Secret, as text.
    pub fn secret(&self, name: &str, member: &str) -> Option<String> {
        let encoded = self.get("Secret", name)?["data"][member].as_str()?.to_owned();
        Some(String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap())
    }

    /// Writes a Secret with these members.
    pub fn put_secret(&self, name: &str, members: &[(&str, &str)]) {
        let data: serde_json::Map<String, Value> =
            members.iter().map(|(name, text)| ((*name).to_owned(), json!(STANDARD.encode(text)))).collect();
        if self.get("Secret", name).is_some() {
            self.merge("Secret", name, json!({ "data": data }));
        } else {
            self.create(json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name, "namespace": NAMESPACE }, "data": data,
            }));
        }
    }

    /// Changes an object, as a user does.
    pub fn merge(&self, kind: &str, name: &str, patch: Value) {
        self.kubernetes.merge(kind, NAMESPACE, name, &patch).unwrap();
    }

    pub fn admit(&self, kind: &str, mut object: Value) {
        capz_api::crd::fill_defaults(kind, &mut object);
        let context = capz_api::Context {
            subscription: capz_api::Lookup::Found(SUBSCRIPTION.to_owned()),
            ..Default::default()
        };
        let object = capz_api::admission::set_defaults(kind, object, &context, &mut Fixed).unwrap();
        capz_api::admission::validate(kind, &object, None, &context).unwrap();
        self.create(object);
    }

    /// Sets the network as provisioned, as the core does.
    pub fn provisioned(&self, cluster: &str) {
        let status = json!({ "status": { "initialization": { "infrastructureProvisioned": true } } });
        self.kubernetes.merge_status("Cluster", NAMESPACE, cluster, &status).unwrap();
    }

    /// Whether an object reports that it is ready.
    pub fn is_ready(&self, kind: &str, name: &str) -> bool {
        self.get(kind, name).is_some_and(|it| it["status"]["ready"] == true)
    }

    /// Starts a manager, waits until the network of `my-cluster` exists, and sets it as provisioned.
    pub async fn start_with_network(&mut self) {
        self.start();
        self.until("the cluster", |world| world.is_ready("AzureCluster", "my-cluster")).await;
        self.provisioned("my-cluster");
    }

    /// Deletes a Cluster, as a user does. The core keeps it until all its objects are gone.
    pub fn delete_cluster(&self, name: &str) {
        self.merge("Cluster", name, json!({ "metadata": { "finalizers": ["cluster.cluster.x-k8s.io"] } }));
        self.delete("Cluster", name);
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
                let kinds =
                    capz_api::crd::KINDS.iter().map(|kind| kind.name).chain(["Machine", "MachinePool"]);
                let objects: Vec<Value> = kinds
                    .flat_map(|kind| self.kubernetes.list(kind))
                    .map(|it| {
                        json!([
                            it["kind"],
                            it["metadata"]["name"],
                            it["metadata"]["deletionTimestamp"],
                            it["status"]
                        ])
                    })
                    .collect();
                panic!("not within an hour: {what}\n{:#}", Value::from(objects));
            }
            tokio::time::sleep(LOOK).await;
        }
        begin.elapsed()
    }

    /// The intervals between requests of this method on this type, in seconds of virtual time.
    pub fn gaps(&self, method: &str, resource_type: &str) -> Vec<f64> {
        let journal = self.azure.journal();
        let times: Vec<_> = journal
            .entries
            .iter()
            .filter(|entry| entry.method == method && entry.resource_type.as_deref() == Some(resource_type))
            .map(|entry| entry.time)
            .collect();
        times.windows(2).map(|pair| pair[1].duration_since(pair[0]).as_secs_f64()).collect()
    }

    /// How many requests Azure received after this one, and how many of them write.
    pub fn requests_after(&self, sequence: u64) -> (usize, usize) {
        let journal = self.azure.journal_after(sequence);
        let writes = journal.entries.iter().filter(|entry| entry.method != "GET").count();
        (journal.entries.len(), writes)
    }

    /// The requests after this one, as method and path below the subscription.
    pub fn calls_after(&self, sequence: u64) -> Vec<String> {
        let journal = self.azure.journal_after(sequence);
        let short = |path: &str| path.replace(&format!("/subscriptions/{SUBSCRIPTION}"), "");
        journal.entries.iter().map(|one| format!("{} {}", one.method, short(&one.path))).collect()
    }

    /// Those of them for machines: their interfaces, and everything of Compute.
    pub fn machine_calls_after(&self, sequence: u64) -> Vec<String> {
        let about =
            |call: &String| call.contains("Microsoft.Compute/") || call.contains("/networkInterfaces");
        self.calls_after(sequence).into_iter().filter(about).collect()
    }

    pub fn sequence(&self) -> u64 {
        self.azure.journal().entries.last().map_or(0, |entry| entry.sequence)
    }
}
