//! helm, which `scripts/helm.sh` installs from its Go module.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::print;
use crate::program::root;

/// The API server whose fields charts may use, where they ask; helm's own default is an old one.
const KUBERNETES: &str = "v1.36.0";
/// The exit code of the script on a machine that cannot have helm.
const CANNOT_BE_HAD: i32 = 3;

/// The program.
#[derive(Debug, Clone)]
pub struct Helm(PathBuf);

impl Helm {
    /// Installs it if it is missing; `None` on a machine that cannot have it.
    ///
    /// # Errors
    /// The script fails; in CI, helm cannot be had.
    pub fn find() -> anyhow::Result<Option<Self>> {
        let script = root().join("scripts/helm.sh");
        let output = Command::new(&script).output().with_context(|| format!("{}", script.display()))?;
        if output.status.success() {
            return Ok(Some(Self(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))));
        }
        let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if output.status.code() == Some(CANNOT_BE_HAD) && std::env::var_os("CI").is_none() {
            print::line(format_args!("SKIPPED: {reason}"));
            return Ok(None);
        }
        bail!("{reason}")
    }

    /// The manifests of a chart with these values over its own.
    ///
    /// # Errors
    /// helm refuses the values or the chart.
    pub fn template(&self, chart: &Path, values: &Value) -> anyhow::Result<String> {
        self.template_for(KUBERNETES, chart, values)
    }

    /// The same for an API server of a version.
    ///
    /// # Errors
    /// helm refuses the values or the chart.
    pub fn template_for(&self, kubernetes: &str, chart: &Path, values: &Value) -> anyhow::Result<String> {
        let name = chart.file_name().and_then(|name| name.to_str()).unwrap_or("release");
        let mut helm = Command::new(&self.0);
        helm.args(["template", name]).arg(chart).args(["--namespace", "kube-system", "--values", "-"]);
        helm.args(["--kube-version", kubernetes]);
        run(helm, &values.to_string())
    }

    /// What helm's own judge says about a chart.
    ///
    /// # Errors
    /// It finds something.
    #[cfg(test)]
    pub fn lint(&self, chart: &Path) -> anyhow::Result<String> {
        let mut helm = Command::new(&self.0);
        helm.args(["lint", "--strict"]).arg(chart);
        run(helm, "")
    }
}

fn run(mut helm: Command, input: &str) -> anyhow::Result<String> {
    let mut child = helm
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start helm")?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes()).context("helm does not read its values")?;
    }
    let output = child.wait_with_output().context("helm")?;
    if !output.status.success() {
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        bail!("{}", text.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
