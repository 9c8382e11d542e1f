//! What the controllers are told at the start: what flags and environment say, as values.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::Gates;
use crate::core::WATCH_FILTER;

/// What the controllers are told at the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The only namespace that is looked at; all without one.
    pub namespace: Option<String>,
    /// The value of the label `cluster.x-k8s.io/watch-filter` that objects must bear to be worked on; all without one. All the
    /// others are known, too: what another manager works on is not missing.
    pub watch_filter: Option<String>,
    /// How many objects of a kind are worked on at once.
    pub concurrency: Concurrency,
    /// How long an object rests after it was found as it should be.
    pub debouncing: Duration,
    /// How often all objects are looked at where nothing happens.
    pub sync_period: Duration,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// Which features are on.
    pub gates: Gates,
    /// Whether a machine that comes from no template gets a Secret with its azure.json.
    pub machine_secrets: bool,
    /// Whether a cluster gets a Secret with its credential for Azure Service Operator.
    pub aso_secrets: bool,
    /// The subscription of clusters that name none.
    pub subscription: Option<String>,
    /// The token that proves to Azure who this process is, for identities of the type `WorkloadIdentity`.
    pub federated_token_file: PathBuf,
    /// Where Azure is, instead of where the cluster's `azureEnvironment` says.
    pub endpoints: Endpoints,
}

impl Settings {
    /// Whether an object with these labels is for this manager to work on.
    pub fn takes(&self, labels: Option<&BTreeMap<String, String>>) -> bool {
        self.watch_filter
            .as_ref()
            .is_none_or(|wanted| labels.and_then(|labels| labels.get(WATCH_FILTER)) == Some(wanted))
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

/// How many objects of a kind are worked on at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Concurrency {
    /// AzureClusters, and what is made for clusters.
    pub clusters: usize,
    /// AzureMachines, and what is made for machines and their templates.
    pub machines: usize,
    /// AzureMachinePools, and what is made for pools.
    pub pools: usize,
    /// AzureMachinePoolMachines.
    pub pool_machines: usize,
}

impl Default for Concurrency {
    fn default() -> Self {
        Self { clusters: 10, machines: 10, pools: 10, pool_machines: 10 }
    }
}

/// How long things may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// One look at one object with all that follows. What Azure is at work on then stands in the object's status, and the
    /// next look goes on with it.
    pub reconcile: Duration,
    /// How long to wait after a failure that names no time by itself.
    pub requeue: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { reconcile: Duration::from_secs(90 * 60), requeue: Duration::from_secs(15) }
    }
}

/// Where Azure is, under the names that Azure's libraries and Azure Service Operator have for it. What is not set is as the
/// cluster's `azureEnvironment` says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Endpoints {
    /// `AZURE_AUTHORITY_HOST`: who issues tokens.
    pub authority_host: Option<String>,
    /// `AZURE_RESOURCE_MANAGER_ENDPOINT`: Resource Manager.
    pub resource_manager: Option<String>,
    /// `AZURE_RESOURCE_MANAGER_AUDIENCE`: whom tokens for Resource Manager are for.
    pub audience: Option<String>,
}
