//! Images as others use them: skopeo reads each archive, umoci unpacks it, and a container runtime runs its program as its
//! user with a read-only root. Programs of another architecture run under qemu.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::catalogue::{IMAGES, Image};
use super::layout::{self, named_index};
use crate::print;
use crate::program::{in_folder, output};

/// What to check.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Folder that `cargo xtask images` wrote.
    #[arg(value_name = "FOLDER", default_value = "target/images")]
    folder: PathBuf,
}

/// The tools, all of them packages of Debian.
const TOOLS: [&str; 3] = ["skopeo", "umoci", "runc"];

/// Where a runtime finds qemu in a container.
const QEMU: &str = "/qemu";

/// Checks each image of a folder. Without the tools it is skipped, except in CI.
///
/// # Errors
/// An image is not as it should be; a tool is missing in CI.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let path = std::env::var("PATH").unwrap_or_default();
    let there = |tool: &str| path.split(':').any(|folder| Path::new(folder).join(tool).is_file());
    if let Some(tool) = TOOLS.into_iter().find(|tool| !there(tool)) {
        let remedy = format!("{tool} is missing: run scripts/image_tools.sh check");
        ensure!(std::env::var_os("CI").is_none(), "{remedy}");
        print::line(format_args!("SKIPPED: {remedy}"));
        return Ok(());
    }
    let images: Vec<_> = IMAGES.iter().filter(|image| arguments.folder.join(image.name).exists()).collect();
    ensure!(!images.is_empty(), "{} has no images: run cargo xtask images", arguments.folder.display());
    for image in images {
        in_folder("cerulean-image-", false, |scratch| check(&arguments.folder, image, scratch))
            .with_context(|| image.name)?;
    }
    Ok(())
}

fn check(folder: &Path, image: &Image, scratch: &Path) -> anyhow::Result<()> {
    let archive = format!("oci-archive:{}", folder.join(format!("{}.tar", image.name)).display());
    let raw = output(Command::new("skopeo").args(["inspect", "--raw", &archive]))?;
    let digest = format!("sha256:{}", layout::sha256(raw.as_bytes()));
    let named = named_index(&folder.join(image.name))?;
    ensure!(digest == named, "the archive has {digest}, its folder {named}");
    let index: Value = serde_json::from_str(&raw)?;
    let manifests = index["manifests"].as_array().context("the index has no manifests")?;
    for manifest in manifests {
        let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (os, architecture) = (text("/platform/os"), text("/platform/architecture"));
        match os {
            "linux" => {
                let version = unpack_and_run(&archive, image, architecture, scratch)?;
                print::line(format_args!("{} {os}/{architecture}: {version}", image.name));
            }
            "windows" => {
                print::line(format_args!("{} {os}/{architecture}: nothing here can run it", image.name))
            }
            _ => {}
        }
    }
    Ok(())
}

/// Runs `--version` in a container of an image, and returns the text.
fn unpack_and_run(
    archive: &str,
    image: &Image,
    architecture: &str,
    scratch: &Path,
) -> anyhow::Result<String> {
    // umoci takes a layout with one image for one platform.
    let one = scratch.join(architecture);
    let layout = format!("oci:{}:it", one.display());
    output(Command::new("skopeo").args([
        "--override-os",
        "linux",
        "--override-arch",
        architecture,
        "copy",
        "--quiet",
        archive,
        &layout,
    ]))?;
    let bundle = scratch.join(format!("{architecture}-bundle"));
    output(Command::new("umoci").args(["unpack", "--image", &format!("{}:it", one.display())]).arg(&bundle))?;
    let path = bundle.join("config.json");
    let mut config: Value = serde_json::from_str(&std::fs::read_to_string(&path)?)?;
    let user = format!("{}:{}", config["process"]["user"]["uid"], config["process"]["user"]["gid"]);
    ensure!(user == image.user, "it runs as {user} instead of {}", image.user);
    let entrypoint = config["process"]["args"][0].as_str().context("it has no entrypoint")?.to_owned();
    ensure!(entrypoint == image.path, "it starts {entrypoint} instead of {}", image.path);
    let emulator = emulator(architecture)?;
    harden(&mut config, emulator.as_deref());
    let mut run = |program: &str, argument: &str| -> anyhow::Result<String> {
        let before = emulator.iter().map(|_| QEMU);
        config["process"]["args"] = json!(before.chain([program, argument]).collect::<Vec<_>>());
        std::fs::write(&path, config.to_string())?;
        let name = format!("cerulean-{}-{architecture}-{}", image.name, std::process::id());
        let mut runc = Command::new("runc");
        runc.arg("--root").arg(scratch.join("runc")).args(["run", "--bundle"]).arg(&bundle).arg(&name);
        Ok(output(&mut runc)?.trim().to_owned())
    };
    let version = run(&entrypoint, "--version")?;
    for (program, argument) in image.tools.into_iter().flat_map(|tools| tools.tried).copied().flatten() {
        run(program, argument).with_context(|| format!("{program} does not start"))?;
    }
    for (label, length) in [("version", usize::MAX), ("revision", 12)] {
        let value = &config["annotations"][format!("org.opencontainers.image.{label}")];
        let value = value.as_str().with_context(|| format!("it has no label for its {label}"))?;
        let value = value.get(..length).unwrap_or(value);
        ensure!(version.contains(value), "--version says {version:?}, the label of the {label} {value}");
    }
    Ok(version)
}

/// The emulator for programs of another architecture.
fn emulator(architecture: &str) -> anyhow::Result<Option<PathBuf>> {
    let own = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    if architecture == own {
        return Ok(None);
    }
    let name = if architecture == "arm64" { "aarch64" } else { "x86_64" };
    let path = PathBuf::from(format!("/usr/bin/qemu-{name}-static"));
    ensure!(path.exists(), "{} is missing: run scripts/image_tools.sh check", path.display());
    Ok(Some(path))
}

/// What a cautious pod asks for: a root that cannot be written, no capabilities, no way to more rights.
fn harden(config: &mut Value, emulator: Option<&Path>) {
    config["process"]["terminal"] = json!(false);
    config["process"]["noNewPrivileges"] = json!(true);
    config["process"]["capabilities"] = json!({});
    config["root"]["readonly"] = json!(true);
    if let (Some(emulator), Some(mounts)) = (emulator, config["mounts"].as_array_mut()) {
        let source = emulator.display().to_string();
        mounts
            .push(json!({"destination": QEMU, "type": "bind", "source": source, "options": ["bind", "ro"]}));
    }
}
