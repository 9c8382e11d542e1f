//! The sources of new disks and snapshots (`creationData`), checked against existing resources.

use azure_types::ResourceId;

use crate::compute::disk::contents::unique_id;
use crate::compute::tables::codes::NOT_FOUND;
use crate::compute::tables::type_names::{DISK_TYPE, SNAPSHOT_TYPE};
use crate::compute::tables::words::missing;
use azure_engine::document::{at, fill_at, number, text};
use azure_engine::provider::{AzureState, Record};
use azure_engine::refusal::{Refusal, Result};
use azure_engine::store::State;
use serde_json::Value;

/// The size where none is known, such as that of a blob or an image: the size of a small system.
pub(crate) const USUAL_GIB: u64 = 30;

/// The disk or snapshot that a new one (a `noun`) copies, where it copies one. It is written down with its unique id,
/// and its size is taken where no larger one is asked for. Only a copy in the background reaches into another region.
pub(crate) fn find<'a>(azure: &'a AzureState, noun: &str, body: &mut Value) -> Result<Option<&'a Record>> {
    let option = text(body, "properties/creationData/createOption").unwrap_or_default().to_owned();
    if !matches!(option.as_str(), "Copy" | "CopyStart" | "Restore") {
        if option != "Empty" {
            fill_at(body, "properties/diskSizeGB", USUAL_GIB);
        }
        return Ok(None);
    }
    let given = text(body, "properties/creationData/sourceResourceId").unwrap_or_default();
    if given.is_empty() {
        return Err(missing(&format!("{noun}.creationData.sourceResourceId")));
    }
    let source = ResourceId::parse(given).ok().and_then(|id| azure.store.get(&id));
    let Some(source) = source.filter(|source| source.state != State::Deleting) else {
        return Err(NOT_FOUND.says(format_args!("Resource {given} is not found.")));
    };
    Refusal::invalid_when(
        ![DISK_TYPE, SNAPSHOT_TYPE].contains(&source.resource_type.name()),
        &format!("{noun}.creationData.sourceResourceId"),
        format_args!("Resource {given} is neither a disk nor a snapshot."),
    )?;
    let elsewhere = option != "CopyStart" && text(&source.body, "location") != text(body, "location");
    NOT_FOUND.says_when(elsewhere, format_args!("Resource {} is not found.", source.id.name()))?;
    let least = number(&source.body, "properties/diskSizeGB").unwrap_or_default();
    fill_at(body, "properties/diskSizeGB", least);
    let size = number(body, "properties/diskSizeGB").unwrap_or_default();
    let member = format!("{noun}.diskSizeGB");
    let text = format_args!(
        "The value {size} of parameter '{member}' is smaller than the {least} GiB of its source {}.",
        source.id
    );
    Refusal::invalid_when(size < least, &member, text)?;
    // A copy of a system disk is one, too.
    for member in ["osType", "hyperVGeneration"] {
        if let Some(value) = at(&source.body, &format!("properties/{member}")) {
            fill_at(body, &format!("properties/{member}"), value.clone());
        }
    }
    let unique = unique_id(azure, source);
    body["properties"]["creationData"]["sourceResourceId"] = source.id.as_str().into();
    body["properties"]["creationData"]["sourceUniqueId"] = unique.into();
    Ok(Some(source))
}
