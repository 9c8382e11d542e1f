//! The versions of a custom kind.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::webhook::ConversionWebhook;
use crate::schema::Schema;

/// The data that all versions of a custom kind share.
#[derive(Debug)]
pub(crate) struct Versions {
    /// The `apiVersion` in which objects are stored from now on.
    pub(crate) storage: String,
    /// The schemas by `apiVersion`, including versions that are not served: objects may be stored in them.
    pub(crate) trees: BTreeMap<String, Arc<Schema>>,
    /// Whether the definition has changed since it was created: then stored objects may lack defaults.
    pub(crate) revised: bool,
    /// The conversion webhook. Without one, objects are converted by the schemas alone.
    pub(crate) webhook: Option<Arc<ConversionWebhook>>,
}
