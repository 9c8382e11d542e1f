//! The interface of the metadata service to the simulated Azure whose machines it serves.

use std::fmt::Debug;

use azure_engine::document::reading::Documents;
use azure_engine::provider::AzureState;
use azure_engine::settings::options::MetadataAddresses;

/// A simulated Azure.
pub trait Host: Documents + Debug + Send + Sync {
    /// The machine behind each source address.
    fn metadata_addresses(&self) -> MetadataAddresses;

    /// Reads the state, or changes it.
    fn with_state(&self, look: &mut dyn FnMut(&mut AzureState));
}
