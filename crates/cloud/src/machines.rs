//! The node controllers' interface to a cloud.

use std::collections::BTreeMap;

use async_trait::async_trait;
use k8s::{Node, NodeAddress};
use logical_time::LogicalTime;

use crate::Existence;

/// An existing machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Presence {
    /// Whether the machine is stopped or deallocated with no operation in progress.
    pub shut_down: bool,
}

/// The properties of a machine for its Node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Instance {
    /// The machine's id as Nodes carry it: for Azure, `azure://` and the resource id with the resource group
    /// in lower case.
    pub provider_id: String,
    /// The machine's size, such as `Standard_D4s_v5`; empty if the cloud does not report it.
    pub instance_type: String,
    /// `<region>-<number>`, or the fault domain's number outside zones.
    pub zone: String,
    /// The region in lower case.
    pub region: String,
    /// Internal addresses, host name, external addresses, in this order.
    pub addresses: Vec<NodeAddress>,
    /// Labels that are specific to this cloud.
    pub labels: BTreeMap<String, String>,
}

/// The machines of Nodes.
///
/// Concurrent requests share their reads.
#[async_trait]
pub trait Machines: Send + Sync + 'static {
    /// Whether a Node's machine exists. Presence may come from a list that was read after `newer_than`. Absence
    /// requires that the cloud was asked for this one machine by the provider ID of the Node; the proof names that ID.
    /// A machine that was found by the Node's name is never absent, only unknown. A Node without provider ID is absent
    /// only if its kubelet waits for a cloud and no machine of any kind has its name.
    async fn presence(&self, node: &Node, newer_than: LogicalTime) -> Existence<Presence>;

    /// Describes a Node's machine, as read after `newer_than`.
    async fn describe(&self, node: &Node, newer_than: LogicalTime) -> Existence<Instance>;
}
