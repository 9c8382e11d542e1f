//! Helm charts: the tables of their pages, and manifests for people without helm, are printed from the charts, so that
//! nothing is written twice.

mod differences;
mod established;
mod helm;
mod values;

#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use crate::print;
use crate::program::root;
use differences::{COUNTERPARTS, Counterpart};
use helm::Helm;
use values::{Chart, shown};

/// The chart of the controller manager and of the node manager.
const CLOUD_PROVIDER: &str = "cloud-provider-azure";
/// The chart of the driver for disks.
const DISK_DRIVER: &str = "azuredisk-csi-driver";
/// The chart of the driver for file shares.
const FILE_DRIVER: &str = "azurefile-csi-driver";
/// All charts, by their folders. The manifest of the last one is that of clusterctl, in `deploy/capz`.
const CHARTS: [&str; 4] = [CLOUD_PROVIDER, DISK_DRIVER, FILE_DRIVER, "capz-controller-manager"];

/// What to print.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Write nothing, and fail if a file differs from what would be printed.
    #[arg(long)]
    check: bool,
}

/// A manifest for `kubectl apply`: its file, and the chart and the values that it comes from.
struct Manifest {
    file: &'static str,
    chart: &'static str,
    values: fn() -> Value,
}

/// The manifests, each with one thing.
const MANIFESTS: [Manifest; 6] = [
    Manifest { file: "cloud-provider-azure.yaml", chart: CLOUD_PROVIDER, values: || json!({}) },
    Manifest {
        file: "cloud-node-manager.yaml",
        chart: CLOUD_PROVIDER,
        values: || json!({"cloudControllerManager": {"enabled": false}}),
    },
    Manifest { file: "health-probe-proxy.yaml", chart: CLOUD_PROVIDER, values: || alone("healthProbeProxy") },
    Manifest {
        file: "acr-credential-provider.yaml",
        chart: CLOUD_PROVIDER,
        values: || alone("credentialProvider"),
    },
    Manifest { file: "azuredisk-csi-driver.yaml", chart: DISK_DRIVER, values: || json!({}) },
    Manifest { file: "azurefile-csi-driver.yaml", chart: FILE_DRIVER, values: || json!({}) },
];

/// Values that leave one part of the cloud provider's chart.
fn alone(part: &str) -> Value {
    json!({
        "cloudControllerManager": {"enabled": false}, "cloudNodeManager": {"enabled": false}, part: {"enabled": true},
    })
}

/// Writes the tables into the charts' pages and those of differences, and the manifests to `deploy/manifests`.
///
/// # Errors
/// A chart or a page cannot be read, or a file cannot be written; with `--check`, a file differs. In CI, helm cannot be
/// had.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut printed = pages()?;
    if let Some(helm) = Helm::find()? {
        printed.extend(manifests(&helm)?);
    }
    for (path, text) in printed {
        if std::fs::read_to_string(&path).is_ok_and(|found| found == text) {
            continue;
        }
        if arguments.check {
            bail!("{} is not what it is printed from: run cargo xtask charts", path.display());
        }
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        print::line(format_args!("wrote {}", path.display()));
    }
    Ok(())
}

fn folder(chart: &str) -> PathBuf {
    root().join("deploy/charts").join(chart)
}

/// The pages with tables, as they should be.
fn pages() -> anyhow::Result<Vec<(PathBuf, String)>> {
    let mut pages = Vec::new();
    for chart in CHARTS {
        let folder = folder(chart);
        pages.push(page(folder.join("README.md"), "values", &table(&Chart::read(&folder)?))?);
    }
    for Counterpart { chart, page: path, left_out } in COUNTERPARTS {
        let tables = differences::tables(&established::all(chart)?, &Chart::read(&folder(chart))?, left_out);
        pages.push(page(root().join(path), "differences", &tables)?);
    }
    Ok(pages)
}

/// A page with another text between the comments of a section.
fn page(path: PathBuf, section: &str, body: &str) -> anyhow::Result<(PathBuf, String)> {
    let text = std::fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
    let begin = format!("<!-- {section}: printed by cargo xtask charts -->\n");
    let end = format!("<!-- end of {section} -->\n");
    let parts = text.split_once(&begin).and_then(|(head, rest)| Some((head, rest.split_once(&end)?.1)));
    let (head, tail) = parts.with_context(|| format!("{} has no section {section}", path.display()))?;
    let text = format!("{head}{begin}\n{body}\n{end}{tail}");
    Ok((path, text))
}

/// All values of a chart in a table.
fn table(chart: &Chart) -> String {
    let mut text = String::from("| value | default | what |\n|---|---|---|\n");
    for (path, key) in chart.keys() {
        let _infallible =
            writeln!(text, "| `{path}` | {} | {} |", shown(key.default.as_ref()), key.description);
    }
    text
}

/// The manifests, as they should be.
fn manifests(helm: &Helm) -> anyhow::Result<Vec<(PathBuf, String)>> {
    let manifest = |manifest: &Manifest| {
        let text = helm.template(&folder(manifest.chart), &(manifest.values)()).context(manifest.file)?;
        let head = format!("# Printed by cargo xtask charts from deploy/charts/{}.\n", manifest.chart);
        Ok((manifests_folder().join(manifest.file), format!("{head}{}\n", text.trim_end())))
    };
    MANIFESTS.iter().map(manifest).collect()
}

fn manifests_folder() -> PathBuf {
    Path::new(&root()).join("deploy/manifests")
}
