//! The kinds of the registry as the subjects of patches and field ownership.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use super::types::{OtherVersions, PatchTarget, Scope, Versioned};
use crate::conversion::reshape;
use crate::object::string_at;
use crate::registry::{Kind, Registry};
use crate::schema::Schema;
use crate::status::ApiError;

/// The versions of one kind.
struct Siblings<'a> {
    registry: &'a Registry,
    kind: &'a Kind,
}

impl Siblings<'_> {
    fn row(&self, api_version: &str) -> Option<&Arc<Kind>> {
        let siblings = self.registry.kinds().iter();
        siblings
            .filter(|row| row.shelf == self.kind.shelf && row.kind == self.kind.kind)
            .find(|row| row.has_api_version(api_version))
    }
}

impl OtherVersions for Siblings<'_> {
    fn schema(&self, api_version: &str) -> Option<&Schema> {
        self.row(api_version).map(|row| row.tree())
    }

    fn at<'v>(&self, object: &'v Value, api_version: &str) -> Result<Versioned<'v, '_>, ApiError> {
        let Some(row) = self.row(api_version) else { return Ok(None) };
        let own = string_at(object, &["apiVersion"]).and_then(|own| self.row(own));
        let from = own.map_or(self.kind, AsRef::as_ref);
        Ok(Some((Cow::Owned(reshape(from, row, object)?), row.tree())))
    }
}

impl Registry {
    /// A part of a kind's objects, for patches and field ownership.
    pub(crate) fn subject<T>(
        &self,
        kind: &Kind,
        subresource: &str,
        then: impl FnOnce(&PatchTarget<'_>) -> T,
    ) -> T {
        then(&PatchTarget {
            schema: kind.tree(),
            api_version: &kind.api_version(),
            kind: &kind.kind,
            subresource,
            scope: scope(kind, subresource),
            structures: (!kind.is_custom()).then_some(kind),
            versions: &Siblings { registry: self, kind },
        })
    }
}

/// The members that a write of a part may change.
fn scope(kind: &Kind, subresource: &str) -> Scope {
    match subresource {
        "" if kind.has_status() => Scope::AllBut(&["status"]),
        "status" if kind.is_custom() => Scope::Only(&["status"]),
        "status" => Scope::Only(&["metadata", "status"]),
        _ => Scope::AllBut(&[]),
    }
}
