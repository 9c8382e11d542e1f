//! Access to the services: by a signature with a key, a signed token, a token of Entra, or public read access.

use std::collections::BTreeMap;

use azure_engine::document::at;
use azure_engine::provider::{AzureState, Record};
use azure_engine::refusal::{Code, Extra, Refusal, Result};
use jiff::Timestamp;

use super::service_request::{ServiceRequest, account_name, challenge};
use super::shared_key;
use crate::authorization::{Plane, may};
use crate::storage::account::{is_reachable, keys, sas, takes_keys};
use crate::storage::container::public_access;

const NOT_GRANTED: Code = Code::azures(403, "AuthorizationPermissionMismatch");

/// Decides on a request.
pub(super) fn check(azure: &AzureState, account: &Record, request: &ServiceRequest<'_>) -> Result<()> {
    let https_only = at(&account.body, "properties/supportsHttpsTrafficOnly").and_then(|only| only.as_bool());
    Code::azures(400, "AccountRequiresHttps").says_when(
        !request.http.secure && https_only == Some(true),
        "The account being accessed does not support http.",
    )?;
    authenticate(azure, account, request)?;
    Code::azures(403, "AuthorizationFailure")
        .says_when(!is_reachable(azure, account), "This request is not authorized to perform this operation.")
}

fn authenticate(azure: &AzureState, account: &Record, request: &ServiceRequest<'_>) -> Result<()> {
    if let Some(caller) = request.http.caller {
        check_roles(azure, request, &caller.object_id)?;
        // Tokens give access to files only with the header that declares the intent to bypass the files' own
        // permissions.
        let intent =
            request.data_service.word != "file" || request.header("x-ms-file-request-intent").is_some();
        return match intent {
            true => Ok(()),
            false => Err(Code::azures(400, "MissingRequiredHeader")
                .says("An HTTP header that's mandatory for this request is not specified.")),
        };
    }
    match (request.header("authorization"), request.option("sig")) {
        (Some(given), _) => by_key(azure, account, request, given),
        (None, Some(signature)) => by_token(azure, account, request, signature),
        (None, None) if is_public_read(azure, request) => Ok(()),
        (None, None) => {
            let words = "Server failed to authenticate the request. Please refer to the information in the \
                         www-authenticate header.";
            let authority = azure.options.authority.trim_end_matches('/');
            let tenant = azure.tenant_of(account.id.subscription_id());
            let mut refusal = Code::azures(401, "NoAuthenticationInformation").says(words);
            let challenge = Some(challenge(&format!("{authority}/{tenant}")));
            refusal.extra = Some(Box::new(Extra { inner: None, challenge }));
            Err(refusal)
        }
    }
}

/// Whether a principal has a role for a request, where roles are enforced: rights on shares and containers are those of
/// Resource Manager, rights on their contents the services' own.
fn check_roles(azure: &AzureState, request: &ServiceRequest<'_>, object_id: &str) -> Result<()> {
    if !azure.enforce_authorization {
        return Ok(());
    }
    let listed = request.data_service.word == "blob" && request.is("container", "list");
    let (plane, parts) = match (request.path.is_empty() && !listed, request.data_service.word) {
        (true, _) => (Plane::Control, request.data_service.parts),
        (false, "blob") => (Plane::Data, "containers/blobs"),
        (false, _) => (Plane::Data, "fileshares/files"),
    };
    let verb = match request.http.method {
        "GET" | "HEAD" => "read",
        "DELETE" => "delete",
        _ => "write",
    };
    let action = format!("Microsoft.Storage/storageAccounts/{}/{parts}/{verb}", request.data_service.segment);
    let scope = if request.part.is_empty() { request.service.clone() } else { request.part_id() };
    NOT_GRANTED.says_when(!may(azure, object_id, plane, &action, &scope), NO_PERMISSION)
}

const NO_PERMISSION: &str = "This request is not authorized to perform this operation using this permission.";

fn bad_signature() -> Refusal {
    Code::azures(403, "AuthenticationFailed").says("Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly \
         including the signature.")
}

fn require_keys(account: &Record) -> Result<()> {
    Code::azures(403, "KeyBasedAuthenticationNotPermitted").says_when(
        !takes_keys(&account.body),
        "Key based authentication is not permitted on this storage account.",
    )
}

/// Whether one of the account's keys signed a text.
fn is_signed(azure: &AzureState, account: &Record, text: &str, signature: &str) -> bool {
    keys::secrets(azure, account).iter().any(|secret| keys::sign(secret, text) == signature)
}

/// `Authorization: SharedKey {account}:{signature}`
fn by_key(azure: &AzureState, account: &Record, request: &ServiceRequest<'_>, given: &str) -> Result<()> {
    let name = account_name(request.http.account);
    let signature = given.strip_prefix("SharedKey ").and_then(|rest| rest.split_once(':'));
    let Some((of, signature)) = signature else { return Err(bad_signature()) };
    require_keys(account)?;
    let text = shared_key::text(request.http, name);
    match of.eq_ignore_ascii_case(name) && is_signed(azure, account, &text, signature) {
        true => Ok(()),
        false => Err(bad_signature()),
    }
}

/// A signed token in the query.
fn by_token(
    azure: &AzureState,
    account: &Record,
    request: &ServiceRequest<'_>,
    signature: &str,
) -> Result<()> {
    require_keys(account)?;
    let fields: &BTreeMap<String, String> = request.http.query;
    let field = |name: &str| fields.get(name).map(String::as_str).unwrap_or_default();
    let of_account = fields.contains_key("ss");
    let name = account_name(request.http.account);
    let text = match of_account {
        true => sas::account_text(name, fields),
        false => {
            let whole = matches!(field("sr"), "s" | "c");
            let mut resource = format!("/{}/{name}/{}", request.data_service.word, request.part);
            if !whole && !request.path.is_empty() {
                resource.push_str(&format!("/{}", request.path));
            }
            sas::service_text(request.data_service.word, &resource, fields)
        }
    };
    let now = azure.time();
    let in_time = time(field("se")).is_some_and(|end| end > now)
        && (field("st").is_empty() || time(field("st")).is_some_and(|start| start <= now));
    if !in_time || !is_signed(azure, account, &text, signature) {
        return Err(bad_signature());
    }
    if of_account && !field("ss").contains(request.data_service.letter) {
        let words = "This request is not authorized to perform this operation using this service.";
        return Err(Code::azures(403, "AuthorizationServiceMismatch").says(words));
    }
    let kind = match (request.part.is_empty(), request.path.is_empty()) {
        (true, _) => 's',
        (_, true) => 'c',
        _ => 'o',
    };
    if of_account && !field("srt").contains(kind) {
        let words = "This request is not authorized to perform this operation using this resource type.";
        return Err(Code::azures(403, "AuthorizationResourceTypeMismatch").says(words));
    }
    let needed: &[char] = match request.http.method {
        "GET" | "HEAD" if request.option("comp").is_some_and(|comp| comp == "list") => &['l'],
        "GET" | "HEAD" => &['r', 'l'],
        "DELETE" => &['d'],
        _ => &['w', 'c', 'a'],
    };
    NOT_GRANTED.says_when(!needed.iter().any(|letter| field("sp").contains(*letter)), NO_PERMISSION)
}

/// Times of tokens may leave out the seconds, or the time of day.
fn time(text: &str) -> Option<Timestamp> {
    let whole = [text.to_owned(), text.replace('Z', ":00Z"), format!("{text}T00:00:00Z")];
    whole.iter().find_map(|text| text.parse().ok())
}

/// Whether a request is a read that public access allows.
fn is_public_read(azure: &AzureState, request: &ServiceRequest<'_>) -> bool {
    if request.data_service.word != "blob"
        || request.part.is_empty()
        || !matches!(request.http.method, "GET" | "HEAD")
    {
        return false;
    }
    let Some(container) = azure.store.get(&request.part_id()) else { return false };
    match public_access(&container.body) {
        "Container" => true,
        "Blob" => !request.path.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn times_of_tokens_are_read_in_their_three_forms() {
        for text in ["2030-01-02T03:04:05Z", "2030-01-02T03:04Z", "2030-01-02"] {
            assert!(time(text).is_some(), "{text}");
        }
        assert!(time("soon").is_none());
    }
}
