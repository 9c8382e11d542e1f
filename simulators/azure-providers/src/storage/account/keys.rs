//! The two keys of an account: listed, rotated, and used to sign.

use azure_engine::document::{Object, text};
use azure_engine::provider::{AzureState, Record};
use azure_engine::refusal::Result;
use azure_types::ResourceId;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::super::words::bad_parameters;

const NAMES: [&str; 2] = ["key1", "key2"];
/// The member of a record's hidden part that counts how often each key was regenerated, with the last time.
const ROTATIONS: &str = "keys";
/// Bytes of a key.
const LENGTH: u64 = 64;

fn rotation<'a>(record: &'a Record, key: &str) -> Option<&'a Value> {
    record.hidden.get(ROTATIONS)?.get(key)
}

fn rotations(record: &Record, key: &str) -> u64 {
    rotation(record, key).and_then(|kept| kept.get("count")).and_then(Value::as_u64).unwrap_or_default()
}

fn made(record: &Record, key: &str) -> String {
    let kept = rotation(record, key).and_then(|kept| text(kept, "time"));
    kept.map_or_else(|| record.created.to_string(), str::to_owned)
}

/// `keyCreationTime`
pub(super) fn creation_times(record: &Record) -> Value {
    NAMES.iter().map(|key| ((*key).to_owned(), Value::from(made(record, key)))).collect::<Object>().into()
}

/// The bytes of a key.
fn secret(azure: &AzureState, record: &Record, key: &str) -> Vec<u8> {
    let subject = format!("{}#{}/{key}/{}", record.id, record.incarnation, rotations(record, key));
    (0..LENGTH / 8).flat_map(|part| azure.seed.number("account key", &subject, part).to_be_bytes()).collect()
}

/// The bytes of all keys of an account.
pub(crate) fn secrets(azure: &AzureState, record: &Record) -> [Vec<u8>; 2] {
    NAMES.map(|key| secret(azure, record, key))
}

/// Both keys, as they are listed.
pub(super) fn listed(azure: &AzureState, record: &Record) -> Value {
    let keys = NAMES.map(|key| {
        json!({
            "creationTime": made(record, key),
            "keyName": key,
            "value": STANDARD.encode(secret(azure, record, key)),
            "permissions": "FULL",
        })
    });
    json!({ "keys": keys })
}

/// Regenerates a key.
pub(super) fn regenerate(azure: &mut AzureState, id: &ResourceId, body: &Value) -> Result<()> {
    let asked = text(body, "keyName").unwrap_or_default();
    let key =
        NAMES.iter().find(|key| key.eq_ignore_ascii_case(asked)).ok_or_else(|| bad_parameters("keyName"))?;
    let now = azure.now().to_string();
    if let Some(record) = azure.store.get_mut(id) {
        let count = rotations(record, key) + 1;
        let kept = record.hidden.entry(ROTATIONS).or_insert_with(|| json!({}));
        kept[*key] = json!({ "count": count, "time": now });
    }
    Ok(())
}

/// The signature of a text by a key, in Base64.
pub(crate) fn sign(secret: &[u8], text: &str) -> String {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret);
    STANDARD.encode(ring::hmac::sign(&key, text.as_bytes()))
}
