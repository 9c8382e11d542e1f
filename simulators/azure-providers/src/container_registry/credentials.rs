//! The administrator of a registry: one user with two passwords, each of which can be regenerated.

use azure_types::ResourceId;
use serde_json::{Value, json};

use azure_engine::document::text;
use azure_engine::provider::{AzureState, Record};
use azure_engine::refusal::{Code, Result};

/// The hidden member that counts how often each password was generated.
const KEPT: &str = "passwordsDrawn";

const NAMES: [&str; 2] = ["password", "password2"];

/// Whether there is an administrator.
pub(super) fn has_admin(registry: &Record) -> bool {
    registry.body.pointer("/properties/adminUserEnabled").and_then(Value::as_bool) == Some(true)
}

fn drawn(registry: &Record, name: &str) -> u64 {
    registry.hidden.get(KEPT).and_then(|kept| kept.get(name)).and_then(Value::as_u64).unwrap_or_default()
}

/// Both passwords, in order.
pub(super) fn passwords(azure: &AzureState, registry: &Record) -> [String; 2] {
    NAMES.map(|name| {
        let subject = format!("{}#{}/{name}", registry.id, registry.incarnation);
        let part = |purpose: &str| azure.seed.guid(purpose, &subject, drawn(registry, name)).replace('-', "");
        format!("{}{}", part("registry password"), part("registry password, more"))
    })
}

/// POST `listCredentials`.
pub(super) fn list(azure: &AzureState, registry: &Record) -> Result<Value> {
    if !has_admin(registry) {
        // Azure CLI's users quote code and words.
        return Err(Code::azures(400, "UnAuthorizedForCredentialOperations").says(format_args!(
            "Cannot perform credential operations for {} as admin user is disabled. Kindly enable admin user as per docs: \
             https://docs.microsoft.com/en-us/azure/container-registry/container-registry-authentication#admin-account",
            registry.id
        )));
    }
    let passwords = NAMES.into_iter().zip(passwords(azure, registry));
    let passwords: Vec<Value> =
        passwords.map(|(name, value)| json!({ "name": name, "value": value })).collect();
    Ok(json!({ "username": registry.id.name().to_lowercase(), "passwords": passwords }))
}

/// POST `regenerateCredential`.
pub(super) fn regenerate(azure: &mut AzureState, id: &ResourceId, body: &Value) -> Result<Value> {
    let given = text(body, "name").unwrap_or_default();
    let name = NAMES.into_iter().find(|name| name.eq_ignore_ascii_case(given));
    let name = name.ok_or_else(|| {
        Code::ours(400, "InvalidPasswordName").says(format_args!("There is no password '{given}'."))
    })?;
    let registry = azure.store.get(id).ok_or_else(|| azure.not_found(id))?;
    list(azure, registry)?;
    let count = drawn(registry, name) + 1;
    if let Some(registry) = azure.store.get_mut(id) {
        let kept = registry.hidden.entry(KEPT).or_insert_with(|| json!({}));
        kept[name] = count.into();
    }
    let registry = azure.store.get(id).ok_or_else(|| azure.not_found(id))?;
    list(azure, registry)
}
