//! Bootstrap data of machines. A bootstrap provider writes it into a Secret.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cloud_config::Secret;
use k8s::api::api::core::v1::Secret as KubernetesSecret;
use kube::Api;

use crate::azure::failure::Failure;
use crate::context::manager::Manager;

/// The key of the bootstrap data in the Secret.
const DATA: &str = "value";

impl Manager {
    /// The bootstrap data in a Secret, in base64.
    ///
    /// # Errors
    /// The Secret cannot be read, or has none.
    pub(crate) async fn bootstrap_data(&self, namespace: &str, name: &str) -> Result<Secret, Failure> {
        let secrets: Api<KubernetesSecret> = Api::namespaced(self.client.clone(), namespace);
        let secret = secrets.get(name).await.map_err(|error| {
            Failure::Refused(format!(
                "Secret {namespace}/{name} with the bootstrap data cannot be read: {}",
                controllers::answer(&error)
            ))
        })?;
        let data = secret.data.unwrap_or_default();
        let data = data.get(DATA).ok_or_else(|| {
            Failure::Refused(format!(
                "Secret {namespace}/{name} has no bootstrap data: its key {DATA} is missing"
            ))
        })?;
        Ok(Secret::new(STANDARD.encode(&data.0)))
    }
}

/// A random password, which is never used: Azure requires one for Windows.
pub(crate) fn password() -> Secret {
    let part = uuid::Uuid::new_v4;
    Secret::new(format!("Aa1!{}{}{}", part(), part(), part()))
}
