//! Plans: ordered lists of steps, as data.

use std::collections::BTreeSet;

use azure_types::{
    LoadBalancer, NetworkInterface, PrivateLinkService, PublicIpAddress, ResourceId, RouteTable, ScaleSet,
    ScaleSetInstance, SecurityGroup, Subnet,
};
pub use k8s::Notice;
use k8s::ObjectKey;
use ownership::Proof;
use serde::Serialize;

use crate::change::Change;
pub use crate::refusal::Refusal;
pub(crate) use crate::words::name_some;

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

/// What a step writes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Document {
    /// A load balancer, whole.
    LoadBalancer(Box<LoadBalancer>),
    /// A public IP, whole.
    PublicIp(Box<PublicIpAddress>),
    /// A private link service, whole.
    PrivateLink(Box<PrivateLinkService>),
    /// A subnet, whole.
    Subnet(Box<Subnet>),
    /// A security group, whole.
    SecurityGroup(Box<SecurityGroup>),
    /// A route table, whole.
    RouteTable(Box<RouteTable>),
    /// The parts of a scale set's model that change; Azure keeps the rest.
    ScaleSet(Box<ScaleSet>),
    /// The parts of an instance that change; Azure keeps the rest.
    ScaleSetInstance(Box<ScaleSetInstance>),
    /// A network interface, whole.
    NetworkInterface(Box<NetworkInterface>),
}

/// Why a step is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// Something differs from what is wanted.
    #[default]
    Change,
    /// Nothing differs; Azure did not finish the last write, and the same document is written again.
    Repair,
    /// Azure accepted a change and refused it later: the document is written as it was before.
    Restore,
}

/// One call to Azure.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What happens.
    pub action: Action,
    /// To what.
    pub target: ResourceId,
    /// The version that the step was planned against, for `If-Match`; absent for creations, and for deletions of
    /// load balancers.
    pub if_match: Option<String>,
    /// What is written; absent for deletions, and in a preview whose values Azure has yet to choose.
    pub document: Option<Document>,
    /// What changes and why.
    pub changes: Vec<Change>,
    /// Why it is taken.
    pub purpose: Purpose,
    /// The Services that it is done for, in order and once each; empty for what all share.
    pub on_behalf_of: Vec<ObjectKey>,
    /// What proves that it may be done to what exists: first of the target as a whole, then of each part that is taken
    /// away. Empty for creations alone.
    pub ownership: Vec<Proof>,
}

/// Steps in the order in which they have to be taken.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Step>,
}

impl Step {
    /// The deletion of a public IP in the version that was seen to be nobody else's. Azure keeps what is in use,
    /// but whoever is about to use it has only its name in a tag so far: that makes a new version.
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

/// Keys once each and in order.
pub(crate) fn ordered(keys: impl IntoIterator<Item = ObjectKey>) -> Vec<ObjectKey> {
    keys.into_iter().collect::<BTreeSet<_>>().into_iter().collect()
}

impl Plan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// How many steps of a kind there are.
    pub(crate) fn count(&self, action: Action) -> usize {
        self.steps.iter().filter(|step| step.action == action).count()
    }
}
