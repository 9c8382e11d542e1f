//! Which objects a change affects: a watch event of one object wakes others.

use k8s::api::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::context::manager::Manager;
use crate::kubernetes::core;
use crate::kubernetes::kinds::{self, AzureCluster, AzureMachine, AzureMachinePoolMachine, POOL_MACHINE};
use crate::kubernetes::store::{Key, key_of};

impl Manager {
    /// Wakes the clusters that use an identity, and the objects that belong to them: all of these may wait for the
    /// identity.
    pub(crate) fn wake_users_of(&self, identity: &Key) {
        for cluster in self.stores.azure_clusters.all() {
            if crate::context::identity::key(&cluster).is_ok_and(|key| key == *identity) {
                let key = key_of(&*cluster);
                if let Some(owner) = core::owner(cluster.metadata.owner_references.as_deref(), "Cluster") {
                    self.wake_machines_of(&key.beside(owner));
                }
                self.clusters.wake(key);
                self.wake_dependants_of(&cluster);
            }
        }
    }

    /// Wakes all objects that belong to a Cluster.
    pub(crate) fn wake_all_of(&self, cluster: &Key) {
        if let Some(found) = self.stores.clusters.get(cluster) {
            let infrastructure = cluster.beside(&found.spec.infrastructure_ref.name);
            self.clusters.wake(infrastructure.clone());
            self.wake_secrets_of(cluster, &infrastructure);
        }
        self.wake_machines_of(cluster);
        self.wake_pools_of(cluster);
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
    pub(crate) fn wake_machine_secret(&self, machine: &AzureMachine) {
        let none = std::collections::BTreeMap::new();
        let annotations = machine.metadata.annotations.as_ref().unwrap_or(&none);
        if self.settings.machine_secrets && capz_planner::azure_json::machine_has_own(annotations) {
            self.secrets.machines.wake(key_of(machine));
        }
    }

    /// Wakes the infrastructure object of a Machine.
    pub(crate) fn wake_infrastructure_of(&self, machine: &core::Machine) {
        let reference = &machine.spec.infrastructure_ref;
        let work = if reference.kind == POOL_MACHINE { &self.pool_machines } else { &self.machines };
        work.wake(key_of(machine).beside(&reference.name));
    }

    /// Wakes the pool that an instance belongs to.
    pub(crate) fn wake_pool_of(&self, machine: &AzureMachinePoolMachine) {
        let owners = machine.metadata.owner_references.as_deref();
        if let Some(pool) = kinds::owner(owners, "AzureMachinePool") {
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
        let belongs = |key: &Key, name: Option<&str>| {
            key.namespace == cluster.namespace && name == Some(cluster.name.as_str())
        };
        for pool in self.stores.azure_machine_pools.all() {
            let key = key_of(&*pool);
            if belongs(&key, core::cluster_name(&pool.metadata)) {
                self.pools.wake(key);
            }
        }
        for machine in self.stores.azure_machine_pool_machines.all() {
            let key = key_of(&*machine);
            if belongs(&key, core::cluster_name(&machine.metadata)) {
                self.pool_machines.wake(key);
            }
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
            let is_owned = ["Machine", "MachinePool"]
                .iter()
                .any(|kind| core::owner(metadata.owner_references.as_deref(), kind).is_some());
            metadata.namespace.as_deref() == Some(&cluster.namespace)
                && core::cluster_name(metadata) == Some(&cluster.name)
                && (is_owned || metadata.finalizers.iter().flatten().next().is_some())
        };
        let mut left = Vec::new();
        if !stores.azure_machines.is_complete() {
            return None;
        }
        let machines = stores.azure_machines.all();
        left.extend(
            machines.iter().map(|it| &it.metadata).filter(|it| belongs(it)).filter_map(|it| it.name.clone()),
        );
        if self.settings.gates.machine_pool {
            if !stores.azure_machine_pools.is_complete() {
                return None;
            }
            let pools = stores.azure_machine_pools.all();
            left.extend(
                pools.iter().map(|it| &it.metadata).filter(|it| belongs(it)).filter_map(|it| it.name.clone()),
            );
        }
        left.sort();
        Some(left)
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
