//! What a node says of itself when its kubelet registers the driver, and again whenever the kubelet asks.

use csi::v1::{NodeGetInfoResponse, Topology};
use tonic::Status;
use volume_planner::attach::capacity::{CapacitySource, Reductions, max_data_disks, node_limit};
use volume_planner::topology;

use super::machine::{Facts, FactsError};
use super::service::NodeService;

/// The longest ID of a node that the interface allows.
const ID_LIMIT: usize = 256;

/// The warning of a node that takes no volume, although the scheduler cannot be given this: to it, 0 is no limit.
const NO_SLOT: &str = "No slot for a volume is left on this machine, and volumes are refused; use a larger size, or reserve fewer slots";

impl NodeService {
    pub(super) async fn info(&self) -> Result<NodeGetInfoResponse, Status> {
        let options = &self.options;
        if options.node_id.is_empty() || options.node_id.len() > ID_LIMIT {
            return Err(Status::unavailable("this process serves no node; set --nodeid to the node's name"));
        }
        let facts = self.facts().await?;
        let region = options.region.as_deref().or(facts.region.as_deref());
        let segments =
            topology::of_node(facts.zone.as_deref(), region, &options.driver, options.supports_zones);

        let (disks, source) = max_data_disks(facts.max_data_disks, facts.size.as_deref());
        if source == CapacitySource::Unknown && options.attach_limit < 0 {
            tracing::warn!(
                value = facts.size.as_deref().unwrap_or_default(),
                "the number of data disks of this size is unknown: 16 is assumed; set --volume-attach-limit"
            );
        }
        let foreign = u32::try_from(facts.foreign_disks().len()).unwrap_or(u32::MAX);
        let reductions = Reductions { flag: options.attach_limit, reserved: options.reserved_slots, foreign };
        let limit = node_limit(disks, reductions);
        if limit.is_closed {
            tracing::warn!(node = options.node_id, note = NO_SLOT, "this node takes no volume");
            if let Some(node) = &self.node {
                node.warn("NoVolumeSlot", NO_SLOT).await;
            }
        }
        Ok(NodeGetInfoResponse {
            node_id: options.node_id.clone(),
            max_volumes_per_node: limit.reported,
            accessible_topology: Some(Topology { segments: segments.into_iter().collect() }),
        })
    }

    /// The facts of both sources. Instance metadata goes before labels, unless labels are preferred. One source is enough; it is
    /// an error if what is reported needs facts and neither answers.
    pub(super) async fn facts(&self) -> Result<Facts, Status> {
        let absent = |what: &str| Err(FactsError::new(what, "this source is not used"));
        let metadata = match &self.metadata {
            Some(metadata) if !self.options.prefers_labels => metadata.read().await,
            _ => absent("instance metadata"),
        };
        let node = match &self.node {
            Some(node) => node.read().await,
            None => absent("the Node"),
        };
        let needs_facts = self.options.supports_zones || self.options.attach_limit < 0;
        match (metadata, node) {
            (Ok(metadata), Ok(node)) => Ok(metadata.or(node)),
            (Ok(facts), Err(error)) | (Err(error), Ok(facts)) => {
                tracing::debug!(%error, "one source of facts about the machine does not answer");
                Ok(facts)
            }
            (Err(_), Err(_)) if !needs_facts => Ok(Facts::default()),
            (Err(metadata), Err(node)) => Err(Status::internal(format!(
                "neither source of the machine's zone and size answers: {metadata}; {node}"
            ))),
        }
    }
}
