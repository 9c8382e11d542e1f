//! An image layout of the Open Container Initiative: blobs named by their digests, and an index that names the image. As a folder
//! it is what tools read in place, as an archive what is passed on.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::layer::{self, File, Files};

/// The hexadecimal SHA-256 of bytes.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A blob, as other documents refer to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// What it is.
    pub media_type: &'static str,
    /// `sha256:` and its hexadecimal sum.
    pub digest: String,
    /// Its length in bytes.
    pub size: usize,
}

impl Descriptor {
    /// As JSON, with further members.
    pub fn with(&self, members: Value) -> Value {
        let mut value = json!(self);
        if let (Value::Object(value), Value::Object(members)) = (&mut value, members) {
            value.extend(members);
        }
        value
    }
}

/// The media type of an index.
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// An index over the manifests of an image. skopeo writes it anew when it copies it: the digest stays because the members have
/// the order of that program's types, and because old releases know each of them (unlike `artifactType`).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Index {
    schema_version: u8,
    media_type: &'static str,
    manifests: Vec<Entry>,
    annotations: Value,
}

/// A manifest in an index.
#[derive(Debug, Serialize)]
pub struct Entry {
    /// Its blob.
    #[serde(flatten)]
    pub manifest: Descriptor,
    /// Where it runs.
    pub platform: Place,
}

/// A platform in an index.
#[derive(Debug, Serialize)]
pub struct Place {
    /// `amd64` and the like.
    pub architecture: &'static str,
    /// `linux` and the like.
    pub os: &'static str,
}

impl Index {
    /// An index.
    pub fn new(manifests: Vec<Entry>, annotations: Value) -> Self {
        Self { schema_version: 2, media_type: INDEX, manifests, annotations }
    }
}

/// A layout that is being written.
#[derive(Debug, Default)]
pub struct Layout {
    blobs: BTreeMap<String, Vec<u8>>,
}

impl Layout {
    /// Adds a blob; equal ones are kept once.
    pub fn add(&mut self, media_type: &'static str, bytes: Vec<u8>) -> Descriptor {
        let sum = sha256(&bytes);
        let descriptor = Descriptor { media_type, digest: format!("sha256:{sum}"), size: bytes.len() };
        self.blobs.insert(sum, bytes);
        descriptor
    }

    /// Adds a document.
    ///
    /// # Errors
    /// None in practice: documents are plain values.
    pub fn add_json(
        &mut self,
        media_type: &'static str,
        document: &impl Serialize,
    ) -> serde_json::Result<Descriptor> {
        Ok(self.add(media_type, serde_json::to_vec(document)?))
    }

    /// The files of the layout. `names` are annotations of its one image.
    pub fn files(self, image: &Descriptor, names: Value) -> Files {
        let index = json!({
            "schemaVersion": 2,
            "mediaType": INDEX,
            "manifests": [image.with(json!({"annotations": names}))],
        });
        let blobs = self.blobs.into_iter().map(|(sum, bytes)| (format!("blobs/sha256/{sum}"), bytes));
        let documents = [
            ("index.json".to_owned(), index.to_string().into_bytes()),
            ("oci-layout".to_owned(), br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec()),
        ];
        blobs.chain(documents).map(|(path, bytes)| (path, File::plain(bytes))).collect()
    }
}

/// Writes the files of a layout in place of a former one.
///
/// # Errors
/// The folder cannot be written.
pub fn write_folder(files: &Files, folder: &Path) -> anyhow::Result<()> {
    let cannot = || format!("cannot write {}", folder.display());
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error).with_context(cannot),
        _ => {}
    }
    std::fs::create_dir_all(folder.join("blobs/sha256")).with_context(cannot)?;
    for (path, file) in files {
        std::fs::write(folder.join(path), &file.bytes).with_context(cannot)?;
    }
    Ok(())
}

/// Writes the files of a layout as an archive.
///
/// # Errors
/// The file cannot be written.
pub fn write_archive(files: &Files, path: &Path) -> anyhow::Result<()> {
    let bytes = layer::archive(files, 0)?;
    std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// The digest of the index in a layout's `index.json`.
///
/// # Errors
/// It cannot be read, or names no image.
pub fn named_index(layout: &Path) -> anyhow::Result<String> {
    let path = layout.join("index.json");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let index: Value = serde_json::from_str(&text)?;
    let digest = index["manifests"][0]["digest"].as_str();
    digest.map(str::to_owned).with_context(|| format!("{} names no image", path.display()))
}
