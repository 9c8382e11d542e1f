//! Managed identities as the directory knows them.

use crate::azure::Azure;
use azure_entra::{Application, ApplicationSource, FederatedCredential, PrincipalKind, ServicePrincipal};
use azure_providers::identity;

impl ApplicationSource for Azure {
    fn application(&self, client_id: &str) -> Option<Application> {
        let identity = self.change(|state| identity::find(state, client_id))?;
        let application = Application::new(identity.client, identity.principal).in_tenant(&identity.tenant);
        Some(identity.trusts.into_iter().fold(application, |application, trusted| {
            application.with_federated(FederatedCredential {
                issuer: trusted.issuer,
                subject: trusted.subject,
                audience: trusted.audience.unwrap_or_else(|| FederatedCredential::AUDIENCE.to_owned()),
                keys: Vec::new(),
            })
        }))
    }

    fn service_principals(&self, tenant: &str) -> Vec<ServicePrincipal> {
        let holders = self.change(|state| identity::holders(state, tenant));
        let principal = |holder: identity::Holder| ServicePrincipal {
            client_id: holder.client,
            object_id: holder.principal,
            name: holder.resource.name().to_owned(),
            kind: PrincipalKind::ManagedIdentity {
                resource: holder.resource.to_string(),
                user_assigned: holder.user_assigned,
            },
        };
        holders.into_iter().map(principal).collect()
    }
}
