//! The documents of both versions.

use serde_json::{Map, Value, json};

use crate::discovery::openapi::names::{GVK, identity};
use crate::discovery::openapi::schemas;
use crate::object::to_bytes;
use crate::registry::{Kind, Registry};

const TITLE: &str = "Kubernetes";
const VERSION: &str = "v1.36.0";

/// Query parameters of a patch.
const PARAMETERS: &[(&str, &str)] =
    &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string"), ("force", "boolean")];

/// The path template of all objects of a kind in one namespace.
fn path_of(kind: &Kind) -> String {
    let root = if kind.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", kind.group) };
    let namespace = if kind.namespaced { "/namespaces/{namespace}" } else { "" };
    format!("{root}/{}{namespace}/{}", kind.version, kind.plural)
}

fn operation(kind: &Kind, parameters: &[Value]) -> Value {
    json!({ "parameters": parameters, "responses": { "200": { "description": "OK" } }, GVK: identity(kind) })
}

/// The paths of some kinds; reviews cannot be read or patched.
fn paths<'a>(kinds: impl Iterator<Item = &'a Kind>, parameters: &[Value]) -> Map<String, Value> {
    let mut paths = Map::new();
    for kind in kinds {
        let path = path_of(kind);
        if kind.is_review() {
            paths.insert(path, json!({ "post": operation(kind, &[]) }));
            continue;
        }
        paths.insert(
            format!("{path}/{{name}}"),
            json!({
            "get": operation(kind, &[]), "patch": operation(kind, parameters)}),
        );
        paths.insert(path, json!({ "get": operation(kind, &[]) }));
    }
    paths
}

/// The version 2 document as JSON.
pub(crate) fn v2(registry: &Registry) -> Value {
    let parameters: Vec<Value> =
        PARAMETERS.iter().map(|(name, kind)| json!({ "name": name, "in": "query", "type": kind })).collect();
    let paths = paths(registry.kinds().iter().map(AsRef::as_ref), &parameters);
    let mut definitions = Map::new();
    for kind in registry.kinds() {
        definitions.extend(schemas::of(kind));
    }
    for (name, schema) in &mut definitions {
        schemas::definition_to_v2(name, schema);
    }
    let info = json!({ "title": TITLE, "version": VERSION });
    json!({ "swagger": "2.0", "info": info, "paths": paths, "definitions": definitions })
}

/// The index of version 3 documents.
pub(crate) fn v3_index(registry: &Registry) -> Value {
    let mut paths = Map::new();
    for kind in registry.kinds() {
        let path = if kind.group.is_empty() {
            format!("api/{}", kind.version)
        } else {
            format!("apis/{}/{}", kind.group, kind.version)
        };
        if paths.contains_key(&path) {
            continue;
        }
        // Clients cache a document by its hash, which changes with its content. Only custom kinds come and go; the
        // schemas of built-in kinds stay.
        let kinds = registry.kinds().iter().filter(|other| other.api_version() == kind.api_version());
        let content: Vec<Value> =
            kinds.map(|kind| json!([identity(kind), path_of(kind), kind.schema])).collect();
        let hash = fnv(&to_bytes(&json!([VERSION, content])));
        let url = format!("/openapi/v3/{path}?hash={hash:016X}");
        paths.insert(path, json!({ "serverRelativeURL": url }));
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
    let kinds = || {
        registry
            .kinds()
            .iter()
            .map(AsRef::as_ref)
            .filter(|kind: &&Kind| kind.group == group && kind.version == version)
    };
    let mut schemas = Map::new();
    for kind in kinds() {
        schemas.extend(schemas::of(kind));
    }
    let info = json!({ "title": TITLE, "version": VERSION });
    let paths = paths(kinds(), &parameters);
    Some(json!({ "openapi": "3.0.0", "info": info, "paths": paths, "components": { "schemas": schemas } }))
}

/// FNV-1a, 64 bits.
fn fnv(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_of_versions_that_are_not_served_do_not_exist() {
        let registry = Registry::default();
        assert!(v3(&registry, "apps", "v1").is_some());
        assert!(v3(&registry, "apps", "v9").is_none());
    }
}
