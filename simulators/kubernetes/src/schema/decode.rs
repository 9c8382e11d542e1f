//! Decodes objects as the API server's Go types do: finds unknown members, and values of a wrong type.

use std::fmt;

use serde_json::{Number, Value};

use super::tree::{Additional, Form, Schema};

/// Types with a decoder of their own, and the plain Go type that it tries.
const SELF_DECODING: &[(&str, &str)] = &[
    ("io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime", "string"),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.Time", "string"),
    ("io.k8s.apimachinery.pkg.util.intstr.IntOrString", "int32"),
];

/// The first value of a wrong type. It is displayed as by Go's `encoding/json`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WrongType {
    /// Type and members of the path to the value, without indices: `ServiceSpec` and `spec.ports.port`. `None` if the
    /// type decodes itself.
    pub(crate) field: Option<(String, String)>,
    /// `string`, `number`, `number 1.5`, `bool`, `object`, `array`.
    pub(crate) found: String,
    /// The Go type: `string`, `int32`, `[]v1.ServicePort`.
    pub(crate) wanted: String,
}

impl fmt::Display for WrongType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "json: cannot unmarshal {} into Go ", self.found)?;
        match &self.field {
            Some((structure, path)) => write!(f, "struct field {structure}.{path} of type {}", self.wanted),
            None => write!(f, "value of type {}", self.wanted),
        }
    }
}

/// Deviations from the schema.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Findings {
    /// Paths of unknown members, in order: `spec.ports[0].prot`.
    pub(crate) unknown: Vec<String>,
    pub(crate) wrong: Option<WrongType>,
}

/// Compares a value with its schema. Null is valid everywhere: Go leaves such members as they are.
pub(crate) fn decode(schema: &Schema, value: &Value) -> Findings {
    let mut decoder = Decoder::default();
    decoder.value(schema, value, &Place::default());
    decoder.findings
}

/// Removes the members that the schema does not know.
pub(crate) fn remove_unknown(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(members) => {
            if !schema.keeps_unknown() {
                members.retain(|name, _| schema.member(name).is_some());
            }
            for (name, member) in members {
                match schema.member(name) {
                    Some(schema) => remove_unknown(schema, member),
                    // `additionalProperties: true` allows members, but does not describe their content.
                    None if !schema.preserve_unknown => remove_members(member),
                    None => {}
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.items.as_deref() {
                items.iter_mut().for_each(|item| remove_unknown(schema, item));
            }
        }
        _ => {}
    }
}

fn remove_members(value: &mut Value) {
    match value {
        Value::Object(members) => members.clear(),
        Value::Array(items) => items.iter_mut().for_each(remove_members),
        _ => {}
    }
}

/// The position of the decoder.
#[derive(Clone, Default)]
struct Place {
    /// With indices and keys.
    path: String,
    /// Members of structures alone.
    members: String,
    /// The structure with the last of these members.
    structure: String,
}

impl Place {
    fn member(&self, structure: Option<&str>, name: &str) -> Self {
        let join = |to: &str| if to.is_empty() { name.to_owned() } else { format!("{to}.{name}") };
        match structure {
            Some(structure) => {
                Self { path: join(&self.path), members: join(&self.members), structure: structure.to_owned() }
            }
            None => Self { path: join(&self.path), ..self.clone() },
        }
    }

    fn item(&self, index: usize) -> Self {
        Self { path: format!("{}[{index}]", self.path), ..self.clone() }
    }
}

#[derive(Default)]
struct Decoder {
    findings: Findings,
}

impl Decoder {
    fn value(&mut self, schema: &Schema, value: &Value, at: &Place) {
        match value {
            _ if schema.form.is_none() && !schema.int_or_string => {}
            Value::Null => {}
            Value::Object(members) if schema.form == Some(Form::Object) => {
                for (name, member) in members {
                    let structure = schema.properties.contains_key(name).then(|| schema.type_name());
                    let place = || at.member(structure.flatten(), name);
                    match schema.member(name) {
                        Some(schema) => self.value(schema, member, &place()),
                        None if schema.keeps_unknown() => {}
                        None => self.findings.unknown.push(place().path),
                    }
                }
            }
            Value::Array(items) if schema.form == Some(Form::Array) => {
                for (index, item) in items.iter().enumerate() {
                    self.value(schema.item_or_any(), item, &at.item(index));
                }
            }
            _ if fits(schema, value) => {}
            _ => self.wrong(schema, value, at),
        }
    }

    /// Records the first value of a wrong type: Go continues after it, and reports it.
    fn wrong(&mut self, schema: &Schema, value: &Value, at: &Place) {
        if self.findings.wrong.is_some() {
            return;
        }
        let definition = schema.definition.as_deref().unwrap_or_default();
        let own = SELF_DECODING.iter().find(|(name, _)| *name == definition);
        self.findings.wrong = Some(match own {
            Some((_, wanted)) => {
                WrongType { field: None, found: found(schema, value), wanted: (*wanted).to_owned() }
            }
            None => WrongType {
                field: Some((at.structure.clone(), at.members.clone())),
                found: found(schema, value),
                wanted: go_type(schema),
            },
        });
    }
}

/// Whether a plain value has the schema's type.
fn fits(schema: &Schema, value: &Value) -> bool {
    if schema.int_or_string {
        return value.is_string() || value.is_number();
    }
    match (schema.form, value) {
        (Some(Form::String), Value::String(_))
        | (Some(Form::Boolean), Value::Bool(_))
        | (Some(Form::Number), Value::Number(_)) => true,
        (Some(Form::Integer), Value::Number(number)) => is_integer(number, &schema.format),
        _ => false,
    }
}

fn is_integer(number: &Number, format: &str) -> bool {
    match (format, number.as_i64()) {
        ("int32", Some(number)) => i32::try_from(number).is_ok(),
        (_, number) => number.is_some(),
    }
}

fn found(schema: &Schema, value: &Value) -> String {
    match value {
        Value::Number(number) if schema.form == Some(Form::Integer) => format!("number {number}"),
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(_) => "number".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
    }
}

/// The Go type of a schema, as `encoding/json` names it.
fn go_type(schema: &Schema) -> String {
    if let Some(definition) = &schema.definition {
        // The package is the last part but one: io.k8s.api.core.v1.ServiceSpec is v1.ServiceSpec.
        let mut parts = definition.rsplit('.');
        let (name, package) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        return format!("{package}.{name}");
    }
    match (schema.form, &*schema.format) {
        (Some(Form::String), "byte") => "[]uint8".to_owned(),
        (Some(Form::String), _) => "string".to_owned(),
        (Some(Form::Boolean), _) => "bool".to_owned(),
        (Some(Form::Number), _) => "float64".to_owned(),
        (Some(Form::Integer), "int32") => "int32".to_owned(),
        (Some(Form::Integer), _) => "int64".to_owned(),
        (Some(Form::Array), _) => format!("[]{}", go_type(schema.item_or_any())),
        (Some(Form::Object), _) => match &schema.additional {
            Additional::Of(link) => format!("map[string]{}", go_type(link)),
            _ => "map[string]interface {}".to_owned(),
        },
        (None, _) => "interface {}".to_owned(),
    }
}
