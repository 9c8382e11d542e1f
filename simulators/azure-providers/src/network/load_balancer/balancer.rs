//! A load balancer that is being written, as its parts see it.

use azure_types::ResourceId;
use serde_json::Value;

use azure_engine::document::Object;
use azure_engine::provider::AzureState;

impl Balancer<'_> {
    /// The id of a child that a client sent.
    pub(crate) fn child(&self, collection: &str, child: &Object) -> ResourceId {
        self.child_named(collection, child.get("name").and_then(Value::as_str).unwrap_or_default())
    }

    pub(crate) fn child_named(&self, collection: &str, name: &str) -> ResourceId {
        self.id.child(collection, name)
    }
}

/// The balancer whose children are being checked.
pub(crate) struct Balancer<'a> {
    pub(crate) azure: &'a AzureState,
    pub(crate) id: &'a ResourceId,
    /// `Basic` or `Standard`.
    pub(crate) sku: &'a str,
}
