//! A management cluster: a Kubernetes with the kinds of Cluster API, and the manager of clusters.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use arm::Credential;
use azure_simulator::Azure;
use kube::Client;
use kubernetes_simulator::{Kubernetes, Object};
use serde_json::{Value, json};
use testkit::KillSwitch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::ledger::Ledger;

pub(super) const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000123";
pub(super) const CORE: &str = "cluster.x-k8s.io/v1beta2";
pub(super) const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io/v1beta1";
pub(super) const LOCATION: &str = "eastus";
const SSH_KEY: &str = "c3NoLWVkMjU1MTkgQUFBQUMzTnphQzFsWkRJMU5URTVBQUFBSUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUEgbWU=";

/// The kinds that the manager watches.
const SERVED: [&str; 12] = [
    "AzureCluster",
    "AzureClusterIdentity",
    "AzureMachine",
    "AzureMachineTemplate",
    "AzureMachinePool",
    "AzureMachinePoolMachine",
    "AzureManagedCluster",
    "AzureManagedControlPlane",
    "AzureManagedMachinePool",
    "AzureASOManagedCluster",
    "AzureASOManagedControlPlane",
    "AzureASOManagedMachinePool",
];

/// Fixed values for what admission generates at random.
struct Fixed;

impl capz_api::Random for Fixed {
    fn guid(&mut self) -> String {
        "5e5e5e5e-0000-4000-8000-000000000000".into()
    }
    fn ssh_public_key(&mut self) -> String {
        SSH_KEY.into()
    }
}

/// One management cluster.
pub(super) struct Management {
    pub(super) kubernetes: Kubernetes,
    running: Option<(JoinHandle<()>, KillSwitch)>,
}

impl Drop for Management {
    fn drop(&mut self) {
        if let Some((task, _)) = &self.running {
            task.abort();
        }
    }
}

/// A definition without a schema, for kinds of Cluster API's core.
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

/// All definitions. Creating them takes as long as running a small world, so they are created once.
static DEFINITIONS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let kinds = capz_api::crd::KINDS.iter().filter(|kind| SERVED.contains(&kind.name));
    let core = ["Cluster", "Machine", "MachinePool"].map(definition);
    kinds.map(capz_api::crd::definition).chain(core).collect()
});

impl Management {
    pub(super) fn new(seed: u64) -> Self {
        let kubernetes = Kubernetes::new(kubernetes_simulator::Options { seed, ..Default::default() });
        for definition in DEFINITIONS.iter() {
            kubernetes.create(definition.clone()).expect("the definition is sound");
        }
        Self { kubernetes, running: None }
    }

    /// Starts the manager. Its connection to Azure breaks as `cut` says.
    pub(super) fn start(&mut self, azure: &Azure, ledger: &Ledger, cut: KillSwitch) {
        let client = Client::new(self.kubernetes.router(), "default");
        let since = Duration::try_from(self.kubernetes.now().as_duration()).expect("it is after 1970");
        let clock = arm::Clock::following_tokio(since);
        let settings = capz::Settings { subscription: Some(SUBSCRIPTION.into()), ..Default::default() };
        let azure = capz::Azure::new(ledger.transport(azure, &cut), clock.clone(), settings.clone());
        let azure = azure.with_credentials(Box::new(|spec, _| {
            // The token identifies the calling cluster.
            Ok(Credential::fixed(&spec.client))
        }));
        let workloads = capz::Workloads::only(Client::new(self.kubernetes.router(), "default"));
        let task = tokio::spawn(async move {
            let stop = CancellationToken::new();
            capz::run(client, azure, settings, clock, workloads, None, stop)
                .await
                .expect("the core is installed");
        });
        self.running = Some((task, cut));
    }

    /// Kills the manager immediately.
    pub(super) async fn kill(&mut self) {
        if let Some((task, _)) = self.running.take() {
            task.abort();
            let ended = task.await;
            assert!(ended.is_err_and(|error| error.is_cancelled()), "the manager ended by itself");
        }
    }

    /// Whether the manager's connection to Azure is broken.
    pub(super) fn is_cut_off(&self) -> bool {
        self.running.as_ref().is_some_and(|(_, cut)| cut.is_tripped())
    }

    /// Whether the manager has ended, which it never does by itself.
    pub(super) fn has_ended(&self) -> bool {
        self.running.as_ref().is_some_and(|(task, _)| task.is_finished())
    }

    pub(super) fn create(&self, object: Value) -> Arc<Object> {
        self.kubernetes.create(object.clone()).unwrap_or_else(|error| panic!("{error:?}: {object}"))
    }

    /// Creates an object after admission.
    pub(super) fn admit(&self, kind: &str, mut object: Value) {
        capz_api::crd::fill_defaults(kind, &mut object);
        let context = capz_api::Context {
            subscription: capz_api::Lookup::Found(SUBSCRIPTION.to_owned()),
            ..Default::default()
        };
        let object = capz_api::admission::set_defaults(kind, object, &context, &mut Fixed);
        let object = object.unwrap_or_else(|denied| panic!("{denied}"));
        capz_api::admission::validate(kind, &object, None, &context)
            .unwrap_or_else(|denied| panic!("{denied}"));
        self.create(object);
    }

    pub(super) fn get(&self, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        self.kubernetes.get(kind, namespace, name).map(|object| object.value().clone())
    }

    pub(super) fn list(&self, kind: &str, namespace: &str) -> Vec<Value> {
        self.kubernetes.list_in(kind, namespace).iter().map(|object| object.value().clone()).collect()
    }

    pub(super) fn merge(&self, kind: &str, namespace: &str, name: &str, patch: &Value) {
        if let Err(error) = self.kubernetes.merge(kind, namespace, name, patch) {
            panic!("{kind} {namespace}/{name}: {error:?}: {patch}");
        }
    }

    pub(super) fn merge_status(&self, kind: &str, namespace: &str, name: &str, status: &Value) {
        let patch = json!({ "status": status });
        self.kubernetes.merge_status(kind, namespace, name, &patch).expect("the status can be written");
    }

    /// Deletes an object that exists and is not deleted yet.
    pub(super) fn delete(&self, kind: &str, namespace: &str, name: &str) {
        if self.get(kind, namespace, name).is_some_and(|it| it["metadata"]["deletionTimestamp"].is_null()) {
            self.kubernetes.delete(kind, namespace, name).expect("it can be deleted");
        }
    }

    /// Creates a namespace if it does not exist.
    pub(super) fn namespace(&self, name: &str) {
        if self.kubernetes.get("Namespace", "", name).is_none() {
            self.create(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } }));
        }
    }

    /// Warnings about an object: reason and message.
    pub(super) fn warnings(&self, kind: &str, namespace: &str, name: &str) -> Vec<String> {
        let events = self.kubernetes.list_in("Event", namespace);
        let about = |event: &&Value| {
            let object =
                if event["regarding"].is_object() { &event["regarding"] } else { &event["involvedObject"] };
            event["type"] == "Warning" && object["kind"] == kind && object["name"] == name
        };
        let said = |event: &Value| {
            let note = if event["note"].is_string() { &event["note"] } else { &event["message"] };
            format!("{}: {}", event["reason"].as_str().unwrap_or_default(), note.as_str().unwrap_or_default())
        };
        events.iter().map(|event| event.value()).filter(about).map(said).collect()
    }
}

/// The SSH key of machines.
pub(super) fn ssh_key() -> Value {
    json!(SSH_KEY)
}
