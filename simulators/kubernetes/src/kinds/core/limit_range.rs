//! LimitRanges.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::LimitRange;

use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    short_names: &["limits"],
    create_on_update: true,
    generates_name: true,
    derive: complete_limits,
    validate,
    example: r#"{"spec": {"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "2Gi"}}]}}"#,
    ..BuiltinKind::namespaced::<LimitRange>()
};

/// Derives limits of containers from each other.
fn complete_limits(object: &mut Value) {
    let limits = object.pointer_mut("/spec/limits").and_then(Value::as_array_mut);
    for limit in limits.into_iter().flatten() {
        if text_at(limit, "/type") != "Container" {
            continue;
        }
        for (to, from) in [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")] {
            let Some(values) = limit.get(from).and_then(Value::as_object).cloned() else { continue };
            let Some(target) = member(limit, to) else { continue };
            for (resource, value) in values {
                target.entry(resource).or_insert(value);
            }
        }
    }
}

fn validate(object: &Value, causes: &mut Causes) {
    let mut types = BTreeSet::new();
    for (index, limit) in list_at(object, "/spec/limits").iter().enumerate() {
        let at = format!("spec.limits[{index}].type");
        let kind = text_at(limit, "/type");
        if kind.is_empty() {
            causes.push(Invalid::required(at, ""));
        } else if !types.insert(kind) {
            causes.push(Invalid::duplicate(at, format!("{kind:?}")));
        }
    }
}
