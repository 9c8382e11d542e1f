//! Plans: ordered lists of steps, as data.

use std::collections::BTreeSet;

use azure_types::{
    LoadBalancer, NetworkInterface, PrivateLinkService, PublicIpAddress, ResourceId, RouteTable, ScaleSet,
    ScaleSetInstance, SecurityGroup, Subnet,
};
use k8s::ObjectKey;
use ownership::Proof;
use serde::Serialize;

use super::change::Change;

/// What a step does to its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The target does not exist and is created.
    Create,
    /// The target exists and is written.
    Update,
    /// The target is deleted.
    Delete,
}

/// The document that a step writes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Document {
    /// A load balancer, complete.
    LoadBalancer(Box<LoadBalancer>),
    /// A public IP, complete.
    PublicIp(Box<PublicIpAddress>),
    /// A private link service, complete.
    PrivateLink(Box<PrivateLinkService>),
    /// A subnet, complete.
    Subnet(Box<Subnet>),
    /// A security group, complete.
    SecurityGroup(Box<SecurityGroup>),
    /// A route table, complete.
    RouteTable(Box<RouteTable>),
    /// The parts of a scale set's model that change; Azure keeps the rest.
    ScaleSet(Box<ScaleSet>),
    /// The parts of an instance that change; Azure keeps the rest.
    ScaleSetInstance(Box<ScaleSetInstance>),
    /// A network interface, complete.
    NetworkInterface(Box<NetworkInterface>),
}

/// Why a step is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// The observed state differs from the desired one.
    #[default]
    Change,
    /// Nothing differs. Azure did not finish the last write, and the same document is written again.
    Repair,
    /// Azure accepted a change and later refused it: the previous document is written.
    Restore,
}

/// One call to Azure.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What the step does.
    pub action: Action,
    /// The resource.
    pub target: ResourceId,
    /// The version that the step was planned against, for `If-Match`; absent for creations, and for deletions of load
    /// balancers.
    pub if_match: Option<String>,
    /// The document; absent for deletions, and in a preview if it contains values that Azure has yet to choose.
    pub document: Option<Document>,
    /// The changes, with their reasons.
    pub changes: Vec<Change>,
    /// Why the step is taken.
    pub purpose: Purpose,
    /// The Services that need the step, sorted and without duplicates; empty for what all Services share.
    pub on_behalf_of: Vec<ObjectKey>,
    /// The proofs that the existing resource may be changed: first for the target as a whole, then for each part that
    /// is removed. Empty only for creations.
    pub ownership: Vec<Proof>,
}

/// Steps in the order in which they have to be taken.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Step>,
}

impl Step {
    /// The deletion of a public IP in the version in which no other Service was found to use it. Azure keeps a public
    /// IP in use, but a Service that is about to use it has only added its name to a tag so far: that makes a new
    /// version.
    pub(crate) fn delete(
        target: ResourceId,
        if_match: Option<String>,
        changes: Vec<Change>,
        key: &ObjectKey,
        proof: Proof,
    ) -> Self {
        Self {
            action: Action::Delete,
            target,
            if_match,
            document: None,
            changes,
            purpose: Purpose::Change,
            on_behalf_of: vec![key.clone()],
            ownership: vec![proof],
        }
    }
}

/// Sorts keys and removes duplicates.
pub(crate) fn ordered(keys: impl IntoIterator<Item = ObjectKey>) -> Vec<ObjectKey> {
    keys.into_iter().collect::<BTreeSet<_>>().into_iter().collect()
}

impl Plan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The number of steps with this action.
    pub(crate) fn count(&self, action: Action) -> usize {
        self.steps.iter().filter(|step| step.action == action).count()
    }
}
