//! The identity that signs in to the registry: the pod, the node or an application.

use std::path::Path;
use std::time::Duration;

use arm::{Clock, Cloud, Credential, Transport};
use cloud_config::{CloudConfig, Secret};

use crate::error::Error;
use crate::identity_binding::{Binding, CLIENT_ANNOTATION, TENANT_ANNOTATION};
use crate::protocol::Request;

/// The scope of tokens for container registries of every cloud.
const SCOPE: &str = "https://containerregistry.azure.net/.default";

/// The identity that signs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// The pod's service account, through the cluster's identity binding, as this client.
    Binding(Binding, String),
    /// The pod's service account, as a workload identity.
    ServiceAccount {
        /// The client that trusts the service account.
        client: String,
        /// That client's tenant.
        tenant: String,
    },
    /// The managed identity of the machine.
    Managed,
    /// An application whose password is the registry's, too; for a mirrored image it is exchanged.
    Password {
        /// The client.
        client: String,
        /// Its secret.
        secret: Secret,
    },
    /// An application with a certificate, or with a token from a file.
    Application,
}

impl Identity {
    /// Chooses by request and configuration. The pod's identity takes precedence over the node's, but a mirror belongs
    /// to the node.
    ///
    /// # Errors
    /// The pod's service account names no client.
    pub fn choose(
        request: &Request,
        config: &CloudConfig,
        binding: Option<Binding>,
        is_mirrored: bool,
    ) -> Result<Self, Error> {
        if !is_mirrored && let Some(binding) = binding {
            let client = binding.client(request)?;
            return Ok(Self::Binding(binding, client));
        }
        if !is_mirrored && !request.service_account_token.is_empty() {
            let annotation = |what, name| {
                let value = request.annotations.get(name).filter(|value| !value.is_empty());
                value.cloned().ok_or(Error::Annotation { what, name })
            };
            let client = annotation("client", CLIENT_ANNOTATION)?;
            return Ok(Self::ServiceAccount { client, tenant: annotation("tenant", TENANT_ANNOTATION)? });
        }
        if config.use_managed_identity_extension {
            return Ok(Self::Managed);
        }
        let has_other_proof =
            !config.aad_client_cert_path.is_empty() || config.use_federated_workload_identity_extension;
        if config.aad_client_secret.is_empty() && has_other_proof {
            return Ok(Self::Application);
        }
        // A name without a password would break pulls that need neither.
        let is_anonymous = config.aad_client_secret.is_empty();
        let client = if is_anonymous { String::new() } else { config.aad_client_id.clone() };
        Ok(Self::Password { client, secret: config.aad_client_secret.clone() })
    }

    /// The identity in messages.
    pub fn describe(&self, config: &CloudConfig) -> String {
        match self {
            Self::Binding(_, client) => format!("identity binding of client {client}"),
            Self::ServiceAccount { client, .. } => format!("service account token for client {client}"),
            Self::Managed if config.user_assigned_identity_id.trim().is_empty() => {
                "system-assigned managed identity".to_owned()
            }
            Self::Managed => format!("managed identity {}", config.user_assigned_identity_id.trim()),
            Self::Password { client, .. } if client.is_empty() => "an anonymous client".to_owned(),
            Self::Password { client, .. } => format!("client secret of client {client}"),
            Self::Application => format!("client {}", config.aad_client_id),
        }
    }

    /// A token of Entra for container registries.
    ///
    /// # Errors
    /// The identity gets no token, or not within this time.
    pub async fn token(
        &self,
        request: &Request,
        config: &CloudConfig,
        cloud: &Cloud,
        transport: &Transport,
        cluster_authority: &Path,
        timeout: Duration,
    ) -> Result<Secret, Error> {
        let credential = match self {
            Self::Binding(binding, client) => {
                let token = &request.service_account_token;
                return Ok(binding.token(client, token, SCOPE, cluster_authority).await?);
            }
            Self::ServiceAccount { client, tenant } => {
                let token = request.service_account_token.clone();
                Credential::service_account(tenant, client, token, cloud, transport)?
            }
            Self::Managed | Self::Password { .. } => {
                let mut own = config.clone();
                own.use_federated_workload_identity_extension = false;
                Credential::from_config(&own, cloud, transport, Clock::system())?
            }
            Self::Application => Credential::from_config(config, cloud, transport, Clock::system())?,
        };
        Ok(credential.token(SCOPE, timeout).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity_binding::BindingFlags;

    fn request(token: &str, annotations: &[(&str, &str)]) -> Request {
        let annotations = annotations.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Request {
            image: "foo.azurecr.io/a".into(),
            service_account_token: Secret::new(token),
            annotations: annotations.collect(),
        }
    }

    const ANNOTATED: [(&str, &str); 2] = [(CLIENT_ANNOTATION, "pod"), (TENANT_ANNOTATION, "pods")];
    const MANAGED: &str = "useManagedIdentityExtension: true";
    const PASSWORD: &str = "{aadClientId: app, aadClientSecret: hunter2}";

    fn chosen(
        config: &str,
        request: &Request,
        binding: Option<Binding>,
        is_mirrored: bool,
    ) -> Result<Identity, Error> {
        Identity::choose(request, &CloudConfig::parse(config).unwrap(), binding, is_mirrored)
    }

    fn pod() -> Identity {
        Identity::ServiceAccount { client: "pod".into(), tenant: "pods".into() }
    }

    fn password(client: &str, secret: &str) -> Identity {
        Identity::Password { client: client.into(), secret: Secret::new(secret) }
    }

    /// NODE-129
    #[tokio::test]
    async fn node_129_the_pods_identity_goes_before_the_nodes_but_not_for_mirrors() {
        let flags = BindingFlags {
            sni_name: "name".into(),
            api_server: "10.0.0.1".into(),
            ..BindingFlags::default()
        };
        let binding = flags.resolve().await.unwrap();
        let with_token = request("token", &ANNOTATED);
        assert_eq!(chosen(MANAGED, &with_token, binding.clone(), true).unwrap(), Identity::Managed);
        assert!(matches!(
            chosen(MANAGED, &with_token, binding.clone(), false).unwrap(),
            Identity::Binding(_, client) if client == "pod"
        ));
        assert_eq!(chosen(MANAGED, &with_token, None, false).unwrap(), pod());
        assert_eq!(chosen(MANAGED, &request("", &[]), None, false).unwrap(), Identity::Managed);
        assert_eq!(chosen("{}", &request("", &[]), None, false).unwrap(), password("", ""));
    }

    /// NODE-130
    #[test]
    fn a_service_account_must_say_who_it_is() {
        for (annotations, words) in [
            (
                &[][..],
                "client id annotation kubernetes.azure.com/acr-client-id is not found or the value is empty",
            ),
            (&[(CLIENT_ANNOTATION, "")], "client id annotation"),
            (
                &[(CLIENT_ANNOTATION, "c")],
                "tenant id annotation kubernetes.azure.com/acr-tenant-id is not found or the value is empty",
            ),
            (&[(CLIENT_ANNOTATION, "c"), (TENANT_ANNOTATION, "")], "tenant id annotation"),
        ] {
            let error = chosen(MANAGED, &request("token", annotations), None, false).unwrap_err();
            assert!(error.to_string().starts_with(words), "{error}");
        }
    }

    /// NODE-136
    #[test]
    fn a_pods_token_is_used_and_the_nodes_password_kept() {
        assert_eq!(chosen(PASSWORD, &request("token", &ANNOTATED), None, false).unwrap(), pod());
        assert_eq!(
            chosen(PASSWORD, &request("", &ANNOTATED), None, false).unwrap(),
            password("app", "hunter2")
        );
    }

    /// NODE-205
    #[test]
    fn an_application_without_a_password_proves_itself_in_another_way() {
        for config in [
            "{aadClientId: app, aadClientCertPath: /a.pem}",
            "{aadClientId: app, useFederatedWorkloadIdentityExtension: true, aadFederatedTokenFile: /t}",
        ] {
            assert_eq!(
                chosen(config, &request("", &[]), None, false).unwrap(),
                Identity::Application,
                "{config}"
            );
        }
        let both = "{aadClientId: app, aadClientSecret: hunter2, aadClientCertPath: /a.pem}";
        assert_eq!(chosen(both, &request("", &[]), None, false).unwrap(), password("app", "hunter2"));
        assert_eq!(chosen("{aadClientId: app}", &request("", &[]), None, false).unwrap(), password("", ""));
    }
}
