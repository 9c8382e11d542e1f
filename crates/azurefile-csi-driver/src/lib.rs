//! The driver for volumes on Azure Files: one program for both of its roles.
//!
//! * [`node`]: mounts shares on the machine that it runs on.
//! * [`flags`], [`run`]: from a command line to a running driver.

pub mod flags;
mod no_controller;
pub mod node;
pub mod run;
