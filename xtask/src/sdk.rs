//! The proof with Azure's own SDK for Python: `scripts/azure_sdk.py` against the simulator over HTTPS.
//!
//! The SDK comes from PyPI, in pinned versions, into a virtual environment in the cache folder; it is
//! installed again only when the versions change.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use crate::print;
use crate::program::{Program, build_release, root};
use crate::replay::wait_for;

/// How to prove it.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Use this `cerulean` instead of building a release one.
    #[arg(long)]
    cerulean: Option<PathBuf>,
}

/// Runs the proof.
///
/// # Errors
/// The simulator does not start, the SDK cannot be installed, or a step does not come true.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if !has_python() {
        let missing = "there is no python3 with the module venv, which Azure's SDK for Python needs";
        if std::env::var_os("CI").is_some() {
            bail!("{missing}");
        }
        print::line(format_args!("skipped: {missing}"));
        return Ok(());
    }
    let python = environment()?;
    let cerulean = match &arguments.cerulean {
        Some(path) => path.clone(),
        None => build_release()?.join("cerulean"),
    };
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
    let status = Command::new(python)
        .arg(root().join("scripts/azure_sdk.py"))
        .arg("--credentials")
        .arg(files.join("credentials.json"))
        .arg("--ca")
        .arg(files.join("ca.pem"))
        .args(["--control", control.trim()])
        .status()
        .context("cannot run python3")?;
    if !status.success() {
        bail!("Azure's SDK for Python does not get from the simulated Azure what it gets from Azure");
    }
    Ok(())
}

fn has_python() -> bool {
    let mut python = Command::new("python3");
    let python = python.args(["-c", "import venv, ensurepip"]).stdout(Stdio::null()).stderr(Stdio::null());
    python.status().is_ok_and(|status| status.success())
}

/// The python of a virtual environment that holds the SDK.
fn environment() -> anyhow::Result<PathBuf> {
    let home = cache()?.join("cerulean/sdk-venv");
    let python = home.join("bin/python");
    let requirements = root().join("scripts/requirements.txt");
    let wanted =
        std::fs::read_to_string(&requirements).with_context(|| requirements.display().to_string())?;
    let mark = home.join("installed.txt");
    if std::fs::read_to_string(&mark).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    print::line(format_args!("installing Azure's SDK for Python into {}", home.display()));
    must(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&home))?;
    let quiet = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
    must(Command::new(&python).args(quiet).arg(&requirements))?;
    std::fs::write(&mark, wanted)?;
    Ok(python)
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
