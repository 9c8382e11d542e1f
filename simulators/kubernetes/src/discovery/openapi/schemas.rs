//! The schemas of kinds: for built-in kinds from the types of this workspace's Kubernetes version, for custom ones from
//! their definitions.

use serde_json::{Map, Value, json};

use crate::discovery::openapi::names::{GVK, SCHEMAS_V2, SCHEMAS_V3, identity};
use crate::registry::Kind;
use crate::schema::builtin::{definition, definition_name};
use crate::schema::types::documents;
use crate::schema::{ListType, Schema};

/// A text in version 2 documents, although numbers are accepted, too.
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";

/// The name of a kind's schema: for a built-in kind that of its Go type, as in real documents.
fn name_of(kind: &Kind) -> String {
    let (group, version, name) = (kind.group.as_str(), &kind.version, &kind.kind);
    if kind.is_custom() {
        let reversed: Vec<&str> = group.rsplit('.').collect();
        return format!("{}.{version}.{name}", reversed.join("."));
    }
    definition_name(group, version, name)
}

/// The schema of a kind and all schemas that it refers to, for a version 3 document.
pub(super) fn of(kind: &Kind) -> Map<String, Value> {
    let root = name_of(kind);
    let mut schemas = Map::new();
    if kind.is_custom() {
        let mut schema = kind.schema.clone().unwrap_or_else(|| json!({ "type": "object" }));
        schema["type"] = "object".into();
        add_identity(&mut schema);
        complete_embedded(&mut schema);
        if !kind.fields.is_empty() {
            let fields = kind.fields.iter().map(|path| json!({ "fieldPath": path }));
            schema["x-kubernetes-selectable-fields"] = fields.collect();
        }
        schemas.insert(root.clone(), schema);
        collect(OBJECT_META, &mut schemas);
    } else {
        collect(&root, &mut schemas);
    }
    if let Some(schema) = schemas.get_mut(&root) {
        schema[GVK] = json!([identity(kind)]);
    }
    for (name, document) in &mut schemas {
        if let Some(schema) = definition(name) {
            annotate_members(schema, document);
        }
    }
    schemas
}

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Adds the members that every object has, with the descriptions of built-in kinds.
fn add_identity(schema: &mut Value) {
    let described =
        |name: &str| documents().get("io.k8s.api.core.v1.Namespace")?.get("properties")?.get(name).cloned();
    for name in ["apiVersion", "kind"] {
        schema["properties"][name] = described(name).unwrap_or_else(|| json!({ "type": "string" }));
    }
    schema["properties"]["metadata"] = json!({
        "description": "Standard object's metadata. More info: \
            https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata",
        "allOf": [{ "$ref": format!("{SCHEMAS_V3}{OBJECT_META}") }],
    });
}

/// Does the same for embedded objects.
fn complete_embedded(schema: &mut Value) {
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(complete_embedded);
    }
    for member in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get_mut(member).filter(|inner| inner.is_object()) {
            complete_embedded(inner);
        }
    }
    if schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true)) {
        add_identity(schema);
    }
}

/// Adds a built-in schema and all schemas that it refers to.
fn collect(name: &str, schemas: &mut Map<String, Value>) {
    let Some(schema) = documents().get(name).filter(|_| !schemas.contains_key(name)) else { return };
    schemas.insert(name.to_owned(), schema.clone());
    let mut references = Vec::new();
    find_references(schema, &mut references);
    for name in references {
        collect(name, schemas);
    }
}

fn find_references<'a>(schema: &'a Value, found: &mut Vec<&'a str>) {
    match schema {
        Value::Object(members) => {
            let name = members.get("$ref").and_then(Value::as_str);
            found.extend(name.and_then(|name| name.strip_prefix(SCHEMAS_V3)));
            members.values().for_each(|member| find_references(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| find_references(item, found)),
        _ => {}
    }
}

/// The schema that another one refers to, if it does.
fn reference(schema: &Value) -> Option<&str> {
    let plain = schema.get("$ref").or_else(|| schema.pointer("/allOf/0/$ref"));
    plain?.as_str()?.strip_prefix(SCHEMAS_V3)
}

/// Adds how the members of a definition merge, for strategic merge patches and server-side apply.
fn annotate_members(schema: &Schema, document: &mut Value) {
    for (name, member) in &schema.properties {
        let Some(document) = document.pointer_mut(&format!("/properties/{}", name.replace('/', "~1"))) else {
            continue;
        };
        match &member.list {
            ListType::Atomic => {}
            ListType::Set => document["x-kubernetes-list-type"] = "set".into(),
            ListType::Map(keys) => {
                document["x-kubernetes-list-type"] = "map".into();
                document["x-kubernetes-list-map-keys"] = json!(keys);
            }
        }
        if member.atomic {
            document["x-kubernetes-map-type"] = "atomic".into();
        }
        if let Some(key) = &member.patch.merge {
            let retain = if member.patch.retain_keys { ",retainKeys" } else { "" };
            document["x-kubernetes-patch-strategy"] = format!("merge{retain}").into();
            if let Some(key) = key {
                document["x-kubernetes-patch-merge-key"] = key.as_str().into();
            }
        } else if member.patch.retain_keys {
            document["x-kubernetes-patch-strategy"] = "retainKeys".into();
        }
    }
}

/// Rewrites a definition of a version 3 document for a version 2 document.
pub(super) fn definition_to_v2(name: &str, schema: &mut Value) {
    leave_open(schema);
    to_v2(schema);
    if let (QUANTITY, Some(members)) = (name, schema.as_object_mut()) {
        members.remove("format");
    }
}

/// Removes the properties of members that keep unknown members: kubectl would refuse members that are not listed. A
/// real server leaves them out of this version, too.
fn leave_open(schema: &mut Value) {
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    for member in properties.values_mut() {
        if member.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true))
            && let Some(members) = member.as_object_mut()
        {
            members.remove("properties");
            members.remove("items");
        }
        leave_open(member);
    }
}

fn to_v2(schema: &mut Value) {
    if let Some(name) = reference(schema) {
        let reference = format!("{SCHEMAS_V2}{name}");
        if let Some(members) = schema.as_object_mut() {
            members.remove("allOf");
            members.insert("$ref".to_owned(), reference.into());
        }
    }
    // A property may have that name, too: in the schema of schemas.
    if schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        schema["type"] = "string".into();
        schema["format"] = "int-or-string".into();
    }
    match schema {
        Value::Object(members) => members.values_mut().for_each(to_v2),
        Value::Array(items) => items.iter_mut().for_each(to_v2),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    #[test]
    fn every_built_in_kind_has_a_schema_and_all_references_resolve() {
        for kind in Registry::default().kinds() {
            let schemas = of(kind);
            let root = &schemas[&name_of(kind)];
            assert_eq!(root[GVK][0]["kind"], kind.kind.as_str());
            assert!(root["properties"]["metadata"].is_object() || kind.is_review(), "{}", kind.kind);
            let mut references = Vec::new();
            schemas.values().for_each(|schema| find_references(schema, &mut references));
            for name in references {
                assert!(schemas.contains_key(name), "{name}");
            }
        }
    }

    #[test]
    fn lists_say_how_they_merge() {
        let registry = Registry::default();
        let service = registry.by_name("Service").unwrap();
        let ports = &of(&service)["io.k8s.api.core.v1.ServiceSpec"]["properties"]["ports"];
        assert_eq!(ports["x-kubernetes-patch-merge-key"], "port");
        assert_eq!(ports["x-kubernetes-list-map-keys"], json!(["port", "protocol"]));
        let deployment = registry.by_name("Deployment").unwrap();
        let containers = &of(&deployment)["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
        assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
    }

    /// Old releases of kubectl validate objects against this before they send them.
    #[test]
    fn definitions_of_kinds_are_described_as_they_may_be_written() {
        let document = crate::discovery::openapi::v2(&Registry::default());
        let definition = |name: &str| document["definitions"][name].clone();
        let extensions = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1";
        let any = definition(&format!("{extensions}.JSON"));
        assert!(any.is_object() && any.get("type").is_none(), "a default may be anything");
        let schema = definition(&format!("{extensions}.JSONSchemaProps"));
        for member in ["type", "format"] {
            assert_eq!(schema["properties"][member]["type"], "string", "{member}");
        }
        assert_eq!(definition(QUANTITY)["type"], "string");
        assert_eq!(definition(QUANTITY).get("format"), None);
        let key = definition("io.k8s.api.core.v1.ConfigMapKeySelector");
        assert_eq!(key["required"], json!(["key"]));
    }

    #[test]
    fn version_two_has_other_references_and_another_int_or_string() {
        let mut schema = json!({ "properties": {
            "spec": { "description": "it", "allOf": [{ "$ref": "#/components/schemas/a.Spec" }] },
            "port": { "x-kubernetes-int-or-string": true },
            "open": { "x-kubernetes-preserve-unknown-fields": true, "type": "object", "properties": { "a": {} } } } });
        definition_to_v2("x", &mut schema);
        assert_eq!(
            schema["properties"]["spec"],
            json!({ "description": "it", "$ref": "#/definitions/a.Spec" })
        );
        assert_eq!(schema["properties"]["port"]["format"], "int-or-string");
        // Older releases of kubectl refuse members that are not in the properties.
        let open = &schema["properties"]["open"];
        assert_eq!((&open["type"], open.get("properties")), (&json!("object"), None));
    }
}
