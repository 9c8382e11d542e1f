//! Rules for labels and annotations.

use serde_json::Value;

use super::names::{label_value, qualified_name};
use crate::object::invalid::{Causes, Invalid};
use crate::object::pointer::members;

/// kube-apiserver's limit for all annotations of an object together: 256 KiB.
const MAX_ANNOTATION_BYTES: usize = 256 * 1024;

/// Validates keys and values of labels, or of a selector, at a pointer; messages call them `field`.
pub(crate) fn labels(object: &Value, pointer: &str, field: &str, causes: &mut Causes) {
    for (key, value) in members(object, pointer) {
        causes.check(field, key, qualified_name);
        causes.check(field, value.as_str().unwrap_or_default(), label_value);
    }
}

/// Validates the keys of annotations, and their total size.
pub(crate) fn annotations(object: &Value, field: &str, causes: &mut Causes) {
    let mut size = 0;
    for (key, value) in members(object, "/metadata/annotations") {
        causes.check(field, key, |key| qualified_name(&key.to_lowercase()));
        size += key.len() + value.as_str().unwrap_or_default().len();
    }
    if size > MAX_ANNOTATION_BYTES {
        let why = format!("Too long: must have at most {MAX_ANNOTATION_BYTES} bytes");
        causes.push(Invalid::new(field, why));
    }
}

/// The errors in labels and annotations that a conversion webhook returned, as kube-apiserver words them.
pub(crate) fn metadata_causes(object: &Value) -> Vec<String> {
    let mut causes = Causes::default();
    labels(object, "/metadata/labels", "metadata.labels", &mut causes);
    annotations(object, "metadata.annotation", &mut causes);
    causes.0.iter().map(ToString::to_string).collect()
}
