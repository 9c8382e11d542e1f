//! Access policies of a vault: the rights of principals on its secrets and keys.

use serde_json::{Value, json};

use azure_engine::document::{into_object, items, members, text};
use azure_engine::provider::{AzureState, Record};
use azure_engine::refusal::{Code, Result};

pub(super) const MEMBER: &str = "accessPolicies";

const BAD: Code = Code::ours(400, "BadRequest");

/// The permissions by kind of content, separated by spaces ("Vaults", `Permissions`).
const PERMISSIONS: [(&str, &str); 4] = [
    (
        "keys",
        "all encrypt decrypt wrapkey unwrapkey sign verify get list create update import delete \
         backup restore recover purge release rotate getrotationpolicy setrotationpolicy",
    ),
    ("secrets", "all get list set delete backup restore recover purge"),
    (
        "certificates",
        "all get list delete create import update managecontacts getissuers listissuers \
         setissuers deleteissuers manageissuers recover purge backup restore",
    ),
    (
        "storage",
        "all get list delete set update regeneratekey recover purge backup restore setsas listsas \
         getsas deletesas",
    ),
];

/// Checks a list of policies.
pub(super) fn check(azure: &AzureState, policies: &Value) -> Result<()> {
    let Some(policies) = policies.as_array() else {
        return Err(BAD.says("The access policies of a vault must be a list."));
    };
    let most = azure.limit("keyVault.accessPoliciesPerVault");
    if policies.len() as u64 > most {
        return Err(BAD.says(format_args!("A vault can have at most {most} access policies.")));
    }
    for policy in policies {
        for member in ["tenantId", "objectId"] {
            if text(policy, member).is_none_or(str::is_empty) {
                return Err(BAD.says(format_args!("An access policy has no '{member}'.")));
            }
        }
        let allowed = policy.get("permissions").unwrap_or(&Value::Null);
        for (kind, words) in members(allowed) {
            let Some((_, known)) = PERMISSIONS.iter().find(|(name, _)| name.eq_ignore_ascii_case(kind))
            else {
                return Err(BAD.says(format_args!("There are no permissions for '{kind}'.")));
            };
            let strange = words.as_array().into_iter().flatten().find(|word| {
                let word = word.as_str().unwrap_or_default().to_ascii_lowercase();
                !known.split(' ').any(|known| known == word)
            });
            if let Some(word) = strange {
                return Err(BAD.says(format_args!("The permission {word} for {kind} is not known.")));
            }
        }
    }
    Ok(())
}

/// Whether a vault's policies allow something to a principal.
pub(super) fn allows(vault: &Record, principal: &str, kind: &str, permission: &str) -> bool {
    items(&vault.body, "properties/accessPolicies").iter().any(|policy| {
        text(policy, "objectId").is_some_and(|id| id.eq_ignore_ascii_case(principal))
            && items(policy, &format!("permissions/{kind}"))
                .iter()
                .filter_map(Value::as_str)
                .any(|word| word.eq_ignore_ascii_case(permission) || word.eq_ignore_ascii_case("all"))
    })
}

/// Identifies the holder of a policy.
fn holder(policy: &Value) -> (String, String) {
    let lower = |member: &str| text(policy, member).unwrap_or_default().to_ascii_lowercase();
    (lower("objectId"), lower("applicationId"))
}

/// The policies after `add`, `replace` or `remove`; `None` for another word.
pub(super) fn changed(old: &[Value], change: &str, given: &[Value]) -> Option<Vec<Value>> {
    let mut kept = old.to_vec();
    match change.to_ascii_lowercase().as_str() {
        "replace" => kept = given.to_vec(),
        "remove" => kept.retain(|policy| !given.iter().any(|gone| holder(gone) == holder(policy))),
        "add" => {
            for policy in given {
                match kept.iter_mut().find(|known| holder(known) == holder(policy)) {
                    Some(known) => join(known, policy),
                    None => kept.push(policy.clone()),
                }
            }
        }
        _ => return None,
    }
    Some(kept)
}

/// Adds a policy's permissions to a known holder's.
fn join(known: &mut Value, policy: &Value) {
    let mut allowed = known.get("permissions").cloned().map(into_object).unwrap_or_default();
    for (kind, words) in members(policy.get("permissions").unwrap_or(&Value::Null)) {
        let all = allowed.entry(kind.clone()).or_insert_with(|| json!([]));
        if let (Some(all), Some(words)) = (all.as_array_mut(), words.as_array()) {
            all.extend(words.iter().filter(|word| !all.contains(word)).cloned().collect::<Vec<_>>());
        }
    }
    known["permissions"] = Value::Object(allowed);
}
