//! From an AzureMachine to goals: one function for each kind of resource.

mod availability_set;
mod completion;
mod conditions;
mod goals;
mod inbound_nat_rule;
mod memory;
mod names;
mod network_interface;
mod observed_machine;
mod placement;
mod scope;
mod virtual_machine;

pub use completion::complete;
pub(crate) use completion::complete_first;
pub use conditions::{conditions, stopped};
pub(crate) use goals::unproven_end_of;
pub use goals::{ends, goals, unproven_end};
pub(crate) use memory::applied_tags;
pub use memory::{TAGS, remembered};
pub use observed_machine::{ObservedMachine, observed_machine};
pub use placement::next_zone;
pub use scope::{CONTROL_PLANE_LABEL, MADE_ANNOTATION, MachineScope, OwnerMachine, TRIED_ZONES};

pub use crate::goal::GoalError;
pub use crate::machine_inputs::MachineInputs;
