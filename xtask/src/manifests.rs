//! Manifests that are printed from the code that they describe: custom resource definitions, from the types.

use std::path::PathBuf;

use anyhow::{Context as _, bail};

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
    let folder = root().join("deploy/capz/crd");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (path, text) in printed(&folder)? {
        if std::fs::read_to_string(&path).is_ok_and(|found| found == text) {
            continue;
        }
        if arguments.check {
            bail!("{} is not what the types say: run cargo xtask manifests", path.display());
        }
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        print::line(format_args!("wrote {}", path.display()));
    }
    Ok(())
}

fn printed(folder: &std::path::Path) -> anyhow::Result<Vec<(PathBuf, String)>> {
    capz_api::crd::KINDS
        .iter()
        .map(|kind| {
            let path = folder.join(format!("{}.yaml", kind.plural()));
            let definition = serde_saphyr::to_string(&capz_api::crd::definition(kind))?;
            Ok((path, format!("# Printed by cargo xtask manifests from crates/capz-api.\n{definition}")))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Arguments, run};

    #[test]
    fn the_manifests_are_what_the_types_say() {
        run(&Arguments { check: true }).unwrap();
    }
}
