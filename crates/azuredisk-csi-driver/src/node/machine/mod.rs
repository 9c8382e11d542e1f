//! Facts about the machine: where it is, how many disks it takes, which it has.

mod facts;
mod metadata;

pub use facts::{FactSource, Facts, FactsError};
pub use metadata::{Metadata, node_name};
