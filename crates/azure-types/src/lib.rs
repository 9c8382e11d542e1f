//! Resource ids and the documents of Azure Resource Manager.
//!
//! Every document keeps the members it does not know, at every level, so that a read-modify-write never loses values of
//! other writers (or of a newer Azure).

mod availability_set;
mod backend_addresses;
mod document;
mod load_balancer;
mod member_interfaces;
mod network_interface;
mod packed_texts;
mod private_link;
mod public_ip;
mod resource_id;
mod route_table;
mod scale_set;
mod security_group;
mod shared_ids;
mod subscription;
mod virtual_machine;
mod virtual_network;
mod vm_id;

pub use availability_set::*;
pub use backend_addresses::*;
pub use document::{ExtendedLocation, Rest, Sku, SubResource, Tags, Word};
pub use load_balancer::*;
pub use member_interfaces::MemberInterfaces;
pub use network_interface::*;
pub use private_link::*;
pub use public_ip::*;
pub use resource_id::{ResourceId, ResourceIdError};
pub use route_table::*;
pub use scale_set::*;
pub use security_group::*;
pub use shared_ids::SharedIds;
pub use subscription::*;
pub use virtual_machine::*;
pub use virtual_network::*;
pub use vm_id::VmId;
