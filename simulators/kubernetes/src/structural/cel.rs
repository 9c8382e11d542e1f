//! Rules in CEL: compiles them and builds the values that they see.
//!
//! Rules see the members that their schema describes (Kubernetes: "Validation rules"): by their escaped names, with
//! times and durations according to their formats. Members that are kept only because of
//! `x-kubernetes-preserve-unknown-fields` are invisible.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube_cel::KubeCelExt as _;
use kube_cel::cel::objects::{Key, Map as CelMap, OptionalValue};
use kube_cel::cel::{Context, ExecutionError, Value as Cel};
use serde_json::{Number, Value};

use crate::expression::{Program, compile, escape};
use crate::schema::{Additional, Form, Schema};

thread_local! {
    /// All functions of Kubernetes' CEL environment. Registering them takes a while.
    static FUNCTIONS: Context<'static> = functions();
}

/// The functions, and those that their library lacks: `type(value)`, with the names that it is compared with.
fn functions() -> Context<'static> {
    const TYPES: &[&str] = &["bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type"];
    let mut context = Context::default().with_all();
    context.add_function("type", |value: Cel| -> Arc<String> { Arc::new(type_of(&value).to_owned()) });
    for name in TYPES {
        context.add_variable_from_value(*name, Cel::String(Arc::new((*name).to_owned())));
    }
    context
}

fn type_of(value: &Cel) -> &'static str {
    match value {
        Cel::Null => "null_type",
        Cel::Bool(_) => "bool",
        Cel::Int(_) => "int",
        Cel::UInt(_) => "uint",
        Cel::Float(_) => "double",
        Cel::String(_) => "string",
        Cel::Bytes(_) => "bytes",
        Cel::List(_) => "list",
        Cel::Map(_) => "map",
        _ => "google.protobuf.Any",
    }
}

/// The variables of a rule.
pub(super) struct Variables {
    pub(super) this: Cel,
    /// Set for transition rules alone.
    pub(super) old: Option<Cel>,
}

/// Evaluates a compiled expression.
pub(super) fn evaluate(program: &Program, variables: &Variables) -> Result<Cel, ExecutionError> {
    FUNCTIONS.with(|functions| {
        let mut context = functions.new_inner_scope();
        context.add_variable_from_value("self", variables.this.clone());
        if let Some(old) = &variables.old {
            context.add_variable_from_value("oldSelf", old.clone());
        }
        program.evaluate(&context)
    })
}

/// Evaluates a compiled expression on documents without a schema: their members are visible under their own names.
pub(crate) fn evaluate_plain(program: &Program, variables: &[(&str, &Value)]) -> Result<Cel, ExecutionError> {
    FUNCTIONS.with(|functions| {
        let mut context = functions.new_inner_scope();
        for (name, value) in variables {
            context.add_variable_from_value(*name, plain(value));
        }
        program.evaluate(&context)
    })
}

fn plain(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(truth) => Cel::Bool(*truth),
        Value::Number(number) => {
            number.as_i64().map_or_else(|| Cel::Float(number.as_f64().unwrap_or_default()), Cel::Int)
        }
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(plain).collect())),
        Value::Object(members) => {
            let members = members.iter();
            let members = members.map(|(name, value)| (Key::String(Arc::new(name.clone())), plain(value)));
            Cel::Map(CelMap { map: Arc::new(members.collect()) })
        }
    }
}

/// `oldSelf` as an optional value.
pub(super) fn optional(value: Option<Cel>) -> Cel {
    Cel::Opaque(Arc::new(value.map_or_else(OptionalValue::none, OptionalValue::of)))
}

/// A value as rules see it.
pub(super) fn value(schema: &Schema, value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(truth) => Cel::Bool(*truth),
        Value::Number(number) => self::number(schema, number),
        Value::String(text) => self::text(&schema.format, text),
        Value::Array(items) => {
            let inner = schema.item_or_any();
            Cel::List(Arc::new(items.iter().map(|item| self::value(inner, item)).collect()))
        }
        Value::Object(members) => {
            let mut map: HashMap<Key, Cel> = HashMap::new();
            for (name, member) in members {
                if let Some(property) = schema.properties.get(name) {
                    map.insert(escape(name).into(), self::value(property, member));
                } else if let Additional::Of(link) = &schema.additional {
                    map.insert(name.clone().into(), self::value(link, member));
                }
            }
            Cel::Map(CelMap { map: Arc::new(map) })
        }
    }
}

fn number(schema: &Schema, number: &Number) -> Cel {
    match (schema.form, number.as_i64()) {
        (Some(Form::Number), _) | (_, None) => Cel::Float(number.as_f64().unwrap_or_default()),
        (_, Some(whole)) => Cel::Int(whole),
    }
}

fn text(format: &str, text: &str) -> Cel {
    static TIMESTAMP: LazyLock<Option<Program>> = LazyLock::new(|| compile("timestamp(self)").ok());
    static DATE: LazyLock<Option<Program>> = LazyLock::new(|| compile("timestamp(self + 'T00:00:00Z')").ok());
    static DURATION: LazyLock<Option<Program>> = LazyLock::new(|| compile("duration(self)").ok());
    let plain = Cel::String(Arc::new(text.to_owned()));
    let program = match format {
        "date-time" => &*TIMESTAMP,
        "date" => &*DATE,
        "duration" => &*DURATION,
        "byte" => return STANDARD.decode(text).map_or(plain, |bytes| Cel::Bytes(Arc::new(bytes))),
        _ => return plain,
    };
    let variables = Variables { this: plain.clone(), old: None };
    program.as_ref().and_then(|program| evaluate(program, &variables).ok()).unwrap_or(plain)
}
