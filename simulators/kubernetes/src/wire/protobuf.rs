//! Request bodies in protobuf, as kubectl's typed commands and Go's controllers send them: four bytes of magic, an
//! envelope with the type, and the object (Kubernetes: "API Concepts", protobuf encoding). The result is the JSON that
//! the same client would have sent.

use base64::Engine as _;
use serde_json::{Map, Number, Value, json};

use super::form::time_text;
use super::members::{MICRO_TIME, Member, QUANTITY, TIME, message};
use crate::schema::builtin::{definition, definition_name};
use crate::schema::{Additional, Form, Schema};

/// The media type.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

const MAGIC: &[u8] = b"k8s\0";
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const EXTENSIONS: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1";
/// Maximum nesting of messages.
const DEEPEST: usize = 100;

/// Why a body cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    /// It does not begin with the magic bytes.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    NoMagic,
    /// The server does not know the type.
    #[error("no kind {kind:?} is registered for version {api_version:?}")]
    UnknownType { api_version: String, kind: String },
    /// It ends before it is complete.
    #[error("unexpected EOF")]
    Truncated,
    /// The wire type of a field does not match its type.
    #[error("proto: wrong wireType for field {0}")]
    WrongWireType(String),
    /// A text is not in UTF-8.
    #[error("proto: field {0} contains invalid UTF-8")]
    NoText(String),
    /// Embedded JSON is invalid.
    #[error("proto: field {0} contains invalid JSON")]
    NoJson(String),
    /// Messages are nested too deeply.
    #[error("proto: messages are nested too deeply")]
    TooDeep,
}

/// Decodes an object of a built-in kind, or its options, scale, eviction or review.
///
/// # Errors
/// See [`Malformed`].
pub(crate) fn decode(bytes: &[u8]) -> Result<Value, Malformed> {
    let body = bytes.strip_prefix(MAGIC).ok_or(Malformed::NoMagic)?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for field in Fields(body) {
        match field? {
            (1, payload) => {
                for field in Fields(payload.bytes("typeMeta")?) {
                    match field? {
                        (1, payload) => api_version = payload.text("apiVersion")?,
                        (2, payload) => kind = payload.text("kind")?,
                        _ => {}
                    }
                }
            }
            (2, payload) => raw = payload.bytes("raw")?,
            _ => {}
        }
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    // Options belong to every group.
    let name = match kind.as_str() {
        "DeleteOptions" => format!("{META}.DeleteOptions"),
        _ => definition_name(group, version, &kind),
    };
    let Some(schema) = definition(&name) else { return Err(Malformed::UnknownType { api_version, kind }) };
    let mut object = Map::new();
    read_message(&name, schema, raw, &mut object, 0)?;
    object.insert("apiVersion".to_owned(), api_version.into());
    object.insert("kind".to_owned(), kind.into());
    Ok(Value::Object(object))
}

/// Reads the members of `name`; `schema` is that of the object that they belong to.
fn read_message(
    name: &str,
    schema: &Schema,
    bytes: &[u8],
    into: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), Malformed> {
    if depth > DEEPEST {
        return Err(Malformed::TooDeep);
    }
    let Some(message) = message(name) else { return Ok(()) };
    for field in Fields(bytes) {
        let (number, payload) = field?;
        // Older servers ignore the additional fields of newer clients.
        let Some(member) = message.by_number(number) else { continue };
        if let Some(inline) = &member.inline {
            read_message(inline, schema, payload.bytes(member.name)?, into, depth + 1)?;
        } else if let Some(schema) = schema.properties.get(member.name) {
            read_member(member, schema, payload, into, depth)?;
        }
    }
    Ok(())
}

fn read_member(
    member: &Member,
    schema: &Schema,
    payload: Payload<'_>,
    into: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), Malformed> {
    let name = member.name;
    match (schema.form, &schema.additional) {
        (Some(Form::Array), _) => {
            let items = schema.item_or_any();
            let list = into.entry(name).or_insert_with(|| json!([]));
            let Value::Array(list) = list else { return Ok(()) };
            match payload {
                // Numbers may be packed.
                Payload::Bytes(mut packed) if items.form == Some(Form::Integer) => {
                    while !packed.is_empty() {
                        list.push(integer(varint(&mut packed)?, items));
                    }
                }
                _ => list.push(read_value(name, items, payload, depth)?),
            }
        }
        (Some(Form::Object), Additional::Of(values)) => {
            let (key, value) = read_entry(member, values, payload.bytes(name)?, depth)?;
            if let Value::Object(map) = into.entry(name).or_insert_with(|| json!({})) {
                map.insert(key, value);
            }
        }
        _ => {
            let value = read_value(name, schema, payload, depth)?;
            // Go also writes empty values of types that cannot distinguish them from missing ones.
            let empty = match &value {
                Value::Null => true,
                Value::String(text) => text.is_empty(),
                Value::Bool(truth) => !truth,
                Value::Number(number) => number.as_f64() == Some(0.0) && !schema.int_or_string,
                _ => false,
            };
            if !empty || member.pointer || !(member.optional || value.is_null()) {
                into.insert(name.to_owned(), value);
            }
        }
    }
    Ok(())
}

fn read_entry(
    member: &Member,
    values: &Schema,
    bytes: &[u8],
    depth: usize,
) -> Result<(String, Value), Malformed> {
    let (mut key, mut value) = (String::new(), Value::Null);
    for field in Fields(bytes) {
        match field? {
            (1, payload) => key = payload.text(member.name)?,
            (2, payload) if member.wrapped => value = texts(member.name, payload, 1)?,
            (2, payload) => value = read_value(member.name, values, payload, depth)?,
            _ => {}
        }
    }
    Ok((key, value))
}

fn read_value(name: &str, schema: &Schema, payload: Payload<'_>, depth: usize) -> Result<Value, Malformed> {
    if let Some(definition) = schema.definition.as_deref()
        && let Some(value) = read_special(name, definition, payload, depth)?
    {
        return Ok(value);
    }
    if schema.int_or_string {
        return int_or_string(name, payload.bytes(name)?);
    }
    match (schema.form, payload) {
        (Some(Form::String), Payload::Bytes(bytes)) if &*schema.format == "byte" => {
            Ok(base64::engine::general_purpose::STANDARD.encode(bytes).into())
        }
        (Some(Form::String), payload) => Ok(payload.text(name)?.into()),
        (Some(Form::Integer), Payload::Varint(number)) => Ok(integer(number, schema)),
        (Some(Form::Boolean), Payload::Varint(number)) => Ok((number != 0).into()),
        (Some(Form::Number), Payload::Fixed(bits)) => {
            Ok(Number::from_f64(f64::from_bits(bits)).map_or(Value::Null, Value::Number))
        }
        (Some(Form::Object) | None, Payload::Bytes(bytes)) => {
            let mut object = Map::new();
            if let Some(definition) = schema.definition.as_deref() {
                read_message(definition, schema, bytes, &mut object, depth + 1)?;
            }
            Ok(Value::Object(object))
        }
        _ => Err(Malformed::WrongWireType(name.to_owned())),
    }
}

/// Types with a special form in JSON.
fn read_special(
    name: &str,
    definition: &str,
    payload: Payload<'_>,
    depth: usize,
) -> Result<Option<Value>, Malformed> {
    let first = |number: u32| -> Result<Option<Payload<'_>>, Malformed> {
        let mut found = None;
        for field in Fields(payload.bytes(name)?) {
            let (at, value) = field?;
            if at == number {
                found = Some(value);
            }
        }
        Ok(found)
    };
    Ok(Some(match definition {
        TIME | MICRO_TIME => {
            let part = |payload: Option<Payload<'_>>| match payload {
                Some(Payload::Varint(number)) => number.cast_signed(),
                _ => 0,
            };
            if payload.bytes(name)?.is_empty() {
                return Ok(Some(Value::Null));
            }
            let (seconds, nanos) = (part(first(1)?), part(first(2)?));
            time(definition == MICRO_TIME, seconds, nanos)
        }
        QUANTITY => match first(1)? {
            Some(text) => text.text(name)?.into(),
            None => "0".into(),
        },
        _ if definition == "io.k8s.apimachinery.pkg.runtime.RawExtension"
            || definition.strip_prefix(META).is_some_and(|rest| rest == ".FieldsV1")
            || definition.strip_prefix(EXTENSIONS).is_some_and(|rest| rest == ".JSON") =>
        {
            match first(1)? {
                Some(raw) => serde_json::from_slice(raw.bytes(name)?)
                    .map_err(|_| Malformed::NoJson(name.to_owned()))?,
                None => Value::Null,
            }
        }
        _ => match definition.strip_prefix(EXTENSIONS).unwrap_or_default() {
            ".JSONSchemaPropsOrBool" => match (first(1)?, first(2)?) {
                (_, Some(schema)) => schema_properties(name, schema, depth)?,
                (allows, None) => json!(matches!(allows, Some(Payload::Varint(1)))),
            },
            ".JSONSchemaPropsOrArray" => match first(1)? {
                Some(schema) => schema_properties(name, schema, depth)?,
                None => {
                    let mut schemas = Vec::new();
                    for field in Fields(payload.bytes(name)?) {
                        schemas.push(schema_properties(name, field?.1, depth)?);
                    }
                    schemas.into()
                }
            },
            ".JSONSchemaPropsOrStringArray" => match first(1)? {
                Some(schema) => schema_properties(name, schema, depth)?,
                None => texts(name, payload, 2)?,
            },
            _ => return Ok(None),
        },
    }))
}

fn schema_properties(name: &str, payload: Payload<'_>, depth: usize) -> Result<Value, Malformed> {
    let of = format!("{EXTENSIONS}.JSONSchemaProps");
    let mut object = Map::new();
    if let Some(schema) = definition(&of) {
        read_message(&of, schema, payload.bytes(name)?, &mut object, depth + 1)?;
    }
    Ok(Value::Object(object))
}

/// The texts inside a message.
fn texts(name: &str, payload: Payload<'_>, number: u32) -> Result<Value, Malformed> {
    let mut texts = Vec::new();
    for field in Fields(payload.bytes(name)?) {
        let (at, value) = field?;
        if at == number {
            texts.push(Value::from(value.text(name)?));
        }
    }
    Ok(texts.into())
}

fn integer(number: u64, schema: &Schema) -> Value {
    let number = number.cast_signed();
    // The upper half of a 32-bit number carries no information.
    if &*schema.format == "int32" { Value::from(number as i32) } else { Value::from(number) }
}

fn int_or_string(name: &str, bytes: &[u8]) -> Result<Value, Malformed> {
    let (mut is_text, mut number, mut text) = (false, 0, String::new());
    for field in Fields(bytes) {
        match field? {
            (1, Payload::Varint(kind)) => is_text = kind == 1,
            (2, Payload::Varint(value)) => number = value.cast_signed() as i32,
            (3, payload) => text = payload.text(name)?,
            _ => {}
        }
    }
    Ok(if is_text { text.into() } else { number.into() })
}

/// A time; those of Events and Leases have microseconds.
fn time(micro: bool, seconds: i64, nanos: i64) -> Value {
    let nanos = i32::try_from(nanos).unwrap_or(0);
    jiff::Timestamp::new(seconds, nanos).map_or(Value::Null, |time| time_text(micro, time).into())
}

/// The value of one field.
#[derive(Debug, Clone, Copy)]
enum Payload<'a> {
    Varint(u64),
    Fixed(u64),
    Bytes(&'a [u8]),
}

impl<'a> Payload<'a> {
    fn bytes(self, name: &str) -> Result<&'a [u8], Malformed> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            _ => Err(Malformed::WrongWireType(name.to_owned())),
        }
    }

    fn text(self, name: &str) -> Result<String, Malformed> {
        let bytes = self.bytes(name)?.to_vec();
        String::from_utf8(bytes).map_err(|_| Malformed::NoText(name.to_owned()))
    }
}

/// The fields of a message, in order. After an error there are no more.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Payload<'a>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = field(&mut self.0);
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

fn field<'a>(bytes: &mut &'a [u8]) -> Result<(u32, Payload<'a>), Malformed> {
    let tag = varint(bytes)?;
    let number = u32::try_from(tag >> 3).map_err(|_| Malformed::Truncated)?;
    let payload = match tag & 7 {
        0 => Payload::Varint(varint(bytes)?),
        1 => Payload::Fixed(little_endian(take(bytes, 8)?)),
        2 => {
            let length = usize::try_from(varint(bytes)?).map_err(|_| Malformed::Truncated)?;
            Payload::Bytes(take(bytes, length)?)
        }
        5 => Payload::Fixed(little_endian(take(bytes, 4)?)),
        _ => return Err(Malformed::WrongWireType(number.to_string())),
    };
    Ok((number, payload))
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Result<&'a [u8], Malformed> {
    let (taken, rest) = bytes.split_at_checked(length).ok_or(Malformed::Truncated)?;
    *bytes = rest;
    Ok(taken)
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn varint(bytes: &mut &[u8]) -> Result<u64, Malformed> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *take(bytes, 1)?.first().ok_or(Malformed::Truncated)?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(Malformed::Truncated)
}

#[cfg(test)]
mod tests;
