//! An image of `cargo xtask images`, read from its layout.

use std::path::Path;

use anyhow::{Context as _, bail};
use real_kubernetes::Image;
use serde_json::Value;

/// The names of the images that the chart uses.
pub const NAMES: [&str; 2] = ["azure-cloud-controller-manager", "azure-cloud-node-manager"];

fn blob(layout: &Path, digest: &str) -> anyhow::Result<Vec<u8>> {
    let path = layout.join("blobs").join(digest.replace(':', "/"));
    std::fs::read(&path).with_context(|| path.display().to_string())
}

fn digest(descriptor: &Value) -> anyhow::Result<&str> {
    descriptor["digest"].as_str().context("a descriptor has no digest")
}

/// The image for this machine in a layout.
///
/// # Errors
/// The layout is incomplete, or has no image for this machine.
pub fn read(layout: &Path) -> anyhow::Result<Image> {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let path = layout.join("index.json");
    let index =
        std::fs::read(&path).with_context(|| format!("{}: cargo xtask images makes it", path.display()))?;
    let mut documents = vec![serde_json::from_slice::<Value>(&index)?];
    while let Some(document) = documents.pop() {
        for entry in document["manifests"].as_array().into_iter().flatten() {
            let here = &entry["platform"];
            let is_for_this = here.is_null() || here["os"] == "linux" && here["architecture"] == architecture;
            // SBOMs have an artifact type.
            if is_for_this && entry["artifactType"].is_null() {
                documents.push(serde_json::from_slice(&blob(layout, digest(entry)?)?)?);
            }
        }
        if let Some(layers) = document["layers"].as_array() {
            let parts = layers.iter().chain([&document["config"]]);
            let blobs = parts.map(|part| blob(layout, digest(part)?)).collect::<anyhow::Result<_>>()?;
            return Ok(Image { blobs, manifest: document });
        }
    }
    bail!("{}: no image for linux/{architecture}", layout.display())
}
