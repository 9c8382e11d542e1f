//! The hardware of simulated machines: a disk that a machine of the simulated Azure has is a block device in that
//! machine's own device tree.
//!
//! ```text
//! documents of Azure ─▶ Observed ─▶ Delay ─▶ Hardware ─▶ Contents        one sparse file for each disk and snapshot
//!                                                   ├──▶ LoopDevice      one for each disk of each machine
//!                                                   └──▶ layout          FOLDER/MACHINE/dev and FOLDER/MACHINE/sys
//! ```
//!
//! * The bytes belong to the disk: they move with it from machine to machine. A snapshot, a copy and a disk of a snapshot hold
//!   what their source held when Azure accepted the request.
//! * A disk is plugged in when a machine's list of disks names it, as Azure's hosts do it during the operation, or a given time
//!   later. It is pulled out when the list no longer names it. Where it is still mounted or open then, its device has no
//!   sectors any more: reads and writes fail, and nothing that its former machine writes reaches the disk.
//! * `dev` can be bound over `/dev` in a mount namespace; a program that takes the root of its devices as an option needs no
//!   namespace.

mod contents;
mod delay;
mod error;
mod hardware;
mod layout;
mod loop_device;
mod machine_disks;
mod observed;
mod tree;

pub use error::HardwareError;
pub use hardware::Devices;
pub use machine_disks::{MachineDisks, Options};
