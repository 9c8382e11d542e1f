//! The canonical form of built-in kinds in responses: that of Go's types.
//!
//! Empty members are left out where that is allowed, and present where they are required: `resources: {}`, `status:
//! {}`. Quantities and times have one notation.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::members::{MICRO_TIME, Member, Message, QUANTITY, TIME, message};
use crate::object::quantity::{MALFORMED, Quantity};
use crate::registry::Kind;
use crate::schema::builtin::{definition, definition_name};
use crate::schema::{Additional, Form, Schema};

/// Brings a client's object into this form, without adding required members.
///
/// # Errors
/// Go's message for the first invalid quantity or time.
pub(crate) fn tidy(kind: &Kind, object: &mut Value) -> Result<(), String> {
    match schema_of(kind) {
        Some(schema) => tidy_value(schema, object),
        None => Ok(()),
    }
}

/// Adds required members.
pub(crate) fn complete(kind: &Kind, object: &mut Value) {
    if let Some(schema) = schema_of(kind) {
        complete_value(schema, object);
    }
}

fn schema_of(kind: &Kind) -> Option<&'static Schema> {
    if kind.is_custom() { None } else { definition(&definition_name(&kind.group, &kind.version, &kind.kind)) }
}

fn tidy_value(schema: &Schema, value: &mut Value) -> Result<(), String> {
    match schema.definition.as_deref() {
        Some(QUANTITY) => return tidy_quantity(value),
        Some(TIME) => return tidy_time(false, value),
        Some(MICRO_TIME) => return tidy_time(true, value),
        _ => {}
    }
    match value {
        Value::Object(members) if schema.form == Some(Form::Object) => {
            if let Additional::Of(values) = &schema.additional {
                return members.values_mut().try_for_each(|value| tidy_value(values, value));
            }
            let known = schema.definition.as_deref().and_then(message);
            members.retain(|name, value| match schema.properties.get(name) {
                // With an empty record clients request a new one.
                Some(_) if name == "managedFields" => !value.is_null(),
                Some(schema) => !says_nothing(known, name, schema, value),
                None => true,
            });
            for (name, value) in members {
                if let Some(schema) = schema.properties.get(name) {
                    tidy_value(schema, value)?;
                }
            }
            Ok(())
        }
        Value::Array(items) => match schema.items.as_deref() {
            Some(schema) => items.iter_mut().try_for_each(|item| tidy_value(schema, item)),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Whether a member is equivalent to a missing one.
fn says_nothing(message: Option<&'static Message>, name: &str, schema: &Schema, value: &Value) -> bool {
    if value.is_null() {
        return true;
    }
    let Some(member) = message.and_then(|message| find(message, name)).filter(|member| !member.pointer)
    else {
        return false;
    };
    match (value, schema.form) {
        (Value::String(text), Some(Form::String)) => member.optional && text.is_empty(),
        (Value::Bool(truth), Some(Form::Boolean)) => member.optional && !truth,
        (Value::Number(number), Some(Form::Integer | Form::Number)) => {
            member.optional && number.as_f64() == Some(0.0)
        }
        // Protobuf, in which objects are stored, has no empty lists.
        (Value::Array(items), Some(Form::Array)) => items.is_empty(),
        (Value::Object(members), Some(Form::Object)) => {
            members.is_empty() && matches!(schema.additional, Additional::Of(_))
        }
        _ => false,
    }
}

/// The member with this name, including members of embedded definitions.
fn find(of: &'static Message, name: &str) -> Option<&'static Member> {
    of.members.iter().find_map(|member| match &member.inline {
        Some(inline) => find(message(inline)?, name),
        None => (member.name == name).then_some(member),
    })
}

fn tidy_quantity(value: &mut Value) -> Result<(), String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return Ok(()),
    };
    let quantity = Quantity::parse(text.trim()).ok_or_else(|| MALFORMED.to_owned())?;
    *value = quantity.to_string().into();
    Ok(())
}

fn tidy_time(micro: bool, value: &mut Value) -> Result<(), String> {
    let Value::String(text) = value else { return Ok(()) };
    let layout = if micro { "2006-01-02T15:04:05.000000Z07:00" } else { "2006-01-02T15:04:05Z07:00" };
    let time: Timestamp = text
        .parse()
        .map_err(|_| format!("parsing time {text:?} as {layout:?}: cannot parse {text:?} as \"2006\""))?;
    *value = time_text(micro, time).into();
    Ok(())
}

/// A time in the server's notation: in whole seconds, or with six decimal digits.
pub(super) fn time_text(micro: bool, time: Timestamp) -> String {
    let seconds = Timestamp::from_second(time.as_second()).unwrap_or(time);
    if micro { format!("{time:.6}") } else { seconds.to_string() }
}

fn complete_value(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(members) if schema.form == Some(Form::Object) => {
            if let Additional::Of(values) = &schema.additional {
                members.values_mut().for_each(|value| complete_value(values, value));
                return;
            }
            if let Some(message) = schema.definition.as_deref().and_then(message) {
                add_missing(message, schema, members);
            }
            for (name, value) in members {
                if let Some(schema) = schema.properties.get(name) {
                    complete_value(schema, value);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.items.as_deref() {
                items.iter_mut().for_each(|item| complete_value(schema, item));
            }
        }
        _ => {}
    }
}

fn add_missing(of: &Message, schema: &Schema, members: &mut Map<String, Value>) {
    for member in &of.members {
        if let Some(inline) = &member.inline {
            if let Some(inner) = message(inline) {
                add_missing(inner, schema, members);
            }
            continue;
        }
        if member.zero || members.contains_key(member.name) {
            continue;
        }
        let Some(schema) = schema.properties.get(member.name) else { continue };
        // Go omits empty pointers, texts and the like, but never a structure.
        let structure = match schema.definition.as_deref() {
            Some(TIME | MICRO_TIME | QUANTITY) => true,
            Some(_) => schema.form == Some(Form::Object) || schema.int_or_string,
            None => false,
        };
        if member.optional && (member.pointer || !structure) {
            continue;
        }
        members.insert(member.name.to_owned(), nothing(member, schema));
    }
}

/// The empty value of a required member.
fn nothing(member: &Member, schema: &Schema) -> Value {
    match (schema.definition.as_deref(), schema.form) {
        _ if member.pointer => Value::Null,
        (Some(TIME | MICRO_TIME), _) => Value::Null,
        (Some(QUANTITY), _) => "0".into(),
        _ if schema.int_or_string => 0.into(),
        (Some(_), Some(Form::Object)) => json!({}),
        (_, Some(Form::String)) if &*schema.format == "byte" => Value::Null,
        (_, Some(Form::String)) => "".into(),
        (_, Some(Form::Integer | Form::Number)) => 0.into(),
        (_, Some(Form::Boolean)) => false.into(),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    fn kind(name: &str) -> std::sync::Arc<Kind> {
        Registry::default().by_name(name).unwrap()
    }

    #[test]
    fn what_says_nothing_is_left_out_but_for_pointers() {
        let mut pod = json!({ "metadata": { "generateName": "", "labels": {} }, "spec": {
            "hostNetwork": false, "nodeName": "", "automountServiceAccountToken": false, "activeDeadlineSeconds": 0,
            "volumes": [], "securityContext": {}, "affinity": null, "unheard": "" } });
        tidy(&kind("Pod"), &mut pod).unwrap();
        assert_eq!(
            pod,
            json!({ "metadata": {}, "spec": { "automountServiceAccountToken": false,
            "activeDeadlineSeconds": 0, "securityContext": {}, "unheard": "" } })
        );
    }

    #[test]
    fn amounts_and_times_have_one_spelling() {
        let mut claim = json!({ "metadata": { "creationTimestamp": "2026-01-01T01:00:00.5+01:00" },
            "spec": { "resources": { "requests": { "storage": "1024Mi", "x": 1500 } } } });
        tidy(&kind("pvc"), &mut claim).unwrap();
        assert_eq!(claim["spec"]["resources"]["requests"], json!({ "storage": "1Gi", "x": "1500" }));
        assert_eq!(claim["metadata"]["creationTimestamp"], "2026-01-01T00:00:00Z");
        let mut lease = json!({ "spec": { "renewTime": "2026-01-01T00:00:00.5Z" } });
        tidy(&kind("Lease"), &mut lease).unwrap();
        assert_eq!(lease["spec"]["renewTime"], "2026-01-01T00:00:00.500000Z");
        claim["spec"]["resources"]["requests"]["storage"] = json!("much");
        assert_eq!(tidy(&kind("pvc"), &mut claim).unwrap_err(), MALFORMED);
    }

    #[test]
    fn structures_are_always_there() {
        let mut deployment = json!({ "metadata": { "name": "d" }, "spec": { "template": { "spec": {
            "containers": [{ "name": "c" }] } } } });
        complete(&kind("Deployment"), &mut deployment);
        assert_eq!(deployment["status"], json!({}));
        assert_eq!(deployment["spec"]["strategy"], json!({}));
        assert_eq!(deployment["spec"]["selector"], Value::Null);
        assert_eq!(deployment["spec"]["template"]["metadata"], json!({}));
        assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["resources"], json!({}));
        let mut role = json!({ "metadata": { "name": "r" } });
        complete(&kind("Role"), &mut role);
        assert_eq!(role["rules"], Value::Null);
        let mut slice = json!({ "endpoints": [{ "addresses": ["1.2.3.4"] }] });
        complete(&kind("EndpointSlice"), &mut slice);
        assert_eq!(slice["endpoints"][0], json!({ "addresses": ["1.2.3.4"], "conditions": {} }));
        assert_eq!((&slice["addressType"], &slice["ports"]), (&json!(""), &Value::Null));
    }
}
