//! Volumes in a pod's own definition: mounted at the target path, with rights that are not more than the pod's.

use tonic::Status;

use super::options::InlineRights;
use super::plan::attributes::{Attributes, Identity};
use super::plan::login::secret_of;
use super::service::NodeService;

impl NodeService {
    /// What an inline volume may not have of what its author wrote: keys come from Secrets alone, unless a flag allows Azure.
    pub(super) fn limit_inline(&self, attributes: &mut Attributes) {
        let by_token = attributes.identity == Some(Identity::WorkloadToken);
        if !self.options.lists_keys_for_inline && !by_token {
            attributes.key_from_secret_only = true;
            attributes.account.clear();
        }
    }

    /// Whether the pod's service account may read the Secret that the volume names (`--inline-volume-secret-authz`).
    pub(super) async fn authorize(&self, attributes: &Attributes) -> Result<(), Status> {
        let rights = self.options.inline_rights;
        if rights == InlineRights::Off || attributes.identity == Some(Identity::WorkloadToken) {
            return Ok(());
        }
        let Some(secret) = secret_of(attributes) else { return Ok(()) };
        let (namespace, pod) = &attributes.pod;
        let refused = if namespace.is_empty() || pod.is_empty() {
            Some("the kubelet does not say which pod it is; set podInfoOnMount in the CSIDriver".to_owned())
        } else if let Some(cluster) = &self.outside.cluster {
            match cluster.reader(&attributes.pod, &secret).await {
                Ok(reader) if reader.may_read => None,
                Ok(reader) => {
                    Some(format!("{} may not get it; give its service account a role for that", reader.user))
                }
                Err(reason) => Some(reason),
            }
        } else {
            Some("there is no connection to Kubernetes, which decides it".to_owned())
        };
        let Some(reason) = refused else { return Ok(()) };
        let text = format!("inline volume Secret {}/{}: {reason}", secret.namespace, secret.name);
        if rights == InlineRights::Enforce {
            return Err(Status::permission_denied(text));
        }
        tracing::warn!(
            error = text,
            "an inline volume is mounted that --inline-volume-secret-authz=enforce would refuse"
        );
        Ok(())
    }
}
