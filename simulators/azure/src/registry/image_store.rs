//! Manifests and blobs.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::Value;

pub(super) const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";

/// Manifests and blobs by repository; the digest is the name of each.
#[derive(Debug, Clone, Default)]
pub(super) struct Images {
    pub(super) repositories: BTreeMap<String, Repository>,
}

impl Images {
    pub(super) fn push(&mut self, repository: &str, tag: &str, manifest: &Value, blobs: &[&[u8]]) {
        let repository = self.repositories.entry(repository.to_owned()).or_default();
        for blob in blobs {
            repository.blobs.insert(digest(blob), Bytes::copy_from_slice(blob));
        }
        let content = Bytes::from(manifest.to_string());
        let media_type =
            manifest.get("mediaType").and_then(Value::as_str).unwrap_or(MANIFEST_TYPE).to_owned();
        let name = digest(&content);
        repository.tags.insert(tag.to_owned(), name.clone());
        repository.manifests.insert(name, Manifest { media_type, content });
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Repository {
    pub(super) tags: BTreeMap<String, String>,
    pub(super) manifests: BTreeMap<String, Manifest>,
    pub(super) blobs: BTreeMap<String, Bytes>,
}

#[derive(Debug, Clone)]
pub(super) struct Manifest {
    pub(super) media_type: String,
    pub(super) content: Bytes,
}

pub(super) fn digest(content: &[u8]) -> String {
    let hash = ring::digest::digest(&ring::digest::SHA256, content);
    let hex: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}
