//! The manager: watches, queues and what all controllers share.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use clock::Clock;
use controllers::queue::{Backoff, Next, Queue};
use controllers::watch::{Selector, watch};
use controllers::{NoObserver, Observer, Recorder};
use kube::core::ApiResource;
use kube::runtime::watcher::Event;
use kube::{Api, Client};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::Settings;
use crate::azure::Azure;
use crate::core;
use crate::kinds::{
    self, AzureCluster, AzureClusterIdentity, AzureMachine, AzureMachinePool, AzureMachineTemplate, Object,
};
use crate::reads::Reads;
use crate::skus::SkuCache;
use crate::store::{Key, Store, key_of};

/// How many objects of a kind are worked on at a time. Nearly all of that work is waiting for Azure, which takes nothing
/// but some kilobytes: the limits that the flags name would only let clusters wait for each other.
const MIN_PARALLEL: usize = 512;
/// How long running work may take to end after a stop.
const DRAIN: Duration = Duration::from_secs(5);
/// A look that nothing but time has caused may use lists that are this old.
const FRESH_ENOUGH: Duration = Duration::from_secs(60);

/// What watches have shown.
#[derive(Default)]
pub struct Stores {
    /// AzureClusters.
    pub azure_clusters:
        Store<capz_api::azure_cluster::AzureClusterSpec, capz_api::azure_cluster::AzureClusterStatus>,
    /// AzureMachines.
    pub azure_machines:
        Store<capz_api::azure_machine::AzureMachineSpec, capz_api::azure_machine::AzureMachineStatus>,
    /// AzureMachineTemplates.
    pub azure_machine_templates: Store<
        capz_api::azure_machine::AzureMachineTemplateSpec,
        capz_api::azure_machine::AzureMachineTemplateStatus,
    >,
    /// AzureMachinePools, where machine pools are on.
    pub azure_machine_pools: Store<
        capz_api::azure_machine_pool::AzureMachinePoolSpec,
        capz_api::azure_machine_pool::AzureMachinePoolStatus,
    >,
    /// AzureClusterIdentities.
    pub identities: Store<
        capz_api::azure_cluster_identity::AzureClusterIdentitySpec,
        capz_api::azure_cluster_identity::AzureClusterIdentityStatus,
    >,
    /// Clusters.
    pub clusters: Store<core::ClusterSpec, core::ClusterStatus>,
    /// Machines.
    pub machines: Store<core::MachineSpec, serde_json::Value>,
}

/// A queue of objects, with when each was last found as it should be, and when it was woken.
pub(crate) struct Work {
    pub queue: Queue<Key>,
    woken: Mutex<HashMap<Key, Instant>>,
    rested: Mutex<HashMap<Key, Instant>>,
}

impl Work {
    fn new(name: &'static str, observer: &Arc<dyn Observer>) -> Self {
        Self {
            queue: Queue::new(name, Backoff::INFRASTRUCTURE, Arc::clone(observer)),
            woken: Mutex::default(),
            rested: Mutex::default(),
        }
    }

    /// Asks for work on an object: something has happened.
    pub fn wake(&self, key: Key) {
        self.woken.lock().insert(key.clone(), Instant::now());
        self.queue.add(key);
    }

    /// How old what is read may be: as old as the event that woke the object, or a bit older where only time did.
    fn not_before(&self, key: &Key) -> Instant {
        let now = Instant::now();
        self.woken.lock().remove(key).unwrap_or_else(|| now.checked_sub(FRESH_ENOUGH).unwrap_or(now))
    }

    /// How long the object still rests, after it was found as it should be.
    fn rests(&self, key: &Key, debouncing: Duration) -> Option<Duration> {
        let mut rested = self.rested.lock();
        let since = rested.get(key)?.elapsed();
        if since < debouncing {
            return Some((debouncing - since).max(Duration::from_secs(1)));
        }
        rested.remove(key);
        None
    }

    fn rest(&self, key: &Key) {
        self.rested.lock().insert(key.clone(), Instant::now());
    }

    fn forget(&self, key: &Key) {
        self.woken.lock().remove(key);
        self.rested.lock().remove(key);
    }
}

/// Queues of objects for which Secrets are made.
pub(crate) struct Secrets {
    pub machines: Arc<Work>,
    pub templates: Arc<Work>,
    pub pools: Arc<Work>,
    pub clusters: Arc<Work>,
}

/// How work on an object ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is as it should be; look again when something happens, or after the sync period.
    Rest,
    /// There is nothing to do for now: somebody else is to act, which will be seen.
    Idle,
    /// Look again after this time.
    After(Duration),
    /// Look again after the back-off.
    Retry,
    /// It is gone.
    Gone,
}

/// What all controllers share.
pub struct Manager {
    pub(crate) client: Client,
    pub(crate) azure: Azure,
    pub(crate) settings: Settings,
    pub(crate) clock: Clock,
    pub(crate) recorder: Recorder,
    pub(crate) stores: Stores,
    pub(crate) reads: Reads,
    pub(crate) skus: SkuCache,
    pub(crate) clusters: Arc<Work>,
    pub(crate) machines: Arc<Work>,
    pub(crate) templates: Arc<Work>,
    pub(crate) secrets: Secrets,
    core_version: String,
}

/// Why the manager did not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Which versions of Cluster API are served is not known.
    #[error("cannot ask which versions of cluster.x-k8s.io are served: {0}")]
    Discovery(#[source] Box<kube::Error>),
    /// Cluster API's core is not installed.
    #[error(
        "neither v1beta2 nor v1beta1 of cluster.x-k8s.io is served: install Cluster API's core first (clusterctl init)"
    )]
    NoCore,
}

/// Runs the controllers until `stop`.
///
/// # Errors
/// Cluster API's core is not installed, or nobody can be asked.
pub async fn run(
    client: Client,
    azure: Azure,
    settings: Settings,
    clock: Clock,
    observer: Option<Arc<dyn Observer>>,
    stop: CancellationToken,
) -> Result<(), RunError> {
    let observer = observer.unwrap_or_else(|| Arc::new(NoObserver));
    let core_version = core_version(&client).await?;
    let (recorder, events) = controllers::recorder(
        client.clone(),
        clock.clone(),
        "",
        "azurecluster-controller",
        Arc::clone(&observer),
    );
    let manager = Arc::new(Manager {
        client: controllers::watch::with_answer_timeout(&client),
        azure,
        clusters: Arc::new(Work::new("azurecluster", &observer)),
        machines: Arc::new(Work::new("azuremachine", &observer)),
        templates: Arc::new(Work::new("azuremachinetemplate", &observer)),
        secrets: Secrets {
            machines: Arc::new(Work::new("azurejsonmachine", &observer)),
            templates: Arc::new(Work::new("azurejsontemplate", &observer)),
            pools: Arc::new(Work::new("azurejsonmachinepool", &observer)),
            clusters: Arc::new(Work::new("asosecret", &observer)),
        },
        settings,
        clock,
        recorder,
        stores: Stores::default(),
        reads: Reads::default(),
        skus: SkuCache::default(),
        core_version,
    });
    let events = tokio::spawn(events.run(stop.clone()));
    let watches = manager.watches(&stop);
    let limits = manager.settings.concurrency;
    let secrets = &manager.secrets;
    let work = async {
        tokio::join!(
            manager.work(&manager.clusters, limits.clusters, &stop, |manager, key, not_before| async move {
                manager.reconcile_cluster(&key, not_before).await
            }),
            manager.work(&manager.machines, limits.machines, &stop, |manager, key, not_before| async move {
                manager.reconcile_machine(&key, not_before).await
            }),
            manager.work(&manager.templates, limits.machines, &stop, |manager, key, _| async move {
                manager.reconcile_template(&key).await
            }),
            manager.work(&secrets.machines, limits.machines, &stop, |manager, key, _| async move {
                manager.reconcile_machine_secret(&key).await
            }),
            manager.work(&secrets.templates, limits.machines, &stop, |manager, key, _| async move {
                manager.reconcile_template_secret(&key).await
            }),
            manager.work(&secrets.pools, limits.pools, &stop, |manager, key, _| async move {
                manager.reconcile_pool_secret(&key).await
            }),
            manager.work(&secrets.clusters, limits.clusters, &stop, |manager, key, _| async move {
                manager.reconcile_aso_secret(&key).await
            }),
        )
    };
    tokio::join!(watches, work);
    let _ = events.await;
    Ok(())
}

/// The newest version of the core's kinds that is served and understood.
async fn core_version(client: &Client) -> Result<String, RunError> {
    let groups = client.list_api_groups().await.map_err(|error| RunError::Discovery(Box::new(error)))?;
    let served = groups.groups.iter().filter(|group| group.name == core::GROUP);
    let served: Vec<&str> = served.flat_map(|group| &group.versions).map(|it| it.version.as_str()).collect();
    ["v1beta2", "v1beta1"]
        .into_iter()
        .find(|version| served.contains(version))
        .map(str::to_owned)
        .ok_or(RunError::NoCore)
}

impl Manager {
    /// The time, as conditions write it.
    pub(crate) fn now(&self) -> String {
        self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    async fn work<F, R>(
        self: &Arc<Self>,
        work: &Arc<Work>,
        parallel: usize,
        stop: &CancellationToken,
        reconcile: F,
    ) where
        F: Fn(Arc<Self>, Key, Instant) -> R + Clone + Send + 'static,
        R: Future<Output = Outcome> + Send + 'static,
    {
        let parallel = parallel.max(MIN_PARALLEL);
        let (manager, shared) = (Arc::clone(self), Arc::clone(work));
        work.queue
            .clone()
            .work(parallel, stop.clone(), DRAIN, move |key: Key| {
                let (manager, work, reconcile) =
                    (Arc::clone(&manager), Arc::clone(&shared), reconcile.clone());
                async move {
                    if let Some(rest) = work.rests(&key, manager.settings.debouncing) {
                        return Next::After(rest);
                    }
                    let not_before = work.not_before(&key);
                    match reconcile(Arc::clone(&manager), key.clone(), not_before).await {
                        Outcome::Rest => {
                            work.rest(&key);
                            Next::After(manager.settings.sync_period)
                        }
                        Outcome::Idle => Next::Done,
                        Outcome::After(wait) => Next::After(wait),
                        Outcome::Retry => Next::Retry,
                        Outcome::Gone => {
                            work.forget(&key);
                            Next::Done
                        }
                    }
                }
            })
            .await;
    }

    /// Watches everything until `stop`.
    async fn watches(self: &Arc<Self>, stop: &CancellationToken) {
        let filter = self.settings.watch_filter.as_ref();
        let labels = || filter.map(|value| format!("{}={value}", core::WATCH_FILTER));
        let core_of = |kind: &str| core::resource(&self.core_version, kind);
        tokio::join!(
            self.follow(
                kinds::resource("AzureClusterIdentity"),
                None,
                stop,
                &self.stores.identities,
                |manager, it: &AzureClusterIdentity| {
                    manager.wake_users_of(&key_of(it));
                }
            ),
            self.follow(
                core_of("Cluster"),
                None,
                stop,
                &self.stores.clusters,
                |manager, it: &core::Cluster| {
                    manager.wake_all_of(&key_of(it));
                }
            ),
            self.follow(
                core_of("Machine"),
                None,
                stop,
                &self.stores.machines,
                |manager, it: &core::Machine| {
                    manager.machines.wake(key_of(it).beside(&it.spec.infrastructure_ref.name));
                }
            ),
            self.follow(
                kinds::resource("AzureCluster"),
                labels(),
                stop,
                &self.stores.azure_clusters,
                |manager, it: &AzureCluster| {
                    manager.clusters.wake(key_of(it));
                    manager.wake_dependants_of(it);
                }
            ),
            self.follow(
                kinds::resource("AzureMachine"),
                labels(),
                stop,
                &self.stores.azure_machines,
                |manager, it: &AzureMachine| {
                    manager.machines.wake(key_of(it));
                    manager.wake_machine_secret(it);
                }
            ),
            self.follow(
                kinds::resource("AzureMachineTemplate"),
                labels(),
                stop,
                &self.stores.azure_machine_templates,
                |manager, it: &AzureMachineTemplate| {
                    manager.templates.wake(key_of(it));
                    manager.secrets.templates.wake(key_of(it));
                }
            ),
            async {
                if self.settings.gates.machine_pool {
                    self.follow(
                        kinds::resource("AzureMachinePool"),
                        labels(),
                        stop,
                        &self.stores.azure_machine_pools,
                        |manager, it: &AzureMachinePool| {
                            manager.secrets.pools.wake(key_of(it));
                        },
                    )
                    .await;
                }
            },
        );
    }

    /// Follows one kind: keeps what is shown, and wakes whoever it concerns. What only its status says concerns nobody
    /// here, but for the core's kinds.
    async fn follow<S, T>(
        self: &Arc<Self>,
        resource: ApiResource,
        labels: Option<String>,
        stop: &CancellationToken,
        store: &Store<S, T>,
        wake: impl Fn(&Self, &Object<S, T>),
    ) where
        S: Clone + std::fmt::Debug + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static,
        T: Clone
            + Default
            + std::fmt::Debug
            + PartialEq
            + Serialize
            + DeserializeOwned
            + Send
            + Sync
            + 'static,
    {
        let ours = resource.group == kinds::GROUP;
        let api: Api<Object<S, T>> = match &self.settings.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        let mut shown: Option<std::collections::HashSet<Key>> = None;
        let what = match resource.kind.as_str() {
            "AzureCluster" => "AzureClusters",
            "AzureMachine" => "AzureMachines",
            "AzureMachineTemplate" => "AzureMachineTemplates",
            "AzureMachinePool" => "AzureMachinePools",
            "AzureClusterIdentity" => "AzureClusterIdentities",
            "Machine" => "Machines",
            _ => "Clusters",
        };
        watch(api, Selector { labels, fields: None }, what, stop.clone(), |event| match event {
            Event::Init => shown = Some(std::collections::HashSet::new()),
            Event::InitApply(object) | Event::Apply(object) => {
                if let Some(shown) = &mut shown {
                    shown.insert(key_of(&object));
                }
                let before = store.put(object.clone());
                if !(ours && before.is_some_and(|before| differs_in_status_alone(&before, &object))) {
                    wake(self, &object);
                }
            }
            Event::InitDone => {
                if let Some(shown) = shown.take() {
                    store.retain(|key| shown.contains(key));
                }
            }
            Event::Delete(object) => {
                store.remove(&key_of(&object));
                wake(self, &object);
            }
        })
        .await;
    }

    /// Wakes the clusters that use an identity.
    fn wake_users_of(&self, identity: &Key) {
        for cluster in self.stores.azure_clusters.all() {
            if crate::identity::key(&cluster).is_ok_and(|key| key == *identity) {
                self.clusters.wake(key_of(&*cluster));
                self.wake_dependants_of(&cluster);
            }
        }
    }

    /// Wakes everything that belongs to a Cluster.
    fn wake_all_of(&self, cluster: &Key) {
        if let Some(found) = self.stores.clusters.get(cluster) {
            let infrastructure = cluster.beside(&found.spec.infrastructure_ref.name);
            self.clusters.wake(infrastructure.clone());
            self.wake_secrets_of(cluster, &infrastructure);
        }
        self.wake_machines_of(cluster);
    }

    /// Wakes what is made from what an AzureCluster says.
    fn wake_dependants_of(&self, azure_cluster: &AzureCluster) {
        let key = key_of(azure_cluster);
        if let Some(cluster) = core::cluster_name(&azure_cluster.metadata) {
            self.wake_secrets_of(&key.beside(cluster), &key);
        }
    }

    /// Wakes the Secrets and templates of a Cluster.
    fn wake_secrets_of(&self, cluster: &Key, azure_cluster: &Key) {
        let belongs = |key: &Key, name: Option<&str>| {
            key.namespace == cluster.namespace && name == Some(cluster.name.as_str())
        };
        if self.settings.aso_secrets {
            self.secrets.clusters.wake(azure_cluster.clone());
        }
        for template in self.stores.azure_machine_templates.all() {
            let key = key_of(&*template);
            let owner = core::owner(template.metadata.owner_references.as_deref(), "Cluster");
            if belongs(&key, owner) {
                self.templates.wake(key.clone());
                self.secrets.templates.wake(key);
            }
        }
        for pool in self.stores.azure_machine_pools.all() {
            let key = key_of(&*pool);
            if belongs(&key, core::cluster_name(&pool.metadata)) {
                self.secrets.pools.wake(key);
            }
        }
        for machine in self.stores.azure_machines.all() {
            if belongs(&key_of(&*machine), core::cluster_name(&machine.metadata)) {
                self.wake_machine_secret(&machine);
            }
        }
    }

    /// Wakes the Secret of an AzureMachine, if it has one of its own.
    fn wake_machine_secret(&self, machine: &AzureMachine) {
        let none = std::collections::BTreeMap::new();
        let annotations = machine.metadata.annotations.as_ref().unwrap_or(&none);
        if self.settings.machine_secrets && capz_planner::azure_json::machine_has_own(annotations) {
            self.secrets.machines.wake(key_of(machine));
        }
    }

    /// Wakes the machines of a Cluster.
    pub(crate) fn wake_machines_of(&self, cluster: &Key) {
        for machine in self.stores.azure_machines.all() {
            let labels = machine.metadata.labels.as_ref();
            let name = labels.and_then(|labels| labels.get(core::CLUSTER_NAME));
            let key = key_of(&*machine);
            if key.namespace == cluster.namespace && name == Some(&cluster.name) {
                self.machines.wake(key);
            }
        }
    }
}

fn differs_in_status_alone<S: Clone + PartialEq, T: Clone>(
    before: &Object<S, T>,
    after: &Object<S, T>,
) -> bool {
    let plain = |object: &Object<S, T>| {
        let metadata = &object.metadata;
        (
            metadata.uid.clone(),
            metadata.generation,
            metadata.labels.clone(),
            metadata.annotations.clone(),
            metadata.finalizers.clone(),
            metadata.owner_references.clone(),
            metadata.deletion_timestamp.is_some(),
        )
    };
    before.spec == after.spec && plain(before) == plain(after)
}
