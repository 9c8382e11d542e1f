//! Tests with Azure's own Python clients: its SDK and its CLI, each with a script that drives the simulated Azure over
//! HTTPS.
//!
//! The clients come from PyPI, in pinned versions, into a virtual environment in the cache folder; they are installed
//! again only when the versions change.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use azure_simulator::{ExampleRequest, ExampleScope, examples};
use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::print;
use crate::program::{Program, given_or_built, root};
use crate::replay::wait_for;

/// How to prove it.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Binary of `cerulean`; by default a release build is made.
    #[arg(long)]
    cerulean: Option<PathBuf>,
    /// Further words for the script, after `--`.
    #[arg(last = true)]
    further: Vec<String>,
}

/// The group of the examples, as `scripts/azure_sdk/examples.py` names it.
const EXAMPLES_GROUP: &str = "sdk-examples";

/// One of Azure's clients.
pub struct Client {
    /// Its common name.
    name: &'static str,
    /// The folder below `scripts` with `requirements.txt` and the script of the same name.
    folder: &'static str,
    /// The virtual environment in the cache folder.
    environment: &'static str,
    /// Whether the script itself uses the simulator's control API.
    controls: bool,
}

/// Azure's SDK for Python.
pub const SDK: Client =
    Client { name: "Azure's SDK for Python", folder: "azure_sdk", environment: "sdk-venv", controls: true };
/// The Azure CLI.
pub const CLI: Client =
    Client { name: "the Azure CLI", folder: "azure_cli", environment: "cli-venv", controls: false };

impl Client {
    /// Runs the test.
    ///
    /// # Errors
    /// The simulator does not start, the client cannot be installed, or a step fails.
    pub fn prove(&self, arguments: &Arguments) -> anyhow::Result<()> {
        let name = self.name;
        if !has_python() {
            let missing = format!("there is no python3 with the module venv, which {name} needs");
            if std::env::var_os("CI").is_some() {
                bail!("{missing}");
            }
            print::line(format_args!("skipped: {missing}"));
            return Ok(());
        }
        let python = self.python()?;
        let cerulean = given_or_built(arguments.cerulean.as_deref(), "cerulean")?;
        let directory = tempfile::tempdir()?;
        let files = directory.path().join("azure");
        let address = directory.path().join("address");
        let mut simulator = Program::start(
            "simulate-azure",
            directory.path(),
            Command::new(cerulean)
                .args(["simulate", "azure", "--directory"])
                .arg(&files)
                .arg("--address-file")
                .arg(&address),
        )?;
        let control = wait_for(&address, &mut simulator)?;
        let mut script = Command::new(python);
        // No compiled files are left beside the scripts.
        script.arg("-B").arg(self.folder().join(self.folder).with_extension("py"));
        script.arg("--credentials").arg(files.join("credentials.json"));
        script.arg("--ca").arg(files.join("ca.pem"));
        if self.controls {
            let examples = directory.path().join("examples.json");
            write_examples(&files.join("credentials.json"), &examples)?;
            script.args(["--control", control.trim(), "--examples"]).arg(&examples);
        }
        let status = script.args(&arguments.further).status().context("cannot run python3")?;
        simulator.must_run()?;
        if !status.success() {
            bail!("{name} does not get from the simulated Azure what it gets from Azure");
        }
        Ok(())
    }

    fn folder(&self) -> PathBuf {
        root().join("scripts").join(self.folder)
    }

    /// The Python interpreter of a virtual environment with the client.
    fn python(&self) -> anyhow::Result<PathBuf> {
        let home = cache()?.join("cerulean").join(self.environment);
        let python = home.join("bin/python");
        let requirements = self.folder().join("requirements.txt");
        let wanted =
            std::fs::read_to_string(&requirements).with_context(|| requirements.display().to_string())?;
        let mark = home.join("installed.txt");
        if std::fs::read_to_string(&mark).is_ok_and(|installed| installed == wanted) {
            return Ok(python);
        }
        print::line(format_args!("installing {} into {}", self.name, home.display()));
        must(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&home))?;
        // Most of the CLI is never imported, so it is not compiled.
        let quiet = ["--quiet", "--disable-pip-version-check", "--no-compile"];
        must(Command::new(&python).args(["-m", "pip", "install"]).args(quiet).arg("-r").arg(&requirements))?;
        std::fs::write(&mark, wanted)?;
        Ok(python)
    }
}

/// Writes the examples of all resource types as JSON. `{principal}` remains in them.
fn write_examples(credentials: &Path, file: &Path) -> anyhow::Result<()> {
    let credentials: Value = serde_json::from_slice(&std::fs::read(credentials)?)?;
    let text = |member: &str| credentials[member].as_str().context("a member of credentials.json is missing");
    let scope = ExampleScope {
        group: ResourceId::group(text("subscriptionId")?, EXAMPLES_GROUP),
        tenant: text("tenantId")?.to_owned(),
        principal: "{principal}".to_owned(),
    };
    let shown = |request: ExampleRequest| {
        json!({
            "method": request.method,
            "path": request.path,
            "apiVersion": request.api_version,
            "body": request.body,
        })
    };
    let examples: Vec<Value> = examples(&scope)?.into_iter().map(shown).collect();
    std::fs::write(file, serde_json::to_vec(&examples)?)?;
    Ok(())
}

fn has_python() -> bool {
    let mut python = Command::new("python3");
    let python = python.args(["-c", "import venv, ensurepip"]).stdout(Stdio::null()).stderr(Stdio::null());
    python.status().is_ok_and(|status| status.success())
}

fn cache() -> anyhow::Result<PathBuf> {
    let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    of("XDG_CACHE_HOME")
        .or_else(|| Some(of("HOME")?.join(".cache")))
        .context("neither XDG_CACHE_HOME nor HOME says where the cache folder is")
}

fn must(command: &mut Command) -> anyhow::Result<()> {
    let name = Path::new(command.get_program()).display().to_string();
    let status = command.status().with_context(|| format!("cannot run {name}"))?;
    if !status.success() {
        bail!("{name} ended with {status}");
    }
    Ok(())
}
