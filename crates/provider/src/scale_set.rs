//! A scale set as a shared resource: its model, and the instances of a uniform one.

use std::sync::Arc;

use arm::ApiVersion;
use async_trait::async_trait;
use azure_types::{ResourceId, ScaleSet, ScaleSetInstance, VirtualMachine};
use cloud::LogicalTime;
use planner::backend_pool::PoolMembership;
use planner::scale_set::{self as plans, is_flexible};
use planner::{Cluster, Step};
use tracing::info;

use crate::ClusterState;
use crate::azure::Azure;
use crate::failure::Failure;
use crate::fingerprint;
use crate::observed::Observed;
use crate::writer::{Planned, Resource, Written};

/// One scale set.
pub(crate) struct SharedScaleSet {
    pub(crate) id: ResourceId,
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) azure: Azure,
    pub(crate) observed: Arc<Observed>,
    pub(crate) state: ClusterState,
}

/// The observed state of a scale set; `None` if it does not exist.
pub(crate) struct Seen {
    found: Option<Found>,
}

/// A scale set and its machines.
struct Found {
    set: Arc<ScaleSet>,
    /// The instances of a uniform scale set.
    instances: Vec<Arc<ScaleSetInstance>>,
    /// The virtual machines in the resource group of a flexible scale set.
    virtual_machines: Vec<Arc<VirtualMachine>>,
}

/// A write.
pub(crate) struct Work {
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
    type Observed = Seen;
    type Work = Work;
    type Claim = ();

    fn name(&self) -> String {
        format!("scale set {}", self.id.name())
    }

    async fn observe(&self, newer_than: LogicalTime) -> Result<Seen, Failure> {
        let Some(group) = self.group() else { return Ok(Seen { found: None }) };
        let Some(set) = self.observed.scale_sets(&group).get(self.id.name(), newer_than).await? else {
            return Ok(Seen { found: None });
        };
        if is_flexible(&set) {
            let virtual_machines = self.observed.virtual_machines(&group).list(newer_than).await?;
            return Ok(Seen { found: Some(Found { set, instances: Vec::new(), virtual_machines }) });
        }
        match self.observed.instances(&self.id).list(newer_than).await {
            Ok(instances) => Ok(Seen { found: Some(Found { set, instances, virtual_machines: Vec::new() }) }),
            Err(failure) if failure.is_not_found() => Ok(Seen { found: None }),
            Err(failure) => Err(failure),
        }
    }

    fn claim(&self, _observed: &Seen, _batch: &[(String, PoolMembership)]) {}

    fn plan(&self, seen: &Seen, batch: &[(String, PoolMembership)], _: &()) -> Planned<Self> {
        let work = seen.found.as_ref().and_then(|Found { set, instances, virtual_machines }| {
            let memberships = self.observed.of_present_pools(batch);
            let nodes = self.state.nodes_and_departed();
            let model = plans::plan_model(&self.cluster, set, virtual_machines, &memberships, &nodes);
            let instances = plans::plan_instances(&self.cluster, set, instances, &memberships, &nodes);
            (model.is_some() || !instances.is_empty()).then_some(Work { model, instances })
        });
        Planned { work, refused: Vec::new(), notices: Vec::new() }
    }

    async fn write(&self, seen: &Seen, work: &Work) -> Result<Written<Seen>, Failure> {
        let Some(found) = &seen.found else { return Ok(Written::Whole(Seen { found: None })) };
        let (mut set, virtual_machines) = (Arc::clone(&found.set), found.virtual_machines.clone());
        let known_sets = self.group().map(|group| self.observed.scale_sets(&group));
        if let Some(step) = &work.model {
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
            .put_all(&work.instances, ApiVersion::COMPUTE, parallel, keep, |_| std::future::ready(()))
            .await;
        // Pool members changed: the load balancers have a new version.
        self.observed.load_balancers().invalidate();
        let mut after = found.instances.clone();
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
            None => {
                let found = Some(Found { set, instances: after, virtual_machines });
                Ok(Written::Whole(Seen { found }))
            }
        }
    }

    fn serves_all(&self, _work: &Self::Work) -> bool {
        true
    }

    fn fingerprint(&self, work: &Work) -> u64 {
        fingerprint::of(work.model.iter().chain(&work.instances))
    }

    fn concerned(&self, _work: &Work, batch: &[(String, PoolMembership)]) -> Vec<String> {
        batch.iter().map(|(pool, _)| pool.clone()).collect()
    }

    fn blame(&self, _message: &str, _batch: &[(String, PoolMembership)]) -> Vec<String> {
        Vec::new()
    }
}
