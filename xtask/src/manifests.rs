//! Manifests that are printed from the code that they describe: custom resource definitions, from the types, and the
//! registrations of webhooks, from the table of those that are served.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use capz_api::webhooks::{Task, registration};

use crate::print;
use crate::program::root;

/// What to print.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Write nothing: fail where a file is not what would be printed.
    #[arg(long)]
    check: bool,
}

/// Prints them into `deploy/`.
///
/// # Errors
/// A file cannot be written; with `--check`, one is not what would be printed.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let folder = root().join("deploy/capz");
    for (path, text) in printed()? {
        let path = folder.join(path);
        if std::fs::read_to_string(&path).is_ok_and(|found| found == text) {
            continue;
        }
        if arguments.check {
            bail!("{} is not what the code says: run cargo xtask manifests", path.display());
        }
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
        }
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        print::line(format_args!("wrote {}", path.display()));
    }
    Ok(())
}

/// Paths below `deploy/capz`, and what stands there.
fn printed() -> anyhow::Result<Vec<(PathBuf, String)>> {
    let definitions = capz_api::crd::KINDS
        .iter()
        .map(|kind| (format!("crd/{}.yaml", kind.plural()), capz_api::crd::definition(kind)));
    let registrations = [("mutating", Task::Default), ("validating", Task::Validate)]
        .into_iter()
        .map(|(name, task)| (format!("webhook/{name}.yaml"), registration(task)));
    definitions
        .chain(registrations)
        .map(|(path, manifest)| {
            let text = serde_saphyr::to_string(&manifest)?;
            Ok((
                PathBuf::from(path),
                format!("# Printed by cargo xtask manifests from crates/capz-api.\n{text}"),
            ))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Arguments, run};

    #[test]
    fn the_manifests_are_what_the_code_says() {
        run(&Arguments { check: true }).unwrap();
    }
}
