//! The schemas of the built-in kinds.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::Value;

use super::merge_rules::{ATOMIC_STRUCTURES, KEY_DEFAULTS, MERGE_RULES};
use super::tree::{Additional, Form, Link, ListType, PatchStrategy, Schema};
use super::types;

/// Types that may contain any JSON.
const ANY: &[&str] = &[
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
    "io.k8s.apimachinery.pkg.runtime.RawExtension",
];

/// All definitions, by name.
static DEFINITIONS: LazyLock<HashMap<Box<str>, &'static Schema>> = LazyLock::new(|| {
    let mut definitions: HashMap<Box<str>, Schema> = types::documents()
        .iter()
        .map(|(name, document)| (name.as_str().into(), read(name, document)))
        .collect();
    for (name, member, merging, patch) in MERGE_RULES {
        let Some(schema) = definitions.get_mut(&*full_name(name)) else { continue };
        let Some(link) = schema.properties.get_mut(*member) else { continue };
        change(link, |schema| set_merging(schema, merging, patch));
    }
    for (name, member, default) in KEY_DEFAULTS {
        let definition = definitions.get_mut(&*full_name(name));
        let link = definition.and_then(|schema| schema.properties.get_mut(*member));
        if let Some(link) = link {
            change(link, |schema| schema.default = Some(Value::from(*default)));
        }
    }
    // They live as long as the process, so that they can refer to each other.
    let definitions: HashMap<Box<str>, &'static Schema> =
        definitions.into_iter().map(|(name, schema)| (name, &*Box::leak(Box::new(schema)))).collect();
    definitions.values().for_each(|schema| schema.resolve(&|name| definitions.get(name).copied()));
    definitions
});

/// The name of a definition in the tables.
pub(super) fn full_name(short: &str) -> String {
    format!("io.k8s.{short}")
}

fn read(name: &str, document: &Value) -> Schema {
    let mut schema = Schema::parse(document);
    schema.definition = Some(name.into());
    schema.atomic = ATOMIC_STRUCTURES.iter().any(|short| full_name(short) == name);
    if ANY.contains(&name) {
        schema.form = None;
    }
    // A type without members of its own, such as a choice between an object and a flag, is not validated inside.
    let open = schema.properties.is_empty() && matches!(schema.additional, Additional::None);
    if open && matches!(schema.form, None | Some(Form::Object)) {
        schema.preserve_unknown = true;
    }
    schema
}

/// Changes the schema behind a link for this member alone: a definition is copied, so that other members keep theirs.
fn change(link: &mut Link, change: impl FnOnce(&mut Schema)) {
    let mut schema = match link {
        Link::Inline(schema) => std::mem::take(schema),
        Link::Definition(reference) => {
            let name = &*reference.name;
            let document = types::documents().get(name);
            Box::new(document.map(|document| read(name, document)).unwrap_or_default())
        }
    };
    change(&mut schema);
    *link = Link::Inline(schema);
}

/// Applies a row of the table.
fn set_merging(schema: &mut Schema, merging: &str, patch: &str) {
    match merging.split_once(':') {
        Some(("map", keys)) => schema.list = ListType::Map(keys.split(',').map(str::to_owned).collect()),
        _ => match merging {
            "set" => schema.list = ListType::Set,
            "atomic" => schema.atomic = true,
            "granular" => schema.atomic = false,
            _ => {}
        },
    }
    let (strategies, key) = patch.split_once(':').unwrap_or((patch, ""));
    schema.patch = PatchStrategy {
        merge: strategies
            .split('+')
            .any(|strategy| strategy == "merge")
            .then(|| (!key.is_empty()).then(|| key.to_owned())),
        retain_keys: strategies.split('+').any(|strategy| strategy == "retainKeys"),
    };
}

/// The definition with this name.
pub(crate) fn definition(name: &str) -> Option<&'static Schema> {
    DEFINITIONS.get(name).copied()
}

/// Name of the definition of a built-in kind, as OpenAPI documents have it: that of its Go type.
pub(crate) fn definition_name(group: &str, version: &str, kind: &str) -> String {
    if group == "apiextensions.k8s.io" {
        return format!("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{version}.{kind}");
    }
    if group == "apiregistration.k8s.io" {
        return format!("io.k8s.kube-aggregator.pkg.apis.apiregistration.{version}.{kind}");
    }
    let package = group.split('.').next().filter(|first| !first.is_empty()).unwrap_or("core");
    format!("io.k8s.api.{package}.{version}.{kind}")
}

/// The schema of a built-in kind.
pub(crate) fn of_kind(group: &str, version: &str, kind: &str) -> Option<&'static Schema> {
    definition(&definition_name(group, version, kind))
}
