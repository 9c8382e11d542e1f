//! A container image that contains only busybox.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::command::run;
use crate::error::{StartError, failed};
use crate::requirements::busybox;

/// An image: its blobs and manifest are pushed to a registry in this order.
#[derive(Debug, Clone)]
pub struct Image {
    /// The blobs: the layer and the configuration.
    pub blobs: Vec<Vec<u8>>,
    /// The manifest that refers to the blobs.
    pub manifest: Value,
}

impl Image {
    /// The media type of the manifest.
    pub const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";

    /// An image that runs `command` with busybox' shell. `folder` is for temporary files.
    ///
    /// # Errors
    /// There is no busybox, or the system refuses.
    pub fn of_busybox(folder: &Path, command: &str) -> Result<Self, StartError> {
        let root = folder.join("image");
        let programs = root.join("bin");
        let archive = folder.join("image.tar");
        fs::create_dir_all(&programs).map_err(failed(&programs))?;
        let program = programs.join("busybox");
        let source = busybox().ok_or_else(|| StartError::Command {
            command: "busybox".to_owned(),
            said: "there is no such program".to_owned(),
        })?;
        fs::copy(&source, &program).map_err(failed(&source))?;
        let (root, file) = (root.display().to_string(), archive.display().to_string());
        run(&["tar", "-C", &root, "--owner=0", "--group=0", "-cf", &file, "bin"])?;
        let layer = fs::read(&archive).map_err(failed(&archive))?;
        let machine = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        let configuration = json!({
            "architecture": machine, "os": "linux",
            "config": {"Cmd": ["/bin/busybox", "sh", "-c", command], "Env": ["PATH=/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [digest(&layer)]},
        });
        let configuration = configuration.to_string().into_bytes();
        let blob = |kind: &str, content: &[u8]| {
            json!({
                "mediaType": format!("application/vnd.oci.image.{kind}"), "digest": digest(content), "size": content.len(),
            })
        };
        let manifest = json!({
            "schemaVersion": 2, "mediaType": Self::MANIFEST_TYPE,
            "config": blob("config.v1+json", &configuration), "layers": [blob("layer.v1.tar", &layer)],
        });
        Ok(Self { blobs: vec![layer, configuration], manifest })
    }
}

/// The digest of a blob.
pub fn digest(content: &[u8]) -> String {
    let hash = ring::digest::digest(&ring::digest::SHA256, content);
    let hex: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}
