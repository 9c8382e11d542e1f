//! Validates names, labels, annotations and finalizers.

use serde_json::Value;

use super::{Causes, Invalid, list_at, text_at};
use crate::registry::Kind;

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
    and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', \
    regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', \
    start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', \
    regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
    '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', \
    regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', \
    regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, \
    '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  \
    or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
/// kube-apiserver's limit for all annotations of an object together: 256 KiB.
const MAX_ANNOTATION_BYTES: usize = 256 * 1024;

/// Removes optional members that are empty or null: servers do not store them.
pub(super) fn tidy(kind: &Kind, object: &mut Value) {
    const METADATA: &[&str] = &["labels", "annotations", "finalizers", "ownerReferences"];
    tidy_at(object, "/metadata", METADATA);
    match kind.builtin() {
        Some(("", "Service")) => {
            tidy_at(object, "/spec", &["selector", "ports", "externalIPs", "loadBalancerSourceRanges"]);
            tidy_at(object, "/spec", &["clusterIPs", "ipFamilies", "sessionAffinityConfig"]);
            tidy_at(object, "/status", &["conditions"]);
            tidy_at(object, "/status/loadBalancer", &["ingress"]);
        }
        Some(("", "Node")) => {
            tidy_at(object, "/spec", &["taints", "podCIDRs"]);
            tidy_at(object, "/status", &["addresses", "conditions", "capacity", "allocatable"]);
        }
        Some(("", "ConfigMap" | "Secret")) => tidy_at(object, "", &["data", "binaryData"]),
        _ => {}
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
        let rule = match kind.builtin() {
            // Pods of a StatefulSet have its name in a label.
            Some(("", "Namespace" | "Service") | ("apps", "StatefulSet")) => dns_label(name),
            // The names of these kinds may be anything that fits into a path.
            Some(
                ("" | "events.k8s.io", "Event") | ("rbac.authorization.k8s.io" | "certificates.k8s.io", _),
            ) => path_segment(name),
            _ => dns_subdomain(name),
        };
        causes.note(rule.map_err(|why| Invalid::text("metadata.name", name, &why)));
    }
    labels(object, "metadata.labels", causes);
    annotations(object, "metadata.annotations", causes);
    for (index, finalizer) in list_at(object, "/metadata/finalizers").iter().enumerate() {
        let finalizer = finalizer.as_str().unwrap_or_default();
        let field = format!("metadata.finalizers[{index}]");
        if let Err(why) = qualified_name(finalizer) {
            causes.push(Invalid::text(field, finalizer, &why));
        } else if kind.builtin().is_some() // custom kinds may have names of any kind: Cluster API's are
            && !finalizer.contains('/')
            && !matches!(finalizer, "kubernetes" | "orphan" | "foregroundDeletion")
        {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            causes.push(Invalid::text(field, finalizer, why));
        }
    }
}

/// Validates keys and values of labels, or of a selector, at a path of members.
pub(super) fn labels(object: &Value, field: &str, causes: &mut Causes) {
    for (key, value) in members(object, &format!("/{}", field.replace('.', "/"))) {
        causes.note(qualified_name(key).map_err(|why| Invalid::text(field, key, &why)));
        let value = value.as_str().unwrap_or_default();
        causes.note(label_value(value).map_err(|why| Invalid::text(field, value, &why)));
    }
}

pub(super) fn annotations(object: &Value, field: &str, causes: &mut Causes) {
    let mut size = 0;
    for (key, value) in members(object, "/metadata/annotations") {
        let rule = qualified_name(&key.to_lowercase());
        causes.note(rule.map_err(|why| Invalid::text(field, key, &why)));
        size += key.len() + value.as_str().unwrap_or_default().len();
    }
    if size > MAX_ANNOTATION_BYTES {
        let why = format!("Too long: must have at most {MAX_ANNOTATION_BYTES} bytes");
        causes.push(Invalid::new(field, why));
    }
}

pub(super) fn members<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    object.pointer(pointer).and_then(Value::as_object).into_iter().flatten()
}

fn lower_alphanumeric(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit()
}

/// Whether `text` is `inner` characters that start and end with `edge` characters.
fn shaped(text: &str, edge: impl Fn(char) -> bool, inner: impl Fn(char) -> bool) -> bool {
    text.starts_with(&edge) && text.ends_with(&edge) && text.chars().all(|c| edge(c) || inner(c))
}

fn at_most(text: &str, limit: usize) -> Result<(), String> {
    if text.len() <= limit { Ok(()) } else { Err(format!("must be no more than {limit} characters")) }
}

pub(super) fn dns_label(text: &str) -> Result<(), String> {
    at_most(text, 63)?;
    if shaped(text, lower_alphanumeric, |c| c == '-') {
        Ok(())
    } else if dns_subdomain(text).is_ok() {
        Err("must not contain dots".into())
    } else {
        Err(LABEL.into())
    }
}

pub(super) fn dns_1035_label(text: &str) -> Result<(), String> {
    at_most(text, 63)?;
    let first = text.starts_with(|c: char| c.is_ascii_lowercase());
    if first && shaped(text, lower_alphanumeric, |c| c == '-') { Ok(()) } else { Err(LABEL_1035.into()) }
}

pub(super) fn dns_subdomain(text: &str) -> Result<(), String> {
    at_most(text, 253)?;
    if text.split('.').all(|part| shaped(part, lower_alphanumeric, |c| c == '-')) {
        Ok(())
    } else {
        Err(SUBDOMAIN.into())
    }
}

fn path_segment(text: &str) -> Result<(), String> {
    if text == "." || text == ".." {
        return Err(format!("may not be '{text}'"));
    }
    match text.chars().find(|c| matches!(c, '/' | '%')) {
        Some(c) => Err(format!("may not contain '{c}'")),
        None => Ok(()),
    }
}

/// A label or annotation key, a taint key, a finalizer: `prefix.example.com/name` or `name`.
pub(super) fn qualified_name(text: &str) -> Result<(), String> {
    let name = match text.split_once('/') {
        Some(("", _)) => return Err("prefix part must be non-empty".into()),
        Some((prefix, name)) => {
            dns_subdomain(prefix).map_err(|why| format!("prefix part {why}"))?;
            name
        }
        None => text,
    };
    if name.is_empty() {
        return Err("name part must be non-empty".into());
    }
    at_most(name, 63).map_err(|why| format!("name part {why}"))?;
    if shaped(name, |c| c.is_ascii_alphanumeric(), |c| matches!(c, '-' | '_' | '.')) {
        Ok(())
    } else {
        Err(NAME_PART.into())
    }
}

pub(super) fn label_value(text: &str) -> Result<(), String> {
    at_most(text, 63)?;
    if text.is_empty() || shaped(text, |c| c.is_ascii_alphanumeric(), |c| matches!(c, '-' | '_' | '.')) {
        Ok(())
    } else {
        Err(LABEL_VALUE.into())
    }
}
