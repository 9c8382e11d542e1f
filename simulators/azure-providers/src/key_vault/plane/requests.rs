//! Requests to a vault's host.

use azure_engine::answer::Note;
use azure_engine::answer::data_plane::{DataAnswer, DataRequest};
use azure_engine::document::text;
use azure_engine::provider::{AzureState, Record};
use azure_engine::refusal::{Code, Result};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::super::item::{Item, Kind, said};
use super::super::{contents, host, key, secret};
use super::access::{NeededPermission, check};
use super::item_path::ItemPath;
use super::shown;

const BAD: Code = Code::azures(400, "BadParameter");
const NOT_FOUND: Code = Code::ours(404, "VaultNotFound");

/// Most lines of a page.
const MAX_RESULTS: usize = 25;

/// Performs a request.
pub(super) fn perform(azure: &mut AzureState, request: &DataRequest<'_>) -> Result<DataAnswer> {
    let vault = host::find(azure, request.account)
        .ok_or_else(|| NOT_FOUND.says(format_args!("There is no vault '{}'.", request.account)))?;
    BAD.says_when(
        request.query.get("api-version").is_none_or(String::is_empty),
        "api-version must be specified",
    )?;
    let path = ItemPath::parse(request.path).ok_or_else(|| {
        Code::ours(404, "NotFound").says(format_args!("There is nothing at '{}'.", request.path))
    })?;
    let kind = path.kind;
    let may =
        |permission: &'static str| check(azure, vault, request.caller, NeededPermission { kind, permission });
    let (create, update) = match kind {
        Kind::Secrets => ("set", "set"),
        Kind::Keys => ("create", "update"),
    };
    let vault_name = vault.id.name().to_owned();
    match (request.method, path.deleted, path.rest.as_slice()) {
        ("GET", deleted, []) => {
            may("list")?;
            list(azure, request, vault, kind, deleted)
        }
        ("GET", false, [name, "versions"]) => {
            may("list")?;
            versions(azure, request, vault, kind, name)
        }
        ("GET", false, [name, version @ ..]) if version.len() < 2 => {
            may("get")?;
            let found = contents::version(azure, &vault_name, kind, name, version.first().copied())?;
            if !found.enabled && kind == Kind::Secrets {
                let refusal =
                    Code::azures(403, "Forbidden").says("Operation get is not allowed on a disabled secret.");
                return Err(contents::within(refusal, "SecretDisabled"));
            }
            Ok(DataAnswer::json(200, &shown::whole(vault, kind, name, found)))
        }
        ("GET", true, [name]) => {
            may("get")?;
            let item = contents::item(azure, &vault_name, kind, name, true)?;
            Ok(DataAnswer::json(200, &deleted(vault, kind, item)))
        }
        ("PUT", false, [name]) if kind == Kind::Secrets => {
            may(create)?;
            let body = body(request)?;
            let value = text(&body, "value")
                .ok_or_else(|| BAD.says("The property 'value' of a secret is missing."))?;
            let content = secret::content(azure, value)?;
            let version = contents::add(azure, &vault_name, kind, name, content, said(&body))?;
            written(azure, &vault_name, kind, name, &version, "set")
        }
        ("POST", false, [name, "create"]) if kind == Kind::Keys => {
            may(create)?;
            let body = body(request)?;
            let content = key::generate(
                azure,
                &format!("{}/keys/{name}#{}", vault.id, contents::made(azure)),
                text(&body, "kty").unwrap_or_default(),
                body.get("key_size").and_then(Value::as_i64),
                text(&body, "crv"),
                body.get("key_ops"),
            )?;
            let mut said = said(&body);
            said.operations = None;
            let version = contents::add(azure, &vault_name, kind, name, content, said)?;
            written(azure, &vault_name, kind, name, &version, "create")
        }
        ("PATCH", false, [name, version @ ..]) if version.len() < 2 => {
            may(update)?;
            let body = body(request)?;
            let version = version.first().copied();
            let version = contents::update(azure, &vault_name, kind, name, version, said(&body))?;
            let vault = again(azure, &vault_name)?;
            let answer = DataAnswer::json(200, &shown::described(vault, kind, name, &version, true));
            Ok(noted(answer, kind, name, "update"))
        }
        ("DELETE", false, [name]) => {
            may("delete")?;
            let item = contents::delete(azure, &vault_name, kind, name)?;
            let answer = DataAnswer::json(200, &deleted(again(azure, &vault_name)?, kind, &item));
            Ok(noted(answer, kind, name, "delete"))
        }
        ("POST", true, [name, "recover"]) => {
            may("recover")?;
            let item = contents::recover(azure, &vault_name, kind, name)?;
            let vault = again(azure, &vault_name)?;
            let shown = item.version(None).map(|version| shown::described(vault, kind, name, version, true));
            Ok(noted(DataAnswer::json(200, &shown.unwrap_or_default()), kind, name, "recover"))
        }
        ("DELETE", true, [name]) => {
            may("purge")?;
            contents::purge(azure, &vault_name, kind, name)?;
            Ok(noted(DataAnswer::empty(204), kind, name, "purge"))
        }
        (method, ..) => Err(Code::ours(405, "MethodNotAllowed")
            .says(format_args!("The method '{method}' is not known for '{}'.", request.path))),
    }
}

/// The body of a request; nothing for one without.
fn body(request: &DataRequest<'_>) -> Result<Value> {
    if request.body.is_empty() {
        return Ok(Value::Null);
    }
    // The reason would repeat a part of the secret.
    serde_json::from_slice(request.body).map_err(|_| BAD.says("The request body is no JSON document."))
}

/// The vault, which is there.
fn again<'a>(azure: &'a AzureState, name: &str) -> Result<&'a Record> {
    host::find(azure, name).ok_or_else(|| NOT_FOUND.says(format_args!("There is no vault '{name}'.")))
}

fn written(
    azure: &AzureState,
    vault: &str,
    kind: Kind,
    name: &str,
    version: &super::super::item::Version,
    what: &str,
) -> Result<DataAnswer> {
    let answer = DataAnswer::json(200, &shown::whole(again(azure, vault)?, kind, name, version));
    Ok(noted(answer, kind, name, what))
}

/// The journal records the action, and no content.
fn noted(answer: DataAnswer, kind: Kind, name: &str, what: &str) -> DataAnswer {
    let changes = vec![format!("{}/{name}: {what}", kind.collection())];
    DataAnswer { note: Note { changes, ..Note::default() }, ..answer }
}

fn deleted(vault: &Record, kind: Kind, item: &Item) -> Value {
    let latest = item.version(None).map(|version| shown::described(vault, kind, &item.name, version, true));
    shown::deleted(vault, kind, item, latest.unwrap_or_default())
}

fn list(
    azure: &AzureState,
    request: &DataRequest<'_>,
    vault: &Record,
    kind: Kind,
    deleted: bool,
) -> Result<DataAnswer> {
    let all: Vec<&Item> = contents::all(azure, vault.id.name(), kind, deleted).collect();
    let show = |item: &Item| {
        let latest = item.version(None).map(|version| shown::line(vault, kind, &item.name, version, false));
        shown::deleted(vault, kind, item, latest.unwrap_or_default())
    };
    page(request, all, |item| item.name.as_str(), |item| show(item))
}

fn versions(
    azure: &AzureState,
    request: &DataRequest<'_>,
    vault: &Record,
    kind: Kind,
    name: &str,
) -> Result<DataAnswer> {
    let item = contents::item(azure, vault.id.name(), kind, name, false);
    // Recorded by SDKs: an absent item has an empty list of versions.
    let all = item.map_or_else(|_| Vec::new(), |item| item.versions.iter().collect());
    page(request, all, |version| version.id.as_str(), |version| shown::line(vault, kind, name, version, true))
}

/// One page of a list; the token is the key of the last line.
fn page<T>(
    request: &DataRequest<'_>,
    mut all: Vec<&T>,
    key: impl Fn(&T) -> &str,
    show: impl Fn(&T) -> Value,
) -> Result<DataAnswer> {
    let size = match request.query.get("maxresults").map(|given| given.parse::<usize>()) {
        None => MAX_RESULTS,
        Some(Ok(size)) if (1..=MAX_RESULTS).contains(&size) => size,
        Some(_) => return Err(BAD.says(format_args!("maxresults must be between 1 and {MAX_RESULTS}."))),
    };
    all.sort_by_cached_key(|item| key(item).to_ascii_lowercase());
    if let Some(token) = request.query.get("$skiptoken") {
        let last = URL_SAFE_NO_PAD.decode(token).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let last = last.ok_or_else(|| BAD.says("The skip token is invalid."))?;
        all.retain(|item| key(item).to_ascii_lowercase() > last);
    }
    let more = all.len() > size;
    all.truncate(size);
    let next = all.last().filter(|_| more).map(|last| next_link(request, size, key(last)));
    let shown: Vec<Value> = all.into_iter().map(show).collect();
    Ok(DataAnswer::json(200, &json!({ "value": shown, "nextLink": next })))
}

fn next_link(request: &DataRequest<'_>, size: usize, last: &str) -> String {
    let scheme = if request.secure { "https" } else { "http" };
    let host = request.headers.get("host").map_or(request.host, String::as_str);
    let version = request.query.get("api-version").map_or("", String::as_str);
    let token = URL_SAFE_NO_PAD.encode(last.to_ascii_lowercase());
    format!("{scheme}://{host}{}?api-version={version}&$skiptoken={token}&maxresults={size}", request.path)
}
