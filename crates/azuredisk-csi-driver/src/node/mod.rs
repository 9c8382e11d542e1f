//! The service Node: disks that are attached to this machine become file systems and devices of its pods.
//!
//! * [`NodeService`]: the service; [`NodeOptions`]: what flags decide.
//! * [`machine`]: facts about the machine, from instance metadata and from its Node.
//! * [`kubernetes`]: the taint of a node whose driver is not ready, and the hook before the driver stops.
//!
//! Nothing is remembered between calls but locks: the kernel's tables of mounts and devices are the state, so that a new
//! process goes on where another one ended. A call that was begun is completed even if its caller goes; the caller's
//! repetition is refused meanwhile (Aborted).

mod capability;
mod deadline;
mod expand;
mod info;
pub mod kubernetes;
pub mod machine;
mod options;
mod performance;
mod publish;
mod service;
mod stage;
mod statistics;
mod status;

pub use options::NodeOptions;
pub use service::NodeService;
