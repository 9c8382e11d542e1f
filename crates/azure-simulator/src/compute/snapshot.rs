//! Snapshots of disks (`spec/arm-wire.md`, 10.5; `spec/csi.md`, snapshots): a copy in the background tells
//! how far it is.

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::disk::API_VERSIONS;
use super::disk_access;
use crate::engine::document::{
    Object, at, enumeration, fill, integer, into_object, strip, take_properties, text,
};
use crate::engine::error::Refusal;
use crate::engine::kind::{Action, Expand, Kind, Polling, Proposal, Protocol};
use crate::engine::operation::Completion;
use crate::engine::store::Record;
use crate::engine::world::World;

/// How long a background copy takes for each GiB, in milliseconds, and at least. Our choice: Azure
/// promises no speed.
const COPY_MS_PER_GIB: u64 = 200;
const SHORTEST_COPY_MS: u64 = 10_000;

const GIB: u64 = 1 << 30;

/// No disk is larger.
const LARGEST_GIB: i64 = 65_536;

/// What the service says about a snapshot.
const DERIVED: [&str; 9] = [
    "completionPercent",
    "copyCompletionError",
    "diskSizeBytes",
    "diskState",
    "incrementalSnapshotFamilyId",
    "provisioningState",
    "snapshotAccessState",
    "timeCreated",
    "uniqueId",
];

pub(super) struct Snapshots;

const PROTOCOL: Protocol = Protocol {
    api_versions: &API_VERSIONS,
    etagged: false,
    create_status: 202,
    update_status: 202,
    patch_status: 202,
    polling: Polling { segment: "DiskOperations", location_on_writes: true, output: true },
    ..super::protocol("Microsoft.Compute/snapshots", "Snapshot")
};

impl Kind for Snapshots {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn write(&self, world: &World, mut proposal: Proposal<'_>) -> Result<Value, Refusal> {
        let mut body = super::updated(&mut proposal);
        let mut properties = take_properties(&mut body);
        strip(&mut properties, &DERIVED);
        let mut sku = body.remove("sku").map(into_object).unwrap_or_default();
        enumeration(&mut sku, "name", &["Standard_LRS", "Standard_ZRS", "Premium_LRS"], true)?;
        let tier =
            if sku.get("name").is_some_and(|name| name == "Premium_LRS") { "Premium" } else { "Standard" };
        sku.insert("tier".into(), tier.into());
        body.insert("sku".into(), Value::Object(sku));
        fill(&mut properties, "incremental", false);
        enumeration(&mut properties, "networkAccessPolicy", &["AllowAll", "AllowPrivate", "DenyAll"], false)?;
        enumeration(&mut properties, "publicNetworkAccess", &["Enabled", "Disabled"], false)?;
        match proposal.old_member("properties/creationData") {
            Some(before) => {
                properties.insert("creationData".into(), before.clone());
            }
            None => source(world, &mut properties)?,
        }
        if integer(&properties, "diskSizeGB")?.is_none_or(|size| !(1..=LARGEST_GIB).contains(&size)) {
            return Err(Refusal::invalid_parameter(
                "snapshot.diskSizeGB",
                "Required parameter 'snapshot.diskSizeGB' is missing (null).",
            ));
        }
        body.insert("properties".into(), Value::Object(properties));
        Ok(Value::Object(body))
    }

    fn settled(&self, world: &mut World, id: &ResourceId, completion: &Completion, failed: bool) {
        if !failed
            && *completion == Completion::Write
            && let Some(record) = world.store.get_mut(id)
        {
            record.hidden.insert("provisioned".into(), true.into());
        }
    }

    fn act(
        &self,
        world: &mut World,
        id: &ResourceId,
        action: &str,
        body: &Value,
    ) -> Option<Result<Action, Refusal>> {
        disk_access::begin(world, id, action, body)
    }

    fn accepted(&self, _world: &World, _record: &Record, document: &mut Object) {
        if let Some(properties) = document.get_mut("properties").and_then(Value::as_object_mut) {
            properties.insert("provisioningState".into(), "Updating".into());
        }
    }

    fn present(&self, world: &World, record: &Record, document: &mut Object, _expand: Expand) {
        let Some(properties) = document.get_mut("properties").and_then(Value::as_object_mut) else { return };
        if record.hidden.get("provisioned").is_none() {
            return;
        }
        let gib = properties.get("diskSizeGB").and_then(Value::as_u64).unwrap_or_default();
        fill(properties, "encryption", json!({ "type": "EncryptionAtRestWithPlatformKey" }));
        fill(properties, "networkAccessPolicy", "AllowAll");
        fill(properties, "publicNetworkAccess", "Enabled");
        properties.insert("timeCreated".into(), record.created.to_string().into());
        properties.insert("diskSizeBytes".into(), gib.saturating_mul(GIB).into());
        properties.insert(
            "uniqueId".into(),
            world.seed.guid("disk", record.id.as_str(), record.incarnation).into(),
        );
        let state = if disk_access::is_granted(world, record) { "ActiveSAS" } else { "Unattached" };
        properties.insert("diskState".into(), state.into());
        if let Some(family) = at(&record.body, "properties/creationData/sourceUniqueId").cloned()
            && properties.get("incremental") == Some(&Value::Bool(true))
        {
            properties.insert("incrementalSnapshotFamilyId".into(), family);
        }
        if let Some(percent) = progress(world, record, gib) {
            properties.insert("completionPercent".into(), percent.into());
        }
    }
}

/// How far a background copy is, in percent: incremental snapshots of the fast kinds of disks and
/// copies between regions run in the background.
fn progress(world: &World, record: &Record, gib: u64) -> Option<f64> {
    let option = text(&record.body, "properties/creationData/createOption")?;
    let background = option == "CopyStart" || record.body["properties"]["incremental"] == true;
    if !background {
        return None;
    }
    let whole = (gib * COPY_MS_PER_GIB).max(SHORTEST_COPY_MS) as f64;
    let passed = world.time().duration_since(record.created).as_millis().max(0) as f64;
    Some((passed / whole * 100.0).min(100.0).floor())
}

/// What the snapshot is of: a disk or another snapshot, which is remembered by its unique id.
fn source(world: &World, properties: &mut Object) -> Result<(), Refusal> {
    let mut creation = properties.remove("creationData").map(into_object).unwrap_or_default();
    if !creation.contains_key("createOption") {
        return Err(Refusal::invalid_parameter(
            "snapshot.creationData.createOption",
            "Required parameter 'snapshot.creationData.createOption' is missing (null).",
        ));
    }
    enumeration(&mut creation, "createOption", &["Copy", "CopyStart", "Import", "Empty"], false)?;
    let option = creation.get("createOption").and_then(Value::as_str).unwrap_or_default();
    if matches!(option, "Copy" | "CopyStart") {
        let given = creation.get("sourceResourceId").and_then(Value::as_str).unwrap_or_default();
        let found = ResourceId::parse(given).ok().and_then(|source| world.store.get(&source));
        let Some(found) = found else {
            return Err(Refusal::new(404, "NotFound", format!("Disk {given} is not found.")).at(given));
        };
        check_count(world, &found.id)?;
        creation.insert("sourceResourceId".into(), found.id.as_str().into());
        creation.insert(
            "sourceUniqueId".into(),
            world.seed.guid("disk", found.id.as_str(), found.incarnation).into(),
        );
        for member in ["diskSizeGB", "osType", "hyperVGeneration"] {
            if let Some(value) = at(&found.body, &format!("properties/{member}")) {
                fill(properties, member, value.clone());
            }
        }
    }
    properties.insert("creationData".into(), Value::Object(creation));
    Ok(())
}

/// Of one disk there are only so many snapshots.
fn check_count(world: &World, disk: &ResourceId) -> Result<(), Refusal> {
    let most = world.limit("compute.snapshotsPerDisk");
    let of_disk = |snapshot: &&Record| {
        text(&snapshot.body, "properties/creationData/sourceResourceId")
            .is_some_and(|source| source.eq_ignore_ascii_case(disk.as_str()))
    };
    let count = world.store.of_type(Snapshots.resource_type()).filter(of_disk).count() as u64;
    if count < most {
        return Ok(());
    }
    Err(Refusal::new(
        409,
        "OperationNotAllowed",
        format!("The maximum number of snapshots of {disk} is {most}. It has been reached."),
    ))
}
