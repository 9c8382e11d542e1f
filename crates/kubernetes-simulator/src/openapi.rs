//! OpenAPI documents: which kinds can be patched and with which parameters, which is what kubectl asks
//! them before it applies. They hold no schemas: kubectl then leaves validation to the server.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::object::to_bytes;
use crate::registry::{Kind, Registry};

/// Media type of gnostic's protobuf form of a version 2 document, for clients of before OpenAPI v3. They
/// ask for it with an `@` before `v1.0`, which many parsers of media types refuse, so answers have a dot.
pub(crate) const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

const TITLE: &str = "Kubernetes";
const VERSION: &str = "v1.33.0";
const GVK: &str = "x-kubernetes-group-version-kind";

/// Query parameters of a patch.
const PARAMETERS: &[(&str, &str)] =
    &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string"), ("force", "boolean")];

/// The path of one object of a kind, as a template.
fn path_of(kind: &Kind) -> String {
    let root = if kind.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", kind.group) };
    let namespace = if kind.namespaced { "/namespaces/{namespace}" } else { "" };
    format!("{root}/{}{namespace}/{}/{{name}}", kind.version, kind.plural)
}

fn identity(kind: &Kind) -> Value {
    json!({ "group": kind.group, "version": kind.version, "kind": kind.kind })
}

/// The version 2 document as JSON.
pub(crate) fn v2(registry: &Registry) -> Value {
    let parameters: Vec<Value> =
        PARAMETERS.iter().map(|(name, kind)| json!({ "name": name, "in": "query", "type": kind })).collect();
    let mut paths = Map::new();
    for kind in registry.kinds() {
        let mut patch = json!({ "parameters": parameters, "responses": { "200": { "description": "OK" } } });
        if let Some(members) = patch.as_object_mut() {
            members.insert(GVK.to_owned(), identity(kind));
        }
        paths.insert(path_of(kind), json!({ "patch": patch }));
    }
    json!({ "swagger": "2.0", "info": { "title": TITLE, "version": VERSION }, "paths": paths, "definitions": {} })
}

/// Which version 3 documents there are.
pub(crate) fn v3_index(registry: &Registry) -> Value {
    let mut paths = Map::new();
    for kind in registry.kinds() {
        let path = if kind.group.is_empty() {
            format!("api/{}", kind.version)
        } else {
            format!("apis/{}/{}", kind.group, kind.version)
        };
        // Clients keep a document by its hash: it changes with what the document says.
        let document = v3(registry, &kind.group, &kind.version).unwrap_or_default();
        let hash = fnv(&to_bytes(&document));
        paths.insert(
            path.clone(),
            json!({ "serverRelativeURL": format!("/openapi/v3/{path}?hash={hash:016X}") }),
        );
    }
    json!({ "paths": paths })
}

/// The version 3 document of a group's version.
pub(crate) fn v3(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    if !registry.serves(group, version) {
        return None;
    }
    let parameters: Vec<Value> = PARAMETERS
        .iter()
        .map(|(name, kind)| json!({ "name": name, "in": "query", "schema": { "type": kind, "uniqueItems": true } }))
        .collect();
    let mut paths = Map::new();
    for kind in registry.kinds().iter().filter(|kind| kind.group == group && kind.version == version) {
        let mut patch = json!({ "parameters": parameters, "responses": { "200": { "description": "OK" } } });
        if let Some(members) = patch.as_object_mut() {
            members.insert(GVK.to_owned(), identity(kind));
        }
        paths.insert(path_of(kind), json!({ "patch": patch }));
    }
    let info = json!({ "title": TITLE, "version": VERSION });
    Some(json!({ "openapi": "3.0.0", "info": info, "paths": paths, "components": { "schemas": {} } }))
}

/// FNV-1a, 64 bits.
fn fnv(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The version 2 document in protobuf. Field numbers are those of gnostic's `OpenAPIv2.proto`.
pub(crate) fn v2_protobuf(registry: &Registry) -> Bytes {
    let mut info = Message::default();
    info.text(1, TITLE);
    info.text(2, VERSION);
    let mut paths = Message::default();
    for kind in registry.kinds() {
        let mut operation = Message::default();
        for (name, value_type) in PARAMETERS {
            operation.message(8, &query_parameter(name, value_type));
        }
        operation.message(13, &extension(GVK, &identity(kind).to_string()));
        let mut item = Message::default();
        item.message(8, &operation); // PathItem.patch
        let mut named = Message::default();
        named.text(1, &path_of(kind));
        named.message(2, &item);
        paths.message(2, &named);
    }
    let mut document = Message::default();
    document.text(1, "2.0");
    document.message(2, &info);
    document.message(8, &paths);
    document.0.into()
}

/// ParametersItem → Parameter → NonBodyParameter → QueryParameterSubSchema.
fn query_parameter(name: &str, value_type: &str) -> Message {
    let mut schema = Message::default();
    schema.text(2, "query");
    schema.text(4, name);
    schema.text(6, value_type);
    let mut non_body = Message::default();
    non_body.message(3, &schema);
    let mut parameter = Message::default();
    parameter.message(2, &non_body);
    let mut item = Message::default();
    item.message(1, &parameter);
    item
}

/// NamedAny whose value is YAML; JSON is YAML.
fn extension(name: &str, yaml: &str) -> Message {
    let mut value = Message::default();
    value.text(2, yaml);
    let mut named = Message::default();
    named.text(1, name);
    named.message(2, &value);
    named
}

/// A protobuf message in the making. Only length-delimited fields are needed.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
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

    #[test]
    fn documents_of_versions_that_are_not_served_do_not_exist() {
        let registry = Registry::default();
        assert!(v3(&registry, "apps", "v1").is_some());
        assert!(v3(&registry, "apps", "v9").is_none());
    }
}
