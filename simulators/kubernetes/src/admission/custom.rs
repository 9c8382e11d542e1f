//! Validates objects of custom kinds.

use serde_json::Value;

use crate::object::invalid::{Causes, Invalid};
use crate::registry::Kind;
use crate::structural;

/// Validates an object that will be created or will replace `old`.
pub(super) fn validate(kind: &Kind, old: Option<&Value>, object: &Value, causes: &mut Causes) {
    let before = causes.count();
    structural::validate_values(kind.tree(), old, object, causes);
    scale(kind, object, causes);
    structural::validate_rules(kind.tree(), old, object, before, causes);
}

/// The numbers of the `scale` subresource must be valid numbers of pods, whatever their path is.
fn scale(kind: &Kind, object: &Value, causes: &mut Causes) {
    let Some(paths) = &kind.scale_paths else { return };
    for path in [&paths.replicas, &paths.actual] {
        let found = path.iter().try_fold(object, |value, name| value.get(name));
        let Some(count) = found.and_then(Value::as_i64) else { continue };
        let why = match count {
            ..0 => "should be a non-negative integer".to_owned(),
            _ if i32::try_from(count).is_err() => format!("should be less than or equal to {}", i32::MAX),
            _ => continue,
        };
        causes.push(Invalid::value(format!(".{}", path.join(".")), count, &why));
    }
}
