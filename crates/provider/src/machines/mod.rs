//! Machines: whether they exist, and their properties.
//!
//! A node's machine is an instance of a uniform scale set or a virtual machine: a standalone one, or one of an
//! availability set or of a flexible scale set. Lists answer for many nodes at once; absence is only reported after
//! Azure was asked for the single machine ([`lookup`]).

mod facts;
mod lookup;
mod subject;

use cloud::{Existence, Instance, LogicalTime, Presence};
use k8s::Node;
use planner::instance::MachineName;

use crate::provider::Inner;
use lookup::MachineEvidence;
use subject::{FoundBy, Subject, nowhere};

/// The description of a node that Azure does not manage: it exists, without further properties.
fn unmanaged(node: &Node) -> Instance {
    Instance { provider_id: node.spec.provider_id.clone(), ..Instance::default() }
}

impl Inner {
    /// Whether a node's machine exists (`cloud::Machines::presence`).
    pub(crate) async fn presence(&self, node: &Node, newer_than: LogicalTime) -> Existence<Presence> {
        let (name, found) = match self.subject(node, newer_than).await {
            Subject::Unmanaged => return Existence::Present(Presence { shut_down: false }),
            Subject::Unknown(reason) => return Existence::Unknown(reason),
            Subject::Nowhere { group } => return self.absence_by_name(node, &group, newer_than).await,
            Subject::Machine { name, found } => (name, found),
        };
        match self.look_up(node, &name, found, newer_than).await {
            // A machine found by name may be another one: that is no reason to take the node out of service.
            Ok(MachineEvidence::Shown { shut_down }) => {
                Existence::Present(Presence { shut_down: shut_down && found == FoundBy::Id })
            }
            Ok(MachineEvidence::Unproven(reason)) => Existence::Unknown(reason),
            Ok(MachineEvidence::Gone(proof)) => Existence::Absent(proof),
            Err(failure) => Existence::Unknown(failure.message),
        }
    }

    /// Describes a node's machine (`cloud::Machines::describe`).
    pub(crate) async fn describe(&self, node: &Node, newer_than: LogicalTime) -> Existence<Instance> {
        let (name, found) = match self.subject(node, newer_than).await {
            Subject::Unmanaged => return Existence::Present(unmanaged(node)),
            Subject::Unknown(reason) => return Existence::Unknown(reason),
            Subject::Nowhere { group } => return Existence::Unknown(nowhere(node, &group)),
            Subject::Machine { name, found } => (name, found),
        };
        let described = match &name {
            MachineName::Instance(name) => match self.listed_instance(name, newer_than).await {
                Ok(Some(document)) => Some(self.describe_by(node, &*document, None, newer_than).await),
                Ok(None) => None,
                Err(failure) => Some(Err(failure)),
            },
            MachineName::Machine(id) => match self.listed_machine(id, newer_than).await {
                Ok(Some(document)) => Some(self.describe_virtual_machine(node, &document, newer_than).await),
                Ok(None) => None,
                Err(failure) => Some(Err(failure)),
            },
        };
        match described {
            Some(Ok(instance)) => Existence::Present(instance),
            Some(Err(failure)) => Existence::Unknown(failure.message),
            None => match self.confirm_absence(node, &name, found, newer_than).await {
                Ok(MachineEvidence::Gone(proof)) => Existence::Absent(proof),
                Ok(MachineEvidence::Unproven(reason)) => Existence::Unknown(reason),
                Ok(MachineEvidence::Shown { .. }) => {
                    Existence::Unknown(format!("{} is there, but no list shows it yet", name.id()))
                }
                Err(failure) => Existence::Unknown(failure.message),
            },
        }
    }
}
