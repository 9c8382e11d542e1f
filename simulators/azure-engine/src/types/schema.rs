//! The types of members of documents. Azure converts texts to values (`"true"` to true) and refuses the rest, so that
//! typed clients can read the stored documents.

use azure_types::ResourceId;
use serde_json::Value;

use crate::document::text;
use crate::refusal::{Code, Refusal, Result};

const INVALID_JSON_REFERENCE_FORMAT: Code = Code::azures(400, "InvalidJsonReferenceFormat");

/// The type of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// True or false.
    Flag,
    /// A whole number.
    Number,
    /// A text.
    Text,
}

/// Converts one value to a shape.
pub(crate) fn shape(wanted: Shape, value: &mut Value, path: &str) -> Result<()> {
    let what = match wanted {
        Shape::Flag => "boolean",
        Shape::Number => "integer",
        Shape::Text => "string",
    };
    let read = match (wanted, &*value) {
        (Shape::Flag, Value::Bool(_)) | (Shape::Text, Value::String(_)) => return Ok(()),
        (Shape::Number, Value::Number(number)) if number.is_i64() || number.is_u64() => return Ok(()),
        (Shape::Flag, Value::String(text)) => text.trim().to_ascii_lowercase().parse().ok().map(Value::Bool),
        (Shape::Flag, Value::Number(number)) => number.as_i64().map(|number| Value::Bool(number != 0)),
        (Shape::Number, Value::String(text)) => text.trim().parse::<i64>().ok().map(Value::from),
        (Shape::Text, Value::Number(_) | Value::Bool(_)) => Some(Value::String(value.to_string())),
        _ => None,
    };
    match read {
        Some(read) => *value = read,
        None => {
            return Err(Refusal::bad_format(format!("Could not convert {value} to {what}. Path '{path}'.")));
        }
    }
    Ok(())
}

/// A reference that is no id at all is reported by its reader.
pub(crate) fn check_reference(value: &Value, namespace: &str, expected: &str, path: &str) -> Result<()> {
    // A full type names its own namespace; without a namespace any type fits.
    let (namespace, kind) = match expected.split_once('/') {
        Some((theirs, kind)) if theirs.contains('.') => (theirs, kind),
        _ => (namespace, expected),
    };
    if expected.is_empty() {
        return Ok(());
    }
    let Some(id) = text(value, "id") else { return Ok(()) };
    let Ok(parsed) = ResourceId::parse(id) else { return Ok(()) };
    let given = parsed.resource_type();
    let fits = given.split_once('/').is_some_and(|(theirs, given)| {
        theirs.eq_ignore_ascii_case(namespace) && given.eq_ignore_ascii_case(kind)
    });
    if fits {
        return Ok(());
    }
    Err(Refusal::unreadable(
        INVALID_JSON_REFERENCE_FORMAT.code,
        format!(
            "Reference Id {id} is not formatted correctly. The Id is expected to reference resources of type \
             {expected}. Path {path}."
        ),
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Shape;

    fn shaped(wanted: Shape, mut value: Value) -> Result<Value, String> {
        match super::shape(wanted, &mut value, "properties.list[1].member") {
            Ok(()) => Ok(value),
            Err(refusal) => Err(format!("{refusal:?}")),
        }
    }

    #[test]
    fn what_can_stand_for_a_value_is_read_as_it_and_the_rest_is_refused() {
        for (shape, given, stored) in [
            (Shape::Flag, json!(true), Some(json!(true))),
            (Shape::Flag, json!("False"), Some(json!(false))),
            (Shape::Flag, json!(1), Some(json!(true))),
            (Shape::Flag, json!("yes"), None),
            (Shape::Flag, json!([]), None),
            (Shape::Number, json!(4), Some(json!(4))),
            (Shape::Number, json!("30"), Some(json!(30))),
            (Shape::Number, json!(1.5), None),
            (Shape::Number, json!("many"), None),
            (Shape::Number, json!({}), None),
            (Shape::Text, json!("a"), Some(json!("a"))),
            (Shape::Text, json!(5), Some(json!("5"))),
            (Shape::Text, json!(["a"]), None),
        ] {
            let read = shaped(shape, given.clone());
            match stored {
                Some(stored) => assert_eq!(read, Ok(stored), "{given}"),
                None => {
                    let said = read.expect_err("a refusal");
                    assert!(said.contains("properties.list[1].member"), "{said}");
                    assert!(said.contains("Could not convert"), "{said}");
                }
            }
        }
    }

    #[test]
    fn a_reference_is_to_its_type_in_its_namespace() {
        let id = |tail: &str| json!({ "id": format!("/subscriptions/s/resourceGroups/g/providers/{tail}") });
        let check = |value: Value| {
            super::check_reference(&value, "Microsoft.Network", "virtualNetworks/subnets", "place")
        };
        assert!(check(id("microsoft.network/VirtualNetworks/n/Subnets/s")).is_ok());
        for wrong in [
            "Microsoft.Network/virtualNetworks/n",
            "Microsoft.Compute/virtualNetworks/n/subnets/s",
            "Microsoft.Network/routeTables/t",
        ] {
            let said = format!("{:?}", check(id(wrong)).expect_err(wrong));
            assert!(said.contains("InvalidJsonReferenceFormat") && said.contains(wrong), "{said}");
        }
        // Other checks report what is wrong with these.
        assert!(check(json!({})).is_ok() && check(json!({ "id": "x" })).is_ok());
    }
}
