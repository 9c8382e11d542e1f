use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::object::invalid::Causes;
use crate::registry::{Kind, Registry};

/// A kind with this schema for its `spec`.
fn kind(spec: Value) -> Arc<Kind> {
    let schema = json!({ "type": "object", "properties": { "spec": spec } });
    let mut registry = Registry::default();
    registry.register_definition(&json!({ "spec": {
        "group": "example.com", "scope": "Namespaced", "names": { "plural": "widgets", "kind": "Widget" },
        "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }],
    } }));
    registry.by_path("example.com", "v1", "widgets").unwrap()
}

fn widget(spec: Value) -> Value {
    json!({ "apiVersion": "example.com/v1", "kind": "Widget", "metadata": { "name": "w" }, "spec": spec })
}

fn settled(schema: Value, spec: Value) -> Value {
    let mut object = widget(spec);
    settle(kind(schema).tree(), &mut object);
    object["spec"].take()
}

/// The errors of a new spec, or of one that replaces another.
fn causes(schema: Value, old: Option<Value>, new: Value) -> Vec<String> {
    let mut causes = Causes::default();
    let (kind, old, new) = (kind(schema), old.map(widget), widget(new));
    validate_values(kind.tree(), old.as_ref(), &new, &mut causes);
    validate_rules(kind.tree(), old.as_ref(), &new, 0, &mut causes);
    causes.0.iter().map(ToString::to_string).collect()
}

#[test]
fn unknown_members_go_and_known_ones_stay() {
    let schema = json!({ "type": "object", "properties": {
        "size": { "type": "integer" },
        "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": { "strict": { "type": "object", "properties": { "a": { "type": "string" } } } } },
        "map": { "type": "object", "additionalProperties": { "type": "object",
            "properties": { "a": { "type": "string" } } } },
        "open": { "type": "object", "additionalProperties": true },
        "list": { "type": "array", "items": { "type": "object", "properties": { "a": { "type": "string" } } } },
        "template": { "type": "object", "x-kubernetes-embedded-resource": true, "properties": {
            "spec": { "type": "object" } } },
    } });
    let given = json!({ "size": 1, "siez": 2, "free": { "x": { "y": 1 }, "strict": { "a": "1", "b": 2 } },
        "map": { "k": { "a": "1", "b": 2 } }, "open": { "k": 1, "o": { "gone": 1 } }, "list": [{ "a": "1", "b": 2 }],
        "template": { "apiVersion": "v1", "kind": "X", "metadata": { "name": "a", "nmae": "b" }, "spec": { "x": 1 },
            "stray": 1 } });
    let kept = json!({ "size": 1, "free": { "x": { "y": 1 }, "strict": { "a": "1" } }, "map": { "k": { "a": "1" } },
        "open": { "k": 1, "o": {} }, "list": [{ "a": "1" }],
        "template": { "apiVersion": "v1", "kind": "X", "metadata": { "name": "a" }, "spec": {} } });
    assert_eq!(settled(schema, given), kept);
}

#[test]
fn defaults_come_at_every_depth_that_is_there() {
    let port =
        json!({ "type": "object", "properties": { "protocol": { "type": "string", "default": "TCP" } } });
    let schema = json!({ "type": "object", "properties": {
        "size": { "type": "integer", "default": 3 },
        "ports": { "type": "array", "items": port },
        "byName": { "type": "object", "additionalProperties": port },
        "made": { "type": "object", "default": { "x": 1 }, "properties": {
            "x": { "type": "integer" }, "y": { "type": "integer", "default": 2 } } },
        "absent": { "type": "object", "properties": { "z": { "type": "integer", "default": 1 } } },
        "maybe": { "type": "string", "nullable": true, "default": "a" },
        "never": { "type": "string" },
    } });
    let given = json!({ "size": null, "ports": [{}, { "protocol": "UDP" }], "byName": { "a": {} }, "maybe": null,
        "never": null });
    let settled = settled(schema, given);
    let expected = json!({ "size": 3, "ports": [{ "protocol": "TCP" }, { "protocol": "UDP" }],
        "byName": { "a": { "protocol": "TCP" } }, "made": { "x": 1, "y": 2 }, "maybe": null });
    assert_eq!(settled, expected);
}

#[test]
fn values_are_refused_in_the_servers_words() {
    let one = |schema: Value| json!({ "type": "object", "properties": { "a": schema } });
    let cases = [
        (
            json!({ "type": "integer" }),
            json!("x"),
            r#"spec.a: Invalid value: "string": spec.a in body must be of type integer: "string""#,
        ),
        (
            json!({ "type": "string" }),
            json!({ "b": 1 }),
            r#"spec.a: Invalid value: "object": spec.a in body must be of type string: "object""#,
        ),
        (
            json!({ "x-kubernetes-int-or-string": true }),
            json!(true),
            r#"spec.a: Invalid value: "boolean": spec.a in body must be of type integer,string: "boolean""#,
        ),
        (
            json!({ "type": "integer", "minimum": 1 }),
            json!(0),
            "spec.a: Invalid value: 0: spec.a in body should be greater than or equal to 1",
        ),
        (
            json!({ "type": "number", "maximum": 1, "exclusiveMaximum": true }),
            json!(1.0),
            "spec.a: Invalid value: 1.0: spec.a in body should be less than 1",
        ),
        (
            json!({ "type": "integer", "multipleOf": 5 }),
            json!(7),
            "spec.a: Invalid value: 7: spec.a in body should be a multiple of 5",
        ),
        (
            json!({ "type": "string", "enum": ["x", "y"] }),
            json!("z"),
            r#"spec.a: Unsupported value: "z": supported values: "x", "y""#,
        ),
        (
            json!({ "type": "string", "pattern": "^a+$" }),
            json!("b"),
            r#"spec.a: Invalid value: "b": spec.a in body should match '^a+$'"#,
        ),
        (
            json!({ "type": "string", "minLength": 1 }),
            json!(""),
            r#"spec.a: Invalid value: "": spec.a in body should be at least 1 chars long"#,
        ),
        (
            json!({ "type": "string", "maxLength": 2 }),
            json!("abc"),
            "spec.a: Too long: may not be more than 2 bytes",
        ),
        (
            json!({ "type": "array", "items": { "type": "string" }, "maxItems": 1 }),
            json!(["a", "b"]),
            "spec.a: Too many: 2: must have at most 1 items",
        ),
        (
            json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 }),
            json!([]),
            "spec.a: Invalid value: 0: spec.a in body should have at least 1 items",
        ),
        (
            json!({ "type": "array", "items": { "type": "object", "required": ["b"] } }),
            json!([{ "b": 1 }, {}]),
            "spec.a[1].b: Required value",
        ),
        (
            json!({ "type": "object", "minProperties": 1, "additionalProperties": { "type": "string" } }),
            json!({}),
            "spec.a: Invalid value: 0: spec.a in body should have at least 1 properties",
        ),
        (
            json!({ "type": "string", "format": "date-time" }),
            json!("soon"),
            r#"spec.a: Invalid value: "soon": spec.a in body must be of type date-time: "soon""#,
        ),
        (
            json!({ "type": "string", "format": "ipv4" }),
            json!("::1"),
            r#"spec.a: Invalid value: "::1": spec.a in body must be of type ipv4: "::1""#,
        ),
        (
            json!({ "type": "array", "items": { "type": "string" }, "x-kubernetes-list-type": "set" }),
            json!(["a", "b", "a", "a"]),
            r#"spec.a[2]: Duplicate value: "a""#,
        ),
        (
            json!({ "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"],
                "items": { "type": "object", "properties": { "n": { "type": "string" } } } }),
            json!([{ "n": "a" }, { "n": "a" }]),
            r#"spec.a[1]: Duplicate value: {"n":"a"}"#,
        ),
        (
            json!({ "type": "object", "not": { "required": ["b"] }, "x-kubernetes-preserve-unknown-fields": true }),
            json!({ "b": 1 }),
            r#"<nil>: Invalid value: "": "spec.a" must not validate the schema (not)"#,
        ),
    ];
    for (schema, value, message) in cases {
        let found = causes(one(schema), None, json!({ "a": value }));
        assert_eq!(found, [message], "{value}");
    }
}

#[test]
fn alternatives_are_explained() {
    let schema = json!({ "type": "object", "properties": { "a": { "type": "string" }, "b": { "type": "string" } },
        "oneOf": [{ "required": ["a"] }, { "required": ["b"] }] });
    let given = |spec: Value| causes(schema.clone(), None, spec);
    assert!(given(json!({ "a": "1" })).is_empty());
    assert_eq!(
        given(json!({})),
        [
            r#"<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found none valid"#,
            "spec.a: Required value"
        ]
    );
    assert_eq!(
        given(json!({ "a": "1", "b": "2" })),
        [
            r#"<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found 2 valid alternatives"#
        ]
    );
}

#[test]
fn what_an_update_leaves_may_stay_wrong() {
    let schema = json!({ "type": "object", "properties": {
        "a": { "type": "string", "maxLength": 1 }, "n": { "type": "integer" },
        "list": { "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {
            "type": "object", "properties": { "k": { "type": "string" }, "v": { "type": "integer", "minimum": 1 } } } },
        "plain": { "type": "array", "items": { "type": "integer", "minimum": 1 } },
    }, "x-kubernetes-validations": [{ "rule": "!has(self.n) || self.n < 5", "message": "n is too big" }] });
    let old = json!({ "a": "long", "n": 1, "list": [{ "k": "x", "v": 0 }], "plain": [0] });
    let update = |new: Value| causes(schema.clone(), Some(old.clone()), new);
    let mut new = old.clone();
    new["n"] = json!(2);
    assert!(update(new.clone()).is_empty(), "another member changes");
    new["list"] = json!([{ "k": "y", "v": 1 }, { "k": "x", "v": 0 }]);
    assert!(update(new.clone()).is_empty(), "items of keyed lists are found again");
    new["plain"] = json!([0, 1]);
    assert_eq!(update(new).len(), 1, "items of other lists are not");
    let mut new = old.clone();
    new["a"] = json!("other");
    assert_eq!(
        update(new),
        [
            "spec.a: Too long: may not be more than 1 bytes",
            "<nil>: Invalid value: \"null\": some validation rules were not checked because the object was invalid; \
             correct the existing errors to complete validation"
        ]
    );
    let (mut old, mut new) = (json!({ "n": 7 }), json!({ "n": 7 }));
    assert!(causes(schema.clone(), Some(old.clone()), new.clone()).is_empty());
    old["a"] = json!("x");
    new["a"] = json!("y");
    assert_eq!(
        causes(schema, Some(old), new),
        [r#"spec: Invalid value: "object": n is too big"#],
        "the object that the rule is about has changed"
    );
}

#[test]
fn rules_see_values_by_their_types() {
    let rule = |rule: &str| json!([{ "rule": rule, "message": "no" }]);
    let schema = |rules: Value| {
        json!({ "type": "object", "x-kubernetes-validations": rules, "properties": {
            "min": { "type": "integer" }, "max": { "type": "integer" }, "ratio": { "type": "number" },
            "until": { "type": "string", "format": "date-time" }, "wait": { "type": "string", "format": "duration" },
            "any": { "x-kubernetes-int-or-string": true }, "foo-bar": { "type": "string" },
            "names": { "type": "array", "items": { "type": "string" } },
            "map": { "type": "object", "additionalProperties": { "type": "string" } },
            "cidr": { "type": "string" }, "memory": { "type": "string" },
        } })
    };
    let spec = json!({ "min": 1, "max": 3, "ratio": 2, "until": "2026-01-02T03:04:05Z", "wait": "90s", "any": "50%",
        "foo-bar": "x", "names": ["a", "b"], "map": { "k": "v" }, "cidr": "10.0.0.0/8", "memory": "2Gi" });
    for good in [
        "self.min <= self.max",
        "self.ratio > 1.5",
        "self.until > timestamp('2026-01-01T00:00:00Z')",
        "self.wait == duration('1m30s')",
        "type(self.any) == string ? self.any.endsWith('%') : self.any > 0",
        "self.foo__dash__bar == 'x'",
        "self.names.all(n, n.size() == 1) && self.names.exists_one(n, n == 'a')",
        "self.map['k'] == 'v' && 'k' in self.map && has(self.min)",
        "self.names.isSorted()",
        "cidr(self.cidr).containsIP('10.1.2.3')",
        "quantity(self.memory).isGreaterThan(quantity('1Gi'))",
    ] {
        assert_eq!(causes(schema(rule(good)), None, spec.clone()), [""; 0], "{good}");
    }
    for bad in ["self.min > self.max", "self.names.size() > 2"] {
        assert_eq!(
            causes(schema(rule(bad)), None, spec.clone()),
            [r#"spec: Invalid value: "object": no"#],
            "{bad}"
        );
    }
    let missing = causes(schema(rule("self.absent == 1")), None, spec);
    assert_eq!(
        missing,
        [r#"spec: Invalid value: "object": no such key: absent evaluating rule: self.absent == 1"#]
    );
}

#[test]
fn rules_say_where_and_why() {
    let schema = json!({ "type": "object", "properties": { "a": { "type": "integer", "x-kubernetes-validations": [
        { "rule": "self > 0" },
        { "rule": "self < 10", "messageExpression": "'is ' + string(self)", "reason": "FieldValueForbidden" },
    ] } }, "x-kubernetes-validations": [
        { "rule": "self.a != 5", "message": "not five", "fieldPath": ".a", "reason": "FieldValueRequired" },
    ] });
    let given = |a: i64| causes(schema.clone(), None, json!({ "a": a }));
    assert_eq!(given(-1), [r#"spec.a: Invalid value: "integer": failed rule: self > 0"#]);
    assert_eq!(given(11), ["spec.a: Forbidden: is 11"]);
    assert_eq!(given(5), ["spec.a: Required value: not five"]);
}

#[test]
fn transition_rules_compare_with_the_old_value() {
    let immutable = json!([{ "rule": "self == oldSelf", "message": "immutable" }]);
    let schema = json!({ "type": "object", "properties": {
        "a": { "type": "string", "x-kubernetes-validations": immutable },
        "b": { "type": "integer", "x-kubernetes-validations": [{ "optionalOldSelf": true, "message": "grows by one",
            "rule": "oldSelf.hasValue() ? self <= oldSelf.value() + 1 : self == 1" }] },
    } });
    assert!(causes(schema.clone(), None, json!({ "a": "x", "b": 1 })).is_empty());
    assert_eq!(
        causes(schema.clone(), Some(json!({ "a": "x" })), json!({ "a": "y" })),
        [r#"spec.a: Invalid value: "string": immutable"#]
    );
    assert!(causes(schema.clone(), Some(json!({})), json!({ "a": "y" })).is_empty());
    assert_eq!(
        causes(schema.clone(), None, json!({ "b": 2 })),
        [r#"spec.b: Invalid value: "integer": grows by one"#]
    );
    assert!(causes(schema.clone(), Some(json!({ "b": 4 })), json!({ "b": 5 })).is_empty());
    assert_eq!(causes(schema, Some(json!({ "b": 4 })), json!({ "b": 6 })).len(), 1);
}

#[test]
fn formats_are_those_of_the_server() {
    let yes = [
        ("date-time", "2026-01-02T03:04:05.678+01:00"),
        ("date", "2026-01-02"),
        ("duration", "1h2m3.5s"),
        ("duration", "22 ns"),
        ("ipv6", "fd00::1"),
        ("cidr", "fd00::/64"),
        ("mac", "01:23:45:67:89:ab"),
        ("hostname", "a.example.com"),
        ("email", "a@example.com"),
        ("uri", "https://example.com/x"),
        ("byte", "aGk="),
        ("uuid4", "f47ac10b-58cc-4372-a567-0e02b2c3d479"),
        ("nobody-knows", "x"),
    ];
    for (format, text) in yes {
        assert!(formats::fits(format, text), "{format} {text}");
    }
    let no = [
        ("date-time", "2026-01-02"),
        ("date", "2026-13-02"),
        ("duration", "1x"),
        ("duration", ""),
        ("cidr", "10.0.0.0/33"),
        ("mac", "01:23"),
        ("hostname", "-a"),
        ("email", "a"),
        ("byte", "%"),
        ("uuid3", "f47ac10b-58cc-4372-a567-0e02b2c3d479"),
    ];
    for (format, text) in no {
        assert!(!formats::fits(format, text), "{format} {text}");
    }
}
