//! Looks up one machine.
//!
//! | machine | shown by | absent if |
//! |---|---|---|
//! | of a uniform scale set | the list of the set's instances | the list lacks it, and Azure's answer for it alone is that it does not exist |
//! | of a flexible scale set | the list of the set's views | the same |
//! | standalone, or of an availability set | Azure's answer for it alone | that answer is that it does not exist, and the list of its resource group lacks it |
//!
//! So a single wrong answer never suffices. Azure's answer for a single machine is cached for requests of the same time
//! ([`Observed::read_machine`](crate::observed::Observed::read_machine)).

use std::sync::Arc;

use azure_types::{ResourceId, ScaleSetInstance, VirtualMachine};
use cloud::{LogicalTime, Proof};
use k8s::Node;
use planner::instance::{self, InstanceName, MachineName};

use super::subject::FoundBy;
use crate::failure::Failure;
use crate::observed::MachineAnswer;
use crate::provider::Inner;

/// What Azure says about a machine.
pub(super) enum MachineEvidence {
    /// It exists.
    Shown { shut_down: bool },
    /// It was not found, but its absence is not proven; the text says why.
    Unproven(String),
    /// It does not exist.
    Gone(Proof),
}

/// The resource group of a virtual machine.
fn group_of(machine: &ResourceId) -> ResourceId {
    MachineName::Machine(machine.clone()).group()
}

impl Inner {
    /// Looks up a machine in data read after `newer_than`.
    pub(super) async fn look_up(
        &self,
        node: &Node,
        name: &MachineName,
        found: FoundBy,
        newer_than: LogicalTime,
    ) -> Result<MachineEvidence, Failure> {
        let shown = match name {
            MachineName::Instance(name) => {
                let document = self.listed_instance(name, newer_than).await?;
                document.map(|document| instance::is_shut_down(&*document))
            }
            MachineName::Machine(id) => match self.flexible_set_of(id).await? {
                Some(set) => {
                    let view = self.observed.flexible_views(&set).get(id.name(), newer_than).await?;
                    let view = view.filter(|view| !instance::is_being_deleted(&**view));
                    view.map(|view| instance::is_shut_down(&*view))
                }
                // Only its own answer shows it.
                None => None,
            },
        };
        match shown {
            Some(shut_down) => Ok(MachineEvidence::Shown { shut_down }),
            None => self.confirm_absence(node, name, found, newer_than).await,
        }
    }

    /// Asks Azure for the one machine that a list lacks: only its own answer proves an absence.
    pub(super) async fn confirm_absence(
        &self,
        node: &Node,
        name: &MachineName,
        found: FoundBy,
        newer_than: LogicalTime,
    ) -> Result<MachineEvidence, Failure> {
        let id = name.id();
        let young = || {
            MachineEvidence::Unproven(format!(
                "{id} is not there (yet): the node is younger than nodeInstanceNotFoundGracePeriod"
            ))
        };
        // A virtual machine is always requested by itself: the answer may show it.
        let is_instance = matches!(name, MachineName::Instance(_));
        if is_instance && found == FoundBy::Id && self.is_young(node) {
            return Ok(young());
        }
        if is_instance && found == FoundBy::Name {
            return Ok(guessed(&id));
        }
        let reading = self.observed.read_machine(name, newer_than).await?;
        let answer = match &reading.answer {
            // The answer for a single instance does not say whether it runs.
            MachineAnswer::Exists { .. } if is_instance => {
                let text = format!("{id} is there, but the list of its scale set does not show it");
                return Ok(MachineEvidence::Unproven(text));
            }
            MachineAnswer::Exists { shut_down, .. } => {
                return Ok(MachineEvidence::Shown { shut_down: *shut_down });
            }
            MachineAnswer::Gone(answer) => answer.clone(),
        };
        if found == FoundBy::Name {
            return Ok(guessed(&id));
        }
        if self.is_young(node) {
            return Ok(young());
        }
        if let MachineName::Machine(machine) = name
            && self.is_listed(machine, newer_than).await?
        {
            let text = format!("a list shows {id}, but Azure answers for it alone: {answer}");
            return Ok(MachineEvidence::Unproven(text));
        }
        Ok(MachineEvidence::Gone(Proof { machine: id.to_string(), answer, read: reading.read }))
    }

    /// An instance as listed in its scale set; `None` if the list lacks it, or shows that it is being deleted.
    pub(super) async fn listed_instance(
        &self,
        name: &InstanceName,
        newer_than: LogicalTime,
    ) -> Result<Option<Arc<ScaleSetInstance>>, Failure> {
        let instances = self.observed.instances(&name.scale_set);
        let document = match instances.get(&name.instance_id, newer_than).await {
            Ok(document) => document,
            Err(failure) if failure.is_not_found() => None,
            Err(failure) => return Err(failure),
        };
        Ok(document.filter(|document| !instance::is_being_deleted(&**document)))
    }

    /// A virtual machine as listed in its resource group; `None` likewise.
    pub(crate) async fn listed_machine(
        &self,
        id: &ResourceId,
        newer_than: LogicalTime,
    ) -> Result<Option<Arc<VirtualMachine>>, Failure> {
        let document = self.observed.virtual_machines(&group_of(id)).get(id.name(), newer_than).await?;
        Ok(document.filter(|document| !instance::is_being_deleted(&**document)))
    }

    /// The flexible scale set of a virtual machine. A machine never changes its scale set, so cached data of any age
    /// suffices; an unknown machine counts as standalone, so that its own answer decides.
    pub(super) async fn flexible_set_of(&self, machine: &ResourceId) -> Result<Option<ResourceId>, Failure> {
        let known = self.observed.virtual_machines(&group_of(machine));
        let document = match known.cached(machine.name()) {
            Some(document) => Some(document),
            None => known.get(machine.name(), self.observed.started).await?,
        };
        Ok(document.and_then(|document| {
            document.properties.as_ref()?.virtual_machine_scale_set.as_ref()?.id.clone()
        }))
    }

    /// Whether a list that was read after `newer_than` contains a virtual machine.
    async fn is_listed(&self, id: &ResourceId, newer_than: LogicalTime) -> Result<bool, Failure> {
        let list = match self.flexible_set_of(id).await? {
            Some(set) => self.observed.flexible_views(&set),
            None => self.observed.virtual_machines(&group_of(id)),
        };
        let document = list.get(id.name(), newer_than).await?;
        Ok(document.is_some_and(|document| !instance::is_being_deleted(&*document)))
    }
}

fn guessed(id: &ResourceId) -> MachineEvidence {
    MachineEvidence::Unproven(format!(
        "{id} is not there, but was found by the node's name alone: the node has no providerID"
    ))
}
