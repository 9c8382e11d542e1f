//! Builds the rows of custom kinds from their definitions.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use serde_json::Value;

use super::kind::{Kind, PrinterColumn, ScalePaths};
use super::served::Registry;
use super::version::priority;
use crate::conversion::{ConversionWebhook, Versions};
use crate::kinds::builtin::{Generation, StatusRule};
use crate::object::{list_at, string_at, value_at};
use crate::schema::Schema;
use crate::schema::builtin::definition;

impl Registry {
    /// Serves the custom kinds of a CustomResourceDefinition, in all its served versions, under its accepted names.
    /// Returns whether anything changed.
    pub(crate) fn register_definition(&mut self, definition: &Value) -> bool {
        let made_of = hash(definition);
        let name = string_at(definition, &["metadata", "name"]).unwrap_or_default();
        if self.kinds.iter().any(|row| row.is_custom() && *row.shelf == *name && row.made_of == made_of) {
            return false;
        }
        self.forget_definition(definition);
        let versions = Arc::new(versions(definition));
        let mut rows = rows(definition, &versions);
        rows.iter_mut().for_each(|row| row.made_of = made_of);
        rows.sort_by_key(|kind| priority(&kind.version));
        // A caller that reads metadata alone does not need a served version.
        let stored = rows.iter().find(|row| row.has_api_version(&versions.storage)).or(rows.first());
        if let Some(stored) = stored {
            let stored = Kind { as_stored: true, ..stored.clone() };
            self.as_stored.insert(Arc::clone(&stored.shelf), Arc::new(stored));
        }
        self.extend(rows);
        true
    }

    /// Stops serving the kinds of a CustomResourceDefinition.
    pub(crate) fn forget_definition(&mut self, definition: &Value) {
        let group = string_at(definition, &["spec", "group"]).unwrap_or_default();
        let plural = string_at(definition, &["spec", "names", "plural"]).unwrap_or_default();
        let stays = |row: &Kind| !(row.is_custom() && row.group == group && row.plural == plural);
        self.kinds.retain(|row| stays(row));
        self.by_path.retain(|_, row| stays(row));
        self.as_stored.retain(|_, row| stays(row));
    }
}

/// A hash of what a definition serves: its specification and its accepted names.
fn hash(definition: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    let spec = value_at(definition, &["spec"]);
    let names = value_at(definition, &["status", "acceptedNames"]);
    (spec, names).hash(&mut hasher);
    hasher.finish()
}

fn flag(value: &Value, name: &str) -> bool {
    value.get(name).and_then(Value::as_bool) == Some(true)
}

fn tree(version: &Value) -> Option<Arc<Schema>> {
    version.pointer("/schema/openAPIV3Schema").map(|schema| {
        let tree = Schema::custom(schema);
        tree.resolve(&definition);
        Arc::new(tree)
    })
}

fn versions(definition: &Value) -> Versions {
    let group = string_at(definition, &["spec", "group"]).unwrap_or_default();
    let all = list_at(definition, &["spec", "versions"]);
    let api_version =
        |version: &Value| format!("{group}/{}", string_at(version, &["name"]).unwrap_or_default());
    Versions {
        storage: all.iter().find(|version| flag(version, "storage")).map(api_version).unwrap_or_default(),
        trees: all.iter().filter_map(|version| Some((api_version(version), tree(version)?))).collect(),
        revised: value_at(definition, &["metadata", "generation"]).and_then(Value::as_u64) > Some(1),
        webhook: ConversionWebhook::of_definition(definition).map(Arc::new),
    }
}

fn rows(definition: &Value, versions: &Arc<Versions>) -> Vec<Kind> {
    let text = |path: &[&str]| string_at(definition, path).unwrap_or_default();
    let name = |version: &Value| string_at(version, &["name"]).unwrap_or_default().to_owned();
    let group = text(&["spec", "group"]);
    let mut rows = Vec::new();
    let all = list_at(definition, &["spec", "versions"]);
    for version in all.iter().filter(|version| flag(version, "served")) {
        let mut kind = Kind::new(
            group,
            &name(version),
            text(&["spec", "names", "plural"]),
            text(&["spec", "names", "kind"]),
            text(&["spec", "scope"]) != "Cluster",
        );
        set_names(&mut kind, definition);
        if version.pointer("/subresources/status").is_some() {
            kind.status = StatusRule::Subresource;
        }
        kind.scale_paths = version.pointer("/subresources/scale").map(scale_paths);
        kind.scale = kind.scale_paths.is_some();
        kind.generation = Generation::Specification;
        kind.unconditional_update = false;
        kind.schema = version.pointer("/schema/openAPIV3Schema").cloned();
        kind.tree = versions.trees.get(&kind.api_version()).cloned();
        kind.versions = Some(Arc::clone(versions));
        kind.deprecation = deprecation(definition, version);
        kind.columns = list_at(version, &["additionalPrinterColumns"]).iter().map(column).collect();
        kind.fields = list_at(version, &["selectableFields"])
            .iter()
            .filter_map(|field| string_at(field, &["jsonPath"]))
            .map(|path| path.trim_start_matches('.').to_owned())
            .collect();
        rows.push(kind);
    }
    rows
}

/// The warning of a deprecated version: the definition's text, or a hint at the version that replaces it.
fn deprecation(definition: &Value, version: &Value) -> Option<String> {
    if !flag(version, "deprecated") {
        return None;
    }
    if let Some(words) = string_at(version, &["deprecationWarning"]) {
        return Some(words.to_owned());
    }
    let name = |version: &Value| string_at(version, &["name"]).unwrap_or_default().to_owned();
    let text = |path: &[&str]| string_at(definition, path).unwrap_or_default();
    let (group, kind, this) = (text(&["spec", "group"]), text(&["spec", "names", "kind"]), name(version));
    let lasting = |other: &&Value| flag(other, "served") && !flag(other, "deprecated");
    let all = list_at(definition, &["spec", "versions"]).iter().filter(lasting).map(name);
    let better = all.filter(|other| priority(other) < priority(&this)).min_by_key(|other| priority(other));
    let instead = better.map_or_else(String::new, |better| format!("; use {group}/{better} {kind}"));
    Some(format!("{group}/{this} {kind} is deprecated{instead}"))
}

/// Sets accepted short names; the other names are set only if all of them are accepted.
fn set_names(kind: &mut Kind, definition: &Value) {
    let names = |path: &[&str]| -> Vec<String> {
        list_at(definition, path).iter().filter_map(|name| name.as_str().map(str::to_owned)).collect()
    };
    if let Some(singular) = string_at(definition, &["spec", "names", "singular"]) {
        kind.singular = singular.to_owned();
    }
    let granted = value_at(definition, &["status", "acceptedNames"]).is_some();
    kind.short_names = names(if granted {
        &["status", "acceptedNames", "shortNames"]
    } else {
        &["spec", "names", "shortNames"]
    });
    kind.categories = names(&["spec", "names", "categories"]);
}

/// The members of a path such as `.spec.replicas`.
fn members(path: &str) -> Vec<String> {
    path.split('.').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn scale_paths(scale: &Value) -> ScalePaths {
    let path = |name: &str| string_at(scale, &[name]).map(members);
    ScalePaths {
        replicas: path("specReplicasPath").unwrap_or_default(),
        actual: path("statusReplicasPath").unwrap_or_default(),
        selector: path("labelSelectorPath").or(Some(Vec::new())),
    }
}

fn column(column: &Value) -> PrinterColumn {
    let text = |name: &str| string_at(column, &[name]).unwrap_or_default().to_owned();
    PrinterColumn {
        name: text("name"),
        form: text("type"),
        format: text("format"),
        description: text("description"),
        priority: column.get("priority").and_then(Value::as_i64).unwrap_or(0),
        path: text("jsonPath"),
    }
}
