//! The hosts of vaults (`{vault}.vault.azure.net`): secrets and keys ("Azure Key Vault REST API reference").

mod access;
mod requests;
mod shown;

use azure_engine::data_plane::{DataAnswer, DataRequest, DataSubject};
use azure_engine::error::Refusal;
use azure_engine::provider::AzureState;
use azure_engine::provider::DataPlane;
use serde_json::{Value, json};

use super::item::Kind;
use super::vault;

/// Requests to vaults carry little.
const MAX_BODY_BYTES: u64 = 1024 * 1024;

pub(super) static PLANES: [DataPlane; 1] = [DataPlane {
    suffix: vault::SUFFIX,
    audiences: &["https://vault.azure.net"],
    challenge: |authority| {
        format!(r#"Bearer authorization="{authority}", resource="https://vault.azure.net""#)
    },
    own_authentication: false,
    max_body_bytes: MAX_BODY_BYTES,
    locate,
    perform: requests::perform,
    refuse,
}];

/// What a path is about: a kind, whether of what was deleted, and what stands behind.
struct Place<'a> {
    kind: Kind,
    deleted: bool,
    rest: Vec<&'a str>,
}

impl<'a> Place<'a> {
    /// Reads a path. Names in it have no characters that are percent-encoded. Clients name the latest version by an
    /// empty segment at the end.
    fn parse(path: &'a str) -> Option<Self> {
        let mut segments = path.split('/').filter(|segment| !segment.is_empty());
        let (kind, deleted) = match segments.next()?.to_ascii_lowercase().as_str() {
            "secrets" => (Kind::Secrets, false),
            "deletedsecrets" => (Kind::Secrets, true),
            "keys" => (Kind::Keys, false),
            "deletedkeys" => (Kind::Keys, true),
            _ => return None,
        };
        Some(Self { kind, deleted, rest: segments.collect() })
    }
}

fn locate(azure: &AzureState, request: &DataRequest<'_>) -> DataSubject {
    let place = Place::parse(request.path);
    let below = place.as_ref().map_or(String::new(), |place| format!("/{}", place.kind.collection()));
    let vault = vault::find(azure, request.account);
    let resource = vault.map(|vault| match &place {
        Some(Place { kind, rest, .. }) if !rest.is_empty() => {
            vault.id.child(kind.collection(), rest.first().unwrap_or(&""))
        }
        _ => vault.id.clone(),
    });
    DataSubject {
        resource_type: format!("{}{below}", vault::RESOURCE_TYPE),
        resource,
        list: place.is_some_and(|place| place.rest.is_empty() || place.rest.last() == Some(&"versions")),
    }
}

fn refuse(_azure: &AzureState, request: &DataRequest<'_>, refusal: &Refusal) -> DataAnswer {
    let mut error = json!({ "code": refusal.code, "message": refusal.message });
    if refusal.status == 401 {
        let what = match request.headers.contains_key("authorization") {
            true => format!("AKV10032: {}", refusal.message),
            false => "AKV10000: Request is missing a Bearer or PoP token.".to_owned(),
        };
        error = json!({ "code": "Unauthorized", "message": what });
    }
    if let Some(inner) = refusal.extra.as_ref().and_then(|extra| extra.inner.as_ref()) {
        error["innererror"] = inner.clone();
    }
    DataAnswer::json(refusal.status, &json!({ "error": error }))
        .with("x-ms-keyvault-service-version", "1.9.0.0")
}

/// The body of a request; nothing for one without.
fn body(request: &DataRequest<'_>) -> Result<Value, Refusal> {
    if request.body.is_empty() {
        return Ok(Value::Null);
    }
    // The reason would repeat a part of the secret.
    serde_json::from_slice(request.body)
        .map_err(|_| requests::BAD.says("The request body is no JSON document."))
}
