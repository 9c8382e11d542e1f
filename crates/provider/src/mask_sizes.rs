//! The sizes of nodes' pod ranges, defined by tags of their scale sets.

use async_trait::async_trait;
use azure_types::Tags;
use cloud::{Existence, LogicalTime, MaskSizes, NodeRanges};
use k8s::Node;
use planner::instance::{self, MachineName, ProviderId};
use planner::machine_set;
use tracing::warn;

use crate::failure::{Failure, Kind};
use crate::provider::{Inner, Provider};

#[async_trait]
impl NodeRanges for Provider {
    async fn mask_sizes(&self, node: &Node, newer_than: LogicalTime) -> Existence<MaskSizes> {
        let name = match instance::parse_provider_id(&node.spec.provider_id) {
            ProviderId::Instance(name) => MachineName::Instance(name),
            ProviderId::Machine(id) => MachineName::Machine(id),
            ProviderId::Unreadable | ProviderId::Other => {
                return Existence::Unknown(format!(
                    "failed to check the providerID `{}` of node {}: it names no machine of Azure's",
                    node.spec.provider_id,
                    node.name()
                ));
            }
        };
        match self.0.tags_of_set(&name, newer_than).await {
            Ok(tags) => Existence::Present(self.0.masks_of(tags.as_ref())),
            Err(failure) => Existence::Unknown(failure.message),
        }
    }
}

impl Inner {
    /// The tags of a machine's scale set; none if it is in no scale set. Missing knowledge is a failure: a range of the
    /// wrong size stays for a node's life.
    async fn tags_of_set(
        &self,
        name: &MachineName,
        newer_than: LogicalTime,
    ) -> Result<Option<Tags>, Failure> {
        let group = name.group();
        let missing = |what: String| Failure::new(Kind::Unavailable, format!("Azure shows no {what} yet"));
        let scale_set = match name {
            MachineName::Instance(name) => Some(name.scale_set.clone()),
            MachineName::Machine(id) => {
                let mut document = self.listed_machine(id, self.observed.started).await?;
                if document.is_none() {
                    document = self.listed_machine(id, newer_than).await?;
                }
                let document = document.ok_or_else(|| missing(format!("virtual machine {id}")))?;
                let properties = document.properties.as_ref();
                let set = properties.and_then(|p| p.availability_set.as_ref()?.id.clone());
                if let Some(id) = set {
                    let sets = self.observed.availability_sets(&group);
                    let set = sets.get(id.name(), newer_than).await?;
                    return Ok(set.ok_or_else(|| missing(format!("availability set {id}")))?.tags.clone());
                }
                properties.and_then(|p| p.virtual_machine_scale_set.as_ref()?.id.clone())
            }
        };
        let Some(id) = scale_set else { return Ok(None) };
        let set = self.observed.scale_sets(&group).get(id.name(), newer_than).await?;
        Ok(set.ok_or_else(|| missing(format!("scale set {id}")))?.tags.clone())
    }

    fn masks_of(&self, tags: Option<&Tags>) -> MaskSizes {
        let (masks, problems) = machine_set::mask_sizes(tags);
        for problem in problems {
            let problem = problem.to_string();
            // Logged once for all nodes of all scale sets with the same problem.
            if self.mask_problems.lock().insert(problem.clone()) {
                warn!(reason = problem, "a tag is not followed");
            }
        }
        MaskSizes { v4: masks.v4, v6: masks.v6 }
    }
}
