//! The version 2 document in protobuf, for clients that predate OpenAPI v3. Field numbers are those of gnostic's
//! `OpenAPIv2.proto`.

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::discovery::openapi::document::v2;
use crate::registry::Registry;

/// Media type of gnostic's protobuf form of a version 2 document. Clients request it with an `@` before `v1.0`, which
/// many parsers of media types refuse, so responses have a dot.
pub(crate) const MEDIA_TYPE: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// The whole document.
pub(crate) fn v2_protobuf(registry: &Registry) -> Bytes {
    let document = v2(registry);
    let mut info = Message::default();
    info.text(1, text(&document["info"], "title"));
    info.text(2, text(&document["info"], "version"));
    let mut paths = Message::default();
    for (path, item) in members(&document, "paths") {
        paths.message(2, &named(path, &path_item(item)));
    }
    let mut definitions = Message::default();
    for (name, definition) in members(&document, "definitions") {
        definitions.message(1, &named(name, &schema(definition)));
    }
    let mut message = Message::default();
    message.text(1, text(&document, "swagger"));
    message.message(2, &info);
    message.message(8, &paths);
    message.message(9, &definitions);
    message.0.into()
}

fn path_item(item: &Value) -> Message {
    let mut message = Message::default();
    for (method, field) in [("get", 2), ("post", 4), ("patch", 8)] {
        if let Some(value) = item.get(method) {
            message.message(field, &operation(value));
        }
    }
    message
}

fn operation(operation: &Value) -> Message {
    let mut message = Message::default();
    for parameter in items(operation, "parameters") {
        message.message(8, &query_parameter(text(parameter, "name"), text(parameter, "type")));
    }
    extensions(&mut message, 13, operation);
    message
}

/// ParametersItem → Parameter → NonBodyParameter → QueryParameterSubSchema.
fn query_parameter(name: &str, value_type: &str) -> Message {
    let mut schema = Message::default();
    schema.text(2, "query");
    schema.text(4, name);
    schema.text(6, value_type);
    Message::holding(1, &Message::holding(2, &Message::holding(3, &schema)))
}

/// Schema: the parts of JSON Schema that occur in the schemas of kinds.
fn schema(value: &Value) -> Message {
    let mut message = Message::default();
    for (name, field) in [("$ref", 1), ("format", 2), ("description", 4)] {
        if let Some(text) = value.get(name).and_then(Value::as_str) {
            message.text(field, text);
        }
    }
    for required in items(value, "required").iter().filter_map(Value::as_str) {
        message.text(19, required);
    }
    if let Some(additional) = value.get("additionalProperties").filter(|additional| additional.is_object()) {
        message.message(21, &Message::holding(1, &schema(additional)));
    }
    if let Some(kind) = value.get("type").and_then(Value::as_str) {
        let mut item = Message::default();
        item.text(1, kind);
        message.message(22, &item);
    }
    if let Some(element) = value.get("items") {
        message.message(23, &Message::holding(1, &schema(element)));
    }
    let mut properties = Message::default();
    for (name, property) in members(value, "properties") {
        properties.message(1, &named(name, &schema(property)));
    }
    if !properties.0.is_empty() {
        message.message(25, &properties);
    }
    extensions(&mut message, 31, value);
    message
}

/// Members that begin with `x-`: NamedAny with a value in YAML; JSON is YAML.
fn extensions(message: &mut Message, field: u64, value: &Value) {
    for (name, value) in value.as_object().into_iter().flatten().filter(|(name, _)| name.starts_with("x-")) {
        let mut any = Message::default();
        any.text(2, &value.to_string());
        message.message(field, &named(name, &any));
    }
}

/// NamedPathItem, NamedSchema and NamedAny have the same fields.
fn named(name: &str, value: &Message) -> Message {
    let mut named = Message::default();
    named.text(1, name);
    named.message(2, value);
    named
}

fn members<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
    value.get(name).and_then(Value::as_object).into_iter().flat_map(Map::iter)
}

fn items<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A protobuf message under construction. Only length-delimited fields are needed.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    /// A message with another one as its only field.
    fn holding(field: u64, inner: &Self) -> Self {
        let mut message = Self::default();
        message.message(field, inner);
        message
    }

    fn text(&mut self, field: u64, text: &str) {
        self.delimited(field, text.as_bytes());
    }

    fn message(&mut self, field: u64, message: &Self) {
        self.delimited(field, &message.0);
    }

    fn delimited(&mut self, field: u64, bytes: &[u8]) {
        const LENGTH_DELIMITED: u64 = 2;
        self.varint(field << 3 | LENGTH_DELIMITED);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_and_lengths_are_encoded() {
        let mut message = Message::default();
        message.text(1, &"x".repeat(300));
        assert_eq!(message.0.get(..3).unwrap(), [0x0a, 0xac, 0x02]);
        assert_eq!(message.0.len(), 303);
    }
}
