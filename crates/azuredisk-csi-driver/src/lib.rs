//! The driver for volumes on Azure's disks: one program for both of its roles.
//!
//! * [`controller`]: creates, attaches, grows, copies and deletes disks.
//! * [`node`]: formats and mounts them on the machine that it runs on.
//! * [`flags`], [`run`]: from a command line to a running driver.

pub mod annotations;
mod configuration;
pub mod controller;
pub mod flags;
pub mod node;
mod node_role;
mod pace;
pub mod run;
