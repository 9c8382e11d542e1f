//! Validation rules (`x-kubernetes-validations`): each is evaluated on the value of its schema, parents first.

use kube_cel::cel::{ExecutionError, Value as Cel};
use serde_json::Value;

use super::cel::{self, Variables};
use super::correlate;
use crate::object::invalid::{Causes, Invalid};
use crate::schema::{Additional, Link, Rule, Schema};

/// Whether a schema contains any rule.
pub(super) fn any(schema: &Schema) -> bool {
    let inline = |link: &Link| match link {
        Link::Inline(schema) => any(schema),
        Link::Definition(_) => false,
    };
    !schema.rules.is_empty()
        || schema.properties.values().any(inline)
        || schema.items.as_ref().is_some_and(inline)
        || matches!(&schema.additional, Additional::Of(link) if inline(link))
}

pub(super) fn validate(schema: &Schema, old: Option<&Value>, value: &Value, causes: &mut Causes) {
    if any(schema) {
        validate_at(schema, old, value, "", causes);
    }
}

fn validate_at(schema: &Schema, old: Option<&Value>, value: &Value, path: &str, causes: &mut Causes) {
    if !schema.rules.is_empty() && !value.is_null() {
        let this = cel::value(schema, value);
        let before = old.map(|old| cel::value(schema, old));
        for rule in &schema.rules {
            let unchanged = old == Some(value);
            evaluate(schema, rule, (&this, before.as_ref()), unchanged, path, causes);
        }
    }
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let (inner, at) = match (schema.properties.get(name), &schema.additional) {
                    (Some(Link::Inline(property)), _) if path.is_empty() => (&**property, name.clone()),
                    (Some(Link::Inline(property)), _) => (&**property, format!("{path}.{name}")),
                    (None, Additional::Of(Link::Inline(schema))) => (&**schema, format!("{path}[{name}]")),
                    _ => continue,
                };
                validate_at(inner, correlate::member(old, name), member, &at, causes);
            }
        }
        Value::Array(items) => {
            let Some(Link::Inline(inner)) = &schema.items else { return };
            for (index, item) in items.iter().enumerate() {
                let old = correlate::item(schema, old, item);
                validate_at(inner, old, item, &format!("{path}[{index}]"), causes);
            }
        }
        _ => {}
    }
}

fn evaluate(
    schema: &Schema,
    rule: &Rule,
    (this, old): (&Cel, Option<&Cel>),
    unchanged: bool,
    path: &str,
    causes: &mut Causes,
) {
    let kind = schema.form.map_or("", crate::schema::Form::as_str);
    let field = if path.is_empty() { "<nil>".to_owned() } else { path.to_owned() };
    let compiled = match rule.compiled() {
        Ok(compiled) => compiled,
        Err(why) => {
            causes.push(Invalid::text(field, kind, &format!("rule compile error: {why}")));
            return;
        }
    };
    let is_transition = compiled.rule.names("oldSelf");
    if is_transition && old.is_none() && !rule.optional_old_self {
        return;
    }
    let variables = Variables {
        this: this.clone(),
        old: if rule.optional_old_self { Some(cel::optional(old.cloned())) } else { old.cloned() },
    };
    match cel::evaluate(&compiled.rule, &variables) {
        Ok(Cel::Bool(true)) => {}
        // Unchanged values may stay invalid. Transition rules are about changes, so they always count.
        Ok(Cel::Bool(false)) if unchanged && !is_transition => {}
        Ok(Cel::Bool(false)) => {
            let field = match (&rule.field_path, path) {
                (None, _) => field,
                (Some(relative), "") => relative.trim_start_matches('.').to_owned(),
                (Some(relative), path) if relative.starts_with(['.', '[']) => format!("{path}{relative}"),
                (Some(relative), path) => format!("{path}.{relative}"),
            };
            let message = compiled
                .message
                .as_ref()
                .and_then(|program| text(cel::evaluate(program, &variables)))
                .or_else(|| rule.message.clone())
                .unwrap_or_else(|| format!("failed rule: {}", rule.rule.trim()));
            causes.push(refusal(field, kind, &message, rule.reason.as_deref()));
        }
        Ok(other) => {
            let why =
                format!("rule does not evaluate to a truth value, but to {other:?}: {}", rule.rule.trim());
            causes.push(Invalid::text(field, kind, &why));
        }
        Err(error) => causes.push(Invalid::text(field, kind, &explain(&error, rule))),
    }
}

/// A message must be a single line that is not empty.
fn text(value: Result<Cel, ExecutionError>) -> Option<String> {
    match value {
        Ok(Cel::String(text)) if !text.trim().is_empty() && !text.contains('\n') => {
            Some(text.trim().to_owned())
        }
        _ => None,
    }
}

fn explain(error: &ExecutionError, rule: &Rule) -> String {
    let rule = rule.rule.trim();
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key} evaluating rule: {rule}"),
        ExecutionError::NoSuchOverload => format!(
            "'no such overload': call arguments did not match a supported operator, function or macro signature for \
             rule: {rule}"
        ),
        other => format!("{other} evaluating rule: {rule}"),
    }
}

fn refusal(field: String, kind: &str, message: &str, reason: Option<&str>) -> Invalid {
    match reason {
        Some("FieldValueForbidden") => Invalid::forbidden(field, message),
        Some("FieldValueRequired") => Invalid::required(field, message),
        Some("FieldValueDuplicate") => Invalid::duplicate(field, format!("{kind:?}")),
        _ => Invalid::text(field, kind, message),
    }
}
