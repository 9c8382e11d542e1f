//! Shared access signatures: tokens signed with an account's key ("Create an account SAS", "Create a service SAS").

use std::collections::BTreeMap;

use azure_engine::document::text;
use azure_engine::provider::{AzureState, Record};
use azure_engine::refusal::Result;
use serde_json::Value;

use super::super::words::bad_parameters;
use super::keys::{secrets, sign};

/// The version that tokens are made for.
const VERSION: &str = "2022-11-02";

/// The fields of an account's token in the order in which they are signed, after the account's name; each ends a line.
const ACCOUNT_FIELDS: [&str; 9] = ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv", "ses"];

/// Members of a request for an account's token, and the fields that they become.
const ACCOUNT_MEMBERS: [(&str, &str); 7] = [
    ("signedPermission", "sp"),
    ("signedServices", "ss"),
    ("signedResourceTypes", "srt"),
    ("signedStart", "st"),
    ("signedExpiry", "se"),
    ("signedIp", "sip"),
    ("signedProtocol", "spr"),
];

/// What is signed for an account's token; the last line came with version 2020-12-06.
pub(crate) fn account_text(account: &str, fields: &BTreeMap<String, String>) -> String {
    let field = |name: &str| fields.get(name).map(String::as_str).unwrap_or_default();
    let newer = field("sv") >= "2020-12-06";
    let names = ACCOUNT_FIELDS.iter().filter(|name| newer || **name != "ses");
    let lines = std::iter::once(account).chain(names.map(|name| field(name)));
    lines.map(|line| format!("{line}\n")).collect()
}

/// What is signed for a token of one share, container, file or blob (from version 2020-12-06 on for blobs).
pub(crate) fn service_text(service: &str, resource: &str, fields: &BTreeMap<String, String>) -> String {
    let field = |name: &str| fields.get(name).map(String::as_str).unwrap_or_default();
    let mut lines = vec![
        field("sp"),
        field("st"),
        field("se"),
        resource,
        field("si"),
        field("sip"),
        field("spr"),
        field("sv"),
    ];
    if service == "blob" {
        lines.extend([field("sr"), field("snapshot"), field("ses")]);
    }
    lines.extend([field("rscc"), field("rscd"), field("rsce"), field("rscl"), field("rsct")]);
    lines.join("\n")
}

/// `ListAccountSas`: a token by the first key, or the one that is asked for.
pub(super) fn account(azure: &AzureState, record: &Record, body: &Value) -> Result<String> {
    let mut fields: BTreeMap<String, String> = ACCOUNT_MEMBERS
        .iter()
        .filter_map(|(member, field)| Some(((*field).to_owned(), text(body, member)?.to_owned())))
        .collect();
    for (member, field) in [
        ("signedServices", "ss"),
        ("signedResourceTypes", "srt"),
        ("signedPermission", "sp"),
        ("signedExpiry", "se"),
    ] {
        if !fields.contains_key(field) {
            return Err(bad_parameters(member));
        }
    }
    fields.insert("sv".into(), VERSION.into());
    let signed = account_text(record.id.name(), &fields);
    Ok(token(azure, record, body, fields, &signed))
}

/// `ListServiceSas`: a token for one resource, such as `/file/{account}/{share}`.
pub(super) fn service(azure: &AzureState, record: &Record, body: &Value) -> Result<String> {
    let resource =
        text(body, "canonicalizedResource").ok_or_else(|| bad_parameters("canonicalizedResource"))?;
    const MEMBERS: [(&str, &str); 13] = [
        ("signedResource", "sr"),
        ("signedPermission", "sp"),
        ("signedIp", "sip"),
        ("signedProtocol", "spr"),
        ("signedStart", "st"),
        ("signedExpiry", "se"),
        ("signedIdentifier", "si"),
        ("rscc", "rscc"),
        ("rscd", "rscd"),
        ("rsce", "rsce"),
        ("rscl", "rscl"),
        ("rsct", "rsct"),
        ("signedEncryptionScope", "ses"),
    ];
    let mut fields: BTreeMap<String, String> = MEMBERS
        .iter()
        .filter_map(|(member, field)| Some(((*field).to_owned(), text(body, member)?.to_owned())))
        .collect();
    fields.insert("sv".into(), VERSION.into());
    let service = resource.trim_start_matches('/').split('/').next().unwrap_or_default();
    let signed = service_text(service, resource, &fields);
    Ok(token(azure, record, body, fields, &signed))
}

fn token(
    azure: &AzureState,
    record: &Record,
    body: &Value,
    mut fields: BTreeMap<String, String>,
    signed: &str,
) -> String {
    let [first, second] = secrets(azure, record);
    let key = if text(body, "keyToSign").is_some_and(|key| key.eq_ignore_ascii_case("key2")) {
        second
    } else {
        first
    };
    fields.insert("sig".into(), sign(&key, signed));
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
}
