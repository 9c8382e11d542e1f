//! The body of a request, parsed once.

use serde_json::Value;

use crate::refusal::{Refusal, Result};

/// The body of a request: a document, nothing, or what is no JSON.
#[derive(Debug, Clone)]
pub struct Body {
    /// The document, or why there is none.
    parsed: Result<Value, String>,
    is_empty: bool,
}

impl Body {
    /// Parses a body. A body that is not JSON is refused only by requests that need one.
    pub fn parse(bytes: &[u8]) -> Self {
        let parsed = serde_json::from_slice(bytes).map_err(|error| error.to_string());
        Self { parsed, is_empty: bytes.is_empty() }
    }

    /// The document of a request that needs one.
    ///
    /// # Errors
    ///
    /// The body is empty or no JSON.
    pub fn document(&self) -> Result<&Value> {
        self.parsed.as_ref().map_err(Refusal::bad_content)
    }

    /// The document of a request that may have none: `Null` for an empty body.
    ///
    /// # Errors
    ///
    /// The body is no JSON.
    pub fn optional(&self) -> Result<&Value> {
        if self.is_empty { Ok(&Value::Null) } else { self.document() }
    }

    /// The document, where the body is one.
    pub fn readable(&self) -> Option<&Value> {
        self.parsed.as_ref().ok()
    }
}
