//! Which objects a change affects: a watch event of one object wakes others.

use std::sync::Arc;

use capz_api::azure_aso_managed::{AzureAsoManagedControlPlaneSpec, AzureAsoManagedMachinePoolSpec};
use capz_api::azure_managed_control_plane::AzureManagedControlPlaneSpec;
use k8s::api::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::context::manager::Manager;
use crate::kubernetes::core;
use crate::kubernetes::kinds::{
    self, AzureCluster, AzureMachine, AzureMachinePoolMachine, AzureManagedControlPlane, NO_ENTRIES, Object,
    ObjectKind,
};
use crate::kubernetes::queue::WorkQueue;
use crate::kubernetes::store::{Key, Store, key_of};

impl Manager {
    /// Wakes the clusters that use an identity, and the objects that belong to them: all of these may wait for the
    /// identity.
    pub(crate) fn wake_users_of(&self, identity: &Key) {
        for cluster in self.stores.azure_clusters.all() {
            if crate::context::identity::key(&cluster).is_ok_and(|key| key == *identity) {
                let key = key_of(&*cluster);
                if let Some(owner) = core::owner(&cluster.metadata, "Cluster") {
                    self.wake_machines_of(&key.beside(owner));
                }
                self.clusters.wake(key);
                self.wake_dependants_of(&cluster);
            }
        }
        for control_plane in self.stores.managed_control_planes.all() {
            if crate::context::identity::key(&control_plane).is_ok_and(|key| key == *identity) {
                self.managed.control_planes.wake(key_of(&*control_plane));
                self.wake_dependants_of_managed(&control_plane);
            }
        }
    }

    /// The queue of the objects of a kind.
    fn queue_of(&self, kind: &str) -> Option<&Arc<WorkQueue>> {
        let managed = &self.managed;
        [
            &self.clusters,
            &self.machines,
            &self.pools,
            &self.pool_machines,
            &managed.clusters,
            &managed.control_planes,
            &managed.pools,
            &managed.raw_clusters,
            &managed.raw_control_planes,
            &managed.raw_pools,
        ]
        .into_iter()
        .find(|queue| queue.controller.kind == kind)
    }

    /// Wakes an object that an object in this namespace refers to, if it is of a kind of ours.
    fn wake_referenced(&self, beside: &Key, reference: &core::Reference) {
        if let Some(queue) = self.queue_of(&reference.kind) {
            queue.wake(beside.beside(&reference.name));
        }
    }

    /// Wakes all objects that belong to a Cluster.
    pub(crate) fn wake_all_of(&self, cluster: &Key) {
        if let Some(found) = self.stores.clusters.get(cluster) {
            self.wake_referenced(cluster, &found.spec.infrastructure_ref);
            self.wake_referenced(cluster, &found.spec.control_plane_ref);
            self.wake_secrets_of(cluster, &cluster.beside(&found.spec.infrastructure_ref.name));
        }
        self.wake_machines_of(cluster);
        self.wake_pools_of(cluster);
        self.wake_managed_pools_of(cluster);
    }

    /// Wakes the objects that depend on an AzureManagedControlPlane.
    pub(crate) fn wake_dependants_of_managed(&self, control_plane: &AzureManagedControlPlane) {
        let Some(name) = core::cluster_name(&control_plane.metadata) else { return };
        let cluster = key_of(control_plane).beside(name);
        if let Some(found) = self.stores.clusters.get(&cluster) {
            self.wake_referenced(&cluster, &found.spec.infrastructure_ref);
        }
        self.wake_managed_pools_of(&cluster);
        self.wake_pools_of(&cluster);
    }

    /// Wakes the node pools of a managed cluster.
    fn wake_managed_pools_of(&self, cluster: &Key) {
        for pool in of_cluster(&self.stores.managed_pools, cluster, core::cluster_name) {
            self.managed.pools.wake(key_of(&*pool));
        }
        for pool in of_cluster(&self.stores.raw_pools, cluster, core::cluster_name) {
            self.managed.raw_pools.wake(key_of(&*pool));
        }
    }

    /// Wakes the objects with raw resources beside one of this kind, of the Cluster that it belongs to: they may refer to its
    /// resources.
    pub(crate) fn wake_raw_beside(&self, kind: &str, object: &ObjectMeta) {
        if let Some(name) = core::cluster_name(object) {
            self.wake_raw_of(&Key::of(object).beside(name), kind);
        }
    }

    /// Wakes the objects with raw resources of a Cluster, except those of this kind.
    pub(crate) fn wake_raw_of(&self, cluster: &Key, except: &str) {
        if let Some(found) = self.stores.clusters.get(cluster) {
            for reference in [&found.spec.infrastructure_ref, &found.spec.control_plane_ref] {
                if reference.kind != except {
                    self.wake_referenced(cluster, reference);
                }
            }
        }
        if except == AzureAsoManagedMachinePoolSpec::NAME {
            return;
        }
        for pool in of_cluster(&self.stores.raw_pools, cluster, core::cluster_name) {
            self.managed.raw_pools.wake(key_of(&*pool));
        }
    }

    /// Wakes the control plane of a managed cluster: it waits for this pool, or reads it.
    pub(crate) fn wake_control_plane_of(&self, pool: &ObjectMeta) {
        let Some(name) = core::cluster_name(pool) else { return };
        let cluster = Key::of(pool).beside(name);
        if let Some(found) = self.stores.clusters.get(&cluster) {
            self.wake_referenced(&cluster, &found.spec.control_plane_ref);
        }
    }

    /// Wakes the infrastructure of a MachinePool, and the control plane of its managed cluster.
    pub(crate) fn wake_infrastructure_of_pool(&self, pool: &core::MachinePool) {
        self.wake_referenced(&key_of(pool), &pool.spec.template.spec.infrastructure_ref);
        let cluster = key_of(pool).beside(&pool.spec.cluster_name);
        if let Some(found) = self.stores.clusters.get(&cluster) {
            let control_plane = &found.spec.control_plane_ref;
            // Only the creation of a managed cluster reads its pools.
            let is_awaited = match control_plane.kind.as_str() {
                AzureManagedControlPlaneSpec::NAME => {
                    let found = self.stores.managed_control_planes.get(&cluster.beside(&control_plane.name));
                    found.is_some_and(|it| it.status.as_ref().is_none_or(|it| it.initialized != Some(true)))
                }
                AzureAsoManagedControlPlaneSpec::NAME => true,
                _ => false,
            };
            if is_awaited {
                self.wake_referenced(&cluster, control_plane);
            }
        }
    }

    /// Wakes the objects that depend on the content of an AzureCluster.
    pub(crate) fn wake_dependants_of(&self, azure_cluster: &AzureCluster) {
        let key = key_of(azure_cluster);
        if let Some(cluster) = core::cluster_name(&azure_cluster.metadata) {
            let cluster = key.beside(cluster);
            self.wake_secrets_of(&cluster, &key);
            self.wake_machines_of(&cluster);
            self.wake_pools_of(&cluster);
        }
    }

    /// Wakes the Secrets and templates of a Cluster.
    pub(crate) fn wake_secrets_of(&self, cluster: &Key, azure_cluster: &Key) {
        if self.settings.aso_secrets {
            self.secrets.clusters.wake(azure_cluster.clone());
        }
        let stores = &self.stores;
        for template in of_cluster(&stores.azure_machine_templates, cluster, |it| core::owner(it, "Cluster"))
        {
            self.templates.wake(key_of(&*template));
            self.secrets.templates.wake(key_of(&*template));
        }
        for pool in of_cluster(&stores.azure_machine_pools, cluster, core::cluster_name) {
            self.secrets.pools.wake(key_of(&*pool));
        }
        for machine in of_cluster(&stores.azure_machines, cluster, core::cluster_name) {
            self.wake_machine_secret(&machine);
        }
    }

    /// Wakes the Secret of an AzureMachine, if it has one of its own.
    pub(crate) fn wake_machine_secret(&self, machine: &AzureMachine) {
        let annotations = machine.metadata.annotations.as_ref().unwrap_or(&NO_ENTRIES);
        if self.settings.machine_secrets && capz_planner::azure_json::machine_has_own(annotations) {
            self.secrets.machines.wake(key_of(machine));
        }
    }

    /// Wakes the infrastructure object of a Machine.
    pub(crate) fn wake_infrastructure_of(&self, machine: &core::Machine) {
        self.wake_referenced(&key_of(machine), &machine.spec.infrastructure_ref);
    }

    /// Wakes the pool that an instance belongs to.
    pub(crate) fn wake_pool_of(&self, machine: &AzureMachinePoolMachine) {
        if let Some(pool) = kinds::owner(&machine.metadata, "AzureMachinePool") {
            self.pools.wake(key_of(machine).beside(pool));
        }
    }

    /// Wakes a pool and outdates its observation: something may have changed in Azure.
    pub(crate) fn see_anew(&self, pool: &Key) {
        self.instances.outdate(pool);
        self.pools.wake(pool.clone());
    }

    /// Wakes the pools of a Cluster, and their machines.
    pub(crate) fn wake_pools_of(&self, cluster: &Key) {
        for pool in of_cluster(&self.stores.azure_machine_pools, cluster, core::cluster_name) {
            self.pools.wake(key_of(&*pool));
        }
        for machine in of_cluster(&self.stores.azure_machine_pool_machines, cluster, core::cluster_name) {
            self.pool_machines.wake(key_of(&*machine));
        }
    }

    /// Wakes the AzureCluster whose deletion waits for the last of its machines and pools, of which this is one.
    pub(crate) fn wake_cluster_that_waits_for(&self, metadata: &ObjectMeta) {
        let Some(name) = core::cluster_name(metadata) else { return };
        let namespace = metadata.namespace.clone().unwrap_or_default();
        let Some(cluster) = self.stores.clusters.get(&Key { namespace, name: name.to_owned() }) else {
            return;
        };
        let key = key_of(&*cluster).beside(&cluster.spec.infrastructure_ref.name);
        let waits = self.stores.azure_clusters.get(&key);
        if waits.is_some_and(|waits| waits.metadata.deletion_timestamp.is_some()) {
            self.clusters.wake(key);
        }
    }

    /// Wakes the clusters that are being deleted and wait until all their objects have been listed.
    pub(crate) fn wake_ending_clusters(&self) {
        for cluster in self.stores.azure_clusters.all() {
            if cluster.metadata.deletion_timestamp.is_some() {
                self.clusters.wake(key_of(&*cluster));
            }
        }
    }

    /// The names of the machines and pools that a Cluster still has; `None` until all have been listed. An object with
    /// the label of a Cluster, but with neither an owner of the core's nor a finalizer, does not belong to it: nothing
    /// was created for it.
    pub(crate) fn left_in(&self, cluster: &Key) -> Option<Vec<String>> {
        let stores = &self.stores;
        let belongs = |metadata: &ObjectMeta| {
            let is_owned =
                ["Machine", "MachinePool"].iter().any(|kind| core::owner(metadata, kind).is_some());
            metadata.namespace.as_deref() == Some(&cluster.namespace)
                && core::cluster_name(metadata) == Some(&cluster.name)
                && (is_owned || metadata.finalizers.iter().flatten().next().is_some())
        };
        fn names<K: ObjectKind>(
            store: &Store<K>,
            which: impl Fn(&ObjectMeta) -> bool,
        ) -> Option<Vec<String>> {
            let objects = store.is_complete().then(|| store.all())?;
            let left = objects.iter().map(|it| &it.metadata).filter(|it| which(it));
            Some(left.filter_map(|it| it.name.clone()).collect())
        }
        let mut left = names(&stores.azure_machines, belongs)?;
        if self.settings.gates.machine_pool {
            left.extend(names(&stores.azure_machine_pools, belongs)?);
        }
        left.sort();
        Some(left)
    }

    /// Wakes the machines of a Cluster.
    pub(crate) fn wake_machines_of(&self, cluster: &Key) {
        for machine in of_cluster(&self.stores.azure_machines, cluster, core::cluster_name) {
            self.machines.wake(key_of(&*machine));
        }
    }
}

/// The objects of a cluster, whose name `name_of` reads.
fn of_cluster<K: ObjectKind>(
    store: &Store<K>,
    cluster: &Key,
    name_of: impl Fn(&ObjectMeta) -> Option<&str>,
) -> Vec<Arc<Object<K>>> {
    let mut all = store.all();
    all.retain(|object| {
        object.metadata.namespace.as_deref() == Some(&cluster.namespace)
            && name_of(&object.metadata) == Some(&cluster.name)
    });
    all
}
