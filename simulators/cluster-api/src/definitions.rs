//! The definitions of Cluster API's kinds, as far as this stand-in reads them: both versions are served, `v1beta2` is
//! stored, and unknown members are preserved.

use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Map, Value, json};

use crate::names::{BOOTSTRAP, CONTROL_PLANE, CORE};
use crate::part::Part;

/// Where API servers reach the conversion webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversionWebhook {
    /// The URL of [`crate::conversion_router`]'s path `/convert`, over TLS.
    pub url: String,
    /// The certificate of the webhook's authority, as PEM.
    pub authority: String,
}

/// A column of `kubectl get`: its name, the JSON path in `v1beta1` and in `v1beta2`, its type, and whether only
/// `-o wide` shows it.
type Column = (&'static str, &'static str, &'static str, &'static str, bool);

struct Definition {
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    short: &'static [&'static str],
    /// Whether the kind has a status subresource.
    status: bool,
    scale: bool,
    columns: &'static [Column],
    /// Required text members of `spec`.
    required: &'static [&'static str],
}

const AGE: Column = ("Age", ".metadata.creationTimestamp", ".metadata.creationTimestamp", "date", false);
const OF_CLUSTER: Column = ("Cluster", ".spec.clusterName", ".spec.clusterName", "string", false);
const PHASE: Column = ("Phase", ".status.phase", ".status.phase", "string", false);
const DESIRED: Column = ("Desired", ".spec.replicas", ".spec.replicas", "integer", false);
const REPLICAS: Column = ("Replicas", ".status.replicas", ".status.replicas", "integer", false);
const READY: Column = ("Ready", ".status.readyReplicas", ".status.readyReplicas", "integer", false);
const AVAILABLE: Column =
    ("Available", ".status.availableReplicas", ".status.availableReplicas", "integer", false);
const UP_TO_DATE: Column =
    ("Up-to-date", ".status.updatedReplicas", ".status.upToDateReplicas", "integer", false);
const VERSION: Column =
    ("Version", ".spec.template.spec.version", ".spec.template.spec.version", "string", false);

const DEFINITIONS: [Definition; 10] = [
    Definition {
        group: CORE,
        kind: "Cluster",
        plural: "clusters",
        short: &["cl"],
        status: true,
        scale: false,
        columns: &[
            (
                "Available",
                ".status.v1beta2.conditions[?(@.type==\"Available\")].status",
                ".status.conditions[?(@.type==\"Available\")].status",
                "string",
                false,
            ),
            (
                "CP Desired",
                ".status.v1beta2.controlPlane.desiredReplicas",
                ".status.controlPlane.desiredReplicas",
                "integer",
                false,
            ),
            (
                "CP Ready",
                ".status.v1beta2.controlPlane.readyReplicas",
                ".status.controlPlane.readyReplicas",
                "integer",
                false,
            ),
            (
                "W Desired",
                ".status.v1beta2.workers.desiredReplicas",
                ".status.workers.desiredReplicas",
                "integer",
                false,
            ),
            (
                "W Ready",
                ".status.v1beta2.workers.readyReplicas",
                ".status.workers.readyReplicas",
                "integer",
                false,
            ),
            PHASE,
            AGE,
        ],
        required: &[],
    },
    Definition {
        group: CORE,
        kind: "Machine",
        plural: "machines",
        short: &["ma"],
        status: true,
        scale: false,
        columns: &[
            OF_CLUSTER,
            ("Node Name", ".status.nodeRef.name", ".status.nodeRef.name", "string", false),
            ("Provider ID", ".spec.providerID", ".spec.providerID", "string", true),
            (
                "Ready",
                ".status.v1beta2.conditions[?(@.type==\"Ready\")].status",
                ".status.conditions[?(@.type==\"Ready\")].status",
                "string",
                false,
            ),
            PHASE,
            AGE,
            ("Version", ".spec.version", ".spec.version", "string", false),
        ],
        required: &["clusterName"],
    },
    Definition {
        group: CORE,
        kind: "MachineSet",
        plural: "machinesets",
        short: &["ms"],
        status: true,
        scale: true,
        columns: &[OF_CLUSTER, DESIRED, REPLICAS, READY, AVAILABLE, AGE, VERSION],
        required: &["clusterName"],
    },
    Definition {
        group: CORE,
        kind: "MachineDeployment",
        plural: "machinedeployments",
        short: &["md"],
        status: true,
        scale: true,
        columns: &[OF_CLUSTER, DESIRED, REPLICAS, READY, UP_TO_DATE, PHASE, AGE, VERSION],
        required: &["clusterName"],
    },
    Definition {
        group: CORE,
        kind: "MachinePool",
        plural: "machinepools",
        short: &["mp"],
        status: true,
        scale: true,
        columns: &[OF_CLUSTER, DESIRED, REPLICAS, READY, PHASE, AGE, VERSION],
        required: &["clusterName"],
    },
    Definition {
        group: CORE,
        kind: "MachineHealthCheck",
        plural: "machinehealthchecks",
        short: &["mhc", "mhcs"],
        status: true,
        scale: false,
        columns: &[
            OF_CLUSTER,
            ("Expected", ".status.expectedMachines", ".status.expectedMachines", "integer", false),
            ("Healthy", ".status.currentHealthy", ".status.currentHealthy", "integer", false),
            AGE,
        ],
        required: &["clusterName"],
    },
    Definition {
        group: BOOTSTRAP,
        kind: "KubeadmConfig",
        plural: "kubeadmconfigs",
        short: &[],
        status: true,
        scale: false,
        columns: &[
            (
                "Cluster",
                r".metadata.labels['cluster\.x-k8s\.io/cluster-name']",
                r".metadata.labels['cluster\.x-k8s\.io/cluster-name']",
                "string",
                false,
            ),
            (
                "Data secret created",
                ".status.ready",
                ".status.initialization.dataSecretCreated",
                "boolean",
                false,
            ),
            AGE,
        ],
        required: &[],
    },
    Definition {
        group: BOOTSTRAP,
        kind: "KubeadmConfigTemplate",
        plural: "kubeadmconfigtemplates",
        short: &[],
        status: false,
        scale: false,
        columns: &[AGE],
        required: &[],
    },
    Definition {
        group: CONTROL_PLANE,
        kind: "KubeadmControlPlane",
        plural: "kubeadmcontrolplanes",
        short: &["kcp"],
        status: true,
        scale: true,
        columns: &[
            (
                "Cluster",
                r".metadata.labels['cluster\.x-k8s\.io/cluster-name']",
                r".metadata.labels['cluster\.x-k8s\.io/cluster-name']",
                "string",
                false,
            ),
            (
                "Initialized",
                ".status.initialized",
                ".status.initialization.controlPlaneInitialized",
                "boolean",
                false,
            ),
            DESIRED,
            REPLICAS,
            READY,
            UP_TO_DATE,
            AGE,
            ("Version", ".spec.version", ".spec.version", "string", false),
        ],
        required: &["version"],
    },
    Definition {
        group: CONTROL_PLANE,
        kind: "KubeadmControlPlaneTemplate",
        plural: "kubeadmcontrolplanetemplates",
        short: &[],
        status: false,
        scale: false,
        columns: &[AGE],
        required: &[],
    },
];

impl Definition {
    fn name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    fn document(&self, webhook: &ConversionWebhook) -> Value {
        use base64::Engine as _;
        let authority = base64::engine::general_purpose::STANDARD.encode(&webhook.authority);
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": self.name(), "labels": {
                "cluster.x-k8s.io/provider": self.provider(),
                "cluster.x-k8s.io/v1beta1": "v1beta1",
                "cluster.x-k8s.io/v1beta2": "v1beta2",
            }},
            "spec": {
                "group": self.group,
                "scope": "Namespaced",
                "names": {"kind": self.kind, "listKind": format!("{}List", self.kind), "plural": self.plural,
                    "singular": self.kind.to_lowercase(), "shortNames": self.short, "categories": ["cluster-api"]},
                "versions": [self.version("v1beta1"), self.version("v1beta2")],
                "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1", "v1beta1"],
                    "clientConfig": {"url": webhook.url, "caBundle": authority}}},
            },
        })
    }

    fn part(&self) -> Part {
        match self.group {
            BOOTSTRAP => Part::Bootstrap,
            CONTROL_PLANE => Part::ControlPlane,
            _ => Part::Core,
        }
    }

    fn provider(&self) -> &'static str {
        match self.group {
            BOOTSTRAP => "bootstrap-kubeadm",
            CONTROL_PLANE => "control-plane-kubeadm",
            _ => "cluster-api",
        }
    }

    fn version(&self, version: &str) -> Value {
        let newer = version == "v1beta2";
        let open = |properties: Value, required: Value| {
            let mut schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            for (member, value) in [("properties", properties), ("required", required)] {
                if !value.is_null() {
                    schema[member] = value;
                }
            }
            schema
        };
        let mut members: Map<String, Value> = self
            .required
            .iter()
            .map(|name| ((*name).to_owned(), json!({"type": "string", "minLength": 1})))
            .collect();
        if self.scale {
            members
                .insert("replicas".to_owned(), json!({"type": "integer", "format": "int32", "minimum": 0}));
        }
        let required = if self.required.is_empty() { Value::Null } else { json!(self.required) };
        let members = if members.is_empty() { Value::Null } else { members.into() };
        let mut properties = json!({
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": open(members, required),
        });
        let mut subresources = Map::new();
        if self.status {
            let mut status = Map::new();
            if self.scale {
                status.insert("replicas".to_owned(), json!({"type": "integer", "format": "int32"}));
                status.insert("selector".to_owned(), json!({"type": "string"}));
            }
            let status = if status.is_empty() { Value::Null } else { status.into() };
            properties["status"] = open(status, Value::Null);
            subresources.insert("status".to_owned(), json!({}));
        }
        if self.scale {
            subresources.insert(
                "scale".to_owned(),
                json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
                    "labelSelectorPath": ".status.selector"}),
            );
        }
        let columns: Vec<Value> = self
            .columns
            .iter()
            .map(|(name, old, new, kind, wide)| {
                json!({"name": name, "jsonPath": if newer { new } else { old }, "type": kind,
                    "priority": u8::from(*wide)})
            })
            .collect();
        json!({"name": version, "served": true, "storage": newer, "subresources": subresources,
            "additionalPrinterColumns": columns, "schema": {"openAPIV3Schema": {"type": "object",
                "description": format!("{} as far as a stand-in for Cluster API looks.", self.kind),
                "properties": properties}}})
    }
}

/// Returns Cluster API's definitions with this conversion webhook.
pub fn definitions(webhook: &ConversionWebhook) -> Vec<Value> {
    DEFINITIONS.iter().map(|definition| definition.document(webhook)).collect()
}

/// Applies the definitions, and waits until the server accepts objects of all kinds.
///
/// # Errors
/// The server's error.
pub async fn install(client: &Client, webhook: &ConversionWebhook) -> Result<(), kube::Error> {
    install_parts(Part::ALL, client, webhook).await
}

/// Like [`install`], but only for the kinds of these parts.
///
/// # Errors
/// The server's error.
pub async fn install_parts(
    parts: &[Part],
    client: &Client,
    webhook: &ConversionWebhook,
) -> Result<(), kube::Error> {
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&kind));
    let played: Vec<&Definition> =
        DEFINITIONS.iter().filter(|definition| parts.contains(&definition.part())).collect();
    for definition in &played {
        let parameters = PatchParams::apply("cluster-api-stand-in").force();
        api.patch(&definition.name(), &parameters, &Patch::Apply(definition.document(webhook))).await?;
    }
    for definition in &played {
        let is_established = |object: &DynamicObject| {
            let conditions = object.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.iter().any(|one| one["type"] == "Established" && one["status"] == "True")
        };
        while !is_established(&api.get(&definition.name()).await?) {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }
    Ok(())
}
