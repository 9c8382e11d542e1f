//! Names that all documents share.

use serde_json::{Value, json};

use crate::registry::Kind;

pub(super) const GVK: &str = "x-kubernetes-group-version-kind";

/// The paths of the schemas in version 3 and version 2 documents.
pub(super) const SCHEMAS_V3: &str = "#/components/schemas/";
pub(super) const SCHEMAS_V2: &str = "#/definitions/";

/// Group, version and kind.
pub(super) fn identity(kind: &Kind) -> Value {
    json!({ "group": kind.group, "version": kind.version, "kind": kind.kind })
}
