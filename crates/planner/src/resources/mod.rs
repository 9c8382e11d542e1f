//! The Azure resources that Services and nodes need: a folder for each type, each planned in one write.

pub mod load_balancer;
pub mod private_link;
pub mod public_ip;
pub mod route;
pub mod security_group;
pub mod strangers;
pub(crate) mod tags;
