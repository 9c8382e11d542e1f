//! The keys that encrypt a disk or snapshot, and the networks that reach its bytes ("Server-side encryption of Azure Disk
//! Storage", "Restrict managed disks from being imported or exported"). That the sets of keys and the disk accesses exist
//! follows from the tables.

use serde_json::Value;

use crate::compute::disk::members::PLATFORM_KEY;
use crate::compute::tables::words::missing;
use azure_engine::document::{fill_at, stored_reference, text};
use azure_engine::provider::AzureState;
use azure_engine::refusal::{Refusal, Result};

const SET: &str = "properties/encryption/diskEncryptionSetId";
const WAY: &str = "properties/encryption/type";

/// Checks both in the document of a disk or snapshot (a `noun`).
pub(crate) fn check(azure: &AzureState, noun: &str, body: &mut Value) -> Result<()> {
    check_keys(azure, noun, body)?;
    check_networks(noun, body)
}

/// A set of keys encrypts in its way, and the platform's key has no set.
fn check_keys(azure: &AzureState, noun: &str, body: &mut Value) -> Result<()> {
    let set = stored_reference(body, SET);
    let set = set.as_ref().and_then(|set| azure.store.get(set));
    if let Some(way) = set.and_then(|set| text(&set.body, "properties/encryptionType")) {
        fill_at(body, WAY, way);
    }
    let Some(way) = text(body, WAY) else { return Ok(()) };
    let has_set = text(body, SET).is_some();
    if way != PLATFORM_KEY && !has_set {
        return Err(missing(&format!("{noun}.encryption.diskEncryptionSetId")));
    }
    let of_set = set.and_then(|set| text(&set.body, "properties/encryptionType"));
    let wrong = (has_set && way == PLATFORM_KEY) || of_set.is_some_and(|of_set| of_set != way);
    let text = format_args!(
        "The value '{way}' of parameter '{noun}.encryption.type' is not allowed: it is not the encryption type of the disk \
         encryption set '{}'.",
        text(body, SET).unwrap_or_default()
    );
    Refusal::invalid_when(wrong, &format!("{noun}.encryption.type"), text)
}

/// A disk access is for private access alone, which needs one.
fn check_networks(noun: &str, body: &Value) -> Result<()> {
    let access = text(body, "properties/diskAccessId");
    let policy = text(body, "properties/networkAccessPolicy").unwrap_or("AllowAll");
    let member = format!("{noun}.diskAccessId");
    match (policy, access) {
        ("AllowPrivate", None) => Err(missing(&member)),
        ("AllowPrivate", Some(_)) | (_, None) => Ok(()),
        (_, Some(_)) => Err(Refusal::invalid_parameter(
            &member,
            format!(
                "Parameter '{member}' is not allowed with the network access policy {policy}: it is for AllowPrivate alone."
            ),
        )),
    }
}
