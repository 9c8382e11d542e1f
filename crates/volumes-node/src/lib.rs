//! Devices, file systems and mounts of a node: the one place that touches a kernel. Knows neither Kubernetes, Azure's API nor
//! gRPC.
//!
//! ```text
//!  a LUN ──▶ devices ──▶ a block device ──▶ filesystems ──▶ formatted or checked ──▶ mounts ──▶ a folder
//!               └──────────────┴──────────── system: the seam ────────────┴───────────┘
//! ```
//!
//! A file imports files of its own floor and of those below it, never of one above:
//!
//! ```text
//! devices      by LUN, waiting for the kernel's events; sizes, settings
//! filesystems  what a device contains; formatting of what is proven empty; checks; growth
//! mounts       the kernel's table; new mounts and their end; statistics
//! simulated    a kernel for tests: a tree of devices, file systems, mounts
//! system       the seam: calls of the kernel, programs, events
//! ```
//!
//! Everything is done by [`system::System`], so that the same code runs on this machine ([`system::Kernel`]), on loop devices
//! below another root, and in tests on a simulated kernel (feature `test-util`).
//!
//! Tests name sections of the project's specification of the drivers for disks and files.

pub mod devices;
pub mod filesystems;
pub mod mounts;
#[cfg(any(test, feature = "test-util"))]
pub mod simulated;
pub mod system;
