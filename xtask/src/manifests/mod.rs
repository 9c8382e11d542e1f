//! Manifests that are generated from their sources, so that nothing is written twice: custom resource definitions and
//! webhooks from the types, clusterctl's components from these and `deploy/capz/parts`, and its templates of clusters
//! from `deploy/capz/flavors`.

mod flavors;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use capz_api::crd::{KINDS, definition};
use capz_api::webhooks::{Task, registration};
use serde_json::Value;

use crate::print;
use crate::program::root;

/// What to print.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Write nothing, and fail if a file differs from what would be printed.
    #[arg(long)]
    check: bool,
}

/// A file and its contents.
type Printed = (PathBuf, String);

/// Writes them to `deploy/`.
///
/// # Errors
/// A part cannot be read, or a file cannot be written; with `--check`, a file differs from the generated one, or is not
/// generated any more.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let folder = root().join("deploy/capz");
    let mut printed = definitions(&folder)?;
    printed.push(components(&folder)?);
    printed.extend(flavors::templates(&folder)?);
    for (path, text) in &printed {
        if std::fs::read_to_string(path).is_ok_and(|found| found == *text) {
            continue;
        }
        if arguments.check {
            bail!("{} is not what it is printed from: run cargo xtask manifests", path.display());
        }
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
        print::line(format_args!("wrote {}", path.display()));
    }
    for stray in
        ["crd", "templates", "webhook"].map(|name| folder.join(name)).iter().map(|folder| files(folder))
    {
        let stray = stray?.into_iter().find(|path| printed.iter().all(|(known, _)| known != path));
        if let Some(path) = stray {
            bail!("{} is printed no more: take it away", path.display());
        }
    }
    Ok(())
}

/// The manifests of the types and the table of webhooks: paths below `deploy/capz`, and their contents.
fn of_code() -> impl Iterator<Item = (String, Value)> {
    let definitions = KINDS.iter().map(|kind| (format!("crd/{}.yaml", kind.plural()), definition(kind)));
    let registrations = [("mutating", Task::Default), ("validating", Task::Validate)]
        .map(|(name, task)| (format!("webhook/{name}.yaml"), registration(task)));
    definitions.chain(registrations)
}

/// Each definition and registration in its own file.
fn definitions(folder: &Path) -> anyhow::Result<Vec<Printed>> {
    let print = |(path, object): (String, Value)| {
        let text = serde_saphyr::to_string(&object)?;
        Ok((folder.join(path), format!("# Printed by cargo xtask manifests from crates/capz-api.\n{text}")))
    };
    of_code().map(print).collect()
}

/// The components for clusterctl: the parts, with the definitions and webhooks between them.
fn components(folder: &Path) -> anyhow::Result<Printed> {
    let mut documents = Vec::new();
    for path in files(&folder.join("parts"))? {
        documents.push(std::fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?);
    }
    for (_, object) in of_code() {
        documents.push(serde_saphyr::to_string(&object)?);
    }
    let head = "# Printed by cargo xtask manifests from deploy/capz/parts and crates/capz-api.\n";
    let text = documents.iter().map(|text| text.trim_end()).collect::<Vec<_>>().join("\n---\n");
    Ok((folder.join("infrastructure-components.yaml"), format!("{head}{text}\n")))
}

/// The YAML files of a folder, by name.
fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut found = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<PathBuf>>>()?;
    found.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use capz_api::crd::Kind;

    use super::*;

    #[test]
    fn the_manifests_are_what_they_are_printed_from() {
        run(&Arguments { check: true }).unwrap();
    }

    /// The manager has the permissions that its controllers need for each kind.
    #[test]
    fn each_kind_is_among_the_rights() {
        let (_, text) = components(&root().join("deploy/capz")).unwrap();
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        let named = |kind: &str, name: &str| {
            documents
                .iter()
                .find(|document| document["kind"] == kind && document["metadata"]["name"] == name)
                .unwrap()
        };
        let rules = named("ClusterRole", "capz-base-manager-role")["rules"].to_string();
        // Of templates only machines' have a status.
        let is_read = |kind: &&Kind| kind.name == "AzureMachineTemplate" || !kind.name.ends_with("Template");
        for kind in KINDS.iter().filter(is_read) {
            assert!(rules.contains(&format!("\"{}\"", kind.plural())), "{}", kind.name);
        }
        for document in &documents {
            assert_eq!(
                document["metadata"]["labels"]["cluster.x-k8s.io/provider"], "infrastructure-azure",
                "{document}"
            );
        }
        assert_eq!(named("Deployment", "capz-controller-manager")["metadata"]["namespace"], "capz-system");
    }
}
