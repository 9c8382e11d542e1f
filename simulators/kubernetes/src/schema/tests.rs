use serde_json::{Value, json};

use super::builtin::full_name;
use super::decode::{decode, remove_unknown};
use super::merge_rules::{ATOMIC_STRUCTURES, KEY_DEFAULTS, MERGE_RULES};
use super::*;

fn service() -> &'static Schema {
    builtin::of_kind("", "v1", "Service").unwrap()
}

fn at<'a>(schema: &'a Schema, path: &str) -> &'a Schema {
    path.split('.').fold(schema, |schema, name| match name {
        "[]" => schema.items.as_deref().unwrap(),
        name => schema.member(name).unwrap_or_else(|| panic!("{path}: no {name}")),
    })
}

#[test]
fn every_row_names_a_member_of_a_definition() {
    let served = |name: &str| builtin::definition(&full_name(name)).is_some();
    for (name, member, ..) in MERGE_RULES {
        if let Some(schema) = builtin::definition(&full_name(name)) {
            assert!(schema.properties.contains_key(*member), "{name} has no {member}");
        }
    }
    assert!(MERGE_RULES.iter().filter(|(name, ..)| served(name)).count() > 40);
    assert!(ATOMIC_STRUCTURES.iter().filter(|name| served(name)).count() > 8);
    assert!(KEY_DEFAULTS.iter().all(|(name, ..)| served(name)));
}

#[test]
fn keys_of_lists_are_members_of_their_items() {
    for (name, member, ..) in MERGE_RULES {
        let Some(schema) = builtin::definition(&full_name(name)) else { continue };
        let list = at(schema, member);
        if let ListType::Map(keys) = &list.list {
            for key in keys {
                assert!(list.item_or_any().member(key).is_some(), "{name}.{member} has no {key}");
            }
        }
    }
}

#[test]
fn lists_and_maps_merge_as_their_types_say() {
    let keys = |names: &[&str]| ListType::Map(names.iter().map(|name| (*name).to_owned()).collect());
    let ports = at(service(), "spec.ports");
    assert_eq!(ports.list, keys(&["port", "protocol"]));
    assert_eq!(ports.patch.merge, Some(Some("port".to_owned())));
    assert_eq!(at(ports, "[].protocol").default, Some(json!("TCP")));
    assert_eq!(at(service(), "spec.externalIPs").list, ListType::Atomic);
    assert!(at(service(), "spec.selector").atomic && !at(service(), "metadata.labels").atomic);
    assert_eq!(at(service(), "metadata.finalizers").list, ListType::Set);
    let deployment = builtin::of_kind("apps", "v1", "Deployment").unwrap();
    assert!(at(deployment, "spec.selector").atomic, "a label selector is one value");
    assert!(at(deployment, "spec.strategy").patch.retain_keys);
    assert_eq!(at(deployment, "spec.template.spec.containers.[].env").list, keys(&["name"]));
    let volume = builtin::of_kind("", "v1", "PersistentVolume").unwrap();
    assert!(!at(volume, "spec.claimRef").atomic, "other references are atomic, this one is not");
}

#[test]
fn a_schema_may_contain_itself() {
    let definition = builtin::of_kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition").unwrap();
    let schema = at(definition, "spec.versions.[].schema.openAPIV3Schema");
    let inner = at(schema, "properties.anything.properties.at.not");
    assert_eq!(inner.type_name(), Some("JSONSchemaProps"));
    let any = json!({ "default": [1], "enum": ["a", 2], "items": { "type": "string" }, "additionalProperties": true });
    assert_eq!(decode(inner, &any), decode::Findings::default());
}

#[test]
fn unknown_members_are_found_by_path() {
    let mut object = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "a", "labels": { "free": "x" }, "nmae": 1 },
        "spec": { "ports": [{ "port": 1 }, { "port": 2, "prot": "TCP" }], "tpye": null }, "extra": {},
    });
    let findings = decode(service(), &object);
    assert_eq!(findings.unknown, ["extra", "metadata.nmae", "spec.ports[1].prot", "spec.tpye"]);
    assert_eq!(findings.wrong, None);
    remove_unknown(service(), &mut object);
    assert_eq!(decode(service(), &object).unknown, [""; 0]);
    assert_eq!(object["metadata"]["labels"]["free"], "x");
    assert_eq!(object["spec"]["ports"][1], json!({ "port": 2 }));
}

#[test]
fn wrong_types_are_told_as_go_tells_them() {
    let cases = [
        (
            json!({ "spec": { "loadBalancerIP": 5 } }),
            "json: cannot unmarshal number into Go struct field ServiceSpec.spec.loadBalancerIP of type string",
        ),
        (
            json!({ "spec": { "ports": [{ "port": "x" }] } }),
            "json: cannot unmarshal string into Go struct field ServicePort.spec.ports.port of type int32",
        ),
        (
            json!({ "spec": { "ports": [{ "port": 1.5 }] } }),
            "json: cannot unmarshal number 1.5 into Go struct field ServicePort.spec.ports.port of type int32",
        ),
        (
            json!({ "spec": { "ports": { "port": 1 } } }),
            "json: cannot unmarshal object into Go struct field ServiceSpec.spec.ports of type []v1.ServicePort",
        ),
        (
            json!({ "spec": [] }),
            "json: cannot unmarshal array into Go struct field Service.spec of type v1.ServiceSpec",
        ),
        (
            json!({ "metadata": { "labels": { "a": true } } }),
            "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            json!({ "metadata": { "creationTimestamp": 1 } }),
            "json: cannot unmarshal number into Go value of type string",
        ),
    ];
    for (object, message) in cases {
        assert_eq!(decode(service(), &object).wrong.unwrap().to_string(), message);
    }
    let sound =
        json!({ "spec": { "ports": [{ "port": 1, "targetPort": "x" }, { "targetPort": 5 }], "type": null } });
    assert_eq!(decode(service(), &sound).wrong, None);
}

#[test]
fn a_custom_schema_has_what_every_object_has() {
    let schema = Schema::custom(&json!({ "type": "object", "properties": {
        "spec": { "type": "object", "properties": {
            "tags": { "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } },
            "template": { "type": "object", "x-kubernetes-embedded-resource": true,
                "x-kubernetes-preserve-unknown-fields": true },
            "limits": { "type": "object", "additionalProperties": { "x-kubernetes-int-or-string": true } },
        } } } }));
    schema.resolve(&builtin::definition);
    assert_eq!(at(&schema, "metadata.ownerReferences").list, ListType::Map(vec!["uid".to_owned()]));
    assert_eq!(at(&schema, "spec.tags").list, ListType::Set);
    assert_eq!(at(&schema, "spec.template.metadata.labels.x").form, Some(Form::String));
    assert!(at(&schema, "spec.limits.cpu").int_or_string);
    assert!(schema.member("status").is_none() && !schema.keeps_unknown());
}

#[test]
fn what_any_json_holds_is_never_a_finding() {
    assert_eq!(decode(&ANYTHING, &json!({ "a": [Value::Null, { "b": 1 }] })), decode::Findings::default());
}
