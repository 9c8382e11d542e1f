//! Machines: their identity, and what their documents say about their nodes. Pure.
//!
//! A node is matched to its machine by provider ID ([`parse_provider_id`]) or, before it has one, by name
//! ([`candidates_for_node_name`], [`is_called`]). Instances of uniform scale sets and virtual machines have documents
//! of two types with the same information ([`MachineDocument`]): whether the machine runs ([`is_shut_down`]), and the
//! properties of its node ([`describe`]).

mod document;
mod facts;
mod id;
mod instance_view;
mod name;
mod state;

#[cfg(test)]
mod tests;

pub use document::MachineDocument;
pub use facts::{DescribeError, InstanceFacts, describe, described_interfaces, needs_fault_domain};
pub use id::{
    InstanceName, MachineName, ProviderId, names_machine, of_interface, parse_provider_id, provider_id,
};
pub use name::{candidates_for_node_name, instance_id_of_node_name, is_called, zone_label, zone_number};
pub use state::{is_being_deleted, is_inactive, is_shut_down, power_state};
