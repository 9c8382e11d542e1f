//! Names, labels, annotations and finalizers of every object.

use serde_json::Value;

use crate::kinds::shared::metadata::{annotations, labels};
use crate::kinds::shared::names::{dns_subdomain, qualified_name};
use crate::object::invalid::{Causes, Invalid};
use crate::object::pointer::{list_at, text_at};
use crate::registry::Kind;

/// Removes optional members that are empty or null: servers do not store them.
pub(super) fn tidy(kind: &Kind, object: &mut Value) {
    const METADATA: &[&str] = &["labels", "annotations", "finalizers", "ownerReferences"];
    tidy_at(object, "/metadata", METADATA);
    for (at, members) in kind.builtin().map(|builtin| builtin.dropped_if_empty).unwrap_or_default() {
        tidy_at(object, at, members);
    }
}

fn tidy_at(object: &mut Value, pointer: &str, members: &[&str]) {
    let Some(Value::Object(map)) = object.pointer_mut(pointer) else { return };
    for member in members {
        let empty = match map.get(*member) {
            Some(Value::Null) => true,
            Some(Value::Array(list)) => list.is_empty(),
            Some(Value::Object(inner)) => inner.is_empty(),
            _ => false,
        };
        if empty {
            map.remove(*member);
        }
    }
}

pub(super) fn validate(kind: &Kind, object: &Value, causes: &mut Causes) {
    let name = text_at(object, "/metadata/name");
    if name.is_empty() {
        causes.push(Invalid::required("metadata.name", "name or generateName is required"));
    } else {
        let rule = kind.builtin().map_or(dns_subdomain as fn(&str) -> _, |builtin| builtin.name);
        causes.check("metadata.name", name, rule);
    }
    labels(object, "/metadata/labels", "metadata.labels", causes);
    annotations(object, "metadata.annotations", causes);
    for (index, finalizer) in list_at(object, "/metadata/finalizers").iter().enumerate() {
        let finalizer = finalizer.as_str().unwrap_or_default();
        let field = format!("metadata.finalizers[{index}]");
        if let Err(why) = qualified_name(finalizer) {
            causes.push(Invalid::text(field, finalizer, &why));
        } else if !kind.is_custom() // custom kinds may have names of any kind: Cluster API's are
            && !finalizer.contains('/')
            && !matches!(finalizer, "kubernetes" | "orphan" | "foregroundDeletion")
        {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            causes.push(Invalid::text(field, finalizer, why));
        }
    }
}
