//! Azure in one process: Resource Manager, Entra, instance metadata, packet oracle.

mod documents;
pub mod tls;
pub mod packet;
pub mod serve;
pub mod imds;
pub mod entra;

pub use documents::Documents;
