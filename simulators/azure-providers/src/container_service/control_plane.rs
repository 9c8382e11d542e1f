//! The properties of a cluster that its pools depend on.

use azure_engine::document::text;
use azure_engine::provider::Record;
use azure_engine::refusal::Result;
use serde_json::Value;

use super::kubernetes_version::{Version, resolve};

/// A control plane.
pub(super) struct ControlPlane {
    /// The version as the client requested for it.
    pub(super) requested: String,
    /// The version that runs, or will do so when the cluster's write is over.
    pub(super) version: Version,
    /// `azure`, `kubenet` or `none`.
    pub(super) plugin: String,
    /// Whether pods have addresses of their own that the network does not know.
    pub(super) overlay: bool,
}

/// The control plane of a cluster that is being written, by its new properties.
///
/// # Errors The version is invalid.
pub(super) fn control_of(properties: &Value) -> Result<ControlPlane> {
    let requested = text(properties, "kubernetesVersion").unwrap_or_default();
    let version = resolve(requested, current(properties))?;
    Ok(of_version(properties, requested, version))
}

/// The control plane of a stored cluster.
///
/// # Errors The version is invalid.
pub(super) fn control_plane(cluster: &Record) -> Result<ControlPlane> {
    let properties = cluster.body.get("properties").unwrap_or(&Value::Null);
    let requested = text(properties, "kubernetesVersion").unwrap_or_default();
    match current(properties) {
        Some(version) => Ok(of_version(properties, requested, version)),
        None => control_of(properties),
    }
}

fn current(properties: &Value) -> Option<Version> {
    text(properties, "currentKubernetesVersion").and_then(Version::stored)
}

fn of_version(properties: &Value, requested: &str, version: Version) -> ControlPlane {
    ControlPlane {
        requested: requested.to_owned(),
        version,
        plugin: text(properties, "networkProfile/networkPlugin").unwrap_or_default().to_owned(),
        overlay: text(properties, "networkProfile/networkPluginMode") == Some("overlay"),
    }
}
