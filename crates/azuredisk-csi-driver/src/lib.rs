//! The driver for volumes on Azure's disks.
//!
//! * [`controller`]: creates, attaches, grows, copies and deletes disks.
//! * [`node`]: formats and mounts them on the machine that it runs on.

pub mod controller;
pub mod node;
