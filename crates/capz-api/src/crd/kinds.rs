//! The kinds: names, columns, and the types from which their schemas are generated.

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};

use crate::azure_aso_managed::{
    AzureAsoManagedClusterSpec, AzureAsoManagedClusterStatus, AzureAsoManagedClusterTemplateSpec,
    AzureAsoManagedControlPlaneSpec, AzureAsoManagedControlPlaneStatus,
    AzureAsoManagedControlPlaneTemplateSpec, AzureAsoManagedMachinePoolSpec,
    AzureAsoManagedMachinePoolStatus, AzureAsoManagedMachinePoolTemplateSpec,
};
use crate::azure_cluster::{AzureClusterSpec, AzureClusterStatus, AzureClusterTemplateSpec};
use crate::azure_cluster_identity::{AzureClusterIdentitySpec, AzureClusterIdentityStatus};
use crate::azure_machine::{
    AzureMachineSpec, AzureMachineStatus, AzureMachineTemplateSpec, AzureMachineTemplateStatus,
};
use crate::azure_machine_pool::{
    AzureMachinePoolMachineSpec, AzureMachinePoolMachineStatus, AzureMachinePoolSpec, AzureMachinePoolStatus,
};
use crate::azure_managed_cluster::{
    AzureManagedClusterSpec, AzureManagedClusterStatus, AzureManagedClusterTemplateSpec,
};
use crate::azure_managed_control_plane::{
    AzureManagedControlPlaneSpec, AzureManagedControlPlaneStatus, AzureManagedControlPlaneTemplateSpec,
};
use crate::azure_managed_machine_pool::{
    AzureManagedMachinePoolSpec, AzureManagedMachinePoolStatus, AzureManagedMachinePoolTemplateSpec,
};

/// The group of all kinds.
pub const GROUP: &str = "infrastructure.cluster.x-k8s.io";
/// The version that is served and stored.
pub const VERSION: &str = "v1beta1";

/// A kind.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// A sentence that describes one object.
    pub description: &'static str,
    /// Its short name, if it has one.
    pub short: Option<&'static str>,
    /// The columns of `kubectl get`.
    pub columns: &'static [Column],
    /// The kind that succeeds it, if it is deprecated: the API server warns clients.
    pub successor: Option<&'static str>,
    /// Whether a webhook refuses a new object with a text only (403), as clients of this kind expect, and not with causes.
    pub refused_by_text: bool,
    pub(super) spec: fn(&mut SchemaGenerator) -> Value,
    pub(super) status: Option<fn(&mut SchemaGenerator) -> Value>,
}

impl Kind {
    /// The kind with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.name == name)
    }

    /// Whether a webhook refuses a new object, or a change, with a text only. Changes of kinds for clusters that Azure
    /// manages are refused with causes, whatever new objects are.
    pub fn is_refused_by_text(&self, is_change: bool) -> bool {
        self.refused_by_text && !(is_change && self.name.starts_with("AzureManaged"))
    }

    /// The warning to clients of a deprecated kind.
    pub fn deprecation(&self) -> Option<String> {
        let successor = self.successor?;
        Some(format!(
            "{} is deprecated, like all AzureManaged kinds: move to {successor} of {GROUP}/{VERSION}",
            self.name
        ))
    }

    /// Its name in paths.
    pub fn plural(&self) -> String {
        let name = self.name.to_lowercase();
        match name.strip_suffix('y') {
            Some(stem) => format!("{stem}ies"),
            None => format!("{name}s"),
        }
    }
}

/// A column of `kubectl get`.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    name: &'static str,
    path: &'static str,
    kind: &'static str,
    /// Whether it is shown only with `-o wide`.
    wide: bool,
}

impl Column {
    const fn new(name: &'static str, path: &'static str) -> Self {
        Self { name, path, kind: "string", wide: false }
    }

    const fn wide(name: &'static str, path: &'static str) -> Self {
        Self { name, path, kind: "string", wide: true }
    }

    const fn age() -> Self {
        Self { name: "Age", path: ".metadata.creationTimestamp", kind: "date", wide: false }
    }

    pub(super) fn value(&self) -> Value {
        let mut column = json!({ "name": self.name, "jsonPath": self.path, "type": self.kind });
        if self.wide {
            column["priority"] = json!(1);
        }
        column
    }
}

const CLUSTER: &str = r".metadata.labels.cluster\.x-k8s\.io/cluster-name";
const READY: &str = ".status.conditions[?(@.type=='Ready')].status";
const REASON: &str = ".status.conditions[?(@.type=='Ready')].reason";
const SEVERITY: &str = ".status.conditions[?(@.type=='Ready')].severity";
const MESSAGE: &str = ".status.conditions[?(@.type=='Ready')].message";
const PROVIDER_ID: &str = ".spec.providerID";
const STATE: &str = ".status.provisioningState";

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

/// All kinds.
pub static KINDS: [Kind; 19] = [
    Kind {
        name: "AzureCluster",
        description: "AzureCluster is the network of a cluster on Azure, and the endpoint of its API server.",
        short: None,
        columns: &[
            Column::new("Cluster", CLUSTER),
            Column::new("Ready", READY),
            Column::new("Reason", REASON),
            Column::wide("Message", MESSAGE),
            Column::wide("Resource Group", ".spec.resourceGroup"),
            Column::wide("SubscriptionID", ".spec.subscriptionID"),
            Column::wide("Location", ".spec.location"),
            Column::wide("Endpoint", ".spec.controlPlaneEndpoint.host"),
            Column::age(),
        ],
        successor: None,
        refused_by_text: false,
        spec: schema_of::<AzureClusterSpec>,
        status: Some(schema_of::<AzureClusterStatus>),
    },
    Kind {
        name: "AzureClusterTemplate",
        description: "AzureClusterTemplate is a template of AzureClusters for a ClusterClass.",
        short: None,
        columns: &[],
        successor: None,
        refused_by_text: false,
        spec: schema_of::<AzureClusterTemplateSpec>,
        status: None,
    },
    Kind {
        name: "AzureClusterIdentity",
        description: "AzureClusterIdentity is the identity with which clusters' resources are made, and the namespaces that may use it.",
        short: None,
        columns: &[Column::new("Type", ".spec.type"), Column::age()],
        successor: None,
        refused_by_text: false,
        spec: schema_of::<AzureClusterIdentitySpec>,
        status: Some(schema_of::<AzureClusterIdentityStatus>),
    },
    Kind {
        name: "AzureMachine",
        description: "AzureMachine is a virtual machine on Azure.",
        short: None,
        columns: &[
            Column::wide("Cluster", CLUSTER),
            Column::new("Ready", READY),
            Column::new("Severity", SEVERITY),
            Column::new("Reason", REASON),
            Column::wide("Message", MESSAGE),
            Column::new("State", ".status.vmState"),
            Column::wide("Machine", ".metadata.ownerReferences[?(@.kind==\"Machine\")].name"),
            Column::wide("VM ID", PROVIDER_ID),
            Column::wide("VM Size", ".spec.vmSize"),
            Column::age(),
        ],
        successor: None,
        refused_by_text: false,
        spec: schema_of::<AzureMachineSpec>,
        status: Some(schema_of::<AzureMachineStatus>),
    },
    Kind {
        name: "AzureMachineTemplate",
        description: "AzureMachineTemplate is a template of AzureMachines.",
        short: None,
        columns: &[],
        successor: None,
        refused_by_text: false,
        spec: schema_of::<AzureMachineTemplateSpec>,
        status: Some(schema_of::<AzureMachineTemplateStatus>),
    },
    Kind {
        name: "AzureMachinePool",
        description: "AzureMachinePool is a scale set of virtual machines on Azure.",
        short: Some("amp"),
        columns: &[
            Column::new("Replicas", ".status.replicas"),
            Column::new("Ready", ".status.ready"),
            Column::new("State", STATE),
            Column::wide("Cluster", CLUSTER),
            Column::wide("MachinePool", ".metadata.ownerReferences[?(@.kind==\"MachinePool\")].name"),
            Column::wide("VMSS ID", PROVIDER_ID),
            Column::wide("VM Size", ".spec.template.vmSize"),
            Column::age(),
        ],
        successor: None,
        refused_by_text: true,
        spec: schema_of::<AzureMachinePoolSpec>,
        status: Some(schema_of::<AzureMachinePoolStatus>),
    },
    Kind {
        name: "AzureMachinePoolMachine",
        description: "AzureMachinePoolMachine is an instance of a scale set on Azure.",
        short: Some("ampm"),
        columns: &[
            Column::new("Version", ".status.version"),
            Column::new("Ready", ".status.ready"),
            Column::new("State", STATE),
            Column::wide("Cluster", CLUSTER),
            Column::wide("VMSS VM ID", PROVIDER_ID),
            Column::age(),
        ],
        successor: None,
        refused_by_text: true,
        spec: schema_of::<AzureMachinePoolMachineSpec>,
        status: Some(schema_of::<AzureMachinePoolMachineStatus>),
    },
    Kind {
        name: "AzureManagedControlPlane",
        description: "AzureManagedControlPlane is a cluster that Azure manages (AKS).",
        short: Some("amcp"),
        columns: &[
            Column::new("Cluster", CLUSTER),
            Column::new("Ready", READY),
            Column::new("Severity", SEVERITY),
            Column::new("Reason", REASON),
            Column::wide("Message", MESSAGE),
            Column::age(),
        ],
        successor: Some("AzureASOManagedControlPlane"),
        refused_by_text: false,
        spec: schema_of::<AzureManagedControlPlaneSpec>,
        status: Some(schema_of::<AzureManagedControlPlaneStatus>),
    },
    Kind {
        name: "AzureManagedControlPlaneTemplate",
        description: "AzureManagedControlPlaneTemplate is a template of AzureManagedControlPlanes for a ClusterClass.",
        short: Some("amcpt"),
        columns: &[],
        successor: Some("AzureASOManagedControlPlaneTemplate"),
        refused_by_text: false,
        spec: schema_of::<AzureManagedControlPlaneTemplateSpec>,
        status: None,
    },
    Kind {
        name: "AzureManagedCluster",
        description: "AzureManagedCluster is the endpoint of a cluster that Azure manages (AKS), for Cluster API.",
        short: Some("amc"),
        columns: &[Column::new("Cluster", CLUSTER), Column::new("Ready", ".status.ready"), Column::age()],
        successor: Some("AzureASOManagedCluster"),
        refused_by_text: false,
        spec: schema_of::<AzureManagedClusterSpec>,
        status: Some(schema_of::<AzureManagedClusterStatus>),
    },
    Kind {
        name: "AzureManagedClusterTemplate",
        description: "AzureManagedClusterTemplate is a template of AzureManagedClusters for a ClusterClass.",
        short: Some("amct"),
        columns: &[],
        successor: Some("AzureASOManagedClusterTemplate"),
        refused_by_text: false,
        spec: schema_of::<AzureManagedClusterTemplateSpec>,
        status: None,
    },
    Kind {
        name: "AzureManagedMachinePool",
        description: "AzureManagedMachinePool is a node pool of a cluster that Azure manages.",
        short: Some("ammp"),
        columns: &[
            Column::new("Cluster", CLUSTER),
            Column::new("Ready", READY),
            Column::new("Severity", SEVERITY),
            Column::new("Reason", REASON),
            Column::wide("Message", MESSAGE),
            Column::age(),
            Column::new("Mode", ".spec.mode"),
        ],
        successor: Some("AzureASOManagedMachinePool"),
        refused_by_text: true,
        spec: schema_of::<AzureManagedMachinePoolSpec>,
        status: Some(schema_of::<AzureManagedMachinePoolStatus>),
    },
    Kind {
        name: "AzureManagedMachinePoolTemplate",
        description: "AzureManagedMachinePoolTemplate is a template of AzureManagedMachinePools.",
        short: Some("ammpt"),
        columns: &[],
        successor: Some("AzureASOManagedMachinePoolTemplate"),
        refused_by_text: true,
        spec: schema_of::<AzureManagedMachinePoolTemplateSpec>,
        status: None,
    },
    Kind {
        name: "AzureASOManagedCluster",
        description: "AzureASOManagedCluster is the infrastructure of a cluster that Azure manages, as resources of Azure Service Operator.",
        short: None,
        columns: &[],
        successor: None,
        refused_by_text: true,
        spec: schema_of::<AzureAsoManagedClusterSpec>,
        status: Some(schema_of::<AzureAsoManagedClusterStatus>),
    },
    Kind {
        name: "AzureASOManagedClusterTemplate",
        description: "AzureASOManagedClusterTemplate is a template of AzureASOManagedClusters.",
        short: None,
        columns: &[],
        successor: None,
        refused_by_text: true,
        spec: schema_of::<AzureAsoManagedClusterTemplateSpec>,
        status: None,
    },
    Kind {
        name: "AzureASOManagedControlPlane",
        description: "AzureASOManagedControlPlane is the control plane of a cluster that Azure manages, as resources of Azure Service Operator.",
        short: None,
        columns: &[],
        successor: None,
        refused_by_text: true,
        spec: schema_of::<AzureAsoManagedControlPlaneSpec>,
        status: Some(schema_of::<AzureAsoManagedControlPlaneStatus>),
    },
    Kind {
        name: "AzureASOManagedControlPlaneTemplate",
        description: "AzureASOManagedControlPlaneTemplate is a template of AzureASOManagedControlPlanes.",
        short: None,
        columns: &[],
        successor: None,
        refused_by_text: true,
        spec: schema_of::<AzureAsoManagedControlPlaneTemplateSpec>,
        status: None,
    },
    Kind {
        name: "AzureASOManagedMachinePool",
        description: "AzureASOManagedMachinePool is a node pool of a cluster that Azure manages, as resources of Azure Service Operator.",
        short: None,
        columns: &[],
        successor: None,
        refused_by_text: true,
        spec: schema_of::<AzureAsoManagedMachinePoolSpec>,
        status: Some(schema_of::<AzureAsoManagedMachinePoolStatus>),
    },
    Kind {
        name: "AzureASOManagedMachinePoolTemplate",
        description: "AzureASOManagedMachinePoolTemplate is a template of AzureASOManagedMachinePools.",
        short: None,
        columns: &[],
        successor: None,
        refused_by_text: true,
        spec: schema_of::<AzureAsoManagedMachinePoolTemplateSpec>,
        status: None,
    },
];
