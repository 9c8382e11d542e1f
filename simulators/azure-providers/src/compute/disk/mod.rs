//! Managed disks (Azure REST reference, "Disks").

pub(crate) mod access;
pub(crate) mod background_copy;
pub(crate) mod copy_source;
pub(crate) mod creation;
mod performance;
pub(crate) mod quota;
mod rules;
pub(crate) mod sku;

use azure_types::ResourceId;
use serde_json::{Value, json};

use self::copy_source::Copy;
use self::creation::provision;
use self::rules::Wanted;
use self::sku::{SKUS, check_size, largest, tier};
use crate::compute::machine::uses_disks;
use crate::compute::shared::update::updated;
use crate::compute::shared::zones;
use crate::compute::shared::zones::Span;
use crate::compute::tables::protocol::protocol;
use crate::compute::tables::type_names::DISK_TYPE;
use azure_engine::document::{Object, enumeration, fill, integer, into_object, strip, take_properties, text};
use azure_engine::error::Refusal;
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

const CREATE_OPTIONS: [&str; 10] = [
    "Empty",
    "Attach",
    "FromImage",
    "Import",
    "ImportSecure",
    "Copy",
    "CopyStart",
    "Restore",
    "Upload",
    "UploadPreparedSecure",
];

/// What the service says about a disk.
const DERIVED: [&str; 8] = [
    "diskSizeBytes",
    "diskState",
    "osTypeInUse",
    "provisioningState",
    "shareInfo",
    "timeCreated",
    "uniqueId",
    "lastOwnershipUpdateTime",
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

const PROTOCOL: Protocol =
    Protocol { actions: &["beginGetAccess", "endGetAccess"], ..disk_protocol(DISK_TYPE, "Disk") };

impl ResourceType for Disks {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value, Refusal> {
        let given = proposal.body.get("properties").cloned().unwrap_or_default();
        let mut body = updated(&mut proposal);
        let mut properties = take_properties(&mut body);
        strip(&mut properties, &DERIVED);
        let sku = sku(&mut body)?;
        let sku = sku.as_deref().unwrap_or(SKUS[0]);
        place(azure, &proposal, sku, &mut body)?;
        creation_data(azure, &proposal, &given, &body, &mut properties)?;
        size(&proposal, sku, &mut properties)?;
        enumeration(&mut properties, "networkAccessPolicy", &["AllowAll", "AllowPrivate", "DenyAll"], false)?;
        enumeration(&mut properties, "publicNetworkAccess", &["Enabled", "Disabled"], false)?;
        let wanted = Wanted {
            proposal: &proposal,
            given: &given,
            sku,
            gib: properties.get("diskSizeGB").and_then(Value::as_u64).unwrap_or_default(),
        };
        wanted.check(azure, &mut properties)?;
        let region = body.get("location").and_then(Value::as_str).unwrap_or_default();
        quota::check(azure, &proposal, DISK_TYPE, sku, region)?;
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
        access::check_none(azure, record)?;
        match azure.store.referrers(&record.id).next() {
            None => Ok(()),
            Some(user) => Err(Refusal::new(
                409,
                "OperationNotAllowed",
                format!("Disk {} is attached to VM {}.", record.id.name(), user.from),
            )),
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
        let sku = text(&record.body, "sku/name").unwrap_or(SKUS[0]);
        let figures = performance::of(sku, gib, text(&record.body, "properties/tier"));
        fill(properties, "diskIOPSReadWrite", figures.iops);
        fill(properties, "diskMBpsReadWrite", figures.mbps);
        if let Some(tier) = figures.tier {
            fill(properties, "tier", tier);
        }
        fill(properties, "encryption", json!({ "type": "EncryptionAtRestWithPlatformKey" }));
        fill(properties, "networkAccessPolicy", "AllowAll");
        fill(properties, "publicNetworkAccess", "Enabled");
        properties.insert("timeCreated".into(), record.created.to_string().into());
        properties.insert("diskSizeBytes".into(), gib.saturating_mul(GIB).into());
        properties.insert(
            "uniqueId".into(),
            azure.seed.guid("disk", record.id.as_str(), record.incarnation).into(),
        );
        properties.insert("diskState".into(), state(azure, record, &holders).into());
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

fn sku(body: &mut Object) -> Result<Option<String>, Refusal> {
    let Some(sku) = body.remove("sku") else { return Ok(None) };
    let mut sku = into_object(sku);
    let given = sku.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let Some(name) = SKUS.into_iter().find(|known| known.eq_ignore_ascii_case(&given)) else {
        return Err(Refusal::invalid_parameter(
            "sku.name",
            format!(
                "The value '{given}' of parameter 'sku.name' is not allowed. Allowed values are '{}'.",
                SKUS.join(",")
            ),
        ));
    };
    sku.insert("name".into(), name.into());
    sku.insert("tier".into(), tier(name).into());
    body.insert("sku".into(), Value::Object(sku));
    Ok(Some(name.into()))
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
    given: &Value,
    body: &Object,
    properties: &mut Object,
) -> Result<(), Refusal> {
    if let Some(old) = proposal.old {
        let before = copy_source::creation_data(old.body.get("properties"));
        copy_source::check_unchanged(old.id.name(), &before, &copy_source::creation_data(Some(given)))?;
        properties.insert("creationData".into(), before);
        return Ok(());
    }
    let location = body.get("location").and_then(Value::as_str).unwrap_or_default();
    let copy = Copy { noun: "disk", location, options: &CREATE_OPTIONS };
    let creation = copy.take(properties)?;
    let option = creation.get("createOption").and_then(Value::as_str).unwrap_or_default();
    if !matches!(option, "Copy" | "CopyStart" | "Restore") {
        properties.insert("creationData".into(), Value::Object(creation));
        return Ok(());
    }
    let source = copy.source(azure, &creation)?;
    let sku = body.get("sku").and_then(|sku| text(sku, "name")).unwrap_or(SKUS[0]);
    background_copy::check_complete(azure, source, sku)?;
    copy.of(azure, source, creation, properties)
}

fn size(proposal: &Proposal<'_>, sku: &str, properties: &mut Object) -> Result<(), Refusal> {
    let size = match integer(properties, "diskSizeGB")?.or_else(|| copy_source::size_from_outside(properties))
    {
        Some(size) => size,
        None => {
            return Err(Refusal::invalid_parameter(
                "disk.diskSizeGB",
                "Required parameter 'disk.diskSizeGB' is missing (null).",
            ));
        }
    };
    check_size("disk.diskSizeGB", size, largest(sku))?;
    check_growth("Disk", proposal, size)?;
    properties.insert("diskSizeGB".into(), size.into());
    Ok(())
}

/// Disks and snapshots grow only.
pub(crate) fn check_growth(noun: &str, proposal: &Proposal<'_>, size: i64) -> Result<(), Refusal> {
    let before = proposal.old_member("properties/diskSizeGB").and_then(Value::as_i64);
    match before.filter(|before| size < *before) {
        None => Ok(()),
        Some(before) => Err(Refusal::new(
            409,
            "OperationNotAllowed",
            format!(
                "{noun} {} has {before} GiB and cannot be made smaller; {size} GiB were asked for.",
                proposal.id
            ),
        )),
    }
}
