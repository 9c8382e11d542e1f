//! Validates values against the types and constraints of their schema, with the messages of the API server's validator.

use regex::Regex;
use serde_json::{Map, Number, Value};

use super::{correlate, formats};
use crate::object::invalid::{Causes, Invalid};
use crate::schema::{Additional, Constraints, Form, Schema};

/// Validates a value. Values that are unchanged from `old` may be invalid.
pub(super) fn validate(schema: &Schema, old: Option<&Value>, value: &Value, causes: &mut Causes) {
    let mut found = Vec::new();
    check(schema, old, value, "", &mut found);
    found.into_iter().for_each(|invalid| causes.push(invalid));
}

fn check(schema: &Schema, old: Option<&Value>, value: &Value, path: &str, found: &mut Vec<Invalid>) {
    let before = found.len();
    check_anew(schema, old, value, path, found);
    if found.len() > before && old == Some(value) {
        found.truncate(before);
    }
}

fn check_anew(schema: &Schema, old: Option<&Value>, value: &Value, path: &str, found: &mut Vec<Invalid>) {
    let typed = has_type(schema, value);
    if !typed {
        found.push(wrong_type(path, &type_names(schema), type_of(value)));
    }
    let none = Constraints::default();
    let constraints = schema.constraints.as_deref().unwrap_or(&none);
    if !value.is_null() {
        combinations(constraints, old, value, path, found);
    }
    match value {
        Value::String(text) => check_text(schema, constraints, text, path, found),
        Value::Number(number) => check_number(constraints, number, path, found),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let Some(inner) = schema.items.as_deref() else { break };
                let old = correlate::item(schema, old, item);
                check(inner, old, item, &format!("{path}[{index}]"), found);
            }
            check_size(constraints, items.len(), path, found);
        }
        _ => {}
    }
    check_values(constraints, value, path, found);
    if let Value::Object(members) = value {
        check_members(schema, constraints, old, members, path, found);
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn type_names(schema: &Schema) -> String {
    if schema.int_or_string {
        return "integer,string".to_owned();
    }
    schema.form.map(Form::as_str).unwrap_or_default().to_owned()
}

fn has_type(schema: &Schema, value: &Value) -> bool {
    let whole =
        |number: &Number| !number.is_f64() || number.as_f64().is_some_and(|number| number.fract() == 0.0);
    if schema.int_or_string {
        return match value {
            Value::Null => schema.nullable,
            Value::Number(number) => whole(number),
            value => value.is_string(),
        };
    }
    match (schema.form, value) {
        (None, _) => true,
        (_, Value::Null) => schema.nullable,
        (Some(Form::Integer), Value::Number(number)) => whole(number),
        (Some(Form::Number), Value::Number(_)) => true,
        (Some(form), value) => form.as_str() == type_of(value),
    }
}

fn wrong_type(path: &str, wanted: &str, given: &str) -> Invalid {
    Invalid::text(field(path), given, &format!("{} in body must be of type {wanted}: {given:?}", path))
}

/// The field of a path; the object itself has an empty path.
fn field(path: &str) -> String {
    if path.is_empty() { "<nil>".to_owned() } else { path.trim_start_matches('.').to_owned() }
}

fn join(path: &str, member: &str) -> String {
    if path.is_empty() { member.to_owned() } else { format!("{path}.{member}") }
}

fn check_text(schema: &Schema, constraints: &Constraints, text: &str, path: &str, found: &mut Vec<Invalid>) {
    let length = text.chars().count() as u64;
    if let Some(limit) = constraints.max_length.filter(|limit| length > *limit) {
        found.push(Invalid::new(field(path), format!("Too long: may not be more than {limit} bytes")));
    }
    if let Some(limit) = constraints.min_length.filter(|limit| length < *limit) {
        let why = format!("{} in body should be at least {limit} chars long", path);
        found.push(Invalid::text(field(path), text, &why));
    }
    if let Some(pattern) = &constraints.pattern
        && !Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(text))
    {
        let why = format!("{} in body should match '{pattern}'", path);
        found.push(Invalid::text(field(path), text, &why));
    }
    if !formats::fits(&schema.format, text) {
        let why = format!("{} in body must be of type {}: {text:?}", path, schema.format);
        found.push(Invalid::text(field(path), text, &why));
    }
}

fn check_number(constraints: &Constraints, number: &Number, path: &str, found: &mut Vec<Invalid>) {
    let Some(value) = number.as_f64() else { return };
    let mut refuse = |why: String| {
        let why = format!("{} in body should be {why}", path);
        found.push(Invalid::value(field(path), number, &why));
    };
    if let Some(factor) = constraints.multiple_of.filter(|factor| *factor > 0.0)
        && (value / factor).fract() != 0.0
    {
        refuse(format!("a multiple of {factor}"));
    }
    if let Some(limit) = constraints.maximum {
        let exclusive = constraints.exclusive_maximum;
        if value > limit || (exclusive && value >= limit) {
            refuse(format!("less than {}{limit}", if exclusive { "" } else { "or equal to " }));
        }
    }
    if let Some(limit) = constraints.minimum {
        let exclusive = constraints.exclusive_minimum;
        if value < limit || (exclusive && value <= limit) {
            refuse(format!("greater than {}{limit}", if exclusive { "" } else { "or equal to " }));
        }
    }
}

fn check_size(constraints: &Constraints, size: usize, path: &str, found: &mut Vec<Invalid>) {
    let size = size as u64;
    if let Some(limit) = constraints.min_items.filter(|limit| size < *limit) {
        let why = format!("{} in body should have at least {limit} items", path);
        found.push(Invalid::value(field(path), size, &why));
    }
    if let Some(limit) = constraints.max_items.filter(|limit| size > *limit) {
        found.push(Invalid::new(field(path), format!("Too many: {size}: must have at most {limit} items")));
    }
}

fn check_values(constraints: &Constraints, value: &Value, path: &str, found: &mut Vec<Invalid>) {
    if constraints.values.is_empty() || constraints.values.contains(value) {
        return;
    }
    let quoted = |value: &Value| match value {
        Value::String(text) => format!("{text:?}"),
        other => format!("{:?}", other.to_string()),
    };
    let supported: Vec<String> = constraints.values.iter().map(quoted).collect();
    let given = match value {
        Value::Null => "\"null\"".to_owned(),
        other => other.to_string(),
    };
    let message = format!("Unsupported value: {given}: supported values: {}", supported.join(", "));
    found.push(Invalid::new(field(path), message));
}

fn check_members(
    schema: &Schema,
    constraints: &Constraints,
    old: Option<&Value>,
    members: &Map<String, Value>,
    path: &str,
    found: &mut Vec<Invalid>,
) {
    let size = members.len() as u64;
    if let Some(limit) = constraints.min_properties.filter(|limit| size < *limit) {
        let why = format!("{} in body should have at least {limit} properties", path);
        found.push(Invalid::value(field(path), size, &why));
    }
    if let Some(limit) = constraints.max_properties.filter(|limit| size > *limit) {
        found.push(Invalid::new(field(path), format!("Too many: {size}: must have at most {limit} items")));
    }
    for (name, member) in members {
        let inner = match (schema.properties.get(name), &schema.additional) {
            (Some(property), _) => property,
            (None, Additional::Of(link)) => link,
            (None, _) => continue,
        };
        // Metadata is validated by rules of its own.
        if inner.definition.is_none() {
            check(inner, correlate::member(old, name), member, &join(path, name), found);
        }
    }
    for name in constraints.required.iter().filter(|name| !members.contains_key(*name)) {
        found.push(Invalid::required(join(path, name), ""));
    }
}

/// `allOf`, `anyOf`, `oneOf` and `not`.
fn combinations(
    constraints: &Constraints,
    old: Option<&Value>,
    value: &Value,
    path: &str,
    found: &mut Vec<Invalid>,
) {
    let tell = |why: String| Invalid::text("<nil>", "", &format!("{path:?} must {why}"));
    let failures = |schema: &Schema| {
        let mut found = Vec::new();
        check(schema, old, value, path, &mut found);
        found
    };
    // The errors of the alternative with the fewest errors are reported.
    let closest = |mut all: Vec<Vec<Invalid>>| {
        all.sort_by_key(Vec::len);
        all.into_iter().next().unwrap_or_default()
    };
    if !constraints.any_of.is_empty() {
        let all: Vec<Vec<Invalid>> = constraints.any_of.iter().map(failures).collect();
        if !all.iter().any(Vec::is_empty) {
            found.push(tell("validate at least one schema (anyOf)".to_owned()));
            found.extend(closest(all));
        }
    }
    if !constraints.one_of.is_empty() {
        let all: Vec<Vec<Invalid>> = constraints.one_of.iter().map(failures).collect();
        let valid = all.iter().filter(|failures| failures.is_empty()).count();
        if valid != 1 {
            let how_many = match valid {
                0 => "Found none valid".to_owned(),
                many => format!("Found {many} valid alternatives"),
            };
            found.push(tell(format!("validate one and only one schema (oneOf). {how_many}")));
            if valid == 0 {
                found.extend(closest(all));
            }
        }
    }
    if !constraints.all_of.is_empty() {
        let all: Vec<Vec<Invalid>> = constraints.all_of.iter().map(failures).collect();
        let valid = all.iter().filter(|failures| failures.is_empty()).count();
        found.extend(all.into_iter().flatten());
        if valid < constraints.all_of.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            found.push(tell(format!("validate all the schemas (allOf){none}")));
        }
    }
    if let Some(schema) = &constraints.not
        && failures(schema).is_empty()
    {
        found.push(tell("not validate the schema (not)".to_owned()));
    }
}
