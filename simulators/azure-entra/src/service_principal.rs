//! Service principals: applications and managed identities in a tenant.

use serde_json::{Value, json};

/// A principal to which roles can be assigned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServicePrincipal {
    /// The application (client) id.
    pub client_id: String,
    /// The object id, which role assignments name.
    pub object_id: String,
    /// The display name.
    pub name: String,
    /// The object behind it.
    pub kind: PrincipalKind,
}

/// The object behind a service principal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrincipalKind {
    /// A registered application.
    Application,
    /// A managed identity.
    ManagedIdentity {
        /// The user-assigned identity, or the resource whose own identity it is.
        resource: String,
        /// Whether it is a resource of its own, which was assigned to others.
        user_assigned: bool,
    },
}

impl ServicePrincipal {
    /// Its document in Microsoft Graph.
    pub(super) fn document(&self) -> Value {
        let (kind, others) = match &self.kind {
            PrincipalKind::Application => ("Application", Vec::new()),
            PrincipalKind::ManagedIdentity { resource, user_assigned } => {
                let explicit = if *user_assigned { "isExplicit=True" } else { "isExplicit=False" };
                ("ManagedIdentity", vec![explicit.to_owned(), resource.clone()])
            }
        };
        json!({
            "id": self.object_id,
            "accountEnabled": true,
            "alternativeNames": others,
            "appDisplayName": match self.kind {
                PrincipalKind::Application => Some(&self.name),
                PrincipalKind::ManagedIdentity { .. } => None,
            },
            "appId": self.client_id,
            "displayName": self.name,
            "servicePrincipalNames": [self.client_id],
            "servicePrincipalType": kind,
        })
    }
}
