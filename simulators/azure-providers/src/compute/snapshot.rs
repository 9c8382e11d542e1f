//! Snapshots of disks (Azure REST reference, "Snapshots").

use azure_types::ResourceId;
use serde_json::Value;

use crate::compute::disk::copy_source::Copy;
use crate::compute::disk::sku::take_kind;
use crate::compute::disk::{access, background_copy, copy_source, members, quota};
use crate::compute::disk::{check_growth, disk_protocol, present_usual};
use crate::compute::tables::codes::OPERATION_NOT_ALLOWED;
use crate::compute::tables::type_names::SNAPSHOT_TYPE;
use crate::compute::tables::words::missing;
use azure_engine::document::{Object, at, fill, take_properties, text};
use azure_engine::error::Refusal;
use azure_engine::member_table::Member;
use azure_engine::operation::Completion;
use azure_engine::provider::{Action, AzureState, Expand, Proposal, Protocol, Record, ResourceType};

/// Kinds of snapshots, the default first.
const SKUS: [&str; 3] = ["Standard_LRS", "Standard_ZRS", "Premium_LRS"];

pub(crate) struct Snapshots;

const PROTOCOL: Protocol =
    Protocol { actions: &["beginGetAccess", "endGetAccess"], ..disk_protocol(SNAPSHOT_TYPE, "Snapshot") };

impl ResourceType for Snapshots {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn members(&self) -> &'static [Member] {
        &members::SNAPSHOT
    }

    fn envelope(&self) -> &'static [Member] {
        &members::SNAPSHOT_ENVELOPE
    }

    fn write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value, Refusal> {
        let mut body = std::mem::take(&mut proposal.body);
        let mut properties = take_properties(&mut body);
        let kind = take_kind(&mut body);
        if !SKUS.contains(&kind.as_str()) {
            return Err(not_supported(&kind));
        }
        let region = body.get("location").and_then(Value::as_str).unwrap_or_default();
        match proposal.old {
            Some(old) => keep(old, &proposal.given, &mut properties)?,
            None => source(azure, region, &mut properties)?,
        }
        size(&proposal, &mut properties)?;
        quota::check(azure, &proposal, SNAPSHOT_TYPE, &kind, region)?;
        body.insert("properties".into(), Value::Object(properties));
        Ok(Value::Object(body))
    }

    fn after_write(&self, azure: &mut AzureState, id: &ResourceId, old: Option<&Value>) {
        if old.is_none() {
            background_copy::remember(azure, id);
        }
    }

    fn after_operation(
        &self,
        azure: &mut AzureState,
        id: &ResourceId,
        completion: &Completion,
        failed: bool,
    ) {
        if !failed
            && *completion == Completion::Write
            && let Some(record) = azure.store.get_mut(id)
        {
            record.hidden.insert("provisioned".into(), true.into());
        }
    }

    fn act(
        &self,
        azure: &mut AzureState,
        id: &ResourceId,
        action: &str,
        body: &Value,
    ) -> Option<Result<Action, Refusal>> {
        access::begin(azure, id, action, body)
    }

    fn accepted(&self, _azure: &AzureState, _record: &Record, document: &mut Object) {
        if let Some(properties) = document.get_mut("properties").and_then(Value::as_object_mut) {
            properties.insert("provisioningState".into(), "Updating".into());
        }
    }

    fn present(&self, azure: &AzureState, record: &Record, document: &mut Object, _expand: Expand) {
        let Some(properties) = document.get_mut("properties").and_then(Value::as_object_mut) else { return };
        if record.hidden.get("provisioned").is_none() {
            return;
        }
        let state = if access::is_granted(azure, record) { "ActiveSAS" } else { "Unattached" };
        present_usual(azure, record, properties, state);
        if let Some(family) = at(&record.body, "properties/creationData/sourceUniqueId").cloned()
            && properties.get("incremental") == Some(&Value::Bool(true))
        {
            properties.insert("incrementalSnapshotFamilyId".into(), family);
        }
        if let Some(percent) = background_copy::progress(azure, record) {
            properties.insert("completionPercent".into(), percent.into());
        }
    }
}

/// Snapshots are kept in other ways than disks.
fn not_supported(kind: &str) -> Refusal {
    let known = SKUS.join(",");
    Refusal::invalid_parameter(
        "sku.name",
        format!(
            "SKU {kind} is not supported for resource type Snapshot in this region. Supported SKUs for this region are {known}"
        ),
    )
}

/// What a snapshot is of, and whether it is incremental, stays.
fn keep(old: &Record, given: &Value, properties: &mut Object) -> Result<(), Refusal> {
    if properties.get("incremental") != at(&old.body, "properties/incremental") {
        return Err(copy_source::fixed(old.id.name(), "incremental"));
    }
    copy_source::keep(old, given, properties)
}

fn size(proposal: &Proposal<'_>, properties: &mut Object) -> Result<(), Refusal> {
    if let Some(size) = copy_source::size_from_outside(properties) {
        fill(properties, "diskSizeGB", size);
    }
    let size = properties.get("diskSizeGB").and_then(Value::as_i64);
    check_growth("Snapshot", proposal, size.ok_or_else(|| missing("snapshot.diskSizeGB"))?)
}

/// What the snapshot is of: a disk or another snapshot, which is remembered by its unique id.
fn source(azure: &AzureState, location: &str, properties: &mut Object) -> Result<(), Refusal> {
    let copy = Copy { noun: "snapshot", location };
    let creation = copy.take(properties)?;
    let option = creation.get("createOption").and_then(Value::as_str).unwrap_or_default();
    if !matches!(option, "Copy" | "CopyStart") {
        properties.insert("creationData".into(), Value::Object(creation));
        return Ok(());
    }
    let found = copy.source(azure, &creation)?;
    let incremental = properties.get("incremental") == Some(&Value::Bool(true));
    check_way(&copy, found, option == "CopyStart", incremental)?;
    check_count(azure, &found.id)?;
    for member in ["osType", "hyperVGeneration"] {
        if let Some(value) = at(&found.body, &format!("properties/{member}")) {
            fill(properties, member, value.clone());
        }
    }
    copy.of(azure, found, creation, properties)
}

/// Which sources can be copied how: in the background incremental snapshots alone, and the bytes of fast disks
/// into incremental snapshots alone.
fn check_way(copy: &Copy<'_>, source: &Record, background: bool, incremental: bool) -> Result<(), Refusal> {
    let of_incremental = at(&source.body, "properties/incremental") == Some(&Value::Bool(true));
    if background && !(incremental && of_incremental) {
        return Err(copy.refuse(
            "creationData.createOption",
            format!(
                "The value 'CopyStart' of parameter 'snapshot.creationData.createOption' is not allowed: it makes an \
                 incremental snapshot of another one, which {} is not or which is not asked for.",
                source.id
            ),
        ));
    }
    if !incremental && background_copy::is_of_fast_disk(source) {
        return Err(copy.refuse(
            "incremental",
            format!(
                "The value 'false' of parameter 'snapshot.incremental' is not allowed: of {} there are incremental \
                 snapshots only.",
                source.id
            ),
        ));
    }
    Ok(())
}

/// Of one disk there are only so many snapshots.
fn check_count(azure: &AzureState, disk: &ResourceId) -> Result<(), Refusal> {
    let most = azure.limit("compute.snapshotsPerDisk");
    let of_disk = |snapshot: &&Record| {
        text(&snapshot.body, "properties/creationData/sourceResourceId")
            .is_some_and(|source| source.eq_ignore_ascii_case(disk.as_str()))
    };
    let count = azure.store.of_type(SNAPSHOT_TYPE).filter(of_disk).count() as u64;
    if count < most {
        return Ok(());
    }
    Err(OPERATION_NOT_ALLOWED
        .says(format_args!("The maximum number of snapshots of {disk} is {most}. It has been reached.")))
}
