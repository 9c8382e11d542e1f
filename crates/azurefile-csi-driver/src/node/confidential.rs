//! Confidential containers: the machine does not see their files, and a virtual machine of the pod mounts the share itself. It finds what
//! to mount in a file beside the others of the runtime (`mountInfo.json` of Kata Containers' direct volumes).

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use secrecy::ExposeSecret as _;
use serde_json::json;
use tonic::Status;

use super::access::Access;
use super::mount::Share;
use super::plan::attributes::{Attributes, Protocol};
use super::service::NodeService;

const FILE: &str = "mountInfo.json";

impl NodeService {
    fn confidential_file(&self, path: &Path) -> PathBuf {
        let name = URL_SAFE.encode(path.display().to_string());
        self.options.confidential_folder.join(name).join(FILE)
    }

    /// Whether this node runs confidential containers.
    async fn is_confidential(&self, attributes: &Attributes) -> bool {
        if !self.options.has_confidential {
            return false;
        }
        let Some(cluster) = &self.outside.cluster else { return false };
        match cluster.has_label(&attributes.confidential_label).await {
            Ok(has) => has,
            Err(error) => {
                tracing::warn!(error, "whether this node runs confidential containers is unknown");
                false
            }
        }
    }

    /// Writes what the pod's virtual machine mounts.
    pub(super) async fn keep_confidential(
        &self,
        attributes: &Attributes,
        access: &Access,
        share: &Share,
        folder: &Path,
    ) -> Result<(), Status> {
        if attributes.protocol != Protocol::Smb || !self.is_confidential(attributes).await {
            return Ok(());
        }
        let file = self.confidential_file(folder);
        if self.system.read(&file).await.is_ok() {
            return Ok(());
        }
        let failed = |what: &str, error: std::io::Error| {
            Status::internal(format!("cannot {what} for a confidential container: {error}"))
        };
        let addresses = self
            .system
            .resolve(&share.host)
            .await
            .map_err(|error| failed("resolve the share's host", error))?;
        let address = addresses.first().map(|address| format!("addr={address}"));
        let key = access
            .key
            .as_ref()
            .map(|key| format!("username={},password={}", access.account, key.expose_secret()));
        let options: Vec<&String> =
            share.options.iter().filter(|option| !option.starts_with("username=")).chain(&address).collect();
        let info = json!({
            "volume-type": "azurefile",
            "device": share.source,
            "fstype": share.kind,
            "metadata": { "sensitiveMountOptions": key.unwrap_or_default() },
            "options": options,
        });
        if let Some(parent) = file.parent() {
            self.system.create_folder(parent).await.map_err(|error| failed("create a folder", error))?;
            self.system
                .set_permissions(parent, 0o700)
                .await
                .map_err(|error| failed("close a folder", error))?;
        }
        self.system
            .write_private(&file, &info.to_string())
            .await
            .map_err(|error| failed("write the mount", error))
    }

    /// Publishes a volume to a confidential container; whether the pod is one.
    pub(super) async fn publish_confidential(
        &self,
        attributes: &Attributes,
        staging: &Path,
        target: &Path,
    ) -> Result<bool, Status> {
        let (namespace, pod) = &attributes.pod;
        if namespace.is_empty() || pod.is_empty() || !self.is_confidential(attributes).await {
            return Ok(false);
        }
        let Some(cluster) = &self.outside.cluster else { return Ok(false) };
        let handler = cluster.runtime_handler(&attributes.pod).await.map_err(Status::internal)?;
        if handler != attributes.runtime_handler {
            return Ok(false);
        }
        let failed = |error: std::io::Error| {
            let text = format!(
                "cannot publish a volume to a confidential container: {error}; stage the volume first"
            );
            Status::internal(text)
        };
        let text = self.system.read(&self.confidential_file(staging)).await.map_err(failed)?;
        let file = self.confidential_file(target);
        if let Some(parent) = file.parent() {
            self.system.create_folder(parent).await.map_err(failed)?;
            self.system.set_permissions(parent, 0o700).await.map_err(failed)?;
        }
        self.system.write_private(&file, &text).await.map_err(failed)?;
        Ok(true)
    }

    /// Removes what the pod's virtual machine mounts.
    pub(super) async fn forget_confidential(&self, path: &Path) -> Result<(), Status> {
        if !self.options.has_confidential {
            return Ok(());
        }
        let file = self.confidential_file(path);
        for path in [Some(file.as_path()), file.parent()].into_iter().flatten() {
            let removed = self.system.remove(path).await;
            removed
                .map_err(|error| Status::internal(format!("cannot remove {}: {error}", path.display())))?;
        }
        Ok(())
    }
}
