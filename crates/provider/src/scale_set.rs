//! A uniform scale set as a shared resource: its model, then its instances.

use std::sync::Arc;

use arm::ApiVersion;
use async_trait::async_trait;
use azure_types::{ResourceId, ScaleSet, ScaleSetInstance};
use cloud::LogicalTime;
use futures::future::join_all;
use planner::scale_set::{self as plans, PoolMembership};
use planner::{Cluster, Step};
use tokio::sync::Semaphore;
use tracing::info;

use crate::ClusterState;
use crate::azure::{self, Azure, Begun};
use crate::failure::{Failure, Kind};
use crate::fingerprint;
use crate::observed::Observed;
use crate::writer::{Planned, Resource};

/// One uniform scale set.
pub(crate) struct SharedScaleSet {
    pub(crate) id: ResourceId,
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) azure: Azure,
    pub(crate) observed: Arc<Observed>,
    pub(crate) state: ClusterState,
}

/// A scale set and its instances; `None` where it is gone.
pub(crate) struct Seen {
    found: Option<(Arc<ScaleSet>, Vec<ScaleSetInstance>)>,
}

/// What to write.
pub(crate) struct Work {
    model: Option<Step>,
    instances: Vec<Step>,
}

/// Texts of refusals that mean that the instance is going away: it needs nothing any more.
const DELETION_TEXTS: &[&str] =
    &["not an active Virtual Machine Scale Set VM instanceId", "is marked for deletion", "is being deleted"];

/// Whether the machine (or the set) that was written is as good as gone.
fn is_being_deleted(failure: &Failure) -> bool {
    let text_of = failure.full_text();
    failure.is_not_found() || DELETION_TEXTS.iter().any(|text| text_of.contains(text))
}

impl SharedScaleSet {
    fn group(&self) -> Option<ResourceId> {
        self.id.parent()
    }

    /// Writes one instance. Requests take turns; the operations that they start run side by side
    /// (LB-202), since each takes Azure long and none needs another.
    async fn write_instance<'a>(
        &self,
        step: &'a Step,
        turns: &Semaphore,
    ) -> (&'a Step, Result<ScaleSetInstance, Failure>) {
        (step, self.write_in_turn(step, turns).await)
    }

    async fn write_in_turn(&self, step: &Step, turns: &Semaphore) -> Result<ScaleSetInstance, Failure> {
        let begun: Begun<ScaleSetInstance> = {
            // The semaphore is never closed; without a turn the request goes out all the same.
            let _turn = turns.acquire().await.ok();
            self.azure.begin_put(step, ApiVersion::COMPUTE).await?
        };
        if let Some(operation) = &begun.operation {
            self.azure.outcome(operation).await?;
        } else if let Some(document) = begun.document {
            return Ok(document);
        }
        let gone = || Failure::new(Kind::NotFound, format!("{} is gone", step.target));
        self.azure.get(&step.target, ApiVersion::COMPUTE, azure::class(step)).await?.ok_or_else(gone)
    }
}

#[async_trait]
impl Resource for SharedScaleSet {
    /// The pool's id in lower case.
    type Key = String;
    type Intent = PoolMembership;
    type Observed = Seen;
    type Work = Work;

    fn name(&self) -> String {
        format!("scale set {}", self.id.name())
    }

    async fn observe(&self, newer_than: LogicalTime) -> Result<Seen, Failure> {
        let Some(group) = self.group() else { return Ok(Seen { found: None }) };
        let Some(set) = self.observed.scale_sets(&group).get(self.id.name(), newer_than).await? else {
            return Ok(Seen { found: None });
        };
        match self.observed.instances(&self.id).list(newer_than).await {
            Ok(instances) => {
                let instances = instances.iter().map(|instance| ScaleSetInstance::clone(instance)).collect();
                Ok(Seen { found: Some((set, instances)) })
            }
            Err(failure) if failure.is_not_found() => Ok(Seen { found: None }),
            Err(failure) => Err(failure),
        }
    }

    fn plan(&self, seen: &Seen, batch: &[(String, PoolMembership)]) -> Planned<Self> {
        let work = seen.found.as_ref().and_then(|(set, instances)| {
            // Nobody joins the pool of a load balancer that is gone by now.
            let is_there = |pool: &ResourceId| {
                pool.parent().is_some_and(|id| self.observed.load_balancers().cached(id.name()).is_some())
            };
            let memberships: Vec<PoolMembership> = batch
                .iter()
                .map(|(_, membership)| membership.clone())
                .filter(|membership| !membership.member || is_there(&membership.pool))
                .collect();
            let nodes = self.state.nodes();
            let model = plans::plan_model(&self.cluster, set, &memberships, &nodes);
            let instances = plans::plan_instances(&self.cluster, set, instances, &memberships, &nodes);
            (model.is_some() || !instances.is_empty()).then_some(Work { model, instances })
        });
        Planned { work, refused: Vec::new(), notices: Vec::new() }
    }

    async fn write(&self, seen: &Seen, work: &Work) -> Result<Seen, Failure> {
        let Some((set, instances)) = &seen.found else { return Ok(Seen { found: None }) };
        let mut set = Arc::clone(set);
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
        let turns = Semaphore::new(parallel);
        let results = join_all(work.instances.iter().map(|step| self.write_instance(step, &turns))).await;
        // Members came or went: the load balancers have a new version.
        self.observed.load_balancers().invalidate();
        let mut after = instances.clone();
        let mut problem: Option<Failure> = None;
        for (step, result) in results {
            match result {
                Ok(mut document) => {
                    let mine = after.iter_mut().find(|old| old.id.as_ref() == Some(&step.target));
                    let Some(old) = mine else { continue };
                    // A read of one instance tells nothing of what it is doing; that has not changed.
                    if let (Some(new), Some(was)) = (document.properties.as_mut(), old.properties.as_mut())
                        && new.instance_view.is_none()
                    {
                        new.instance_view = was.instance_view.take();
                    }
                    *old = ScaleSetInstance::clone(&known.store(document));
                }
                Err(failure) if is_being_deleted(&failure) => {
                    info!(scale_set = %self.id, reason = %failure.message, "an instance is being deleted");
                    known.invalidate();
                    after.retain(|old| old.id.as_ref() != Some(&step.target));
                }
                Err(failure) => {
                    known.invalidate();
                    // A lost race is settled by reading again; everything else is told.
                    if problem.as_ref().is_none_or(|first| first.kind == Kind::Aborted) {
                        problem = Some(failure.not_attributable());
                    }
                }
            }
        }
        match problem {
            Some(failure) => Err(failure),
            None => Ok(Seen { found: Some((set, after)) }),
        }
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
