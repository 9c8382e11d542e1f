//! The definition of a kind.

use serde_json::{Value, json};

use super::kinds::{Column, GROUP, Kind, VERSION};
use super::{schema, versions};

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
    let versions: Vec<Value> = versions::of(kind)
        .into_iter()
        .map(|it| {
            let mut version = it.value();
            version["schema"] = json!({ "openAPIV3Schema": schema::of(kind) });
            let columns: Vec<Value> = kind.columns.iter().map(Column::value).collect();
            if !columns.is_empty() {
                version["additionalPrinterColumns"] = columns.into();
            }
            if kind.status.is_some() {
                version["subresources"] = json!({ "status": {} });
            }
            version
        })
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.{GROUP}"),
            // Cluster API uses the first label to find the versions that implement each of its contracts.
            "labels": { "cluster.x-k8s.io/v1beta1": VERSION, "cluster.x-k8s.io/provider": "infrastructure-azure" },
        },
        "spec": { "group": GROUP, "names": names, "scope": "Namespaced", "versions": versions },
    })
}
