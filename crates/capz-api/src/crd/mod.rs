//! Custom resource definitions: a table of kinds, and schemas generated from the types.

mod defaults;
mod definition;
mod kinds;
mod schema;
mod versions;

pub use defaults::{fill_defaults, fill_required};
pub use definition::definition;
pub use kinds::{Column, GROUP, KINDS, Kind, VERSION};
