//! The `identity` member of resources: their own identity, and those that were assigned to them.

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::ids::Ids;
use super::user_assigned;
use azure_engine::document::{Object, members, text};
use azure_engine::provider::{AzureState, Record};
use azure_engine::refusal::{Code, Result};

const INVALID_IDENTITY_TYPE: Code = Code::ours(400, "InvalidIdentityType");

/// Whether a document has an identity of its own.
pub(super) fn is_own(document: &Value) -> bool {
    text(document, "identity/type").is_some_and(|kind| kind.to_ascii_lowercase().contains("systemassigned"))
}

fn user_assigned_of(document: &Value) -> impl Iterator<Item = &String> {
    members(document.pointer("/identity/userAssignedIdentities").unwrap_or(&Value::Null)).map(|(id, _)| id)
}

/// Checks the identities that a write gives to a resource, and cuts them down to what clients write.
pub(crate) fn check_identity(azure: &AzureState, id: &ResourceId, body: &mut Object) -> Result<()> {
    let Some(identity) = body.get("identity") else { return Ok(()) };
    let failed = |text: String| Code::azures(400, "FailedIdentityOperation").says(text);
    let kind = text(identity, "type").unwrap_or_default().to_ascii_lowercase().replace(' ', "");
    let kind = match kind.as_str() {
        "none" => {
            body.remove("identity");
            return Ok(());
        }
        "systemassigned" => "SystemAssigned",
        "userassigned" => "UserAssigned",
        "systemassigned,userassigned" | "userassigned,systemassigned" => "SystemAssigned, UserAssigned",
        other => {
            return Err(INVALID_IDENTITY_TYPE
                .says(format_args!("The identity type '{other}' of resource '{id}' is not valid.")));
        }
    };
    let mut assigned = Object::new();
    for (named, _) in members(identity.get("userAssignedIdentities").unwrap_or(&Value::Null)) {
        let parsed = ResourceId::parse(named).ok();
        if parsed.as_ref().is_none_or(|parsed| user_assigned::ids(azure, parsed).is_none()) {
            return Err(failed(format!(
                "Identity operation for resource '{id}' failed with error 'Failed to perform resource identity \
                 operation. Status: 'BadRequest'. Response: 'Resource '{named}' was not found.'."
            )));
        }
        assigned.insert(named.clone(), json!({}));
    }
    INVALID_IDENTITY_TYPE.says_when(
        assigned.is_empty() && kind.contains("UserAssigned"),
        format_args!("The identity of resource '{id}' is user-assigned, and it names no identity."),
    )?;
    let mut cut = json!({ "type": kind });
    if kind.contains("UserAssigned") {
        cut["userAssignedIdentities"] = Value::Object(assigned);
    }
    body.insert("identity".into(), cut);
    Ok(())
}

/// Fills in the client and object ids of a resource's identities.
pub(crate) fn present_identity(azure: &AzureState, record: &Record, document: &mut Object) {
    let own = is_own(&record.body);
    let Some(Value::Object(identity)) = document.get_mut("identity") else { return };
    if own {
        let ids = Ids::of(azure, &record.id, record.incarnation);
        identity.insert("principalId".into(), ids.principal.into());
        identity.insert("tenantId".into(), azure.tenant_of(record.id.subscription_id()).into());
    }
    if let Some(Value::Object(assigned)) = identity.get_mut("userAssignedIdentities") {
        for (named, shown) in assigned.iter_mut() {
            let ids = ResourceId::parse(named).ok().and_then(|id| user_assigned::ids(azure, &id));
            // A deleted identity leaves an empty entry.
            *shown = match ids {
                Some(Ids { principal, client }) => {
                    json!({ "principalId": principal, "clientId": client })
                }
                None => json!({}),
            };
        }
    }
}

/// A managed identity that a machine has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagedIdentity {
    /// The client id.
    pub client_id: String,
    /// The object id of its service principal.
    pub object_id: String,
    /// The id of a user-assigned identity; `None` for the machine's own.
    pub resource_id: Option<ResourceId>,
}

/// The identities available on a machine: those of the machine, or of its scale set.
pub fn assigned(azure: &AzureState, machine: &ResourceId) -> Vec<ManagedIdentity> {
    let mut holders = Vec::new();
    let mut next = Some(machine.clone());
    while let Some(id) = next.filter(|id| id.namespace().is_some()) {
        holders.extend(azure.store.get(&id));
        next = id.parent();
    }
    let mut found: Vec<ManagedIdentity> = Vec::new();
    for record in holders {
        if is_own(&record.body) {
            let ids = Ids::of(azure, &record.id, record.incarnation);
            found.push(ManagedIdentity {
                client_id: ids.client,
                object_id: ids.principal,
                resource_id: None,
            });
        }
        for named in user_assigned_of(&record.body) {
            let Ok(id) = ResourceId::parse(named) else { continue };
            let Some(ids) = user_assigned::ids(azure, &id) else { continue };
            if !found.iter().any(|known| known.resource_id.as_ref() == Some(&id)) {
                found.push(ManagedIdentity {
                    client_id: ids.client,
                    object_id: ids.principal,
                    resource_id: Some(id),
                });
            }
        }
    }
    found
}
