//! Parses an OpenAPI v3 schema into the tree.

use serde_json::{Map, Value, json};

use super::tree::{Additional, Constraints, Form, Link, ListType, PatchStrategy, Reference, Rule, Schema};

/// The path of schemas in version 3 documents.
const REFERENCE: &str = "#/components/schemas/";
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

impl Schema {
    /// Parses a schema. Invalid parts are ignored: definitions are validated when they are written.
    pub(crate) fn parse(document: &Value) -> Self {
        let Some(members) = document.as_object() else { return Self::default() };
        let flag = |name: &str| members.get(name).and_then(Value::as_bool) == Some(true);
        let mut schema = Self {
            definition: None,
            form: text(members, "type").and_then(form),
            format: text(members, "format").unwrap_or_default().into(),
            nullable: flag("nullable"),
            int_or_string: flag("x-kubernetes-int-or-string"),
            preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            embedded_resource: flag("x-kubernetes-embedded-resource"),
            properties: object(members, "properties")
                .map(|(name, property)| (name.clone(), link(property)))
                .collect(),
            additional: match members.get("additionalProperties") {
                Some(Value::Object(schema)) if !schema.is_empty() => {
                    Additional::Of(link(&Value::Object(schema.clone())))
                }
                Some(Value::Object(_) | Value::Bool(true)) => Additional::Any,
                _ => Additional::None,
            },
            items: members.get("items").filter(|items| items.is_object()).map(link),
            default: members.get("default").cloned(),
            list: list_type(members),
            atomic: text(members, "x-kubernetes-map-type") == Some("atomic"),
            patch: PatchStrategy::default(),
            constraints: constraints(members).map(Box::new),
            rules: list(members, "x-kubernetes-validations").iter().map(rule).collect(),
        };
        if schema.embedded_resource {
            schema.add_identity();
        }
        schema
    }

    /// The tree of a custom kind: its schema, to which the server adds the members that every object has.
    pub(crate) fn custom(document: &Value) -> Self {
        let mut schema = Self::parse(document);
        schema.add_identity();
        schema
    }

    /// Adds `apiVersion`, `kind` and `metadata`.
    fn add_identity(&mut self) {
        for name in ["apiVersion", "kind"] {
            let text = || Link::Inline(Box::new(Self::parse(&json!({ "type": "string" }))));
            self.properties.entry(name.to_owned()).or_insert_with(text);
        }
        self.properties.insert("metadata".to_owned(), Link::Definition(Reference::to(OBJECT_META)));
    }
}

/// The definition that a schema refers to, directly or, if the member has a description, in `allOf`.
fn reference(schema: &Value) -> Option<&str> {
    let plain = schema.get("$ref").or_else(|| schema.pointer("/allOf/0/$ref"));
    plain?.as_str()?.strip_prefix(REFERENCE)
}

fn link(schema: &Value) -> Link {
    match reference(schema) {
        Some(name) => Link::Definition(Reference::to(name)),
        None => Link::Inline(Box::new(Schema::parse(schema))),
    }
}

fn form(name: &str) -> Option<Form> {
    const FORMS: [Form; 6] =
        [Form::Object, Form::Array, Form::String, Form::Integer, Form::Number, Form::Boolean];
    FORMS.into_iter().find(|form| form.as_str() == name)
}

fn list_type(members: &Map<String, Value>) -> ListType {
    match text(members, "x-kubernetes-list-type") {
        Some("set") => ListType::Set,
        Some("map") => ListType::Map(texts(members, "x-kubernetes-list-map-keys")),
        _ => ListType::Atomic,
    }
}

fn constraints(members: &Map<String, Value>) -> Option<Constraints> {
    const NAMES: &[&str] = &[
        "required",
        "enum",
        "pattern",
        "minimum",
        "maximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
    ];
    if !NAMES.iter().any(|name| members.contains_key(*name)) {
        return None;
    }
    let flag = |name: &str| members.get(name).and_then(Value::as_bool) == Some(true);
    let float = |name: &str| members.get(name).and_then(Value::as_f64);
    let count = |name: &str| members.get(name).and_then(Value::as_u64);
    let schemas = |name: &str| list(members, name).iter().map(Schema::parse).collect();
    Some(Constraints {
        required: texts(members, "required"),
        values: list(members, "enum").to_vec(),
        pattern: text(members, "pattern").filter(|pattern| !pattern.is_empty()).map(str::to_owned),
        minimum: float("minimum"),
        exclusive_minimum: flag("exclusiveMinimum"),
        maximum: float("maximum"),
        exclusive_maximum: flag("exclusiveMaximum"),
        multiple_of: float("multipleOf"),
        min_length: count("minLength"),
        max_length: count("maxLength"),
        min_items: count("minItems"),
        max_items: count("maxItems"),
        min_properties: count("minProperties"),
        max_properties: count("maxProperties"),
        all_of: schemas("allOf"),
        any_of: schemas("anyOf"),
        one_of: schemas("oneOf"),
        not: members.get("not").map(|schema| Box::new(Schema::parse(schema))),
    })
}

fn rule(document: &Value) -> Rule {
    let text = |name: &str| {
        document.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    Rule {
        rule: text("rule").unwrap_or_default(),
        message: text("message"),
        message_expression: text("messageExpression"),
        reason: text("reason"),
        field_path: text("fieldPath"),
        optional_old_self: document.get("optionalOldSelf").and_then(Value::as_bool) == Some(true),
        ..Rule::default()
    }
}

fn object<'a>(
    members: &'a Map<String, Value>,
    name: &str,
) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
    members.get(name).and_then(Value::as_object).into_iter().flatten()
}

fn list<'a>(members: &'a Map<String, Value>, name: &str) -> &'a [Value] {
    members.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    members.get(name).and_then(Value::as_str)
}

fn texts(members: &Map<String, Value>, name: &str) -> Vec<String> {
    list(members, name).iter().filter_map(|text| text.as_str().map(str::to_owned)).collect()
}
