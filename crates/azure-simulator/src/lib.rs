//! Azure in one process: Resource Manager, Entra, instance metadata, packet oracle.

mod documents;

pub use documents::Documents;
