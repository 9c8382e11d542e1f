//! Applies a patch of any type.

use serde_json::Value;

use super::types::{PatchError, PatchTarget, PatchType};
use super::{apply, strategic};
use crate::schema::Schema;

/// Applies `patch` to `current`. Returns the new object.
///
/// For server-side apply the result has the new `metadata.managedFields`, and `current` may be `None`: the object is
/// created. For the other types `None` counts as an empty object.
///
/// # Errors
/// See [`PatchError`].
pub(crate) fn patch(
    subject: &PatchTarget<'_>,
    current: Option<&Value>,
    patch: &Value,
    how: &PatchType,
) -> Result<Value, PatchError> {
    match how {
        PatchType::Apply { field_manager, force } => {
            apply::apply(subject, current, patch, field_manager, *force)
        }
        _ => plain(subject.schema, current, patch, how),
    }
}

/// As [`patch`], for kinds of patches without field ownership.
///
/// # Errors
/// See [`PatchError`]. Server-side apply is refused.
pub(crate) fn plain(
    schema: &Schema,
    current: Option<&Value>,
    patch: &Value,
    how: &PatchType,
) -> Result<Value, PatchError> {
    let object = || current.cloned().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    match how {
        PatchType::Merge => {
            if !patch.is_object() {
                return Err(PatchError::Invalid("a merge patch of an object must be an object".into()));
            }
            let mut object = object();
            json_patch::merge(&mut object, patch);
            Ok(object)
        }
        PatchType::Json => {
            let operations: json_patch::Patch =
                serde_json::from_value(patch.clone()).map_err(|error| match patch {
                    Value::Array(_) => PatchError::TestFailed(error.to_string()),
                    _ => PatchError::Invalid(format!("a JSON patch is a list of operations: {error}")),
                })?;
            let mut object = object();
            for operation in operations.0 {
                let operation = lenient(&object, operation);
                json_patch::patch(&mut object, &[operation])
                    .map_err(|error| PatchError::TestFailed(error.to_string()))?;
            }
            Ok(object)
        }
        PatchType::Strategic => strategic::merge(schema, object(), patch),
        PatchType::Apply { .. } => Err(PatchError::Invalid("nothing can be applied here".into())),
    }
}

/// The server's library treats the replacement of a missing member as an addition.
fn lenient(object: &Value, operation: json_patch::PatchOperation) -> json_patch::PatchOperation {
    use json_patch::{AddOperation, PatchOperation};
    match operation {
        PatchOperation::Replace(replace)
            if object.pointer(replace.path.as_str()).is_none()
                && replace
                    .path
                    .parent()
                    .is_some_and(|parent| object.pointer(parent.as_str()).is_some_and(Value::is_object)) =>
        {
            PatchOperation::Add(AddOperation { path: replace.path, value: replace.value })
        }
        operation => operation,
    }
}
