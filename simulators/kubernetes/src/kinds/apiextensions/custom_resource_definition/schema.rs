//! Validates the schema of a definition, which must be structural (Kubernetes: "Specifying a structural schema").

use super::rules::{self, RULES};
use crate::kinds::prelude::*;
use crate::schema::Schema;
use crate::structural::{settle, validate_default};

/// The position of a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
const LIST_TYPE: &str = "x-kubernetes-list-type";
const KEYS: &str = "x-kubernetes-list-map-keys";
const MAP_TYPE: &str = "x-kubernetes-map-type";
const TYPES: &[&str] = &["array", "boolean", "integer", "number", "object", "string"];

/// Validates the schema of a version.
pub(super) fn validate(document: &Value, at: &str, causes: &mut Causes) {
    let mut found = Causes::default();
    structural(document, Level::Root, at, &mut found);
    if found.are_none() {
        openapi(document, Level::Root, at, &mut found);
    }
    if flag(document, "nullable") {
        found.push(Invalid::forbidden(format!("{at}.nullable"), "nullable cannot be true at the root"));
    }
    if found.are_none() {
        defaults(document, at, &mut found);
    }
    // Rules are compiled only if the types are valid.
    if found.are_none() {
        rules::compile_all(document, at, &mut found);
    }
    // The server sorts them.
    found.0.sort_by_key(ToString::to_string);
    found.0.into_iter().for_each(|invalid| causes.push(invalid));
}

fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool) == Some(true)
}

fn members<'a>(schema: &'a Value, name: &str) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
    schema.get(name).and_then(Value::as_object).into_iter().flat_map(Map::iter)
}

/// The requirements of a structural schema: a tree of types, with constraints beside it.
fn structural(schema: &Value, level: Level, at: &str, causes: &mut Causes) {
    let kind = text_at(schema, "/type");
    if kind == "array" && schema.get("items").is_none() {
        causes.push(Invalid::required(format!("{at}.items"), "must be specified"));
    }
    if let Some(items) = schema.get("items") {
        structural(items, Level::Item, &format!("{at}.items"), causes);
    }
    for (name, property) in members(schema, "properties") {
        structural(property, Level::Field, &format!("{at}.properties[{name}]"), causes);
    }
    if let Some(additional) = schema.get("additionalProperties") {
        let field = format!("{at}.additionalProperties");
        if level == Level::Root {
            causes.push(Invalid::forbidden(field.as_str(), "must not be used at the root"));
        }
        if flag(schema, EMBEDDED) {
            let why = "must not be used if x-kubernetes-embedded-resource is set";
            causes.push(Invalid::forbidden(field.as_str(), why));
        }
        if additional.is_object() {
            structural(additional, Level::Field, &field, causes);
        }
    }
    types(schema, level, kind, at, causes);
    let (skip_any, skip_all) = (is_int_or_string(schema), first_is_int_or_string(schema));
    constraints(schema, level, skip_any, skip_all, at, causes);
}

fn types(schema: &Value, level: Level, kind: &str, at: &str, causes: &mut Causes) {
    let field = format!("{at}.type");
    let (embedded, preserve) = (flag(schema, EMBEDDED), flag(schema, PRESERVE));
    for (name, set) in [(PRESERVE, preserve), (EMBEDDED, embedded)] {
        if flag(schema, INT_OR_STRING) && set {
            let why = "must be false if x-kubernetes-int-or-string is true";
            causes.push(Invalid::value(format!("{at}.{name}"), "true", why));
        }
    }
    if embedded && kind != "object" {
        let why = "must be object if x-kubernetes-embedded-resource is true";
        causes.push(match kind {
            "" => Invalid::required(field.as_str(), why),
            kind => Invalid::text(field.as_str(), kind, why),
        });
    } else if kind.is_empty() && !flag(schema, INT_OR_STRING) && !preserve {
        let why = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        causes.push(Invalid::required(field.as_str(), why));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        causes.push(Invalid::text(field, kind, "must be object at the root"));
    }
    if level == Level::Root || embedded {
        for name in ["kind", "apiVersion"] {
            if let Some(property) = schema.pointer(&format!("/properties/{name}"))
                && text_at(property, "/type") != "string"
            {
                let field = format!("{at}.properties[{name}].type");
                causes.push(Invalid::text(field, text_at(property, "/type"), "must be string"));
            }
        }
        if let Some(metadata) = schema.pointer("/properties/metadata") {
            let field = format!("{at}.properties[metadata]");
            if text_at(metadata, "/type") != "object" {
                let given = text_at(metadata, "/type");
                causes.push(Invalid::text(format!("{field}.type"), given, "must be object"));
            }
            let names = |name: &str| name == "name" || name == "generateName";
            let says = |name: &str| !matches!(name, "type" | "description" | "properties");
            let more = metadata.as_object().is_some_and(|members| members.keys().any(|name| says(name)))
                || members(metadata, "properties").any(|(name, _)| !names(name));
            if level == Level::Root && more {
                let why = "must not specify anything other than name and generateName, but metadata is implicitly \
                           specified";
                causes.push(Invalid::forbidden(field, why));
            }
        }
    }
    let empty = members(schema, "properties").next().is_none();
    if embedded && !preserve && empty {
        let why = "must not be empty if x-kubernetes-embedded-resource is true without \
                   x-kubernetes-preserve-unknown-fields";
        causes.push(Invalid::required(format!("{at}.properties"), why));
    }
}

fn either() -> Value {
    json!([{ "type": "integer" }, { "type": "string" }])
}

fn is_int_or_string(schema: &Value) -> bool {
    schema.get("anyOf") == Some(&either())
}

fn first_is_int_or_string(schema: &Value) -> bool {
    schema.pointer("/allOf/0/anyOf") == Some(&either())
}

/// Schemas inside `allOf`, `anyOf`, `oneOf` and `not` may constrain values, but not define structure.
fn constraints(
    schema: &Value,
    level: Level,
    skip_any: bool,
    skip_first_all: bool,
    at: &str,
    causes: &mut Causes,
) {
    for name in ["anyOf", "allOf", "oneOf"] {
        if name == "anyOf" && skip_any {
            continue;
        }
        for (index, nested) in list_at(schema, &format!("/{name}")).iter().enumerate() {
            let skip = name == "allOf" && index == 0 && skip_first_all;
            self::nested(nested, level, skip, &format!("{at}.{name}[{index}]"), causes);
        }
    }
    if let Some(nested) = schema.get("not") {
        self::nested(nested, level, false, &format!("{at}.not"), causes);
    }
    let pattern = text_at(schema, "/pattern");
    if let Err(error) = regex::Regex::new(pattern) {
        let why = format!("must be a valid regular expression, but isn't: {error}");
        causes.push(Invalid::text(format!("{at}.pattern"), pattern, &why));
    }
}

fn nested(schema: &Value, level: Level, skip_any: bool, at: &str, causes: &mut Causes) {
    const EMPTY: &[&str] = &["type", "title", "description"];
    const FALSE: &[&str] = &["nullable", PRESERVE, EMBEDDED, INT_OR_STRING];
    const UNDEFINED: &[&str] = &["additionalProperties", "default", LIST_TYPE, MAP_TYPE];
    let mut forbid = |name: &str, why: &str| {
        if schema.get(name).is_some_and(|value| !matches!(value, Value::Bool(false) | Value::Null)) {
            causes
                .push(Invalid::forbidden(format!("{at}.{name}"), &format!("must be {why} to be structural")));
        }
    };
    EMPTY.iter().for_each(|name| forbid(name, "empty"));
    FALSE.iter().for_each(|name| forbid(name, "false"));
    UNDEFINED.iter().for_each(|name| forbid(name, "undefined"));
    [KEYS, RULES].iter().for_each(|name| forbid(name, "empty"));
    if schema.pointer("/properties/metadata").is_some() {
        let field = format!("{at}.properties[metadata]");
        causes.push(Invalid::forbidden(field, "must not be specified in a nested context"));
    }
    constraints(schema, level, skip_any, false, at, causes);
    if let Some(items) = schema.get("items") {
        nested(items, level, false, &format!("{at}.items"), causes);
    }
    for (name, property) in members(schema, "properties") {
        nested(property, Level::Field, false, &format!("{at}.properties[{name}]"), causes);
    }
}

/// OpenAPI features that the server does not support, and combinations of extensions.
fn openapi(schema: &Value, level: Level, at: &str, causes: &mut Causes) {
    const UNSUPPORTED: &[&str] =
        &["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"];
    let kind = text_at(schema, "/type");
    if !kind.is_empty() && !TYPES.contains(&kind) {
        causes.push(Invalid::unsupported(format!("{at}.type"), kind, TYPES));
    }
    for name in UNSUPPORTED {
        if schema.get(*name).is_some() {
            causes.push(Invalid::forbidden(format!("{at}.{name}"), &format!("{name} is not supported")));
        }
    }
    if flag(schema, "uniqueItems") {
        let why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        causes.push(Invalid::forbidden(format!("{at}.uniqueItems"), why));
    }
    if let Some(additional) = schema.get("additionalProperties") {
        let field = format!("{at}.additionalProperties");
        if schema
            .get("properties")
            .is_some_and(|properties| properties.as_object().is_some_and(|all| !all.is_empty()))
        {
            let why = "additionalProperties and properties are mutual exclusive";
            causes.push(Invalid::forbidden(field.as_str(), why));
        }
        if *additional == Value::Bool(false) {
            let why = "additionalProperties cannot be set to false";
            causes.push(Invalid::forbidden(field.as_str(), why));
        }
        openapi(additional, Level::Field, &field, causes);
    }
    if let Some(preserve) = schema.get(PRESERVE)
        && *preserve == Value::Bool(false)
    {
        causes.push(Invalid::value(format!("{at}.{PRESERVE}"), "false", "must be true or undefined"));
    }
    lists_and_maps(schema, kind, at, causes);
    rules::validate(schema, at, causes);
    if let Some(items) = schema.get("items") {
        openapi(items, Level::Item, &format!("{at}.items"), causes);
    }
    for (name, property) in members(schema, "properties") {
        if level == Level::Root && name == "metadata" {
            continue;
        }
        openapi(property, Level::Field, &format!("{at}.properties[{name}]"), causes);
    }
}

fn lists_and_maps(schema: &Value, kind: &str, at: &str, causes: &mut Causes) {
    let needs = |name: &str, wanted: &str| {
        let why = format!("must be {wanted} if {name} is specified");
        let field = format!("{at}.type");
        if kind.is_empty() { Invalid::required(field, &why) } else { Invalid::text(field, kind, &why) }
    };
    if let Some(map) = schema.get(MAP_TYPE).and_then(Value::as_str) {
        if kind != "object" {
            causes.push(needs(MAP_TYPE, "object"));
        }
        causes.check_one_of(format!("{at}.{MAP_TYPE}"), map, &["atomic", "granular"]);
    }
    let list = schema.get(LIST_TYPE).and_then(Value::as_str);
    let keys = list_at(schema, &format!("/{KEYS}"));
    if let Some(list) = list {
        if kind != "array" {
            causes.push(needs(LIST_TYPE, "array"));
        }
        causes.check_one_of(format!("{at}.{LIST_TYPE}"), list, &["atomic", "set", "map"]);
        if list == "set" && text_at(schema, "/items/type") == "object" {
            let atomic = text_at(schema, &format!("/items/{MAP_TYPE}")) == "atomic";
            if !atomic {
                let field = format!("{at}.items.{MAP_TYPE}");
                let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
                causes.push(Invalid::value(field, "null", why));
            }
        }
    }
    match (list, keys.is_empty()) {
        (Some("map"), true) => {
            let why = "must not be empty if x-kubernetes-list-type is map";
            causes.push(Invalid::required(format!("{at}.{KEYS}"), why));
        }
        (Some("map"), false) => keyed(schema, keys, at, causes),
        (None, false) => {
            let why = "must be map if x-kubernetes-list-map-keys is non-empty";
            causes.push(Invalid::required(format!("{at}.{LIST_TYPE}"), why));
        }
        (Some(other), false) => {
            let why = "must be map if x-kubernetes-list-map-keys is non-empty";
            causes.push(Invalid::text(format!("{at}.{LIST_TYPE}"), other, why));
        }
        (_, true) => {}
    }
}

fn keyed(schema: &Value, keys: &[Value], at: &str, causes: &mut Causes) {
    let items = schema.get("items").unwrap_or(&Value::Null);
    if text_at(items, "/type") != "object" {
        let why = "must be object if parent array's x-kubernetes-list-type is map";
        causes.push(Invalid::text(format!("{at}.items.type"), text_at(items, "/type"), why));
    }
    for key in keys.iter().filter_map(Value::as_str) {
        let Some(property) = items.get("properties").and_then(|properties| properties.get(key)) else {
            let printed = Value::Array(keys.to_vec()).to_string();
            let why = "entries must all be names of item properties";
            causes.push(Invalid::value(format!("{at}.{KEYS}"), &printed, why));
            continue;
        };
        let at = format!("{at}.items.properties[{key}]");
        let required = list_at(items, "/required").iter().any(|name| name == key);
        if !required && property.get("default").is_none() {
            let why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required \
                       property";
            causes.push(Invalid::required(format!("{at}.default"), why));
        }
        if flag(property, "nullable") {
            let why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            causes.push(Invalid::forbidden(format!("{at}.nullable"), why));
        }
    }
}

/// Defaults must be valid values of their schema, without unknown members.
fn defaults(schema: &Value, at: &str, causes: &mut Causes) {
    if let Some(default) = schema.get("default") {
        let tree = Schema::parse(schema);
        let mut settled = default.clone();
        settle(&tree, &mut settled);
        let mut pruned = default.clone();
        crate::schema::decode::remove_unknown(&tree, &mut pruned);
        if pruned != *default {
            let why = "must not have unknown fields";
            causes.push(Invalid::value(format!("{at}.default"), default, why));
        } else {
            for cause in validate_default(&tree, &settled) {
                let inner = if cause.field == "<nil>" { String::new() } else { format!(".{}", cause.field) };
                causes.push(Invalid::new(format!("{at}.default{inner}"), cause.message));
            }
        }
    }
    if let Some(items) = schema.get("items") {
        defaults(items, &format!("{at}.items"), causes);
    }
    if let Some(additional) = schema.get("additionalProperties") {
        defaults(additional, &format!("{at}.additionalProperties"), causes);
    }
    for (name, property) in members(schema, "properties") {
        defaults(property, &format!("{at}.properties[{name}]"), causes);
    }
}
