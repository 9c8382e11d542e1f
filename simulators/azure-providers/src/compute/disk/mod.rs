//! Managed disks (Azure REST reference, "Disks").

pub(crate) mod access;
pub(crate) mod background_copy;
pub(crate) mod contents;
pub(crate) mod copy_source;
pub(crate) mod creation;
pub(crate) mod members;
pub(crate) mod ownership;
mod performance;
pub(crate) mod protection;
mod rules;
pub(crate) mod sku;

use azure_types::ResourceId;
use serde_json::{Value, json};

use self::sku::{check_size, kind_of, take_kind, tier};
use crate::compute::machine::{full_id, uses_disks};
use crate::compute::shared::zones;
use crate::compute::shared::zones::Span;
use crate::compute::tables::codes::OPERATION_NOT_ALLOWED;
use crate::compute::tables::protocol::protocol;
use crate::compute::tables::type_names::DISK_TYPE;
use crate::compute::tables::words::missing;
use azure_engine::document::{Object, fill, fill_at, number, strip};
use azure_engine::provider::{
    Acting, Action, AzureState, Expand, Polling, Presenting, Proposal, Protocol, Record, Writing,
};
use azure_engine::refusal::{Handled, Result};
use azure_engine::store::State;

/// Versions of disks and snapshots, newest first: they have their own.
pub(crate) const API_VERSIONS: [&str; 8] = [
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
    members: &members::DISK,
    envelope: &members::DISK_ENVELOPE,
    example: include_str!("example.json"),
    actions: &["beginGetAccess", "endGetAccess"],
    in_use: Some(|disk, user, _| ownership::is_attached(disk, user)),
    ..disk_protocol(DISK_TYPE, "Disk")
};

shape!(Disks, PROTOCOL);

impl Writing for Disks {
    fn before_write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value> {
        let mut body = proposal.take();
        let sku = take_kind(&mut body);
        zones::check(azure, &proposal, Span::One, &mut body)?;
        zones::check_kind(&sku, &body)?;
        if proposal.old.is_none()
            && let Some(source) = copy_source::find(azure, "disk", &mut body)?
        {
            background_copy::check_complete(azure, source, &sku)?;
        }
        let size = check_growth("disk", &proposal, &body)?;
        check_size("disk.diskSizeGB", size, &sku)?;
        rules::check(azure, &proposal, &sku, &mut body)?;
        protection::check(azure, "disk", &mut body)?;
        Ok(body)
    }

    fn after_write(&self, azure: &mut AzureState, id: &ResourceId, old: Option<&Value>) {
        background_copy::begin(azure, id, old);
        if old.is_none() {
            contents::copy(azure, id);
        }
    }

    fn before_delete(&self, azure: &AzureState, record: &Record) -> Result<()> {
        access::check_none(azure, record)?;
        ownership::check_released(azure, record)
    }
}

impl Presenting for Disks {
    fn present_unfinished(&self, _azure: &AzureState, _record: &Record, document: &mut Object) {
        // Members that the service finds out about a disk appear with the end of the operation.
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
        let holders = ownership::holders(azure, record);
        let shown: Vec<ResourceId> = holders.iter().map(full_id).collect();
        if let Some(first) = shown.first() {
            document.insert("managedBy".into(), first.as_str().into());
        }
        if holders.len() > 1 {
            document.insert("managedByExtended".into(), json!(shown));
        }
        if record.state == State::Creating {
            // A machine can take a disk that is still being made; both sides then say so.
            if !holders.is_empty() {
                document["properties"]["diskState"] = state(azure, record, &holders).into();
            }
            return;
        }
        present_usual(azure, record, document, state(azure, record, &holders));
        let Some(properties) = document.get_mut("properties").and_then(Value::as_object_mut) else { return };
        let gib = properties.get("diskSizeGB").and_then(Value::as_u64).unwrap_or_default();
        let figures = performance::of(kind_of(record), gib);
        fill(properties, "diskIOPSReadWrite", figures.iops);
        fill(properties, "diskMBpsReadWrite", figures.mbps);
        if let Some(tier) = figures.tier {
            fill(properties, "tier", tier);
        }
        if holders.len() > 1 || number(&record.body, "properties/maxShares").unwrap_or(1) > 1 {
            let shares: Vec<Value> = shown.iter().map(|holder| json!({ "vmUri": holder })).collect();
            properties.insert("shareInfo".into(), shares.into());
        }
        if let Some(percent) = background_copy::progress_of_disk(azure, record) {
            properties.insert("completionPercent".into(), percent.into());
        }
        if let Some(time) = ownership::last_change(record) {
            properties.insert("LastOwnershipUpdateTime".into(), time.clone());
        }
    }
}

impl Acting for Disks {
    fn act(&self, azure: &mut AzureState, id: &ResourceId, action: &str, body: &Value) -> Handled<Action> {
        access::begin(azure, id, action, body)
    }
}

/// The state of a disk: with a running machine, with a stopped one, or free.
fn state(azure: &AzureState, record: &Record, holders: &[ResourceId]) -> &'static str {
    match holders {
        _ if access::is_granted(azure, record) => "ActiveSAS",
        [] => "Unattached",
        holders if holders.iter().any(|holder| uses_disks(azure, holder)) => "Attached",
        _ => "Reserved",
    }
}

/// Checks the size in a write, and returns it: disks and snapshots only grow.
pub(crate) fn check_growth(noun: &str, proposal: &Proposal<'_>, body: &Value) -> Result<u64> {
    let size = number(body, "properties/diskSizeGB").ok_or_else(|| missing(&format!("{noun}.diskSizeGB")))?;
    let before = proposal.old_member("properties/diskSizeGB").and_then(Value::as_u64).unwrap_or_default();
    let id = proposal.id;
    OPERATION_NOT_ALLOWED.says_when(
        size < before,
        format_args!("{id} has {before} GiB and cannot be made smaller; {size} GiB were asked for."),
    )?;
    Ok(size)
}

/// Members that the service derives for an existing disk or snapshot, and its defaults.
pub(crate) fn present_usual(azure: &AzureState, record: &Record, document: &mut Object, state: &str) {
    let kind = kind_of(record);
    document.insert("sku".into(), json!({ "name": kind, "tier": tier(kind) }));
    let Some(properties) = document.get_mut("properties") else { return };
    fill_at(properties, "encryption", json!({ "type": members::PLATFORM_KEY }));
    fill_at(properties, "networkAccessPolicy", "AllowAll");
    fill_at(properties, "publicNetworkAccess", "Enabled");
    let gib = number(properties, "diskSizeGB").unwrap_or_default();
    let unique = contents::unique_id(azure, record);
    properties["diskSizeBytes"] = gib.saturating_mul(GIB).into();
    properties["uniqueId"] = unique.into();
    properties["diskState"] = state.into();
}
