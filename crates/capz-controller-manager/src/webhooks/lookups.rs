//! Look-ups of other objects for some rules, made only when they are needed: from the API server, because not every
//! replica has a cache of it.

use std::time::Duration;

use capz_api::admission::{Needs, cluster_of};
use capz_api::azure_managed_machine_pool::{MODE_LABEL, SYSTEM};
use capz_api::{ClusterNetwork, Lookup, SystemPools};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::core::PartialObjectMeta;
use kube::{Api, Client};
use serde_json::Value;
use tokio::time::{Instant, sleep};

/// Objects of one manifest arrive one after the other: a missing object is read again until this timeout. The API
/// server waits 10 s for the answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// A placeholder in dry runs for the subscription of a cluster that does not exist yet.
const UNKNOWN_SUBSCRIPTION: &str = "SUBSCRIPTION-OF-THE-CLUSTER";

/// The interval between two reads.
const REST: Duration = Duration::from_millis(500);

/// The label with the name of an object's cluster.
const CLUSTER_LABEL: &str = "cluster.x-k8s.io/cluster-name";

/// The supported versions of Cluster API; the members read here are the same in both.
const CORE_VERSIONS: [&str; 2] = ["v1beta2", "v1beta1"];

/// Looks up other objects.
#[derive(Clone)]
pub struct Lookups {
    client: Client,
    /// The subscription of clusters that name none.
    subscription: Option<String>,
}

/// The results for one object.
#[derive(Debug, Default)]
pub(super) struct LookupResults {
    pub(super) subscription: Lookup<String>,
    pub(super) pool_version: Lookup<String>,
    pub(super) system_pools: Lookup<SystemPools>,
    pub(super) cluster_network: Lookup<ClusterNetwork>,
}

impl Lookups {
    /// Uses `client`; clusters that name no subscription are in this one.
    pub fn new(client: Client, subscription: Option<String>) -> Self {
        Self { client, subscription }
    }

    /// The look-ups that validation of an object needs. The objects of a bundle refer to each other, and a dry run
    /// stores none of them: a missing object is then neither waited for nor a reason to refuse.
    pub(super) async fn find(
        &self,
        kind: &str,
        object: &Value,
        needs: Needs,
        dry_run: bool,
    ) -> LookupResults {
        if needs == Needs::default() {
            return LookupResults::default();
        }
        let patience = if dry_run { REST } else { PATIENCE };
        let mut results = self.look_up(kind, object, needs, Instant::now() + patience).await;
        if dry_run && matches!(results.pool_version, Lookup::Failed(_)) {
            results.pool_version = Lookup::NotNeeded;
        }
        if dry_run && matches!(results.subscription, Lookup::Failed(_)) {
            let own = self.subscription.clone();
            results.subscription = Lookup::Found(own.unwrap_or_else(|| UNKNOWN_SUBSCRIPTION.to_owned()));
        }
        if dry_run && matches!(results.cluster_network, Lookup::Failed(_)) {
            results.cluster_network = Lookup::NotNeeded;
        }
        results
    }

    async fn look_up(&self, kind: &str, object: &Value, needs: Needs, deadline: Instant) -> LookupResults {
        let mut results = LookupResults::default();
        let pool = if kind == "AzureMachinePool" {
            Some(until(deadline, || self.machine_pool(object)).await)
        } else {
            None
        };
        if needs.pool_version {
            results.pool_version = lookup(
                pool.clone().unwrap_or_else(|| Err("the object is not a pool".to_owned())).and_then(|pool| {
                    text(
                        &pool,
                        "/spec/template/spec/version",
                        "the MachinePool names no version of Kubernetes",
                    )
                }),
            );
        }
        if needs.subscription {
            let cluster = match pool {
                Some(pool) => {
                    pool.and_then(|pool| text(&pool, "/spec/clusterName", "the MachinePool names no cluster"))
                }
                None => label_of(object),
            };
            results.subscription = lookup(match cluster {
                Ok(cluster) => until(deadline, || self.subscription(object, &cluster)).await,
                Err(why) => Err(why),
            });
        }
        if needs.system_pools {
            results.system_pools = lookup(match label_of(object) {
                Ok(cluster) => until(deadline, || self.system_pools(object, &cluster)).await,
                Err(why) => Err(why),
            });
        }
        if needs.cluster_network {
            results.cluster_network = lookup(match label_of(object) {
                Ok(cluster) => until(deadline, || self.cluster_network(object, &cluster)).await,
                Err(why) => Err(why),
            });
        }
        results
    }

    /// The MachinePool that refers to an AzureMachinePool.
    async fn machine_pool(&self, object: &Value) -> Result<Value, String> {
        let (namespace, name) = place(object);
        let pools = self.core("MachinePool", "machinepools", &namespace, None).await?;
        let is_for = |pool: &Value| {
            let reference = &pool["spec"]["template"]["spec"]["infrastructureRef"];
            reference["kind"] == "AzureMachinePool" && reference["name"] == name
        };
        pools
            .into_iter()
            .map(|pool| pool.data)
            .find(is_for)
            .ok_or_else(|| format!("no MachinePool in {namespace} refers to {name}"))
    }

    /// A Cluster in the namespace of an object.
    async fn cluster(&self, object: &Value, name: &str) -> Result<Value, String> {
        let (namespace, _) = place(object);
        let clusters = self.core("Cluster", "clusters", &namespace, Some(name)).await?;
        let cluster = clusters.into_iter().next().map(|cluster| cluster.data);
        cluster.ok_or_else(|| format!("there is no Cluster {namespace}/{name}"))
    }

    /// The ranges of a Cluster.
    async fn cluster_network(&self, object: &Value, cluster: &str) -> Result<ClusterNetwork, String> {
        let cluster = self.cluster(object, cluster).await?;
        let ranges = |member: &str| {
            let ranges = cluster["spec"]["clusterNetwork"][member]["cidrBlocks"].as_array();
            ranges.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Ok(ClusterNetwork { services: ranges("services"), pods: ranges("pods") })
    }

    /// The subscription of a cluster.
    async fn subscription(&self, object: &Value, cluster: &str) -> Result<String, String> {
        let (namespace, _) = place(object);
        let declared = self.cluster(object, cluster).await?;
        let name = text(&declared, "/spec/infrastructureRef/name", "the Cluster refers to no AzureCluster")?;
        let kind = GroupVersionKind::gvk(capz_api::crd::GROUP, capz_api::crd::VERSION, "AzureCluster");
        let kind = ApiResource::from_gvk_with_plural(&kind, "azureclusters");
        let clusters: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &namespace, &kind);
        let cluster = clusters.get_opt(&name).await.map_err(|error| error.to_string())?;
        let cluster = cluster.ok_or_else(|| format!("there is no AzureCluster {namespace}/{name}"))?;
        match cluster.data["spec"]["subscriptionID"].as_str() {
            Some(subscription) if !subscription.is_empty() => Ok(subscription.to_owned()),
            _ => self.subscription.clone().ok_or_else(|| {
                format!("AzureCluster {namespace}/{name} names no subscription, and AZURE_SUBSCRIPTION_ID is not set")
            }),
        }
    }

    /// The System pools of a cluster besides this one.
    async fn system_pools(&self, pool: &Value, cluster: &str) -> Result<SystemPools, String> {
        let (namespace, name) = place(pool);
        let clusters = self.core("Cluster", "clusters", &namespace, Some(cluster)).await?;
        let cluster_goes =
            clusters.first().is_none_or(|cluster| cluster.metadata.deletion_timestamp.is_some());
        let kind =
            GroupVersionKind::gvk(capz_api::crd::GROUP, capz_api::crd::VERSION, "AzureManagedMachinePool");
        let kind = ApiResource::from_gvk_with_plural(&kind, "azuremanagedmachinepools");
        let pools: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &namespace, &kind);
        let system =
            ListParams::default().labels(&format!("{CLUSTER_LABEL}={cluster},{MODE_LABEL}={SYSTEM}"));
        let pools = pools.list_metadata(&system).await.map_err(|error| error.to_string())?;
        // A pool that is being deleted runs no pods for long.
        let stays = |pool: &&PartialObjectMeta<DynamicObject>| {
            pool.metadata.name.as_deref() != Some(&name) && pool.metadata.deletion_timestamp.is_none()
        };
        Ok(SystemPools { cluster_goes, others: pools.items.iter().filter(stays).count() })
    }

    /// Objects of Cluster API, in whichever version is served.
    async fn core(
        &self,
        kind: &str,
        plural: &str,
        namespace: &str,
        name: Option<&str>,
    ) -> Result<Vec<DynamicObject>, String> {
        let mut parameters = ListParams::default();
        if let Some(name) = name {
            parameters = parameters.fields(&format!("metadata.name={name}"));
        }
        for version in CORE_VERSIONS {
            let kind = GroupVersionKind::gvk("cluster.x-k8s.io", version, kind);
            let kind = ApiResource::from_gvk_with_plural(&kind, plural);
            let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &kind);
            match api.list(&parameters).await {
                Ok(list) => return Ok(list.items),
                // This version is not served.
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Err(format!("Cluster API, which has the kind {kind}, is not installed"))
    }
}

fn lookup<T>(found: Result<T, String>) -> Lookup<T> {
    match found {
        Ok(found) => Lookup::Found(found),
        Err(why) => Lookup::Failed(why),
    }
}

/// Retries until there is an answer, or until the deadline.
async fn until<T, F: Future<Output = Result<T, String>>>(
    deadline: Instant,
    ask: impl Fn() -> F,
) -> Result<T, String> {
    let mut last = "the Kubernetes API does not answer".to_owned();
    loop {
        match tokio::time::timeout_at(deadline, ask()).await {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(why)) if Instant::now() + REST >= deadline => return Err(why),
            Ok(Err(why)) => last = why,
            Err(_) => return Err(last),
        }
        sleep(REST).await;
    }
}

fn place(object: &Value) -> (String, String) {
    let member = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
    (member("namespace"), member("name"))
}

/// The cluster of an object, by its label.
fn label_of(object: &Value) -> Result<String, String> {
    let label = cluster_of(object).map(str::to_owned);
    label.ok_or_else(|| format!("the object has no label {CLUSTER_LABEL}"))
}

fn text(object: &Value, pointer: &str, otherwise: &str) -> Result<String, String> {
    let found = object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
    found.map(str::to_owned).ok_or_else(|| otherwise.to_owned())
}
