//! A kernel for tests: machines with disks, the trees of their devices, file systems and mounts. Programs such as `mkfs.ext4`
//! act on the model; no answer is prepared.
//!
//! Every call of the seam is a step. A test can let one of them fail, or let the process die before or after it
//! ([`Fault`]).
#![allow(missing_docs, reason = "names say it, and tests alone use it")]

mod disk;
mod fault;
mod file_service;
mod layout;
mod machine;
mod mounted;
mod programs;
mod served;
mod state;
mod tree;

pub use disk::{Contents, Health};
pub use fault::Fault;
pub use layout::Layout;
pub use machine::SimulatedMachine;
pub use served::FileService;
