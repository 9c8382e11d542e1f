//! The webhooks of the kinds: their paths and their registration.

use serde_json::{Value, json};

use crate::crd::{GROUP, Kind, VERSION};

/// The task of a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Sets defaults.
    Default,
    /// Admits or refuses an object.
    Validate,
}

/// A webhook of a kind.
#[derive(Debug, Clone, Copy)]
pub struct Webhook {
    /// The kind.
    pub kind: &'static str,
    /// The task.
    pub task: Task,
    /// Whether the registration sets `matchPolicy` to its default, Equivalent, explicitly, so that manifests stay the
    /// same when they are compared.
    equivalent: bool,
    /// The operations for which it is called.
    operations: &'static [&'static str],
}

/// The operations of most webhooks.
const WRITES: &[&str] = &["CREATE", "UPDATE"];

impl Webhook {
    const fn new(task: Task, kind: &'static str, equivalent: bool) -> Self {
        Self { kind, task, equivalent, operations: WRITES }
    }

    const fn on(self, operations: &'static [&'static str]) -> Self {
        Self { operations, ..self }
    }

    /// Its path.
    pub fn path(&self) -> String {
        let verb = match self.task {
            Task::Default => "mutate",
            Task::Validate => "validate",
        };
        format!("/{verb}-{}-{VERSION}-{}", GROUP.replace('.', "-"), self.kind.to_lowercase())
    }

    /// Its name in refusals.
    pub fn name(&self) -> String {
        // Names of kinds for managed clusters have the plural.
        let kind = match Kind::named(self.kind).filter(|kind| kind.name.starts_with("AzureManaged")) {
            Some(kind) => kind.plural(),
            None => self.kind.to_lowercase(),
        };
        match self.task {
            Task::Default => format!("default.{kind}.{GROUP}"),
            // This one got its name before there was a rule.
            Task::Validate if self.kind == "AzureMachinePoolMachine" => format!("{kind}.kb.io"),
            Task::Validate => format!("validation.{kind}.{GROUP}"),
        }
    }

    /// The webhook with this path.
    pub fn at(path: &str) -> Option<&'static Self> {
        WEBHOOKS.iter().find(|webhook| webhook.path() == path)
    }

    fn registered(&self) -> Value {
        let mut webhook = json!({
            "name": self.name(),
            "admissionReviewVersions": ["v1", "v1beta1"],
            "clientConfig": {
                "service": { "namespace": NAMESPACE, "name": SERVICE, "path": self.path() }
            },
            "failurePolicy": "Fail",
            "rules": [{
                "apiGroups": [GROUP],
                "apiVersions": [VERSION],
                "operations": self.operations,
                "resources": [Kind::named(self.kind).map(Kind::plural)],
            }],
            "sideEffects": "None",
        });
        if self.equivalent {
            webhook["matchPolicy"] = json!("Equivalent");
        }
        webhook
    }
}

/// All webhooks, in the order in which they are registered.
pub static WEBHOOKS: [Webhook; 25] = [
    Webhook::new(Task::Default, "AzureCluster", true),
    Webhook::new(Task::Default, "AzureClusterTemplate", true),
    Webhook::new(Task::Default, "AzureMachine", true),
    Webhook::new(Task::Default, "AzureMachinePool", false),
    Webhook::new(Task::Default, "AzureMachineTemplate", true),
    Webhook::new(Task::Default, "AzureManagedControlPlane", false),
    Webhook::new(Task::Default, "AzureManagedControlPlaneTemplate", false),
    Webhook::new(Task::Default, "AzureManagedMachinePool", true),
    Webhook::new(Task::Default, "AzureManagedMachinePoolTemplate", false),
    Webhook::new(Task::Validate, "AzureMachinePoolMachine", false),
    Webhook::new(Task::Validate, "AzureASOManagedCluster", false).on(&["CREATE"]),
    Webhook::new(Task::Validate, "AzureASOManagedControlPlane", false).on(&["CREATE"]),
    Webhook::new(Task::Validate, "AzureASOManagedMachinePool", false).on(&["CREATE"]),
    Webhook::new(Task::Validate, "AzureCluster", true),
    Webhook::new(Task::Validate, "AzureClusterIdentity", true),
    Webhook::new(Task::Validate, "AzureClusterTemplate", true),
    Webhook::new(Task::Validate, "AzureMachine", true),
    Webhook::new(Task::Validate, "AzureMachinePool", false),
    Webhook::new(Task::Validate, "AzureMachineTemplate", true),
    Webhook::new(Task::Validate, "AzureManagedCluster", false),
    Webhook::new(Task::Validate, "AzureManagedClusterTemplate", false),
    Webhook::new(Task::Validate, "AzureManagedControlPlane", false),
    Webhook::new(Task::Validate, "AzureManagedControlPlaneTemplate", false),
    Webhook::new(Task::Validate, "AzureManagedMachinePool", true).on(&["CREATE", "UPDATE", "DELETE"]),
    Webhook::new(Task::Validate, "AzureManagedMachinePoolTemplate", false),
];

/// The namespace of the manager.
const NAMESPACE: &str = "capz-system";
/// The Service in front of the manager's webhook server.
const SERVICE: &str = "capz-webhook-service";
/// The cert-manager Certificate whose authority the API server trusts.
const CERTIFICATE: &str = "capz-serving-cert";

/// The registration of all webhooks with this task, in the form that is applied.
pub fn registration(task: Task) -> Value {
    let (kind, name) = match task {
        Task::Default => ("MutatingWebhookConfiguration", "capz-mutating-webhook-configuration"),
        Task::Validate => ("ValidatingWebhookConfiguration", "capz-validating-webhook-configuration"),
    };
    let webhooks: Vec<Value> =
        WEBHOOKS.iter().filter(|webhook| webhook.task == task).map(Webhook::registered).collect();
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {
            "name": name,
            "labels": { "cluster.x-k8s.io/provider": "infrastructure-azure" },
            "annotations": { "cert-manager.io/inject-ca-from": format!("{NAMESPACE}/{CERTIFICATE}") },
        },
        "webhooks": webhooks,
    })
}
