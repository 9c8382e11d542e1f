//! A load balancer that is being written, as its parts see it.

use azure_types::ResourceId;

use azure_engine::provider::{AzureState, Record};

/// The balancer whose children are being checked.
pub(crate) struct Balancer<'a> {
    pub(crate) azure: &'a AzureState,
    pub(crate) id: &'a ResourceId,
    /// `Basic` or `Standard`.
    pub(crate) sku: &'a str,
    /// As it is stored, where it exists.
    pub(crate) old: Option<&'a Record>,
}

impl Balancer<'_> {
    /// The id of a child.
    pub(crate) fn child(&self, collection: &str, name: &str) -> ResourceId {
        self.id.child(collection, name)
    }
}
