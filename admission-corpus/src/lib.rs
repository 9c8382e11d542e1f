//! The corpus: manifests of all flavors, values at the edges of every field, and combinations from `edges.yaml`.

mod builder;
mod case;
mod fields;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use capz_api::admission::cluster_of;
use capz_api::crd::{Kind, definition};
use capz_api::{ClusterNetwork, Lookup};
use serde_json::Value;

use crate::builder::{Builder, Values};
pub use crate::case::Case;

/// The Clusters of managed control planes, each with its ranges of services and of pods.
pub const CLUSTERS: [(&str, &[&str], &[&str]); 4] = [
    ("owner", &[], &[]),
    ("services", &["192.168.0.0/24"], &["192.168.128.0/17"]),
    ("many-services", &["192.168.0.0/24", "192.168.1.0/24"], &[]),
    ("many-pods", &[], &["192.168.0.0/24", "192.168.1.0/24"]),
];

/// What admission finds out about the Cluster that the label of an object names.
pub fn cluster_network(object: &Value) -> Lookup<ClusterNetwork> {
    let Some(cluster) = cluster_of(object) else { return Lookup::NotNeeded };
    let owned = |ranges: &[&str]| ranges.iter().map(ToString::to_string).collect();
    match CLUSTERS.iter().find(|(name, ..)| *name == cluster) {
        Some((_, services, pods)) => {
            Lookup::Found(ClusterNetwork { services: owned(services), pods: owned(pods) })
        }
        None => Lookup::Failed(format!("there is no Cluster {cluster}")),
    }
}

/// The folder of the corpus.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpus/cluster-api")
}

/// All cases.
///
/// # Errors
/// A file of the corpus cannot be read.
pub fn read() -> anyhow::Result<Vec<Case>> {
    let mut cases = flavors(&folder().join("flavors"))?;
    let file = folder().join("edges.yaml");
    let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let table: Value = serde_saphyr::from_str(&text).with_context(|| file.display().to_string())?;
    let values: BTreeMap<String, Vec<Value>> = serde_json::from_value(table["values"].clone())?;
    for (kind, entry) in table["kinds"].as_object().context("edges.yaml: there are no kinds")? {
        let known = Kind::named(kind).with_context(|| format!("edges.yaml: there is no kind {kind}"))?;
        let definition = definition(known);
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let mut base = entry["base"].clone();
        base["apiVersion"] = "infrastructure.cluster.x-k8s.io/v1beta1".into();
        base["kind"] = kind.as_str().into();
        let mut all = values.clone();
        if let Some(own) = entry.get("values") {
            let own: BTreeMap<String, Vec<Value>> = serde_json::from_value(own.clone())?;
            all.extend(own);
        }
        let builder = Builder { schema, values: &Values(all) };
        cases.extend(fields::cases(kind, &base, &builder));
        cases.extend(rows(kind, &entry["made"], &builder, &base));
        cases.extend(rows(kind, &entry["gated"], &builder, &base).iter().map(Case::gated));
        cases.extend(changes(kind, &entry["changed"], &builder, &base));
    }
    Ok(cases)
}

/// The object with the members of a row: paths with values, where `null` removes a member.
fn built(builder: &Builder<'_>, base: &Value, row: &Value) -> Value {
    row.as_object().into_iter().flatten().fold(base.clone(), |object, (path, value)| {
        if value.is_null() { builder.clear(&object, path) } else { builder.set(&object, path, value.clone()) }
    })
}

fn rows(kind: &str, rows: &Value, builder: &Builder<'_>, base: &Value) -> Vec<Case> {
    let rows = rows.as_array().into_iter().flatten();
    rows.map(|row| Case::made(kind, &row.to_string(), built(builder, base, row))).collect()
}

/// Rows of two: the previous object, and the changes to it. Both start from the base.
fn changes(kind: &str, rows: &Value, builder: &Builder<'_>, base: &Value) -> Vec<Case> {
    let rows = rows.as_array().into_iter().flatten();
    rows.map(|row| {
        let (old, new) = (built(builder, base, &row[0]), built(builder, base, &row[1]));
        Case::changed(kind, &format!("{} becomes {}", row[0], row[1]), old, new)
    })
    .collect()
}

/// The objects of all flavors; each is created, and then written again unchanged; with gates closed and open.
fn flavors(folder: &Path) -> anyhow::Result<Vec<Case>> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    files.sort();
    let mut cases = Vec::new();
    for file in files {
        let flavor = file.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let text = std::fs::read_to_string(&file)?;
        let objects: Vec<Value> =
            serde_saphyr::from_multiple(&text).with_context(|| file.display().to_string())?;
        for object in objects {
            let kind = object["kind"].as_str().unwrap_or_default().to_owned();
            let words = format!("{} of {flavor}", object["metadata"]["name"].as_str().unwrap_or_default());
            cases.push(Case::made(&kind, &words, object.clone()));
            cases.push(Case::changed(&kind, &format!("{words} again"), object.clone(), object));
        }
    }
    let gated: Vec<Case> = cases.iter().map(Case::gated).collect();
    cases.extend(gated);
    Ok(cases)
}
