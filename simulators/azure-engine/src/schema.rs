//! What members of documents may hold. Azure reads what can stand for a value as that value
//! (`"true"` for true) and refuses the rest, so that what it stores can be read again by typed clients.

use azure_types::ResourceId;
use serde_json::Value;

use super::code::Code;
use super::document::text;
use super::error::Refusal;

const INVALID_JSON_REFERENCE_FORMAT: Code = Code::azures(400, "InvalidJsonReferenceFormat");

/// What a member holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// True or false.
    Flag,
    /// A whole number.
    Number,
    /// A text.
    Text,
    /// A reference (`{"id": …}`) to a resource of this type of the same namespace, such as `virtualNetworks/subnets`.
    Refers(&'static str),
}

/// Members of documents that hold one shape.
pub struct Members {
    /// The full type, with wildcards.
    pub(super) of: &'static str,
    /// Where in the document; a step `*` is each item of a list.
    below: &'static str,
    /// With `/*`, each item of a list.
    names: &'static [&'static str],
    shape: Shape,
}

/// For tables.
pub const fn members(
    of: &'static str,
    below: &'static str,
    names: &'static [&'static str],
    shape: Shape,
) -> Members {
    Members { of, below, names, shape }
}

impl Members {
    /// Brings the members of a document into the shape.
    pub(super) fn shape_document(&self, document: &mut Value, namespace: &str) -> Result<(), Refusal> {
        self.visit(document, self.below, &mut String::new(), namespace)
    }

    /// Goes down `below` and shapes the members there; `path` is where `value` is.
    fn visit(
        &self,
        value: &mut Value,
        below: &str,
        path: &mut String,
        namespace: &str,
    ) -> Result<(), Refusal> {
        let length = path.len();
        if below.is_empty() {
            for name in self.names {
                let each = name.strip_suffix("/*");
                let Some(member) = member_mut(value, each.unwrap_or(name)) else { continue };
                path.push('.');
                path.push_str(each.unwrap_or(name));
                match (each, member) {
                    (None, member) => self.shape(member, path, namespace)?,
                    (Some(_), Value::Array(items)) => {
                        for item in items {
                            self.shape(item, path, namespace)?;
                        }
                    }
                    // Whoever reads the list reports what is no list.
                    (Some(_), _) => {}
                }
                path.truncate(length);
            }
            return Ok(());
        }
        let (step, rest) = below.split_once('/').unwrap_or((below, ""));
        if step != "*" {
            let Some(inner) = member_mut(value, step) else { return Ok(()) };
            path.push('.');
            path.push_str(step);
            self.visit(inner, rest, path, namespace)?;
            path.truncate(length);
            return Ok(());
        }
        for (at, item) in value.as_array_mut().into_iter().flatten().enumerate() {
            path.push_str(&format!("[{at}]"));
            self.visit(item, rest, path, namespace)?;
            path.truncate(length);
        }
        Ok(())
    }

    fn shape(&self, value: &mut Value, path: &str, namespace: &str) -> Result<(), Refusal> {
        shape(self.shape, value, path.trim_start_matches('.'), namespace)
    }
}

/// Brings one value into a shape.
pub(super) fn shape(wanted: Shape, value: &mut Value, path: &str, namespace: &str) -> Result<(), Refusal> {
    let what = match wanted {
        Shape::Refers(expected) => return check_reference(value, namespace, expected, path),
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

/// A member, however the client spelled its name.
fn member_mut<'a>(value: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    let object = value.as_object_mut()?;
    // Nearly always it is spelled as Azure spells it.
    if object.contains_key(name) {
        return object.get_mut(name);
    }
    object.iter_mut().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// Whoever reads the reference reports what is no id at all.
pub(super) fn check_reference(
    value: &Value,
    namespace: &str,
    expected: &str,
    path: &str,
) -> Result<(), Refusal> {
    // A full type names its own namespace; where there is none, any type will do.
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

    use super::{Members, Shape};

    fn shaped(shape: Shape, value: Value) -> Result<Value, String> {
        let members = Members { of: "*", below: "properties/list/*", names: &["member"], shape };
        let mut document = json!({ "properties": { "List": [{}, { "member": value }] } });
        let done = members.visit(&mut document, members.below, &mut String::new(), "Microsoft.Network");
        match done {
            Ok(()) => Ok(document["properties"]["List"][1]["member"].take()),
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
        let shape = Shape::Refers("virtualNetworks/subnets");
        assert!(shaped(shape, id("microsoft.network/VirtualNetworks/n/Subnets/s")).is_ok());
        for wrong in [
            "Microsoft.Network/virtualNetworks/n",
            "Microsoft.Compute/virtualNetworks/n/subnets/s",
            "Microsoft.Network/routeTables/t",
        ] {
            let said = shaped(shape, id(wrong)).expect_err(wrong);
            assert!(said.contains("InvalidJsonReferenceFormat") && said.contains(wrong), "{said}");
        }
        // Others tell what is wrong with these.
        assert!(shaped(shape, json!({})).is_ok() && shaped(shape, json!({ "id": "x" })).is_ok());
    }
}
