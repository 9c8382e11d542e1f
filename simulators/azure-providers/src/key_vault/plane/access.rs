//! Who may do what in a vault: its access policies, or roles where it goes by those.

use serde_json::Value;

use super::super::access_policy;
use super::super::contents::within;
use super::super::item::Kind;
use azure_engine::data_plane::DataCaller;
use azure_engine::document::text;
use azure_engine::error::{Code, Refusal};
use azure_engine::provider::Record;

/// "Azure Key Vault REST API Error Codes".
const FORBIDDEN: Code = Code::azures(403, "Forbidden");

/// What a caller wants to do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wish {
    pub(super) kind: Kind,
    /// As access policies name it.
    pub(super) permission: &'static str,
}

/// Whether a caller may do it. Where nobody judges tokens, everybody may.
pub(super) fn check(vault: &Record, caller: Option<&DataCaller>, wish: Wish) -> Result<(), Refusal> {
    let Some(caller) = caller.filter(|caller| !caller.object_id.is_empty()) else { return Ok(()) };
    if goes_by_roles(vault) {
        return Ok(());
    }
    let (kind, permission) = (wish.kind.collection(), wish.permission);
    if access_policy::allows(vault, &caller.object_id, kind, permission) {
        return Ok(());
    }
    let refusal = FORBIDDEN.says(format_args!(
        "The user, group or application 'appid={};oid={};iss=https://sts.windows.net/{}/' does not have {kind} \
         {permission} permission on key vault '{};location={}'.",
        caller.client_id,
        caller.object_id,
        caller.tenant,
        vault.id.name(),
        text(&vault.body, "location").unwrap_or_default(),
    ));
    Err(within(refusal, "AccessDenied"))
}

fn goes_by_roles(vault: &Record) -> bool {
    vault.body.pointer("/properties/enableRbacAuthorization").and_then(Value::as_bool) == Some(true)
}
