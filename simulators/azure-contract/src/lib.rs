//! Azure's published contract of resource types: which members a document of a type and version has, of which JSON
//! type, and which of them a request must state. [`Contract::judge`] holds one document against it.
//!
//! The data are a folder of files `NAMESPACE@VERSION.json` that were extracted from the types that Azure publishes for
//! Bicep. They are no part of this crate; [`Contract::read`] reads such a folder.

mod beyond;
mod check;
mod contract;
mod shape;
mod violation;

pub use beyond::{BEYOND, Beyond};
pub use contract::{BadContract, Contract, Judgement};
pub use violation::{Problem, Side, Violation};
