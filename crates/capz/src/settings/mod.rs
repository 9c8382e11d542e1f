//! The configuration of the controllers: flags and environment, as values.

pub mod gates;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

pub use self::gates::{Gate, GateError, Gates, Stage};

/// The label by which several managers divide the objects among them.
const WATCH_FILTER: &str = "cluster.x-k8s.io/watch-filter";

/// The configuration of the controllers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The only namespace that is watched; `None` for all.
    pub namespace: Option<String>,
    /// The value of the label `cluster.x-k8s.io/watch-filter` that objects must bear to be reconciled; `None` for all
    /// objects. Other objects are cached, too: an object of another manager is not missing.
    pub watch_filter: Option<String>,
    /// How many objects of a kind are reconciled at once.
    pub concurrency: Concurrency,
    /// How long an object rests after it was found as desired.
    pub debouncing: Duration,
    /// The interval at which all objects are reconciled if nothing happens.
    pub sync_period: Duration,
    /// The time limits.
    pub timeouts: Timeouts,
    /// The feature gates.
    pub gates: Gates,
    /// Whether a machine without a template gets a Secret with its azure.json.
    pub machine_secrets: bool,
    /// Whether a cluster gets a Secret with its credential for Azure Service Operator.
    pub aso_secrets: bool,
    /// The subscription of clusters that name none.
    pub subscription: Option<String>,
    /// The token of this process for identities of the type `WorkloadIdentity`.
    pub federated_token_file: PathBuf,
    /// Azure's endpoints, instead of those of the cluster's `azureEnvironment`.
    pub endpoints: Endpoints,
}

impl Settings {
    /// Whether this manager reconciles an object with these labels.
    pub fn takes(&self, labels: Option<&BTreeMap<String, String>>) -> bool {
        self.watch_filter
            .as_ref()
            .is_none_or(|wanted| labels.and_then(|labels| labels.get(WATCH_FILTER)) == Some(wanted))
    }

    /// The labels of objects that this manager makes so that it reconciles them.
    pub fn filter_labels(&self) -> BTreeMap<String, String> {
        self.watch_filter.iter().map(|value| (WATCH_FILTER.to_owned(), value.clone())).collect()
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            namespace: None,
            watch_filter: None,
            concurrency: Concurrency::default(),
            debouncing: Duration::from_secs(10),
            sync_period: Duration::from_secs(600),
            timeouts: Timeouts::default(),
            gates: Gates::default(),
            machine_secrets: true,
            aso_secrets: true,
            subscription: None,
            federated_token_file: PathBuf::from("/var/run/secrets/azure/tokens/azure-identity-token"),
            endpoints: Endpoints::default(),
        }
    }
}

/// How many objects of a kind are reconciled at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Concurrency {
    /// AzureClusters, and the objects made for clusters.
    pub clusters: usize,
    /// AzureMachines, and the objects made for machines and their templates.
    pub machines: usize,
    /// AzureMachinePools, and the objects made for pools.
    pub pools: usize,
    /// AzureMachinePoolMachines.
    pub pool_machines: usize,
}

impl Default for Concurrency {
    fn default() -> Self {
        Self { clusters: 10, machines: 10, pools: 10, pool_machines: 10 }
    }
}

/// Time limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// One reconcile of one object. Operations that still run in Azure are then in the object's status, and the next
    /// reconcile resumes them.
    pub reconcile: Duration,
    /// The wait after a failure that names none.
    pub requeue: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { reconcile: Duration::from_secs(90 * 60), requeue: Duration::from_secs(15) }
    }
}

/// Azure's endpoints, with the names that Azure's libraries and Azure Service Operator use. The default is that of the
/// cluster's `azureEnvironment`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Endpoints {
    /// `AZURE_AUTHORITY_HOST`: the token authority.
    pub authority_host: Option<String>,
    /// `AZURE_RESOURCE_MANAGER_ENDPOINT`: Resource Manager.
    pub resource_manager: Option<String>,
    /// `AZURE_RESOURCE_MANAGER_AUDIENCE`: the audience of tokens for Resource Manager.
    pub audience: Option<String>,
}
