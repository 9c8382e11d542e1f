//! Requests for volumes and observed disks in, documents for Azure out: pure.
//!
//! This is the part of the drivers for disks and shares that decides. Requests of the Container Storage Interface, parameters of classes
//! and documents that Azure answered go in; a document to write, nothing, or a [`Refusal`] comes out. No clock, no I/O,
//! no randomness: the same input gives the same result, in any order of its parts.
//!
//! ```text
//!  parameters of a class ──▶ parameters ──▶ typed request ─┐
//!  a request's size, zone, source ─────────────────────────┼─▶ disk, snapshot ──▶ PUT, PATCH, or nothing
//!  the disk or snapshot that Azure has ────────────────────┘
//!
//!  waiting attaches and detaches ──────────────────────────┐
//!  the machine's list of data disks, reserved LUNs ────────┼─▶ attach ──▶ the list to write, and an answer for each
//!  the machine's capacity ─────────────────────────────────┘
//! ```
//!
//! A file imports files of its own floor and of those below it, never of one above:
//!
//! ```text
//! listing      pages of volumes and snapshots
//! shares       an account for a share, documents of accounts and shares, snapshots of shares
//! snapshot     a snapshot: what is written next, whether it is ready
//! disk         a disk: created, cloned, restored, grown, modified, deleted; contexts of volumes
//! attach       a machine's list of data disks; LUNs; how many disks a machine takes
//! parameters   tables of parameters, and the typed requests that they become
//! model        refusals, SKUs, IDs, names, sizes, zones
//! ```
//!
//! Tests name sections of the project's specification of the drivers for disks and files.

pub mod attach;
pub mod disk;
pub mod listing;
mod model;
pub mod parameters;
pub mod shares;
pub mod snapshot;

pub use model::access;
pub use model::account_sku::AccountSku;
pub use model::azure_error;
pub use model::cluster_place::ClusterPlace;
pub use model::disk_sku::{Caching, DiskSku};
pub use model::error::{ClassKind, Code, Refusal};
pub use model::{account_sku, id, names, share_id, share_names, size, topology};
