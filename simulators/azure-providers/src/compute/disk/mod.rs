//! Managed disks (Azure REST reference, "Disks").

pub(crate) mod access;
pub(crate) mod background_copy;
pub(crate) mod copy_source;
pub(crate) mod creation;
pub(crate) mod members;
mod performance;
pub(crate) mod quota;
mod rules;
pub(crate) mod sku;

use azure_types::ResourceId;
use serde_json::{Value, json};

use self::copy_source::Copy;
use self::creation::provision;
use self::rules::Wanted;
use self::sku::{check_size, kind_of, largest, take_kind};
use crate::compute::machine::uses_disks;
use crate::compute::shared::zones;
use crate::compute::shared::zones::Span;
use crate::compute::tables::codes::OPERATION_NOT_ALLOWED;
use crate::compute::tables::protocol::protocol;
use crate::compute::tables::type_names::DISK_TYPE;
use crate::compute::tables::words::missing;
use azure_engine::document::{Object, fill, strip, take_properties, text};
use azure_engine::error::Refusal;
use azure_engine::member_table::Member;
use azure_engine::operation::Completion;
use azure_engine::provider::{Action, AzureState, Expand, Polling, Proposal, Protocol, Record, ResourceType};

/// Versions of disks and snapshots, newest first: they have their own.
const API_VERSIONS: [&str; 8] = [
    "2025-01-02",
    "2024-03-02",
    "2023-10-02",
    "2023-04-02",
    "2022-07-02",
    "2021-12-01",
    "2020-12-01",
    "2019-03-01",
];

const GIB: u64 = 1 << 30;

pub(crate) struct Disks;

/// What disks and snapshots have in common.
pub(crate) const fn disk_protocol(resource_type: &'static str, noun: &'static str) -> Protocol {
    let usual = protocol(resource_type, noun);
    Protocol {
        api_versions: &API_VERSIONS,
        etagged: false,
        create_status: 202,
        update_status: 202,
        patch_status: 202,
        polling: Polling {
            segment: "DiskOperations",
            location_on_writes: true,
            output: true,
            ..usual.polling
        },
        ..usual
    }
}

const PROTOCOL: Protocol = Protocol {
    actions: &["beginGetAccess", "endGetAccess"],
    in_use: Some(|disk, users| {
        let user = users.first().map_or("", |user| user.as_str());
        OPERATION_NOT_ALLOWED.says(format_args!("Disk {} is attached to VM {user}.", disk.name()))
    }),
    ..disk_protocol(DISK_TYPE, "Disk")
};

impl ResourceType for Disks {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn members(&self) -> &'static [Member] {
        &members::DISK
    }

    fn envelope(&self) -> &'static [Member] {
        &members::DISK_ENVELOPE
    }

    fn write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value, Refusal> {
        let mut body = std::mem::take(&mut proposal.body);
        let mut properties = take_properties(&mut body);
        let sku = take_kind(&mut body);
        place(azure, &proposal, &sku, &mut body)?;
        creation_data(azure, &proposal, &sku, &body, &mut properties)?;
        size(&proposal, &sku, &mut properties)?;
        let gib = properties.get("diskSizeGB").and_then(Value::as_u64).unwrap_or_default();
        Wanted { proposal: &proposal, given: &proposal.given, sku: &sku, gib }
            .check(azure, &mut properties)?;
        let region = body.get("location").and_then(Value::as_str).unwrap_or_default();
        quota::check(azure, &proposal, DISK_TYPE, &sku, region)?;
        body.insert("properties".into(), Value::Object(properties));
        Ok(Value::Object(body))
    }

    fn after_operation(
        &self,
        azure: &mut AzureState,
        id: &ResourceId,
        completion: &Completion,
        failed: bool,
    ) {
        if failed || *completion != Completion::Write {
            return;
        }
        if let Some(record) = azure.store.get_mut(id) {
            provision(record);
        }
    }

    fn check_delete(&self, azure: &AzureState, record: &Record) -> Result<(), Refusal> {
        access::check_none(azure, record)
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
        // What the service finds out about a disk comes with the end of the operation.
        if let Some(properties) = document.get_mut("properties").and_then(Value::as_object_mut) {
            strip(
                properties,
                &[
                    "diskIOPSReadWrite",
                    "diskMBpsReadWrite",
                    "diskState",
                    "encryption",
                    "networkAccessPolicy",
                    "publicNetworkAccess",
                    "tier",
                    "timeCreated",
                    "uniqueId",
                ],
            );
            // Recorded: also a disk that is being made says so.
            properties.insert("provisioningState".into(), "Updating".into());
        }
    }

    fn present(&self, azure: &AzureState, record: &Record, document: &mut Object, _expand: Expand) {
        let holders: Vec<&ResourceId> = azure.store.referrers(&record.id).map(|user| &user.from).collect();
        if let Some(first) = holders.first() {
            document.insert("managedBy".into(), first.as_str().into());
        }
        if holders.len() > 1 {
            document.insert("managedByExtended".into(), json!(holders));
        }
        let Some(properties) = document.get_mut("properties").and_then(Value::as_object_mut) else { return };
        if record.hidden.get("provisioned").is_none() {
            // A machine can take a disk that is still being made; both sides then say so.
            if !holders.is_empty() {
                properties.insert("diskState".into(), state(azure, record, &holders).into());
            }
            return;
        }
        let gib = properties.get("diskSizeGB").and_then(Value::as_u64).unwrap_or_default();
        let figures = performance::of(kind_of(record), gib, text(&record.body, "properties/tier"));
        fill(properties, "diskIOPSReadWrite", figures.iops);
        fill(properties, "diskMBpsReadWrite", figures.mbps);
        if let Some(tier) = figures.tier {
            fill(properties, "tier", tier);
        }
        present_usual(azure, record, properties, state(azure, record, &holders));
        if holders.len() > 1 || properties.get("maxShares").and_then(Value::as_u64).unwrap_or(1) > 1 {
            let shares: Vec<Value> = holders.iter().map(|holder| json!({ "vmUri": holder })).collect();
            properties.insert("shareInfo".into(), shares.into());
        }
    }
}

/// Whether a disk is with a machine that runs, with one that does not, or free.
fn state(azure: &AzureState, record: &Record, holders: &[&ResourceId]) -> &'static str {
    if access::is_granted(azure, record) {
        return "ActiveSAS";
    }
    match holders {
        [] => "Unattached",
        holders if holders.iter().any(|holder| uses_disks(azure, holder)) => "Attached",
        _ => "Reserved",
    }
}

/// Where the disk is, which does not change.
fn place(azure: &AzureState, proposal: &Proposal<'_>, sku: &str, body: &mut Object) -> Result<(), Refusal> {
    zones::check(azure, proposal.id, Span::One, body)?;
    zones::check_kind(sku, body)?;
    proposal.old.map_or(Ok(()), |old| zones::check_same(old, body))
}

/// How the disk came to be, which does not change.
fn creation_data(
    azure: &AzureState,
    proposal: &Proposal<'_>,
    sku: &str,
    body: &Object,
    properties: &mut Object,
) -> Result<(), Refusal> {
    if let Some(old) = proposal.old {
        return copy_source::keep(old, &proposal.given, properties);
    }
    let location = body.get("location").and_then(Value::as_str).unwrap_or_default();
    let copy = Copy { noun: "disk", location };
    let creation = copy.take(properties)?;
    let option = creation.get("createOption").and_then(Value::as_str).unwrap_or_default();
    if !matches!(option, "Copy" | "CopyStart" | "Restore") {
        properties.insert("creationData".into(), Value::Object(creation));
        return Ok(());
    }
    let source = copy.source(azure, &creation)?;
    background_copy::check_complete(azure, source, sku)?;
    copy.of(azure, source, creation, properties)
}

fn size(proposal: &Proposal<'_>, sku: &str, properties: &mut Object) -> Result<(), Refusal> {
    let given = properties.get("diskSizeGB").and_then(Value::as_i64);
    let size = given
        .or_else(|| copy_source::size_from_outside(properties))
        .ok_or_else(|| missing("disk.diskSizeGB"))?;
    check_size("disk.diskSizeGB", size, largest(sku))?;
    check_growth("Disk", proposal, size)?;
    properties.insert("diskSizeGB".into(), size.into());
    Ok(())
}

/// Disks and snapshots grow only.
pub(crate) fn check_growth(noun: &str, proposal: &Proposal<'_>, size: i64) -> Result<(), Refusal> {
    let before = proposal.old_member("properties/diskSizeGB").and_then(Value::as_i64);
    let Some(before) = before.filter(|before| size < *before) else { return Ok(()) };
    Err(OPERATION_NOT_ALLOWED.says(format_args!(
        "{noun} {} has {before} GiB and cannot be made smaller; {size} GiB were asked for.",
        proposal.id
    )))
}

/// What the service knows of a disk or snapshot that is there, and what it chooses where nobody has chosen.
pub(crate) fn present_usual(azure: &AzureState, record: &Record, properties: &mut Object, state: &str) {
    fill(properties, "encryption", json!({ "type": "EncryptionAtRestWithPlatformKey" }));
    fill(properties, "networkAccessPolicy", "AllowAll");
    fill(properties, "publicNetworkAccess", "Enabled");
    let gib = properties.get("diskSizeGB").and_then(Value::as_u64).unwrap_or_default();
    let unique = azure.seed.guid("disk", record.id.as_str(), record.incarnation);
    properties.insert("timeCreated".into(), record.created.to_string().into());
    properties.insert("diskSizeBytes".into(), gib.saturating_mul(GIB).into());
    properties.insert("uniqueId".into(), unique.into());
    properties.insert("diskState".into(), state.into());
}
