//! Checks of references: whether the targets exist and are ready.

use azure_types::ResourceId;

use crate::provider::{AzureState, Record};
use crate::refusal::{Code, Refusal, Result};
use crate::store::State;
use crate::store::reference::Role;
use crate::types::protocol::{GLOBAL, Readiness};

impl AzureState {
    /// Checks that all targets of a candidate document exist and are ready.
    pub fn check_references(&self, candidate: &Record) -> Result<()> {
        self.check_references_as(candidate, candidate.resource_type.protocol().readiness)
    }

    /// The same with a required readiness.
    pub fn check_references_as(&self, candidate: &Record, readiness: Readiness) -> Result<()> {
        let references = candidate.resource_type.references(candidate);
        for reference in references.into_iter().filter(|reference| reference.role != Role::Names) {
            if reference.to.is_within(&candidate.id) {
                if self.find_child(candidate, &reference.to).is_none() {
                    return Err(Refusal::invalid_reference(&reference.to, &reference.from));
                }
                continue;
            }
            let holder = self
                .store
                .holder(&reference.to)
                .filter(|holder| {
                    holder.id == reference.to || self.find_child(holder, &reference.to).is_some()
                })
                .filter(|holder| same_region(holder, candidate))
                .ok_or_else(|| Refusal::invalid_reference(&reference.to, &reference.from))?;
            match (readiness, holder.state) {
                (_, State::Succeeded) => {}
                (Readiness::Ready, _) => {
                    self.check_provisioned(holder, &reference.to, &reference.from)?;
                }
                // Only a resource that is on its way is waited for.
                (Readiness::UnderWay, State::Creating | State::Updating) => {}
                (Readiness::UnderWay, _) => {
                    return Err(Code::ours(409, "Conflict").says(format_args!(
                        "Resource {} is in {} state and cannot be used.",
                        reference.to,
                        self.state_name(holder)
                    )));
                }
            }
        }
        Ok(())
    }

    /// Checks that the targets of a candidate document are not being changed, as Network requires.
    pub fn check_provisioned(&self, holder: &Record, to: &ResourceId, from: &ResourceId) -> Result<()> {
        if holder.state == State::Succeeded {
            return Ok(());
        }
        let last = holder.operation.as_ref().and_then(|key| self.operations.get(key)).map_or_else(
            || holder.resource_type.operation_name("Put"),
            |operation| format!("{} ({})", operation.name, operation.key),
        );
        Err(Refusal::not_provisioned(to, from, self.state_name(holder), &last))
    }
}

/// Whether two documents are in one region, if both have a location.
fn same_region(one: &Record, other: &Record) -> bool {
    match (one.body.get("location"), other.body.get("location")) {
        (Some(one), Some(other)) => one == other || one == GLOBAL || other == GLOBAL,
        _ => true,
    }
}
