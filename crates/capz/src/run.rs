//! The manager: it watches objects and runs the controllers.

use std::sync::Arc;
use std::time::Duration;

use capz_api::azure_aso_managed::{AzureAsoManagedClusterSpec, AzureAsoManagedControlPlaneSpec};
use clock::Clock;
use controllers::watch::{Selector, watch};
use controllers::{NoObserver, Observer};
use k8s::api::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::ApiResource;
use kube::runtime::watcher::Event;
use kube::{Api, Client};
use tokio::sync::SetOnce;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::azure::clients::Azure;
use crate::azure::instances::Instances;
use crate::azure::reads::Reads;
use crate::azure::repeats::RecentWrites;
use crate::azure::skus::SkuCache;
use crate::azure::spans;
use crate::context::manager::{
    CompleteLists, Ended, Events, MANAGER, ManagedQueues, Manager, SecretQueues, Stores,
};
use crate::kubernetes::concerns;
use crate::kubernetes::controller;
use crate::kubernetes::core;
use crate::kubernetes::kinds::{self, Object, ObjectKind};
use crate::kubernetes::operator::Operator;
use crate::kubernetes::queue::{Outcome, WorkQueue};
use crate::kubernetes::store::{Key, Store, key_of};
use crate::kubernetes::workload::Workloads;
use crate::settings::Settings;

/// The number of objects of a kind that are reconciled at a time. Nearly all of that time is spent waiting for Azure,
/// which costs a few kilobytes each; the limits of the flags would only make clusters wait for each other.
const MIN_PARALLEL: usize = 512;
/// How often the manager checks whether the version of Cluster API's kinds in use is still served.
const CORE_INTERVAL: Duration = Duration::from_secs(60);
/// How long running reconciles may take to end after a stop.
const DRAIN: Duration = Duration::from_secs(5);

/// Why the manager stopped or did not start.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The served versions of Cluster API are unknown.
    #[error("cannot ask which versions of cluster.x-k8s.io are served: {0}")]
    Discovery(#[source] Box<kube::Error>),
    /// Cluster API's core is not installed.
    #[error(
        "neither v1beta2 nor v1beta1 of cluster.x-k8s.io is served: install Cluster API's core first (clusterctl init)"
    )]
    NoCore,
    /// Cluster API's core was replaced by a version that does not serve the API version in use.
    #[error("{0} of cluster.x-k8s.io is no longer served: restart to use the version that is")]
    CoreVersionGone(String),
}

/// Runs the controllers until `stop`.
///
/// # Errors
/// Cluster API's core is not installed, it stops serving the version in use, or discovery fails.
pub async fn run(
    client: Client,
    azure: Azure,
    settings: Settings,
    clock: Clock,
    workloads: Workloads,
    observer: Option<Arc<dyn Observer>>,
    stop: CancellationToken,
) -> Result<(), RunError> {
    let observer = observer.unwrap_or_else(|| Arc::new(NoObserver));
    let core_version = core_version(&client).await?;
    // Cancelled by `stop`, or by the manager itself when the core's version changes.
    let stop = stop.child_token();
    let (recorder, events) =
        controllers::recorder(client.clone(), clock.clone(), "", MANAGER, Arc::clone(&observer));
    let client = controllers::watch::with_answer_timeout(&client);
    let operator = Operator::new(client.clone(), settings.namespace.clone(), settings.sync_period);
    let queue = |controller| Arc::new(WorkQueue::new(controller, &observer));
    let manager = Arc::new(Manager {
        client,
        azure,
        clusters: queue(&controller::CLUSTER),
        machines: queue(&controller::MACHINE),
        templates: queue(&controller::TEMPLATE),
        pools: queue(&controller::POOL),
        pool_machines: queue(&controller::POOL_MACHINE),
        instances: Instances::default(),
        secrets: SecretQueues {
            machines: queue(&controller::MACHINE_SECRET),
            templates: queue(&controller::TEMPLATE_SECRET),
            pools: queue(&controller::POOL_SECRET),
            clusters: queue(&controller::ASO_SECRET),
        },
        managed: ManagedQueues {
            clusters: queue(&controller::MANAGED_CLUSTER),
            control_planes: queue(&controller::MANAGED_CONTROL_PLANE),
            pools: queue(&controller::MANAGED_POOL),
            raw_clusters: queue(&controller::RAW_CLUSTER),
            raw_control_planes: queue(&controller::RAW_CONTROL_PLANE),
            raw_pools: queue(&controller::RAW_POOL),
            offered_clusters: queue(&controller::OFFERED_CLUSTER),
            offered_pools: queue(&controller::OFFERED_POOL),
        },
        workloads,
        settings,
        clock,
        recorder: Events(recorder),
        stores: Stores::default(),
        listed: CompleteLists::default(),
        reads: Reads::default(),
        written: RecentWrites::default(),
        skus: SkuCache::default(),
        operator,
        identity_writes: tokio::sync::Mutex::default(),
        identities_changed: tokio::sync::Notify::default(),
        core_version,
    });
    let events = tokio::spawn(events.run(stop.clone()));
    let watches = manager.watches(&stop);
    let limits = manager.settings.concurrency;
    let (secrets, listed) = (&manager.secrets, &manager.listed);
    let work = async {
        let (all, pools, managed) = (&listed.clusters, &listed.pools, &listed.managed);
        let queues = &manager.managed;
        tokio::join!(
            manager.work(&manager.clusters, all, limits.clusters, &stop, Manager::reconcile_cluster),
            manager.work(&manager.machines, all, limits.machines, &stop, Manager::reconcile_machine),
            manager.work(&manager.templates, all, limits.machines, &stop, Manager::reconcile_template),
            manager.work(&manager.pools, pools, limits.pools, &stop, Manager::reconcile_pool),
            manager.work(
                &manager.pool_machines,
                pools,
                limits.pool_machines,
                &stop,
                Manager::reconcile_pool_machine
            ),
            manager.work(
                &queues.clusters,
                managed,
                limits.clusters,
                &stop,
                Manager::reconcile_managed_cluster
            ),
            manager.work(
                &queues.control_planes,
                managed,
                limits.clusters,
                &stop,
                Manager::reconcile_managed_control_plane
            ),
            manager.work(&queues.pools, managed, limits.pools, &stop, Manager::reconcile_managed_pool),
            manager.work(
                &queues.raw_clusters,
                managed,
                limits.clusters,
                &stop,
                Manager::reconcile_raw_cluster
            ),
            manager.work(
                &queues.raw_control_planes,
                managed,
                limits.clusters,
                &stop,
                Manager::reconcile_raw_control_plane
            ),
            manager.work(&queues.raw_pools, managed, limits.pools, &stop, Manager::reconcile_raw_pool),
            manager.work(
                &queues.offered_clusters,
                managed,
                limits.clusters,
                &stop,
                Manager::reconcile_offered_cluster
            ),
            manager.work(
                &queues.offered_pools,
                managed,
                limits.pools,
                &stop,
                Manager::reconcile_offered_pool
            ),
            manager.work(&secrets.machines, all, limits.machines, &stop, Manager::reconcile_machine_secret),
            manager.work(&secrets.templates, all, limits.machines, &stop, Manager::reconcile_template_secret),
            manager.work(&secrets.pools, pools, limits.pools, &stop, Manager::reconcile_pool_secret),
            manager.work(&secrets.clusters, all, limits.clusters, &stop, Manager::reconcile_aso_secret),
        )
    };
    let core = async {
        let gone = stop.run_until_cancelled(manager.core_version_gone()).await;
        stop.cancel();
        gone
    };
    let offers = manager.look_for_offers(&stop);
    let (_, _, _, gone) = tokio::join!(watches, work, offers, core);
    let _ = events.await;
    gone.map_or(Ok(()), |()| Err(RunError::CoreVersionGone(manager.core_version.clone())))
}

/// The newest served version of the core's kinds that is supported.
async fn core_version(client: &Client) -> Result<String, RunError> {
    let served = served_core(client).await.map_err(|error| RunError::Discovery(Box::new(error)))?;
    ["v1beta2", "v1beta1"]
        .into_iter()
        .find(|version| served.iter().any(|served| served == version))
        .map(str::to_owned)
        .ok_or(RunError::NoCore)
}

/// The served versions of the core's kinds.
async fn served_core(client: &Client) -> Result<Vec<String>, kube::Error> {
    let groups = client.list_api_groups().await?.groups.into_iter();
    let served = groups.filter(|group| group.name == core::GROUP).flat_map(|group| group.versions);
    Ok(served.map(|version| version.version).collect())
}

impl Manager {
    /// Waits until the version of the core's kinds in use is no longer served and another one is.
    async fn core_version_gone(&self) {
        loop {
            tokio::time::sleep(CORE_INTERVAL).await;
            // A failed request, or a core that is absent while it is being replaced, does not count as a change.
            let Ok(served) = served_core(&self.client).await else { continue };
            if !served.is_empty() && !served.contains(&self.core_version) {
                return;
            }
        }
    }
}

impl Manager {
    async fn work<F, R>(
        self: &Arc<Self>,
        work: &Arc<WorkQueue>,
        listed: &SetOnce<()>,
        parallel: usize,
        stop: &CancellationToken,
        reconcile: F,
    ) where
        F: Fn(Arc<Self>, Key, Instant) -> R + Clone + Send + 'static,
        R: Future<Output = Result<Outcome, Ended>> + Send + 'static,
    {
        // An object that has not been listed yet is not absent.
        tokio::select! {
            () = stop.cancelled() => return,
            _ = listed.wait() => {}
        }
        let parallel = parallel.max(MIN_PARALLEL);
        let (manager, shared) = (Arc::clone(self), Arc::clone(work));
        let working = work.queue.clone().work(parallel, stop.clone(), DRAIN, move |key: Key| {
            let (manager, work, reconcile) = (Arc::clone(&manager), Arc::clone(&shared), reconcile.clone());
            async move {
                let settings = &manager.settings;
                if let Some(rest) = work.rests(&key, settings.debouncing) {
                    return work.put_off(rest);
                }
                let not_before = work.not_before(&key);
                // Boxed: each future around it would have room for it twice, and hundreds run at a time after a start.
                let loops = Box::pin(reconcile(Arc::clone(&manager), key.clone(), not_before));
                let loops = async {
                    match loops.await {
                        Ok(outcome) | Err(Ended::With(outcome)) => outcome,
                        Err(Ended::Unwritten(error)) => manager.lost(&key, &error),
                    }
                };
                let outcome = bounded(&work, &key, settings.timeouts.reconcile, loops).await;
                work.worked(&key);
                work.ended(&key, outcome, settings.sync_period)
            }
        });
        Box::pin(working).await;
    }

    /// Watches all kinds until `stop`.
    async fn watches(self: &Arc<Self>, stop: &CancellationToken) {
        let stores = &self.stores;
        tokio::join!(
            self.follow_ours(stop, &stores.identities, concerns::same_identity, |it| {
                self.identities_changed.notify_one();
                self.wake_users_of(&key_of(it));
            }),
            self.watch_identity_secrets(stop),
            self.follow_core(stop, &stores.clusters, concerns::same_cluster, |it| {
                if it.spec.paused {
                    let namespace = it.metadata.namespace.as_deref().unwrap_or_default();
                    for work in self.infrastructure() {
                        work.end_rest(|key| key.namespace == namespace);
                    }
                }
                self.wake_all_of(&key_of(it));
            }),
            self.follow_core(stop, &stores.machines, concerns::same_machine, |it| {
                self.wake_infrastructure_of(it);
            }),
            self.follow_ours(stop, &stores.azure_clusters, concerns::same_but_status, |it| {
                end_rest_if_paused(&self.clusters, &it.metadata);
                self.clusters.wake(key_of(it));
                self.wake_namesakes_of(it);
                self.wake_dependants_of(it);
            }),
            self.follow_ours(stop, &stores.azure_machines, concerns::same_but_status, |it| {
                self.wake_cluster_that_waits_for(&it.metadata);
                end_rest_if_paused(&self.machines, &it.metadata);
                self.machines.wake(key_of(it));
                self.wake_machine_secret(it);
            }),
            self.follow_ours(stop, &stores.azure_machine_templates, concerns::same_but_status, |it| {
                self.templates.wake(key_of(it));
                self.secrets.templates.wake(key_of(it));
            }),
            async {
                if self.settings.gates.machine_pool {
                    self.watch_pools(stop).await;
                }
            },
        );
    }

    /// The queues of objects that `clusterctl` moves only after their reconcile has released them.
    fn infrastructure(&self) -> [&Arc<WorkQueue>; 9] {
        let managed = &self.managed;
        [
            &self.clusters,
            &self.machines,
            &self.pools,
            &managed.clusters,
            &managed.control_planes,
            &managed.pools,
            &managed.raw_clusters,
            &managed.raw_control_planes,
            &managed.raw_pools,
        ]
    }

    /// Watches the kinds of machine pools until `stop`.
    async fn watch_pools(self: &Arc<Self>, stop: &CancellationToken) {
        let stores = &self.stores;
        tokio::join!(
            self.follow_core(stop, &stores.machine_pools, concerns::same_but_status, |it| {
                self.wake_infrastructure_of_pool(it);
            }),
            self.follow_ours(stop, &stores.azure_machine_pools, concerns::same_but_status, |it| {
                self.wake_cluster_that_waits_for(&it.metadata);
                end_rest_if_paused(&self.pools, &it.metadata);
                self.pools.wake(key_of(it));
                self.secrets.pools.wake(key_of(it));
            }),
            self.follow_ours(stop, &stores.azure_machine_pool_machines, concerns::same_but_status, |it| {
                self.pool_machines.wake(key_of(it));
                self.wake_pool_of(it);
            }),
            self.watch_managed(stop),
        );
    }

    /// Watches the kinds of managed clusters until `stop`.
    async fn watch_managed(self: &Arc<Self>, stop: &CancellationToken) {
        let (stores, queues) = (&self.stores, &self.managed);
        tokio::join!(
            self.follow_ours(stop, &stores.managed_clusters, concerns::same_but_status, |it| {
                end_rest_if_paused(&queues.clusters, &it.metadata);
                queues.clusters.wake(key_of(it));
            }),
            self.follow_ours(stop, &stores.managed_control_planes, concerns::same_control_plane, |it| {
                end_rest_if_paused(&queues.control_planes, &it.metadata);
                queues.control_planes.wake(key_of(it));
                self.wake_dependants_of_managed(it);
                self.wake_namesakes_of(it);
            }),
            self.follow_ours(stop, &stores.managed_pools, concerns::same_but_status, |it| {
                end_rest_if_paused(&queues.pools, &it.metadata);
                queues.pools.wake(key_of(it));
                self.wake_control_plane_of(&it.metadata);
            }),
            self.follow_ours(stop, &stores.raw_clusters, concerns::same, |it| {
                end_rest_if_paused(&queues.raw_clusters, &it.metadata);
                queues.raw_clusters.wake(key_of(it));
                self.wake_raw_beside(AzureAsoManagedClusterSpec::NAME, &it.metadata);
            }),
            self.follow_ours(stop, &stores.raw_control_planes, concerns::same, |it| {
                end_rest_if_paused(&queues.raw_control_planes, &it.metadata);
                queues.raw_control_planes.wake(key_of(it));
                self.wake_raw_beside(AzureAsoManagedControlPlaneSpec::NAME, &it.metadata);
            }),
            self.follow_ours(stop, &stores.raw_pools, concerns::same, |it| {
                end_rest_if_paused(&queues.raw_pools, &it.metadata);
                queues.raw_pools.wake(key_of(it));
                self.wake_control_plane_of(&it.metadata);
            }),
        );
    }

    /// Watches one of our kinds.
    async fn follow_ours<K: ObjectKind>(
        &self,
        stop: &CancellationToken,
        store: &Store<K>,
        same: impl Fn(&Object<K>, &Object<K>) -> bool,
        wake: impl Fn(&Object<K>),
    ) {
        self.follow(kinds::resource(K::NAME), stop, store, same, wake).await;
    }

    /// Watches one of the core's kinds.
    async fn follow_core<K: ObjectKind>(
        &self,
        stop: &CancellationToken,
        store: &Store<K>,
        same: impl Fn(&Object<K>, &Object<K>) -> bool,
        wake: impl Fn(&Object<K>),
    ) {
        self.follow(core::resource(&self.core_version, K::NAME), stop, store, same, wake).await;
    }

    /// Watches one kind: stores its objects, and wakes the objects that depend on a change, unless `same` finds no
    /// relevant change.
    async fn follow<K: ObjectKind>(
        &self,
        resource: ApiResource,
        stop: &CancellationToken,
        store: &Store<K>,
        same: impl Fn(&Object<K>, &Object<K>) -> bool,
        wake: impl Fn(&Object<K>),
    ) {
        let api: Api<Object<K>> = match &self.settings.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        let mut shown: Option<std::collections::HashSet<Key>> = None;
        // Boxed: twenty watches in one future need more than the stack of a thread.
        let watching = watch(api, Selector::default(), K::PLURAL, stop.clone(), |event| match event {
            Event::Init => shown = Some(std::collections::HashSet::new()),
            Event::InitApply(object) | Event::Apply(object) => {
                if let Some(shown) = &mut shown {
                    shown.insert(key_of(&object));
                }
                let before = store.show(object.clone());
                if before.is_none_or(|before| !same(&before, &object)) {
                    wake(&object);
                }
            }
            Event::InitDone => {
                if let Some(shown) = shown.take() {
                    let is_first = !store.is_complete();
                    for gone in store.retain(|key| shown.contains(key)) {
                        wake(&gone);
                    }
                    if is_first {
                        self.note_listed();
                        self.wake_ending_clusters();
                    }
                }
            }
            Event::Delete(object) => {
                store.remove(&key_of(&object));
                wake(&object);
            }
        });
        Box::pin(watching).await;
    }
}

fn end_rest_if_paused(work: &WorkQueue, object: &ObjectMeta) {
    if object.annotations.as_ref().is_some_and(|all| all.contains_key(core::PAUSED)) {
        work.end_rest(|key| *key == Key::of(object));
    }
}

/// One reconcile of an object, which ends after `limit` at the latest. Operations that run in Azure are in the object's
/// status, and the next reconcile resumes them. All its calls to Azure bear one correlation ID.
async fn bounded(
    work: &WorkQueue,
    key: &Key,
    limit: Duration,
    reconcile: impl Future<Output = Outcome>,
) -> Outcome {
    let id = uuid::Uuid::new_v4();
    tracing::debug!(controller = work.controller.name, object = %key, correlation_id = %id, "Reconciling");
    let span = spans::reconcile(work.controller, key, id);
    let bounded = tokio::time::timeout(limit, arm::correlated(id, reconcile));
    match bounded.instrument(span.clone()).await {
        Ok(outcome) => {
            spans::reconciled(&span, outcome.result());
            outcome
        }
        Err(_) => {
            spans::failed(&span, format_args!("it took longer than {} s", limit.as_secs()));
            tracing::warn!(controller = work.controller.name, object = %key, limit_ms = limit.as_millis(), "Reconciling took too long and is started again");
            Outcome::Retry
        }
    }
}
