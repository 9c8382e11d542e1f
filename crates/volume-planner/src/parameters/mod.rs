//! Parameters of classes: tables of keys, one mechanism that reads them, and the typed requests that they become.
//!
//! A row of a table ([`disk_table`], [`snapshot_table`]) has the key, its aliases, the form of its values, what holds without
//! it, what it does and which SKUs it suits. Reading, refusing and the page for users come from the same row.

pub mod disk;
pub mod disk_table;
mod form;
pub mod given;
pub mod keys;
pub mod modification;
pub mod network_access;
pub mod performance;
pub mod share;
pub mod share_keys;
pub mod share_table;
pub mod snapshot;
pub mod snapshot_table;
mod table;
pub mod tags;
pub mod templates;

pub use table::{Parameter, markdown_rows};
