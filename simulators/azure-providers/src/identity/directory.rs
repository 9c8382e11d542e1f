//! Managed identities as a directory sees them: their ids, and their federated credentials.

use azure_types::ResourceId;
use serde_json::Value;

use super::assignment::is_own;
use super::federated_credential::FederatedCredentials;
use super::ids::Ids;
use super::user_assigned::UserAssignedIdentities;
use azure_engine::document::items;
use azure_engine::provider::{AzureState, Record, Shape as _};

/// A user-assigned identity.
pub struct DirectoryIdentity {
    /// The client id.
    pub client: String,
    /// The object id of its service principal.
    pub principal: String,
    /// Its tenant.
    pub tenant: String,
    /// Its federated credentials.
    pub trusts: Vec<Trusted>,
}

/// A federated credential: tokens that sign an identity in.
pub struct Trusted {
    /// The issuer of the tokens.
    pub issuer: String,
    /// Their subject.
    pub subject: String,
    /// Their audience; `None` for the usual one.
    pub audience: Option<String>,
}

/// The identity of a client id.
pub fn find(azure: &AzureState, client_id: &str) -> Option<DirectoryIdentity> {
    let (record, ids) = azure
        .store
        .of_type(UserAssignedIdentities.name())
        .map(|record| (record, Ids::of(azure, &record.id, record.incarnation)))
        .find(|(_, ids)| ids.client.eq_ignore_ascii_case(client_id))?;
    let credentials = azure.store.of_type_below(FederatedCredentials.name(), &record.id);
    let trusts = credentials.into_iter().map(|credential| {
        let text = |member: &str| {
            let value = credential.body.get("properties").and_then(|properties| properties.get(member));
            value.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let audience = items(&credential.body, "properties/audiences").first().and_then(Value::as_str);
        Trusted { issuer: text("issuer"), subject: text("subject"), audience: audience.map(str::to_owned) }
    });
    Some(DirectoryIdentity {
        client: ids.client,
        principal: ids.principal,
        tenant: azure.tenant_of(record.id.subscription_id()).to_owned(),
        trusts: trusts.collect(),
    })
}

/// A managed identity of either kind, as role assignments are given to it.
pub struct Holder {
    /// The client id.
    pub client: String,
    /// The object id of its service principal.
    pub principal: String,
    /// The user-assigned identity, or the resource whose own identity it is.
    pub resource: ResourceId,
    /// Whether it is a resource of its own.
    pub user_assigned: bool,
}

/// All managed identities of a tenant, by the ids of their resources.
pub fn holders(azure: &AzureState, tenant: &str) -> Vec<Holder> {
    let here = |record: &&Record| azure.tenant_of(record.id.subscription_id()).eq_ignore_ascii_case(tenant);
    let named = |record: &Record| {
        let user_assigned = record.resource_type.name() == UserAssignedIdentities.name();
        (user_assigned || is_own(&record.body)).then(|| {
            let Ids { principal, client } = Ids::of(azure, &record.id, record.incarnation);
            Holder { client, principal, resource: record.id.clone(), user_assigned }
        })
    };
    azure.store.all().filter(here).filter_map(named).collect()
}

/// Whether an object id is that of an identity: one of its own, or that of a resource itself.
pub(crate) fn is_principal(azure: &AzureState, object_id: &str) -> bool {
    let is = |id, incarnation| Ids::of(azure, id, incarnation).principal.eq_ignore_ascii_case(object_id);
    azure.store.of_type(UserAssignedIdentities.name()).any(|record| is(&record.id, record.incarnation))
        || azure
            .store
            .all()
            .filter(|record| is_own(&record.body))
            .any(|record| is(&record.id, record.incarnation))
}
