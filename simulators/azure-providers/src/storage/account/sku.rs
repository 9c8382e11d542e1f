//! Kinds and skus of accounts, and what each offers ("Storage account overview", "Azure Storage redundancy").

use azure_engine::document::{Object, text};
use azure_engine::provider::AzureState;
use azure_engine::refusal::{Code, Result};
use serde_json::{Value, json};

use super::super::words::{BAD_VALUE, bad_parameters};
use crate::resources::paired_region;

/// The properties of one kind of account.
pub(crate) struct Kind {
    /// Azure's word.
    pub(crate) name: &'static str,
    skus: &'static [&'static str],
    /// Its services, as members of `primaryEndpoints`.
    pub(crate) services: &'static [&'static str],
    /// The tier of new accounts.
    pub(super) access_tier: Option<&'static str>,
}

const STANDARD: &[&str] = &[
    "Standard_LRS",
    "Standard_GRS",
    "Standard_RAGRS",
    "Standard_ZRS",
    "Standard_GZRS",
    "Standard_RAGZRS",
    "Premium_LRS",
];

pub(crate) static KINDS: [Kind; 5] = [
    Kind {
        name: "Storage",
        skus: &["Standard_LRS", "Standard_GRS", "Standard_RAGRS", "Standard_ZRS", "Premium_LRS"],
        services: &["blob", "queue", "table", "file"],
        access_tier: None,
    },
    Kind {
        name: "StorageV2",
        skus: STANDARD,
        services: &["dfs", "web", "blob", "queue", "table", "file"],
        access_tier: Some("Hot"),
    },
    Kind {
        name: "BlobStorage",
        skus: &["Standard_LRS", "Standard_GRS", "Standard_RAGRS"],
        services: &["dfs", "blob", "table"],
        access_tier: Some("Hot"),
    },
    Kind {
        name: "FileStorage",
        skus: &[
            "Premium_LRS",
            "Premium_ZRS",
            "StandardV2_LRS",
            "StandardV2_ZRS",
            "StandardV2_GRS",
            "StandardV2_GZRS",
            "PremiumV2_LRS",
            "PremiumV2_ZRS",
        ],
        services: &["file"],
        access_tier: None,
    },
    Kind {
        name: "BlockBlobStorage",
        skus: &["Premium_LRS", "Premium_ZRS"],
        services: &["dfs", "web", "blob"],
        access_tier: None,
    },
];

/// The kind of a stored account.
pub(crate) fn kind_of(account: &Value) -> &'static Kind {
    let name = text(account, "kind").unwrap_or_default();
    KINDS.iter().find(|kind| kind.name == name).unwrap_or(&KINDS[1])
}

/// The sku's name of a stored account.
pub(crate) fn sku_of(account: &Value) -> &str {
    text(account, "sku/name").unwrap_or_default()
}

/// `Standard` or `Premium`, as part of a sku.
fn tier(sku: &str) -> &'static str {
    if sku.starts_with("Premium") { "Premium" } else { "Standard" }
}

/// Whether a sku is billed by provisioned performance ("provisioned v2").
pub(crate) fn is_provisioned_v2(sku: &str) -> bool {
    sku.split('_').next().is_some_and(|tier| tier.ends_with("V2"))
}

/// Brings `kind` and `sku` into the form that is stored.
pub(super) fn normalise(body: &mut Object, old: Option<&Value>) -> Result<()> {
    let given = body.get("kind").and_then(Value::as_str).or(old.and_then(|old| text(old, "kind")));
    let Some(given) = given else { return Err(bad_parameters("kind")) };
    let kind = KINDS.iter().find(|kind| kind.name.eq_ignore_ascii_case(given));
    let kind = kind.ok_or_else(|| {
        BAD_VALUE.says(format_args!("The value '{given}' is not allowed for property kind."))
    })?;
    let given = body.get("sku").and_then(|sku| text(sku, "name")).or(old.map(sku_of));
    let Some(given) = given else { return Err(bad_parameters("sku")) };
    let known = KINDS.iter().flat_map(|kind| kind.skus).find(|sku| sku.eq_ignore_ascii_case(given));
    let sku = known.ok_or_else(|| {
        BAD_VALUE.says(format_args!("The value '{given}' is not allowed for property sku.name."))
    })?;
    if !kind.skus.contains(sku) {
        return Err(bad_parameters("kind,sku"));
    }
    if let Some(old) = old {
        let before = text(old, "kind").unwrap_or_default();
        let upgrade = matches!(before, "Storage" | "BlobStorage") && kind.name == "StorageV2";
        if before != kind.name && !upgrade {
            return Err(bad_parameters("kind"));
        }
        let before = sku_of(old);
        Code::ours(409, "StorageAccountSkuChangeNotAllowed").says_when(
            tier(before) != tier(sku) || is_provisioned_v2(before) != is_provisioned_v2(sku),
            format_args!("Storage account sku cannot be changed from {before} to {sku}."),
        )?;
    }
    body.insert("kind".into(), kind.name.into());
    body.insert("sku".into(), json!({ "name": sku, "tier": tier(sku) }));
    Ok(())
}

/// The secondary region of a sku, if it has one.
pub(super) fn secondary_region(sku: &str, region: &str) -> Option<&'static str> {
    sku.contains("GRS").then(|| paired_region(region)).flatten()
}

/// Whether the copy can be read.
pub(super) fn is_read_access(sku: &str) -> bool {
    sku.contains("_RAG")
}

/// `skus`: the skus available in each region.
pub(crate) fn list(azure: &AzureState) -> Value {
    let region = azure.options.region.as_str();
    let all = KINDS.iter().flat_map(|kind| kind.skus.iter().map(move |sku| (kind, sku)));
    let shown = all.map(|(kind, sku)| {
        json!({
            "resourceType": "storageAccounts",
            "name": sku,
            "tier": tier(sku),
            "kind": kind.name,
            "locations": [region],
            "capabilities": [],
            "restrictions": [],
        })
    });
    json!({ "value": shown.collect::<Vec<_>>() })
}
