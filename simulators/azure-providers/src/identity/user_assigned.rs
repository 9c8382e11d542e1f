//! User-assigned identities: synchronous, without etags and states.

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::ids::{Ids, own_spelling};
use super::protocol::protocol;
use azure_engine::document::{Object, fill};
use azure_engine::provider::{AzureState, Expand, Presenting, Proposal, Protocol, Record, Writing};
use azure_engine::refusal::Result;

pub(crate) struct UserAssignedIdentities;

const PROTOCOL: Protocol = Protocol {
    example: include_str!("user_assigned.json"),
    synchronous: true,
    synchronous_delete: true,
    located: true,
    delete_status: 200,
    ..protocol("Microsoft.ManagedIdentity/userAssignedIdentities", "UserAssignedIdentity")
};

shape!(UserAssignedIdentities, PROTOCOL, without Acting);

impl Writing for UserAssignedIdentities {
    fn before_write(&self, _azure: &AzureState, proposal: Proposal<'_>) -> Result<Value> {
        // All its properties are the service's.
        Ok(proposal.keep(&["location", "tags"]).take())
    }
}

impl Presenting for UserAssignedIdentities {
    fn present(&self, azure: &AzureState, record: &Record, document: &mut Object, _expand: Expand) {
        fill(document, "tags", json!({}));
        document.insert("id".into(), own_spelling(&record.id).into());
        let Ids { principal, client } = Ids::of(azure, &record.id, record.incarnation);
        let tenant = azure.tenant_of(record.id.subscription_id());
        document.insert(
            "properties".into(),
            json!({ "tenantId": tenant, "principalId": principal, "clientId": client }),
        );
    }
}

/// What an identity is called in the documents of the resources that have it.
pub(super) fn ids(azure: &AzureState, id: &ResourceId) -> Option<Ids> {
    let record =
        azure.store.get(id).filter(|record| record.resource_type.name() == PROTOCOL.resource_type)?;
    Some(Ids::of(azure, &record.id, record.incarnation))
}
