//! Defaults of custom resources, and the removal of nulls that the schema does not allow.

use serde_json::Value;

use crate::schema::{Additional, Schema};

fn is_stray_null(schema: &Schema, value: &Value) -> bool {
    value.is_null() && !schema.nullable
}

/// The schema of a map's values, if the map has no schema of its own for the member.
fn additional(schema: &Schema) -> Option<&Schema> {
    match &schema.additional {
        Additional::Of(link) => Some(link),
        Additional::None | Additional::Any => None,
    }
}

/// Removes null members that are not nullable, unless a default replaces them.
pub(super) fn drop_nulls(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|name, member| {
                schema
                    .member(name)
                    .is_none_or(|schema| schema.default.is_some() || !is_stray_null(schema, member))
            });
            for (name, member) in members {
                if let Some(schema) = schema.member(name) {
                    drop_nulls(schema, member);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.items.as_deref() {
                items.iter_mut().for_each(|item| drop_nulls(schema, item));
            }
        }
        _ => {}
    }
}

/// Sets missing members to their defaults, at every depth, including inside of new defaults.
pub(super) fn apply(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, property) in &schema.properties {
                let Some(default) = &property.default else { continue };
                if members.get(name).is_none_or(|member| is_stray_null(property, member)) {
                    members.insert(name.clone(), default.clone());
                }
            }
            for (name, member) in members {
                match (schema.properties.get(name), additional(schema)) {
                    (Some(property), _) => apply(property, member),
                    (None, Some(schema)) => apply_to(schema, member),
                    (None, None) => {}
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.items.as_deref() {
                items.iter_mut().for_each(|item| apply_to(schema, item));
            }
        }
        _ => {}
    }
}

fn apply_to(schema: &Schema, value: &mut Value) {
    if is_stray_null(schema, value)
        && let Some(default) = &schema.default
    {
        *value = default.clone();
    }
    apply(schema, value);
}
