//! The definition of a kind.

use serde_json::{Value, json};

use super::kinds::{Column, GROUP, Kind, VERSION};
use super::schema;

/// The definition of a kind, in the form that is applied.
pub fn definition(kind: &Kind) -> Value {
    let plural = kind.plural();
    let singular = kind.name.to_lowercase();
    let mut names = json!({
        "kind": kind.name,
        "listKind": format!("{}List", kind.name),
        "plural": plural,
        "singular": singular,
        "categories": ["cluster-api"],
    });
    if let Some(short) = kind.short {
        names["shortNames"] = json!([short]);
    }
    let mut version = json!({
        "name": VERSION,
        "served": true,
        "storage": true,
        "schema": { "openAPIV3Schema": schema::of(kind) },
    });
    let columns: Vec<Value> = kind.columns.iter().map(Column::value).collect();
    if !columns.is_empty() {
        version["additionalPrinterColumns"] = columns.into();
    }
    if let Some(words) = kind.deprecation() {
        version["deprecated"] = json!(true);
        version["deprecationWarning"] = json!(words);
    }
    if kind.status.is_some() {
        version["subresources"] = json!({ "status": {} });
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.{GROUP}"),
            // Cluster API uses the first label to find the versions that implement each of its contracts.
            "labels": { "cluster.x-k8s.io/v1beta1": VERSION, "cluster.x-k8s.io/provider": "infrastructure-azure" },
        },
        "spec": { "group": GROUP, "names": names, "scope": "Namespaced", "versions": [version] },
    })
}
