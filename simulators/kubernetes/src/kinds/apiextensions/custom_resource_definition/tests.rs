use serde_json::{Value, json};

use super::*;

fn definition(schema: Value) -> Value {
    json!({
        "metadata": { "name": "widgets.example.com" },
        "spec": { "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }] },
    })
}

fn causes(old: Option<&Value>, object: &Value) -> Vec<String> {
    let mut causes = Causes::default();
    validate(old, object, &mut causes);
    causes.0.iter().map(ToString::to_string).collect()
}

/// The errors of a schema, without the common prefix of their paths.
fn schema_causes(schema: Value) -> Vec<String> {
    let strip =
        |cause: String| cause.strip_prefix("spec.validation.openAPIV3Schema.").unwrap_or(&cause).to_owned();
    causes(None, &definition(schema)).into_iter().map(strip).collect()
}

#[test]
fn schemas_are_structural() {
    let root = |members: Value| json!({ "type": "object", "properties": members });
    let cases = [
        (json!({}), "type: Required value: must not be empty at the root"),
        (json!({ "type": "string" }), "type: Invalid value: \"string\": must be object at the root"),
        (
            root(json!({ "a": {} })),
            "properties[a].type: Required value: must not be empty for specified object fields",
        ),
        (root(json!({ "a": { "type": "array" } })), "properties[a].items: Required value: must be specified"),
        (
            root(json!({ "a": { "type": "array", "items": {} } })),
            "properties[a].items.type: Required value: must not be empty for specified array items",
        ),
        (
            root(json!({ "a": { "type": "object", "anyOf": [{ "type": "object" }] } })),
            "properties[a].anyOf[0].type: Forbidden: must be empty to be structural",
        ),
        (
            root(
                json!({ "metadata": { "type": "object", "properties": { "labels": { "type": "object" } } } }),
            ),
            "properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata \
             is implicitly specified",
        ),
        (
            json!({ "type": "object", "additionalProperties": { "type": "string" } }),
            "additionalProperties: Forbidden: must not be used at the root",
        ),
        (
            root(json!({ "a": { "type": "object", "x-kubernetes-embedded-resource": true } })),
            "properties[a].properties: Required value: must not be empty if x-kubernetes-embedded-resource is true \
             without x-kubernetes-preserve-unknown-fields",
        ),
        (
            root(json!({ "a": { "type": "array", "items": { "type": "string" }, "uniqueItems": true } })),
            "properties[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity \
             becomes quadratic",
        ),
        (
            root(json!({ "a": { "type": "text" } })),
            "properties[a].type: Unsupported value: \"text\": supported values: \"array\", \"boolean\", \"integer\", \
             \"number\", \"object\", \"string\"",
        ),
        (
            root(
                json!({ "a": { "type": "array", "x-kubernetes-list-type": "map", "items": { "type": "object" } } }),
            ),
            "properties[a].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is \
             map",
        ),
        (
            root(
                json!({ "a": { "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                "items": { "type": "object", "properties": { "k": { "type": "string" } } } } }),
            ),
            "properties[a].items.properties[k].default: Required value: this property is in \
             x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ),
        (
            root(json!({ "a": { "type": "integer", "default": "x" } })),
            "properties[a].default: Invalid value: \"string\":  in body must be of type integer: \"string\"",
        ),
    ];
    for (schema, message) in cases {
        assert_eq!(schema_causes(schema.clone()), [message], "{schema}");
    }
    let int_or_string =
        json!({ "x-kubernetes-int-or-string": true, "anyOf": [{ "type": "integer" }, { "type": "string" }] });
    let sound = root(json!({ "a": int_or_string, "metadata": { "type": "object" }, "b": { "type": "object",
        "properties": { "c": { "type": "string", "default": "x" } }, "default": {}, "oneOf": [{ "required": ["c"] }] } }));
    assert_eq!(schema_causes(sound), [""; 0]);
}

#[test]
fn rules_must_compile() {
    let schema = |rule: &str| {
        json!({ "type": "object", "properties": { "a": { "type": "integer",
            "x-kubernetes-validations": [{ "rule": rule }] } } })
    };
    assert_eq!(schema_causes(schema("self > 0")), [""; 0]);
    let refused = |rule: &str, why: &str| {
        let printed = format!(
            "apiextensions.ValidationRule{{Rule:{rule:?}, Message:\"\", MessageExpression:\"\", \
             Reason:(*apiextensions.FieldValueErrorReason)(nil), FieldPath:\"\", OptionalOldSelf:(*bool)(nil)}}"
        );
        let found = schema_causes(schema(rule));
        let [found] = found.as_slice() else { panic!("{found:?}") };
        let wanted =
            format!("properties[a].x-kubernetes-validations[0].rule: Invalid value: {printed}: {why}");
        assert!(found.starts_with(&wanted), "{found}\n{wanted}");
    };
    refused("self >", "compilation failed: ERROR: <input>:1:7: Syntax error: ");
    assert_eq!(
        schema_causes(schema("")),
        ["properties[a].x-kubernetes-validations[0].rule: Required value: rule is not specified"]
    );
}

#[test]
fn rules_say_what_they_must() {
    let rule = |rule: Value| {
        json!({ "type": "object", "properties": { "a": { "type": "array", "items": { "type": "object",
            "properties": { "b": { "type": "string" } }, "x-kubernetes-validations": [rule] } } } })
    };
    let at = "properties[a].items.x-kubernetes-validations[0]";
    for (given, wanted) in [
        (
            json!({ "rule": "self.b == oldSelf.b" }),
            "rule: Invalid value: \"self.b == oldSelf.b\": oldSelf cannot be used on the uncorrelatable portion of the \
             schema within spec.validation.openAPIV3Schema.properties[a]",
        ),
        (
            json!({ "rule": "self.b == ''", "optionalOldSelf": true }),
            "optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule",
        ),
        (
            json!({ "rule": "self.b == ''", "fieldPath": ".c" }),
            "fieldPath: Invalid value: \".c\": fieldPath must be a valid path",
        ),
        (
            json!({ "rule": "self.b\n== ''" }),
            "message: Required value: message must be specified if rule contains line breaks",
        ),
        (
            json!({ "rule": "self.b == ''", "reason": "Bad" }),
            "reason: Unsupported value: \"Bad\": supported values: \"FieldValueDuplicate\", \"FieldValueForbidden\", \
             \"FieldValueInvalid\", \"FieldValueRequired\"",
        ),
    ] {
        assert_eq!(schema_causes(rule(given.clone())), [format!("{at}.{wanted}")], "{given}");
    }
    let message = |expression: &str| rule(json!({ "rule": "self.b == ''", "messageExpression": expression }));
    assert_eq!(schema_causes(message("'not ' + self.b")), [""; 0]);
    let causes = schema_causes(message("'not ' +"));
    let why = "messageExpression compilation failed: ERROR: <input>:1:9: Syntax error: ";
    assert!(causes.iter().any(|cause| cause.contains(why)), "{causes:?}");
}

#[test]
fn selectable_fields_are_plain_members() {
    let schema = json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": {
        "color": { "type": "string" }, "size": { "type": "integer" }, "parts": { "type": "array", "items": { "type": "string" } } } },
        "metadata": { "type": "object", "properties": { "name": { "type": "string" } } } } });
    let with = |paths: &[&str]| {
        let mut definition = definition(schema.clone());
        let fields: Vec<Value> = paths.iter().map(|path| json!({ "jsonPath": path })).collect();
        definition["spec"]["versions"][0]["selectableFields"] = fields.into();
        causes(None, &definition)
    };
    assert_eq!(with(&[".spec.color", ".spec.size"]), [""; 0]);
    for (path, why) in [
        (
            ".spec.parts",
            "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.",
        ),
        (".spec.weight", "is an invalid path: does not refer to a valid field"),
        (".spec['color']", "is an invalid path: array notation is not allowed"),
        (".metadata.name", "must not point to fields in metadata"),
    ] {
        let wanted = format!("spec.selectableFields[0].jsonPath: Invalid value: {path:?}: {why}");
        assert_eq!(with(&[path]), [wanted]);
    }
    assert_eq!(with(&[""]), ["spec.selectableFields[0].jsonPath: Required value"]);
    assert_eq!(
        with(&[".spec.color", ".spec.color"]),
        [r#"spec.selectableFields[1].jsonPath: Duplicate value: ".spec.color""#]
    );
}

#[test]
fn names_versions_and_conversion_are_checked() {
    let sound = definition(json!({ "type": "object" }));
    assert_eq!(causes(None, &sound), [""; 0]);
    let with = |pointer: &str, value: Value| {
        let mut object = sound.clone();
        *object.pointer_mut(pointer).unwrap() = value;
        causes(None, &object)
    };
    assert_eq!(
        with("/metadata/name", json!("x")),
        [r#"metadata.name: Invalid value: "x": must be spec.names.plural+"."+spec.group"#]
    );
    assert_eq!(with("/spec/scope", json!("Any")).len(), 1);
    assert_eq!(
        with("/spec/names/listKind", json!("Widget")),
        [r#"spec.names.listKind: Invalid value: "Widget": kind and listKind may not be the same"#]
    );
    let stored = with("/spec/versions/0/storage", json!(false));
    assert!(
        stored.first().is_some_and(|cause| cause.ends_with("exactly one version marked as storage version"))
    );
    let mut object = sound.clone();
    object["spec"]["conversion"] = json!({ "strategy": "Webhook" });
    assert_eq!(
        causes(None, &object),
        [
            "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook",
            "spec.conversion.conversionReviewVersions: Required value"
        ]
    );
    let mut object = sound.clone();
    object["spec"]["group"] = json!("x.k8s.io");
    object["metadata"]["name"] = json!("widgets.x.k8s.io");
    assert_eq!(causes(None, &object).len(), 1, "groups of Kubernetes' own need an approval");
    object["metadata"]["annotations"] = json!({ APPROVAL: "https://example.com/1" });
    assert_eq!(causes(None, &object), [""; 0]);
}

#[test]
fn what_is_said_of_a_deprecated_version_is_checked() {
    let with = |deprecated: bool, words: &str| {
        let mut definition = definition(json!({ "type": "object" }));
        let version = &mut definition["spec"]["versions"][0];
        version["deprecated"] = json!(deprecated);
        version["deprecationWarning"] = json!(words);
        causes(None, &definition)
    };
    assert_eq!(with(true, "use v2"), [""; 0]);
    let at = "spec.versions[0].deprecationWarning: Invalid value";
    assert_eq!(with(false, "use v2"), [format!("{at}: \"use v2\": can only be set for deprecated versions")]);
    assert_eq!(with(true, ""), [format!("{at}: \"\": must not be an empty string")]);
    assert_eq!(with(true, &"x".repeat(257)).len(), 1);
}

#[test]
fn an_update_keeps_what_is_stored_under() {
    let mut old = definition(json!({ "type": "object" }));
    old["status"] =
        json!({ "storedVersions": ["v1"], "conditions": [{ "type": "Established", "status": "True" }] });
    let mut new = old.clone();
    new["spec"]["scope"] = json!("Cluster");
    assert_eq!(causes(Some(&old), &new), [r#"spec.scope: Invalid value: "Cluster": field is immutable"#]);
    let mut new = old.clone();
    new["spec"]["versions"][0]["name"] = json!("v2");
    let found = causes(Some(&old), &new);
    assert!(
        found.iter().any(|cause| cause.starts_with("status.storedVersions[0]: Invalid value: \"v1\"")),
        "{found:?}"
    );
}
