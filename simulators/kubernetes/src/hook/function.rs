//! The function of a hook in this process: what it is asked, and what it decides.

use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value;

/// The argument of a hook: the `request` of an AdmissionReview.
#[derive(Debug, Clone, PartialEq)]
pub struct AdmissionRequest {
    /// `CREATE`, `UPDATE` or `DELETE`.
    pub operation: String,
    /// Name of the kind.
    pub kind: String,
    /// `status`, `scale`, `binding` and the like; empty for the object itself.
    pub subresource: String,
    /// Namespace of the object; empty for objects without one.
    pub namespace: String,
    /// Name of the object; empty if it has yet to be generated.
    pub name: String,
    /// The object as it would be stored; `None` for a deletion.
    pub object: Option<Value>,
    /// The stored object; `None` for a creation.
    pub old_object: Option<Value>,
    /// Whether this is a dry run.
    pub dry_run: bool,
    /// The user: name, groups and UID, as a SelfSubjectReview shows them.
    pub user: Value,
}

/// The decision of a hook.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    pub(super) object: Option<Value>,
    pub(super) refusal: Option<(u16, String)>,
    pub(super) warnings: Vec<String>,
}

impl Decision {
    /// Allows the request unchanged.
    #[must_use]
    pub fn allow() -> Self {
        Self { object: None, refusal: None, warnings: Vec::new() }
    }

    /// Allows the request with this object. Only mutating hooks may change the object.
    #[must_use]
    pub fn replace(object: Value) -> Self {
        Self { object: Some(object), ..Self::allow() }
    }

    /// Denies the request, with status 403 unless [`Decision::code`] sets another one.
    #[must_use]
    pub fn deny(message: impl Into<String>) -> Self {
        Self { refusal: Some((403, message.into())), ..Self::allow() }
    }

    /// The HTTP status of the refusal.
    #[must_use]
    pub fn code(mut self, code: u16) -> Self {
        if let Some(refusal) = &mut self.refusal {
            refusal.0 = code;
        }
        self
    }

    /// Warns the client, whatever the decision is.
    #[must_use]
    pub fn warn(mut self, warning: impl Into<String>) -> Self {
        self.warnings.push(warning.into());
        self
    }
}

pub(super) type Function =
    Arc<dyn Fn(AdmissionRequest) -> Pin<Box<dyn Future<Output = Decision> + Send>> + Send + Sync>;
