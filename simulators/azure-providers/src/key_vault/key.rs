//! Keys, as disk encryption sets and clients use them. Their public part is drawn from the seed; encryption is not
//! simulated.

use azure_types::ResourceId;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::item::{Content, Item, Kind, Version, said};
use super::{contents, host};
use azure_engine::document::{Object, text};
use azure_engine::provider::{AzureState, Record};
use azure_engine::refusal::{Code, Handled, Refusal, Result};

const BAD: Code = Code::azures(400, "BadParameter");

/// The default operations of keys.
const OPERATIONS: [&str; 6] = ["encrypt", "decrypt", "sign", "verify", "wrapKey", "unwrapKey"];

/// Curves and the length of their coordinates in bytes.
const CURVES: [(&str, usize); 4] = [("P-256", 32), ("P-384", 48), ("P-521", 66), ("P-256K", 32)];

/// Generates the public part of a new key with the parameters of the request.
pub(super) fn generate(
    azure: &AzureState,
    subject: &str,
    kind: &str,
    size: Option<i64>,
    curve: Option<&str>,
    operations: Option<&Value>,
) -> Result<Content> {
    let mut key = Object::new();
    let drawn = |part: &str, length: usize| {
        let guids = (0_u64..).map(|count| azure.seed.number(part, subject, count).to_be_bytes());
        let bytes: Vec<u8> = guids.flatten().take(length).collect();
        bytes
    };
    let word = ["RSA", "RSA-HSM", "EC", "EC-HSM"].into_iter().find(|known| known.eq_ignore_ascii_case(kind));
    match word {
        Some(word @ ("RSA" | "RSA-HSM")) => {
            let size = size.unwrap_or(2_048);
            BAD.says_when(
                ![2_048, 3_072, 4_096].contains(&size),
                format_args!("A key of {size} bits is not supported: 2048, 3072 or 4096."),
            )?;
            let mut modulus = drawn("modulus", usize::try_from(size / 8).unwrap_or(256));
            // Of exactly the requested length, and odd.
            if let Some(first) = modulus.first_mut() {
                *first |= 0x80;
            }
            if let Some(last) = modulus.last_mut() {
                *last |= 1;
            }
            key.insert("kty".into(), word.into());
            key.insert("n".into(), URL_SAFE_NO_PAD.encode(modulus).into());
            key.insert("e".into(), "AQAB".into());
        }
        Some(word) => {
            let given = curve.unwrap_or("P-256");
            let known = CURVES.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(given));
            let Some((name, length)) = known else {
                return Err(BAD.says(format_args!("The curve '{given}' is not supported.")));
            };
            key.insert("kty".into(), word.into());
            key.insert("crv".into(), name.into());
            key.insert("x".into(), URL_SAFE_NO_PAD.encode(drawn("x", length)).into());
            key.insert("y".into(), URL_SAFE_NO_PAD.encode(drawn("y", length)).into());
        }
        None => return Err(BAD.says(format_args!("Keys of type '{kind}' are not supported."))),
    }
    let usual = if kind.to_ascii_uppercase().starts_with("EC") {
        json!(["sign", "verify"])
    } else {
        json!(OPERATIONS)
    };
    key.insert("key_ops".into(), operations.filter(|list| list.is_array()).cloned().unwrap_or(usual));
    Ok(Content::Key(key))
}

/// GET of `keys`, `keys/{name}`, `keys/{name}/versions` and one of these.
pub(super) fn view(azure: &AzureState, vault: &Record, below: &[&str]) -> Handled<Value> {
    let name = vault.id.name();
    let found = |key: &str| contents::item(azure, name, Kind::Keys, key, false).map_err(|_| absent());
    let versions = |word: &str| word.eq_ignore_ascii_case("versions");
    match below {
        [] => {
            let all = contents::all(azure, name, Kind::Keys, false);
            let shown = all.filter_map(|item| Some(shown(vault, item, item.version(None)?, false)));
            Some(Ok(json!({ "value": shown.collect::<Vec<_>>() })))
        }
        [key] => Some(found(key).and_then(|item| {
            item.version(None).map(|version| shown(vault, item, version, false)).ok_or_else(absent)
        })),
        [key, word] if versions(word) => Some(found(key).map(|item| {
            let all = item.versions.iter().map(|version| shown(vault, item, version, true));
            json!({ "value": all.collect::<Vec<_>>() })
        })),
        [key, word, version] if versions(word) => Some(found(key).and_then(|item| {
            item.version(Some(version)).map(|version| shown(vault, item, version, true)).ok_or_else(absent)
        })),
        _ => None,
    }
}

fn absent() -> Refusal {
    Code::azures(404, "ResourceNotFound").says("The specified resource does not exist.")
}

fn shown(vault: &Record, item: &Item, version: &Version, alone: bool) -> Value {
    let Content::Key(key) = &version.content else { return Value::Null };
    let uri = format!("{}keys/{}", host::uri(vault), item.name);
    let mut id = vault.id.child("keys", &item.name);
    if alone {
        id = id.child("versions", &version.id);
    }
    let attributes = version.attributes_in(vault);
    let mut properties = json!({
        "attributes": attributes,
        "kty": key.get("kty"),
        "keyOps": key.get("key_ops"),
        "keyUri": uri,
        "keyUriWithVersion": format!("{uri}/{}", version.id),
    });
    if let Some(curve) = key.get("crv") {
        properties["curveName"] = curve.clone();
    }
    if let Some(modulus) = key.get("n").and_then(Value::as_str) {
        let bytes = URL_SAFE_NO_PAD.decode(modulus).map_or(0, |bytes| bytes.len());
        properties["keySize"] = (bytes * 8).into();
    }
    let name = if alone { &version.id } else { &item.name };
    let kind =
        if alone { "Microsoft.KeyVault/vaults/keys/versions" } else { "Microsoft.KeyVault/vaults/keys" };
    let mut document = json!({
        "id": id, "name": name, "type": kind, "location": vault.body["location"], "properties": properties,
    });
    if !version.tags.is_empty() {
        document["tags"] = version.tags.clone().into();
    }
    document
}

/// PUT: creates a missing key; an existing one stays.
pub(super) fn put(azure: &mut AzureState, vault: &ResourceId, name: &str, body: &Value) -> Result<()> {
    if contents::item(azure, vault.name(), Kind::Keys, name, false).is_ok() {
        return Ok(());
    }
    let properties = body.get("properties").unwrap_or(&Value::Null);
    let content = generate(
        azure,
        &format!("{vault}/keys/{name}#{}", contents::made(azure)),
        text(properties, "kty").unwrap_or("RSA"),
        properties.get("keySize").and_then(Value::as_i64),
        text(properties, "curveName"),
        properties.get("keyOps"),
    )?;
    let mut said = said(properties);
    said.tags = body.get("tags").and_then(Value::as_object).cloned();
    contents::add(azure, vault.name(), Kind::Keys, name, content, said).map(drop)
}
