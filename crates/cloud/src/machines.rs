//! What the node controllers ask of a cloud.

use std::collections::BTreeMap;

use async_trait::async_trait;
use k8s::{Node, NodeAddress};

use crate::{Existence, LogicalTime};

/// A machine that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Presence {
    /// Whether it is stopped or deallocated and nothing is happening to it.
    pub shut_down: bool,
}

/// A machine as a Node should describe it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Instance {
    /// The machine's id as Nodes carry it: for Azure, `azure://` and the resource id with the resource group
    /// in lower case.
    pub provider_id: String,
    /// The machine's size, such as `Standard_D4s_v5`; empty where the cloud does not say.
    pub instance_type: String,
    /// `<region>-<number>`, or the fault domain's number outside zones.
    pub zone: String,
    /// The region in lower case.
    pub region: String,
    /// Internal addresses, host name, external addresses, in this order.
    pub addresses: Vec<NodeAddress>,
    /// Labels that only this cloud knows.
    pub labels: BTreeMap<String, String>,
}

/// The machines of Nodes.
///
/// Questions that are asked at the same time share what they read.
#[async_trait]
pub trait Machines: Send + Sync + 'static {
    /// Whether a Node's machine is there. That it is there may be known from a list that was read after
    /// `newer_than`; that it is not is only said after the cloud was asked for this one machine by the id
    /// that the Node carries, which the proof then names. A machine that was found by the Node's name is never
    /// absent, but unknown. A Node that carries no id is absent only if its kubelet waits for a cloud and no
    /// machine of any kind has its name.
    async fn presence(&self, node: &Node, newer_than: LogicalTime) -> Existence<Presence>;

    /// What a Node's machine is like, as read after `newer_than`.
    async fn describe(&self, node: &Node, newer_than: LogicalTime) -> Existence<Instance>;
}
