//! What the metadata service asks of the simulated Azure whose machines it serves.

use std::fmt::Debug;

use azure_engine::documents::Documents;
use azure_engine::options::MetadataAddresses;
use azure_engine::provider::AzureState;

/// A simulated Azure.
pub trait Host: Documents + Debug + Send + Sync {
    /// Which machine the service takes a caller for.
    fn metadata_addresses(&self) -> MetadataAddresses;

    /// Looks at the state, or changes it.
    fn with_state(&self, look: &mut dyn FnMut(&mut AzureState));
}
