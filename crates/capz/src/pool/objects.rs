//! Applies an observation of a scale set to Kubernetes: creates objects for instances, deletes machines, and sets the
//! pool's status.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use capz_api::azure_machine_pool::{AzureMachinePoolMachineSpec, AzureMachinePoolSpec};
use capz_planner::pool::{
    Instance, ObservedPool, Pending, PoolMachine, PoolTarget, delete_policy, instance_labels,
    max_unavailable, pending, pool_status, sync,
};
use capz_planner::provider_id;
use k8s::api::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use serde_json::json;

use crate::azure::instances::PoolObservation;
use crate::azure::reads;
use crate::context::cluster_context::ClusterContext;
use crate::context::manager::Manager;
use crate::context::reconcile::Reconciled;
use crate::kubernetes::core::{self, Machine, MachinePool};
use crate::kubernetes::kinds::{self, API_VERSION, AzureMachinePoolMachine, ObjectKind, POOL_MACHINE};
use crate::kubernetes::patch::PatchError;
use crate::kubernetes::store::{Key, key_of};
use crate::pool::reconcile::PoolReconcile;

/// A machine of a pool: the object that represents its instance, and the Machine that owns it.
pub(crate) struct Member {
    pub object: Arc<AzureMachinePoolMachine>,
    pub machine: Option<Arc<Machine>>,
}

impl Member {
    pub(crate) fn provider_id(&self) -> String {
        self.object.spec.provider_id.clone().unwrap_or_default()
    }

    fn is_marked(&self) -> bool {
        let marked = |metadata: &ObjectMeta| {
            metadata.annotations.as_ref().is_some_and(|all| all.contains_key(core::DELETE_FIRST))
        };
        marked(&self.object.metadata) || self.machine.as_ref().is_some_and(|it| marked(&it.metadata))
    }

    fn is_leaving(&self) -> bool {
        let leaves = |metadata: &ObjectMeta| metadata.deletion_timestamp.is_some();
        leaves(&self.object.metadata) || self.machine.as_ref().is_some_and(|it| leaves(&it.metadata))
    }

    fn has_ready_node(&self) -> bool {
        let status = self.machine.as_ref().and_then(|machine| machine.status.as_ref());
        status.is_some_and(|status| status.node().is_ready())
    }
}

impl Manager {
    /// The machines of a pool.
    pub(crate) fn members(&self, pool: &Key) -> Vec<Member> {
        let mut members: Vec<Member> = self
            .stores
            .azure_machine_pool_machines
            .all()
            .into_iter()
            .filter(|object| {
                let owner = kinds::owner(&object.metadata, AzureMachinePoolSpec::NAME);
                key_of(&**object).namespace == pool.namespace && owner == Some(&pool.name)
            })
            .map(|object| Member { machine: self.machine_of(&object), object })
            .collect();
        members.sort_by(|a, b| a.object.metadata.name.cmp(&b.object.metadata.name));
        members
    }

    /// The Machine that owns the object of an instance.
    pub(crate) fn machine_of(&self, object: &AzureMachinePoolMachine) -> Option<Arc<Machine>> {
        let owner = core::owner(&object.metadata, "Machine")?;
        self.stores.machines.get(&key_of(object).beside(owner))
    }

    /// Deletes a Machine: Cluster API drains its node, and then deletes its infrastructure.
    pub(crate) async fn delete_machine(&self, machine: &Machine) -> Result<(), PatchError> {
        let key = key_of(machine);
        let resource = core::resource(&self.core_version, "Machine");
        let api: Api<Machine> = Api::namespaced_with(self.client.clone(), &key.namespace, &resource);
        let uid = machine.metadata.uid.clone();
        let preconditions = Some(Preconditions { uid, resource_version: None });
        match api.delete(&key.name, &DeleteParams { preconditions, ..DeleteParams::default() }).await {
            // Stored at once, because the next count of machines must include this deletion.
            Ok(answer) => match answer.left() {
                Some(machine) => {
                    self.stores.machines.put(machine.clone());
                    self.wake_infrastructure_of(&machine);
                }
                None => self.stores.machines.remove(&key),
            },
            Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn pool_machines_api(&self, namespace: &str) -> Api<AzureMachinePoolMachine> {
        Api::namespaced_with(self.client.clone(), namespace, &kinds::resource(POOL_MACHINE))
    }

    /// Copies the number of machines that an external autoscaler decided into the MachinePool.
    async fn copy_replicas(&self, owner: &MachinePool, replicas: u32) -> Result<(), PatchError> {
        let key = key_of(owner);
        let resource = core::resource(&self.core_version, "MachinePool");
        let api: Api<MachinePool> = Api::namespaced_with(self.client.clone(), &key.namespace, &resource);
        let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
        let newest = api.patch(&key.name, &PatchParams::default(), &patch).await?;
        let pool = key.beside(&newest.spec.template.spec.infrastructure_ref.name);
        self.stores.machine_pools.put(newest);
        self.pools.wake(pool);
        Ok(())
    }
}

impl PoolReconcile<'_> {
    /// Reconciles the pool's objects with an observation, deletes the surplus machines, and sets the pool's status.
    /// Returns when to observe again because something is under way.
    pub async fn follow(
        &mut self,
        context: &ClusterContext,
        observation: &PoolObservation,
    ) -> Result<Option<Duration>, PatchError> {
        let PoolObservation { scale_set, instances, .. } = observation;
        let manager = self.manager;
        let scope = self.scope(context);
        let id = scope.scale_set();
        let external = scope.has_external_replicas();
        let capacity = scale_set["sku"]["capacity"].as_u64().and_then(|it| u32::try_from(it).ok());
        let desired = capacity.filter(|_| external).unwrap_or(scope.owner.replicas);
        let keep_old_models = manager.settings.gates.skip_machine_pool_model_reconciliation;
        let target = PoolTarget {
            desired,
            max_unavailable: max_unavailable(scope.spec, desired),
            policy: delete_policy(scope.spec),
            rollout: false,
            keep_old_models,
            seed: seed(&self.edited.object.metadata),
        };
        let status = self.edited.status();
        let pool = ObservedPool {
            scale_set,
            instances,
            machines: &[],
            last_reconciled: status.last_reconciled_replicas.and_then(|last| last.try_into().ok()),
            operation: status.long_running_operation_states.is_some(),
            external,
        };
        let members = manager.members(self.key);
        let mut machines = machines(&members, observation);
        let sync = sync(ObservedPool { machines: &machines, ..pool }, target);
        // Deleting ready machines requires a new observation: one that was ready may be gone.
        let mut leaving = sync.delete.iter().filter_map(|index| machines.get(*index));
        if !self.has_observed() && leaving.any(|machine| machine.ready) {
            manager.instances.outdate(self.key);
            return Ok(Some(Duration::ZERO));
        }
        let (created, are_outdated) = self.create_objects(&sync.create, observation).await?;
        let are_unlisted =
            self.delete_machines(context, &sync.delete, &members, &mut machines, observation).await?;
        if external && Some(desired) != self.own.owner.spec.replicas {
            manager.copy_replicas(&self.own.owner, desired).await?;
        }
        if let Some(last) = sync.last_reconciled {
            self.edited.status().last_reconciled_replicas = last.try_into().ok();
        }
        let ids: BTreeSet<String> = members.iter().map(Member::provider_id).chain(created).collect();
        let spec = &mut self.edited.object.spec;
        spec.provider_id = Some(provider_id(id.as_str()));
        spec.provider_id_list = Some(ids.into_iter().collect());
        let state = scale_set["properties"]["provisioningState"].as_str().unwrap_or("Creating");
        self.set_status(state, desired, ready(&machines));
        self.save().await?;
        for member in &members {
            if !shows(&member.object, observation) {
                manager.pool_machines.wake(key_of(&*member.object));
            }
        }
        let waits = pending(ObservedPool { machines: &machines, ..pool }, desired, keep_old_models);
        // The observation lags behind operations that run in Azure.
        let waits = if are_outdated || are_unlisted { Pending::Azure } else { waits };
        let (longest, rest) = (manager.settings.timeouts.requeue, manager.settings.sync_period);
        let again = manager.instances.keep(self.key, waits, longest, rest);
        Ok((waits != Pending::Nothing).then_some(again))
    }

    /// Creates the objects of these instances. Returns their provider IDs, and whether one of them had an object before
    /// the instances were listed: it is deleted, and the list does not show that yet.
    async fn create_objects(
        &self,
        instances: &[usize],
        observation: &PoolObservation,
    ) -> Result<(Vec<String>, bool), PatchError> {
        let (mut created, mut are_outdated) = (Vec::new(), false);
        for instance in instances.iter().filter_map(|index| observation.instances.get(*index)) {
            if observation.known.contains(&instance.provider_id.to_lowercase()) {
                are_outdated = true;
                self.manager.instances.outdate(self.key);
                continue;
            }
            self.create(instance).await?;
            created.push(instance.provider_id.clone());
        }
        Ok((created, are_outdated))
    }

    /// Deletes the Machines of these members. A list may lag: a machine that is missing in it is read by ID before it is
    /// deleted. Returns whether one of them exists all the same.
    async fn delete_machines(
        &self,
        context: &ClusterContext,
        surplus: &[usize],
        members: &[Member],
        machines: &mut [PoolMachine],
        observation: &PoolObservation,
    ) -> Result<bool, PatchError> {
        let mut are_unlisted = false;
        for index in surplus {
            let (Some(member), Some(machine)) = (members.get(*index), machines.get_mut(*index)) else {
                continue;
            };
            let Some(owner) = &member.machine else { continue };
            if observation.see(&machine.provider_id).is_some()
                || reads::is_absent(&context.access.client, &machine.provider_id).await
            {
                self.manager.delete_machine(owner).await?;
                machine.leaving = true;
            } else {
                are_unlisted = true;
            }
        }
        Ok(are_unlisted)
    }

    /// Sets the pool's status and conditions.
    pub fn set_status(&mut self, state: &str, desired: u32, ready: u32) {
        let new = pool_status(state, desired, ready);
        let status = self.edited.status();
        let before = status.provisioning_state.replace(new.provisioning_state.clone());
        status.replicas = ready.try_into().ok();
        if let Some(ready) = new.ready {
            status.ready = Some(ready);
        }
        self.set(new.conditions);
        if before.as_deref() == Some(&*new.provisioning_state) {
            return;
        }
        let event = match new.provisioning_state.as_str() {
            "Deleting" => {
                Some(("UnexpectedVMDeletion", "Azure deletes the scale set, which was not requested here"))
            }
            "Failed" => Some((
                "UnexpectedVMFailure",
                "the provisioning state of the scale set is Failed: it is left as it is",
            )),
            _ => None,
        };
        if let Some((reason, words)) = event {
            self.manager.recorder.warning(self.about(), reason, words);
        }
    }

    /// Creates the object that represents an instance.
    async fn create(&self, instance: &Instance) -> Result<(), PatchError> {
        let pool = &self.edited.object.metadata;
        let cluster = self.own.cluster.cluster.metadata.name.as_deref().unwrap_or_default();
        let owner = self.own.owner.metadata.name.as_deref().unwrap_or_default();
        let metadata = ObjectMeta {
            name: Some(instance.object_name(&self.key.name)),
            namespace: Some(self.key.namespace.clone()),
            labels: Some(instance_labels(cluster, &self.key.name, owner)),
            finalizers: Some(vec![AzureMachinePoolMachineSpec::FINALIZER.to_owned()]),
            owner_references: Some(vec![OwnerReference {
                api_version: API_VERSION.to_owned(),
                kind: AzureMachinePoolSpec::NAME.to_owned(),
                name: self.key.name.clone(),
                uid: pool.uid.clone().unwrap_or_default(),
                block_owner_deletion: Some(true),
                ..OwnerReference::default()
            }]),
            ..ObjectMeta::default()
        };
        let spec = AzureMachinePoolMachineSpec {
            instance_id: Some(instance.instance_id.clone()),
            provider_id: Some(instance.provider_id.clone()),
            ..AzureMachinePoolMachineSpec::default()
        };
        let object = AzureMachinePoolMachine::new(metadata, spec);
        let api = self.manager.pool_machines_api(&self.key.namespace);
        match api.create(&PostParams::default(), &object).await {
            Ok(made) => {
                self.manager.stores.azure_machine_pool_machines.put(made);
                Ok(())
            }
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes all machines of a pool that has no scale set any more. Returns how many are left.
    pub async fn dismiss(&self) -> Result<usize, PatchError> {
        let members = self.manager.members(self.key);
        for member in &members {
            match &member.machine {
                Some(machine) if machine.metadata.deletion_timestamp.is_none() => {
                    self.manager.delete_machine(machine).await?;
                }
                // It will not get a Machine any more.
                None if member.object.metadata.deletion_timestamp.is_none() => {
                    let name = member.object.metadata.name.clone().unwrap_or_default();
                    let api = self.manager.pool_machines_api(&self.key.namespace);
                    match api.delete(&name, &DeleteParams::default()).await {
                        Err(kube::Error::Api(status)) if status.is_not_found() => {}
                        Err(error) => return Err(error.into()),
                        Ok(_) => {}
                    }
                }
                _ => {}
            }
        }
        Ok(members.len())
    }
}

/// The machines of a pool, as input for the decision.
fn machines(members: &[Member], observation: &PoolObservation) -> Vec<PoolMachine> {
    members
        .iter()
        .map(|member| {
            let provider_id = member.provider_id();
            let instance = observation.see(&provider_id);
            let created = member.object.metadata.creation_timestamp.as_ref();
            PoolMachine {
                created: created.map_or(0, |time| time.0.as_second()),
                state: instance.map(|it| it.state.clone()),
                ready: member.has_ready_node(),
                latest: false,
                marked: member.is_marked(),
                leaving: member.is_leaving(),
                provider_id,
            }
        })
        .collect()
}

/// How many machines are ready and stay.
fn ready(machines: &[PoolMachine]) -> u32 {
    let is_ready = |it: &&PoolMachine| it.ready && !it.leaving && it.state.as_deref() == Some("Succeeded");
    u32::try_from(machines.iter().filter(is_ready).count()).unwrap_or(u32::MAX)
}

/// Whether an object's status matches the observation of its instance.
fn shows(object: &AzureMachinePoolMachine, observation: &PoolObservation) -> bool {
    let Some(instance) = observation.see(object.spec.provider_id.as_deref().unwrap_or_default()) else {
        return true;
    };
    let Some(status) = &object.status else { return false };
    let conditions = status.conditions.as_deref().unwrap_or_default();
    status.provisioning_state.as_deref() == Some(&*instance.state)
        && status.latest_model_applied == Some(instance.has_latest_model(&observation.scale_set))
        && instance.bootstrap_condition().is_none_or(|new| {
            let known = conditions.iter().find(|it| it.condition == new.condition);
            known.is_some_and(|known| (&known.status, &known.reason) == (&new.status, &new.reason))
        })
}

/// The seed of the random order: a pool keeps it for its lifetime.
fn seed(pool: &ObjectMeta) -> u64 {
    let uid = pool.uid.as_deref().unwrap_or_default();
    uid.bytes().fold(0, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)))
}
