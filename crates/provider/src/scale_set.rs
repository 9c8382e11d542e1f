//! A scale set as a shared resource: its model, and the instances of a uniform one.

use std::sync::Arc;

use arm::ApiVersion;
use async_trait::async_trait;
use azure_types::{ResourceId, ScaleSet, ScaleSetInstance, VirtualMachine};
use cloud::{ClusterState, LogicalTime, Notice};
use planner::backend_pool::PoolMembership;
use planner::scale_set::{self as plans, is_flexible};
use planner::{Cluster, Step};
use tracing::info;

use crate::azure::Azure;
use crate::failure::Failure;
use crate::fingerprint;
use crate::observed::Observed;
use writer::{Planned, Resource, Written};

/// One scale set.
pub(crate) struct SharedScaleSet {
    pub(crate) id: ResourceId,
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) azure: Azure,
    pub(crate) observed: Arc<Observed>,
    pub(crate) state: ClusterState,
}

/// A scale set and its machines.
pub(crate) struct ObservedScaleSet {
    set: Arc<ScaleSet>,
    /// The instances of a uniform scale set.
    instances: Vec<Arc<ScaleSetInstance>>,
    /// The virtual machines in the resource group of a flexible scale set.
    virtual_machines: Vec<Arc<VirtualMachine>>,
}

/// A write of a scale set.
pub(crate) struct ScaleSetWrite {
    model: Option<Step>,
    instances: Vec<Step>,
}

/// Texts of refusals which mean that the instance is being deleted, so that no write is needed.
const DELETION_TEXTS: &[&str] =
    &["not an active Virtual Machine Scale Set VM instanceId", "is marked for deletion", "is being deleted"];

/// Whether the machine (or the scale set) that was written is gone or being deleted.
fn is_being_deleted(failure: &Failure) -> bool {
    let text_of = failure.full_text();
    failure.is_not_found() || DELETION_TEXTS.iter().any(|text| text_of.contains(text))
}

impl SharedScaleSet {
    fn group(&self) -> Option<ResourceId> {
        self.id.parent()
    }
}

#[async_trait]
impl Resource for SharedScaleSet {
    /// The pool's id in lower case.
    type Key = String;
    type Intent = PoolMembership;
    /// `None` if it does not exist.
    type Observed = Option<ObservedScaleSet>;
    type Write = ScaleSetWrite;
    type Claim = ();
    type Notice = Notice;

    fn name(&self) -> String {
        format!("scale set {}", self.id.name())
    }

    async fn observe(&self, newer_than: LogicalTime) -> Result<Self::Observed, Failure> {
        let Some(group) = self.group() else { return Ok(None) };
        let Some(set) = self.observed.scale_sets(&group).get(self.id.name(), newer_than).await? else {
            return Ok(None);
        };
        if is_flexible(&set) {
            let virtual_machines = self.observed.virtual_machines(&group).list(newer_than).await?;
            return Ok(Some(ObservedScaleSet { set, instances: Vec::new(), virtual_machines }));
        }
        match self.observed.instances(&self.id).list(newer_than).await {
            Ok(instances) => Ok(Some(ObservedScaleSet { set, instances, virtual_machines: Vec::new() })),
            Err(failure) if failure.is_not_found() => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    fn claim(&self, _observed: &Self::Observed, _batch: &[(String, PoolMembership)]) {}

    fn plan(&self, observed: &Self::Observed, batch: &[(String, PoolMembership)], _: &()) -> Planned<Self> {
        let write = observed.as_ref().and_then(|ObservedScaleSet { set, instances, virtual_machines }| {
            let memberships = self.observed.of_present_pools(batch);
            let nodes = self.state.nodes_and_departed();
            let model = plans::plan_model(&self.cluster, set, virtual_machines, &memberships, &nodes);
            let instances = plans::plan_instances(&self.cluster, set, instances, &memberships, &nodes);
            (model.is_some() || !instances.is_empty()).then_some(ScaleSetWrite { model, instances })
        });
        Planned { write, refused: Vec::new(), notices: Vec::new() }
    }

    async fn write(
        &self,
        observed: &Self::Observed,
        write: &ScaleSetWrite,
    ) -> Result<Written<Self::Observed>, Failure> {
        let Some(observed) = observed else { return Ok(Written::Whole(None)) };
        let (mut set, virtual_machines) = (Arc::clone(&observed.set), observed.virtual_machines.clone());
        let known_sets = self.group().map(|group| self.observed.scale_sets(&group));
        if let Some(step) = &write.model {
            match self.azure.put::<ScaleSet>(step, ApiVersion::COMPUTE).await {
                Ok(document) => {
                    set = match &known_sets {
                        Some(known) => known.store(document),
                        None => Arc::new(document),
                    };
                }
                Err(failure) if is_being_deleted(&failure) => {
                    info!(scale_set = %self.id, "the scale set is being deleted")
                }
                Err(failure) => {
                    if let Some(known) = &known_sets {
                        known.invalidate();
                    }
                    return Err(failure.not_attributable());
                }
            }
        }
        let known = self.observed.instances(&self.id);
        let parallel = plans::write_parallelism(&self.cluster, &set);
        let keep = |machine: ScaleSetInstance| self.observed.keep_instance(machine);
        let results = self
            .azure
            .put_all(&write.instances, ApiVersion::COMPUTE, parallel, keep, |_| std::future::ready(()))
            .await;
        // Pool members changed: the load balancers have a new version.
        self.observed.load_balancers().invalidate();
        let mut after = observed.instances.clone();
        let mut problem: Option<Failure> = None;
        for (step, result) in results {
            match result {
                Ok(mut document) => {
                    let mine = after.iter_mut().find(|old| old.id.as_ref() == Some(&step.target));
                    let Some(old) = mine else { continue };
                    // A read of one instance contains no instance view; the view has not changed.
                    if let (Some(new), Some(was)) = (document.properties.as_mut(), old.properties.as_ref())
                        && new.instance_view.is_none()
                    {
                        new.instance_view = was.instance_view.clone();
                    }
                    *old = known.store(document);
                }
                Err(failure) if is_being_deleted(&failure) => {
                    info!(scale_set = %self.id, reason = %failure.message, "an instance is being deleted");
                    known.invalidate();
                    after.retain(|old| old.id.as_ref() != Some(&step.target));
                }
                Err(failure) => {
                    known.invalidate();
                    problem = Some(failure.not_attributable().unless_told(problem));
                }
            }
        }
        match problem {
            Some(failure) => Err(failure),
            None => Ok(Written::Whole(Some(ObservedScaleSet { set, instances: after, virtual_machines }))),
        }
    }

    fn serves_all(&self, _write: &ScaleSetWrite) -> bool {
        true
    }

    fn fingerprint(&self, write: &ScaleSetWrite) -> u64 {
        fingerprint::of(write.model.iter().chain(&write.instances))
    }
}
