//! Access to a vault: by its access policies, or by roles if it uses those.

use serde_json::Value;

use super::super::access_policy;
use super::super::contents::within;
use super::super::item::Kind;
use crate::authorization::{Plane, may};
use azure_engine::answer::data_plane::DataCaller;
use azure_engine::document::text;
use azure_engine::provider::{AzureState, Record};
use azure_engine::refusal::{Code, Refusal, Result};

/// "Azure Key Vault REST API Error Codes".
const FORBIDDEN: Code = Code::azures(403, "Forbidden");

/// The access that a request needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct NeededPermission {
    pub(super) kind: Kind,
    /// Its name in access policies.
    pub(super) permission: &'static str,
}

/// Its names in roles ("Azure permissions for Security").
const ACTIONS: [(Kind, &str, &str); 13] = [
    (Kind::Secrets, "get", "secrets/getSecret/action"),
    (Kind::Secrets, "list", "secrets/readMetadata/action"),
    (Kind::Secrets, "set", "secrets/setSecret/action"),
    (Kind::Secrets, "delete", "secrets/delete"),
    (Kind::Secrets, "recover", "secrets/recover/action"),
    (Kind::Secrets, "purge", "secrets/purge/action"),
    (Kind::Keys, "get", "keys/read"),
    (Kind::Keys, "list", "keys/read"),
    (Kind::Keys, "create", "keys/create/action"),
    (Kind::Keys, "update", "keys/update/action"),
    (Kind::Keys, "delete", "keys/delete"),
    (Kind::Keys, "recover", "keys/recover/action"),
    (Kind::Keys, "purge", "keys/purge/action"),
];

/// Whether a caller may do it. Where tokens are not verified, all callers may; for vaults with roles, too, while roles
/// are not enforced.
pub(super) fn check(
    azure: &AzureState,
    vault: &Record,
    caller: Option<&DataCaller>,
    needed: NeededPermission,
) -> Result<()> {
    let Some(caller) = caller.filter(|caller| !caller.object_id.is_empty()) else { return Ok(()) };
    let (refusal, inner) = match goes_by_roles(vault) {
        true if !azure.enforce_authorization => return Ok(()),
        true => (by_roles(azure, vault, caller, needed), "ForbiddenByRbac"),
        false => (by_policies(vault, caller, needed), "AccessDenied"),
    };
    refusal.map_or(Ok(()), |refusal| Err(within(refusal, inner)))
}

fn goes_by_roles(vault: &Record) -> bool {
    vault.body.pointer("/properties/enableRbacAuthorization").and_then(Value::as_bool) == Some(true)
}

fn by_roles(
    azure: &AzureState,
    vault: &Record,
    caller: &DataCaller,
    needed: NeededPermission,
) -> Option<Refusal> {
    let named = |(kind, permission, _): &&(Kind, &str, &str)| {
        (*kind, *permission) == (needed.kind, needed.permission)
    };
    let (_, _, action) = ACTIONS.iter().find(named)?;
    let action = format!("Microsoft.KeyVault/vaults/{action}");
    if may(azure, &caller.object_id, Plane::Data, &action, &vault.id) {
        return None;
    }
    Some(FORBIDDEN.says(format_args!(
        "Caller is not authorized to perform action on resource.\r\nIf role assignments, deny assignments or role \
         definitions were changed recently, please observe propagation time.\r\nCaller: appid={};oid={};iss=https://sts.windows.net/{}/\r\n\
         Action: '{action}'\r\nResource: '{}'\r\nAssignment: (not found)\r\nVault: {}",
        caller.client_id,
        caller.object_id,
        caller.tenant,
        vault.id,
        described(vault),
    )))
}

fn by_policies(vault: &Record, caller: &DataCaller, needed: NeededPermission) -> Option<Refusal> {
    let (kind, permission) = (needed.kind.collection(), needed.permission);
    if access_policy::allows(vault, &caller.object_id, kind, permission) {
        return None;
    }
    Some(FORBIDDEN.says(format_args!(
        "The user, group or application 'appid={};oid={};iss=https://sts.windows.net/{}/' does not have {kind} \
         {permission} permission on key vault '{}'.",
        caller.client_id,
        caller.object_id,
        caller.tenant,
        described(vault),
    )))
}

/// Name and path of a vault, as refusals give them.
fn described(vault: &Record) -> String {
    format!("{};location={}", vault.id.name(), text(&vault.body, "location").unwrap_or_default())
}
