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

/// Blobs that are being pushed, by the id of their upload: whose repository they are for, and what has come of them.
#[derive(Debug, Default)]
pub(super) struct Uploads {
    begun: u64,
    open: BTreeMap<String, Upload>,
}

#[derive(Debug)]
struct Upload {
    login_server: String,
    repository: String,
    content: Vec<u8>,
}

impl Uploads {
    /// Begins one, and gives its id.
    pub(super) fn begin(&mut self, login_server: &str, repository: &str) -> String {
        self.begun += 1;
        let id = format!("upload-{}", self.begun);
        let upload = Upload {
            login_server: login_server.to_owned(),
            repository: repository.to_owned(),
            content: Vec::new(),
        };
        self.open.insert(id.clone(), upload);
        id
    }

    /// Adds to what has come, and gives its length; `None` where there is no such upload.
    pub(super) fn append(
        &mut self,
        login_server: &str,
        repository: &str,
        id: &str,
        part: &[u8],
    ) -> Option<usize> {
        let is_it =
            |upload: &&mut Upload| upload.login_server == login_server && upload.repository == repository;
        let upload = self.open.get_mut(id).filter(is_it)?;
        upload.content.extend_from_slice(part);
        Some(upload.content.len())
    }

    /// Ends one, and gives what has come.
    pub(super) fn end(&mut self, id: &str) -> Vec<u8> {
        self.open.remove(id).map(|upload| upload.content).unwrap_or_default()
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
