//! The definitions of Cluster API's kinds, as far as this stand-in reads them: both versions are served, `v1beta2` is
//! stored, and unknown members are preserved.

use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};

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

/// A column of `kubectl get`.
struct Column {
    name: &'static str,
    /// The OpenAPI type of its cells.
    form: &'static str,
    /// The JSON path in `v1beta1`.
    old: &'static str,
    /// The JSON path in `v1beta2`.
    new: &'static str,
    /// Whether only `-o wide` shows it.
    wide: bool,
}

impl Column {
    const fn new(name: &'static str, form: &'static str, old: &'static str, new: &'static str) -> Self {
        Self { name, form, old, new, wide: false }
    }

    /// A column with the same path in both versions.
    const fn same(name: &'static str, form: &'static str, path: &'static str) -> Self {
        Self::new(name, form, path, path)
    }
}

struct Definition {
    group: &'static str,
    kind: &'static str,
    short: &'static [&'static str],
    /// Whether the kind has a status subresource.
    status: bool,
    scale: bool,
    columns: &'static [Column],
    /// Required text members of `spec`.
    required: &'static [&'static str],
}

const AGE: Column = Column::same("Age", "date", ".metadata.creationTimestamp");
const OF_CLUSTER: Column = Column::same("Cluster", "string", ".spec.clusterName");
const LABEL_OF_CLUSTER: Column =
    Column::same("Cluster", "string", r".metadata.labels['cluster\.x-k8s\.io/cluster-name']");
const PHASE: Column = Column::same("Phase", "string", ".status.phase");
const DESIRED: Column = Column::same("Desired", "integer", ".spec.replicas");
const REPLICAS: Column = Column::same("Replicas", "integer", ".status.replicas");
const READY: Column = Column::same("Ready", "integer", ".status.readyReplicas");
const AVAILABLE: Column = Column::same("Available", "integer", ".status.availableReplicas");
const UP_TO_DATE: Column =
    Column::new("Up-to-date", "integer", ".status.updatedReplicas", ".status.upToDateReplicas");
const VERSION: Column = Column::same("Version", "string", ".spec.version");
const VERSION_OF_TEMPLATE: Column = Column::same("Version", "string", ".spec.template.spec.version");

/// A kind of the core whose objects name their cluster, with a status.
const OF_A_CLUSTER: Definition = Definition {
    group: CORE,
    kind: "",
    short: &[],
    status: true,
    scale: false,
    columns: &[AGE],
    required: &["clusterName"],
};

const DEFINITIONS: [Definition; 10] = [
    Definition {
        kind: "Cluster",
        short: &["cl"],
        columns: &[
            Column::new(
                "Available",
                "string",
                ".status.v1beta2.conditions[?(@.type==\"Available\")].status",
                ".status.conditions[?(@.type==\"Available\")].status",
            ),
            Column::new(
                "CP Desired",
                "integer",
                ".status.v1beta2.controlPlane.desiredReplicas",
                ".status.controlPlane.desiredReplicas",
            ),
            Column::new(
                "CP Ready",
                "integer",
                ".status.v1beta2.controlPlane.readyReplicas",
                ".status.controlPlane.readyReplicas",
            ),
            Column::new(
                "W Desired",
                "integer",
                ".status.v1beta2.workers.desiredReplicas",
                ".status.workers.desiredReplicas",
            ),
            Column::new(
                "W Ready",
                "integer",
                ".status.v1beta2.workers.readyReplicas",
                ".status.workers.readyReplicas",
            ),
            PHASE,
            AGE,
        ],
        required: &[],
        ..OF_A_CLUSTER
    },
    Definition {
        kind: "Machine",
        short: &["ma"],
        columns: &[
            OF_CLUSTER,
            Column::same("Node Name", "string", ".status.nodeRef.name"),
            Column { wide: true, ..Column::same("Provider ID", "string", ".spec.providerID") },
            Column::new(
                "Ready",
                "string",
                ".status.v1beta2.conditions[?(@.type==\"Ready\")].status",
                ".status.conditions[?(@.type==\"Ready\")].status",
            ),
            PHASE,
            AGE,
            VERSION,
        ],
        ..OF_A_CLUSTER
    },
    Definition {
        kind: "MachineSet",
        short: &["ms"],
        scale: true,
        columns: &[OF_CLUSTER, DESIRED, REPLICAS, READY, AVAILABLE, AGE, VERSION_OF_TEMPLATE],
        ..OF_A_CLUSTER
    },
    Definition {
        kind: "MachineDeployment",
        short: &["md"],
        scale: true,
        columns: &[OF_CLUSTER, DESIRED, REPLICAS, READY, UP_TO_DATE, PHASE, AGE, VERSION_OF_TEMPLATE],
        ..OF_A_CLUSTER
    },
    Definition {
        kind: "MachinePool",
        short: &["mp"],
        scale: true,
        columns: &[OF_CLUSTER, DESIRED, REPLICAS, READY, PHASE, AGE, VERSION_OF_TEMPLATE],
        ..OF_A_CLUSTER
    },
    Definition {
        kind: "MachineHealthCheck",
        short: &["mhc", "mhcs"],
        columns: &[
            OF_CLUSTER,
            Column::same("Expected", "integer", ".status.expectedMachines"),
            Column::same("Healthy", "integer", ".status.currentHealthy"),
            AGE,
        ],
        ..OF_A_CLUSTER
    },
    Definition {
        group: BOOTSTRAP,
        kind: "KubeadmConfig",
        columns: &[
            LABEL_OF_CLUSTER,
            Column::new(
                "Data secret created",
                "boolean",
                ".status.ready",
                ".status.initialization.dataSecretCreated",
            ),
            AGE,
        ],
        required: &[],
        ..OF_A_CLUSTER
    },
    Definition {
        group: BOOTSTRAP,
        kind: "KubeadmConfigTemplate",
        status: false,
        required: &[],
        ..OF_A_CLUSTER
    },
    Definition {
        group: CONTROL_PLANE,
        kind: "KubeadmControlPlane",
        short: &["kcp"],
        scale: true,
        columns: &[
            LABEL_OF_CLUSTER,
            Column::new(
                "Initialized",
                "boolean",
                ".status.initialized",
                ".status.initialization.controlPlaneInitialized",
            ),
            DESIRED,
            REPLICAS,
            READY,
            UP_TO_DATE,
            AGE,
            VERSION,
        ],
        required: &["version"],
        ..OF_A_CLUSTER
    },
    Definition {
        group: CONTROL_PLANE,
        kind: "KubeadmControlPlaneTemplate",
        status: false,
        required: &[],
        ..OF_A_CLUSTER
    },
];

impl Definition {
    fn plural(&self) -> String {
        format!("{}s", self.kind.to_lowercase())
    }

    fn name(&self) -> String {
        format!("{}.{}", self.plural(), self.group)
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
                "names": {"kind": self.kind, "listKind": format!("{}List", self.kind), "plural": self.plural(),
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
        let open = || json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let mut properties = json!({"apiVersion": {"type": "string"}, "kind": {"type": "string"},
            "metadata": {"type": "object"}, "spec": open()});
        let spec = &mut properties["spec"];
        for name in self.required {
            spec["properties"][name] = json!({"type": "string", "minLength": 1});
            spec["required"] = json!(self.required);
        }
        let mut subresources = json!({});
        if self.status {
            properties["status"] = open();
            subresources["status"] = json!({});
        }
        if self.scale {
            let replicas = json!({"type": "integer", "format": "int32", "minimum": 0});
            properties["spec"]["properties"]["replicas"] = replicas;
            properties["status"]["properties"] =
                json!({"replicas": {"type": "integer", "format": "int32"}, "selector": {"type": "string"}});
            subresources["scale"] = json!({"specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"});
        }
        let column = |column: &Column| {
            json!({"name": column.name, "jsonPath": if newer { column.new } else { column.old },
                "type": column.form, "priority": u8::from(column.wide)})
        };
        let columns: Vec<Value> = self.columns.iter().map(column).collect();
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
