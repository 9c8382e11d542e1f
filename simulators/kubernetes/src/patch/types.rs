//! What a patch is, what it is applied to, and why it fails.

use std::borrow::Cow;

use serde_json::Value;

use crate::object::string_at;
use crate::registry::Kind;
use crate::schema::Schema;
use crate::status::ApiError;

/// The kind of a patch, by its content type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PatchType {
    /// `application/merge-patch+json`, RFC 7386.
    Merge,
    /// `application/json-patch+json`, RFC 6902.
    Json,
    /// `application/strategic-merge-patch+json`: lists merge by the keys of the kind's schema.
    Strategic,
    /// `application/apply-patch+yaml`: server-side apply.
    Apply {
        /// The manager that applies: the `fieldManager` query parameter.
        field_manager: String,
        /// Whether fields of other managers are taken over instead of being refused: `force=true`.
        force: bool,
    },
}

/// Why a patch fails.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum PatchError {
    /// The patch is malformed. Servers answer 400.
    #[error("{0}")]
    Invalid(String),
    /// Server-side apply would change fields of other managers without `force`. Each entry reads `conflict with
    /// "manager" using v1: .spec.type`. Servers answer 409.
    #[error("{}", conflict_message(.0))]
    Conflict(Vec<String>),
    /// A well-formed JSON patch does not apply: its `test` failed or a path does not exist. Servers answer 422.
    #[error("{0}")]
    TestFailed(String),
    /// An applied configuration does not fit its schema. Servers answer 500, without a reason.
    #[error("{0}")]
    Untyped(String),
    /// An object could not be converted between versions.
    #[error("{0}")]
    Conversion(Box<ApiError>),
}

fn conflict_message(conflicts: &[String]) -> String {
    match conflicts {
        [one] => format!("Apply failed with 1 conflict: {one}"),
        many => {
            let mut lines = vec![];
            let mut last = "";
            for conflict in many {
                let (manager, path) = conflict.rsplit_once(": ").unwrap_or((conflict, ""));
                if manager != last {
                    lines.push(format!("{}:", manager.replacen("conflict ", "conflicts ", 1)));
                    last = manager;
                }
                lines.push(format!("- {path}"));
            }
            format!("Apply failed with {} conflicts: {}", many.len(), lines.join("\n"))
        }
    }
}

/// The members of an object that a write may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All but these.
    AllBut(&'static [&'static str]),
    /// These alone.
    Only(&'static [&'static str]),
}

impl Scope {
    pub(super) fn contains(self, member: &str) -> bool {
        match self {
            Self::AllBut(others) => !others.contains(&member),
            Self::Only(own) => own.contains(&member),
        }
    }
}

/// An object in another version of its kind, and the schema of that version.
pub(crate) type Versioned<'v, 's> = Option<(Cow<'v, Value>, &'s Schema)>;

/// The other versions of a kind.
pub(crate) trait OtherVersions {
    /// The schema of a version; `None` if it is not served.
    fn schema(&self, api_version: &str) -> Option<&Schema>;

    /// An object of the kind in the form of `api_version`; `None` if that is not served.
    ///
    /// # Errors
    /// The object cannot be converted.
    fn at<'v>(&self, object: &'v Value, api_version: &str) -> Result<Versioned<'v, '_>, ApiError>;
}

/// The target of a patch: a kind in one version, and a part of its objects.
pub(crate) struct PatchTarget<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) api_version: &'a str,
    pub(crate) kind: &'a str,
    /// Empty for the main resource.
    pub(crate) subresource: &'a str,
    pub(crate) scope: Scope,
    /// The built-in kind whose structures every object has, so that no manager owns them as such.
    pub(crate) structures: Option<&'a Kind>,
    pub(crate) versions: &'a dyn OtherVersions,
}

impl PatchTarget<'_> {
    pub(super) fn schema_at(&self, api_version: &str) -> Option<&Schema> {
        if api_version == self.api_version { Some(self.schema) } else { self.versions.schema(api_version) }
    }

    pub(super) fn at_version<'v>(
        &self,
        object: &'v Value,
        api_version: &str,
    ) -> Result<Versioned<'v, '_>, PatchError> {
        if api_version == string_at(object, &["apiVersion"]).unwrap_or(self.api_version) {
            return Ok(self.schema_at(api_version).map(|schema| (Cow::Borrowed(object), schema)));
        }
        self.versions.at(object, api_version).map_err(|error| PatchError::Conversion(Box::new(error)))
    }
}

impl From<PatchError> for ApiError {
    fn from(error: PatchError) -> Self {
        match error {
            PatchError::Invalid(message) => Self::bad_request(message),
            PatchError::TestFailed(_) => Self::patch_failed(),
            PatchError::Conflict(ref conflicts) => Self::apply_conflict(error.to_string(), conflicts),
            PatchError::Untyped(message) => Self::new(500, "", message),
            PatchError::Conversion(error) => *error,
        }
    }
}
