//! The document that is written to Azure.

use std::fmt;

use azure_types::ResourceId;
use serde_json::Value;

use crate::error::Refusal;
use crate::lookup::{Awaited, Lookup};
use crate::resource::Resource;
use crate::translation::{Mode, Translation};

/// The document of a resource.
#[derive(Clone, PartialEq)]
pub struct Document {
    /// What is written. Members that are not known yet are absent.
    pub value: Value,
    /// JSON pointers to the values that came from Secrets, or may be secret.
    pub secrets: Vec<String>,
    /// The names of the Secrets that it takes values from.
    pub sources: Vec<String>,
    /// What has to be known before it is complete.
    pub awaited: Vec<Awaited>,
    /// Members of the object, such as `spec.networkProfle`, that Azure is not known to have. They are in the document
    /// all the same; Azure refuses or ignores them.
    pub unknown: Vec<String>,
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = self.value.clone();
        for pointer in &self.secrets {
            if let Some(value) = shown.pointer_mut(pointer) {
                *value = "(hidden)".into();
            }
        }
        f.debug_struct("Document")
            .field("value", &shown)
            .field("awaited", &self.awaited)
            .field("unknown", &self.unknown)
            .finish()
    }
}

impl Resource {
    /// The document of the resource, whose own ID is `id`.
    ///
    /// # Errors
    ///
    /// A member cannot be read.
    pub fn document(&self, id: &ResourceId, lookup: &dyn Lookup) -> Result<Document, Refusal> {
        let mut translation = Translation::new(self.kind, Some(id.subscription_id()), lookup, Mode::Whole);
        let value = translation.specification(&self.spec)?;
        let Translation { secrets, mut sources, mut awaited, unknown, .. } = translation;
        awaited.sort();
        awaited.dedup();
        sources.sort();
        sources.dedup();
        Ok(Document { value, secrets, sources, awaited, unknown })
    }
}
