//! Secrets over Resource Manager (Azure REST reference, "Secrets"): set and described, never shown.

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::item::{Content, Hidden, Item, Kind, said};
use super::{contents, host};
use azure_engine::document::text;
use azure_engine::provider::{AzureState, Record};
use azure_engine::refusal::{Code, Handled, Refusal, Result};

/// GET of `secrets` and `secrets/{name}`.
pub(super) fn view(azure: &AzureState, vault: &Record, below: &[&str]) -> Handled<Value> {
    match below {
        [] => {
            let all = contents::all(azure, vault.id.name(), Kind::Secrets, false);
            Some(Ok(json!({ "value": all.filter_map(|item| shown(vault, item)).collect::<Vec<_>>() })))
        }
        [name] => {
            let found = contents::item(azure, vault.id.name(), Kind::Secrets, name, false);
            Some(found.ok().and_then(|item| shown(vault, item)).ok_or_else(absent))
        }
        _ => None,
    }
}

fn absent() -> Refusal {
    // Recorded.
    Code::azures(404, "ResourceNotFound").says(
        "The specified resource does not exist. Follow this link for more information: \
         https://go.microsoft.com/fwlink/?linkid=2147446",
    )
}

fn shown(vault: &Record, item: &Item) -> Option<Value> {
    let version = item.version(None)?;
    let id = vault.id.child("secrets", &item.name);
    let uri = format!("{}secrets/{}", host::uri(vault), item.name);
    let mut document = json!({
        "id": id,
        "name": item.name,
        "type": "Microsoft.KeyVault/vaults/secrets",
        "location": vault.body["location"],
        "properties": {
            "attributes": version.attributes(),
            "secretUri": uri,
            "secretUriWithVersion": format!("{uri}/{}", version.id),
        },
    });
    if let Some(kind) = &version.content_type {
        document["properties"]["contentType"] = kind.as_str().into();
    }
    if !version.tags.is_empty() {
        document["tags"] = version.tags.clone().into();
    }
    Some(document)
}

/// PUT: another version.
pub(super) fn put(azure: &mut AzureState, vault: &ResourceId, name: &str, body: &Value) -> Result<()> {
    let properties = body.get("properties").unwrap_or(&Value::Null);
    let value = text(properties, "value")
        .ok_or_else(|| Code::ours(400, "BadRequest").says("A secret needs a value."))?;
    let mut said = said(properties);
    said.tags = body.get("tags").and_then(Value::as_object).cloned();
    let content = content(azure, value)?;
    contents::add(azure, vault.name(), Kind::Secrets, name, content, said).map(drop)
}

/// A secret's content, if it is not too long.
pub(super) fn content(azure: &AzureState, value: &str) -> Result<Content> {
    let most = azure.limit("keyVault.secretBytes");
    Code::azures(400, "BadParameter").says_when(
        value.len() as u64 > most,
        format_args!("The value of a secret can have at most {most} bytes."),
    )?;
    Ok(Content::Secret(Hidden::new(value.to_owned())))
}
