//! The driver for volumes on Azure Files: one program for both of its roles.
//!
//! * [`controller`]: makes, grows, changes and deletes shares, and the accounts that they are in.
//! * [`node`]: mounts shares on the machine that it runs on.
//! * [`flags`], [`run`]: from a command line to a running driver.

mod configuration;
pub mod controller;
pub mod flags;
pub mod node;
pub mod run;
