//! Rules for labels and annotations.

use serde_json::Value;

use super::names::{label_value, qualified_name};
use crate::object::invalid::{Causes, Invalid};
use crate::object::pointer::members;

/// kube-apiserver's limit for all annotations of an object together: 256 KiB.
const MAX_ANNOTATION_BYTES: usize = 256 * 1024;

/// Validates keys and values of labels, or of a selector, at a path of members.
pub(crate) fn labels(object: &Value, field: &str, causes: &mut Causes) {
    for (key, value) in members(object, &format!("/{}", field.replace('.', "/"))) {
        causes.note(qualified_name(key).map_err(|why| Invalid::text(field, key, &why)));
        let value = value.as_str().unwrap_or_default();
        causes.note(label_value(value).map_err(|why| Invalid::text(field, value, &why)));
    }
}

/// Validates the keys of annotations, and their total size.
pub(crate) fn annotations(object: &Value, field: &str, causes: &mut Causes) {
    let mut size = 0;
    for (key, value) in members(object, "/metadata/annotations") {
        let rule = qualified_name(&key.to_lowercase());
        causes.note(rule.map_err(|why| Invalid::text(field, key, &why)));
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
    labels(object, "metadata.labels", &mut causes);
    annotations(object, "metadata.annotation", &mut causes);
    causes.0.iter().map(ToString::to_string).collect()
}
