//! The settings of a simulated Azure: what its user chooses, and how the choices act.

pub mod actors;
pub mod budget;
pub mod consistency;
pub mod latency;
pub mod limits;
pub mod options;
pub mod seed;
pub(crate) mod time_left;
