//! The description of resource types: protocol, members, names, versions.

pub mod example;
pub mod join;
pub mod member_table;
pub mod names;
pub mod protocol;
pub(crate) mod schema;
pub mod state_name;
pub mod version;
