//! POST actions of an account.

use azure_engine::answer::Answer;
use azure_engine::provider::{Action, AzureState};
use azure_engine::refusal::Handled;
use azure_types::ResourceId;
use serde_json::{Value, json};

use super::{keys, sas};

/// Their names.
pub(super) const ACTIONS: &[&str] =
    &["listKeys", "regenerateKey", "ListAccountSas", "ListServiceSas", "revokeUserDelegationKeys"];

/// An action on an account, in lower case.
pub(super) fn act(azure: &mut AzureState, id: &ResourceId, action: &str, body: &Value) -> Handled<Action> {
    let answered = |shown: Value| Ok(Action::answered(Answer::ok(shown)));
    let record = azure.store.get(id)?;
    Some(match action {
        "listkeys" => answered(keys::listed(azure, record)),
        "regeneratekey" => {
            if let Err(refusal) = keys::regenerate(azure, id, body) {
                return Some(Err(refusal));
            }
            answered(keys::listed(azure, azure.store.get(id)?))
        }
        "listaccountsas" => {
            sas::account(azure, record, body).and_then(|token| answered(json!({ "accountSasToken": token })))
        }
        "listservicesas" => {
            sas::service(azure, record, body).and_then(|token| answered(json!({ "serviceSasToken": token })))
        }
        "revokeuserdelegationkeys" => Ok(Action::answered(Answer::empty(200))),
        _ => return None,
    })
}
