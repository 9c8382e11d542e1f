//! Snapshots of disks (Azure REST reference, "Snapshots").

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::compute::disk;
use crate::compute::disk::access as disk_access;
use crate::compute::disk::background_copy;
use crate::compute::disk::copy_source;
use crate::compute::disk::copy_source::Copy;
use crate::compute::disk::disk_protocol;
use crate::compute::disk::quota as disk_quota;
use crate::compute::disk::sku::tier;
use crate::compute::shared::update::updated;
use crate::compute::tables::type_names::SNAPSHOT_TYPE;
use azure_engine::document::{
    Object, at, enumeration, fill, integer, into_object, strip, take_properties, text,
};
use azure_engine::error::Refusal;
use azure_engine::operation::Completion;
use azure_engine::provider::{Action, AzureState, Expand, Proposal, Protocol, Record, ResourceType};

const GIB: u64 = 1 << 30;

/// The size of the largest disk that Azure has, an Ultra disk: 64 TiB.
const MAX_GIB: i64 = 65_536;

/// Kinds of snapshots, the default first.
const SKUS: [&str; 3] = ["Standard_LRS", "Standard_ZRS", "Premium_LRS"];

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

pub(crate) struct Snapshots;

const PROTOCOL: Protocol =
    Protocol { actions: &["beginGetAccess", "endGetAccess"], ..disk_protocol(SNAPSHOT_TYPE, "Snapshot") };

impl ResourceType for Snapshots {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value, Refusal> {
        let given = copy_source::creation_data(proposal.body.get("properties"));
        let mut body = updated(&mut proposal);
        let mut properties = take_properties(&mut body);
        strip(&mut properties, &DERIVED);
        body.insert("sku".into(), Value::Object(sku(body.get("sku"))?));
        fill(&mut properties, "incremental", false);
        enumeration(&mut properties, "networkAccessPolicy", &["AllowAll", "AllowPrivate", "DenyAll"], false)?;
        enumeration(&mut properties, "publicNetworkAccess", &["Enabled", "Disabled"], false)?;
        match proposal.old {
            Some(old) => keep(old, &given, &mut properties)?,
            None => {
                let location = body.get("location").and_then(Value::as_str).unwrap_or_default();
                source(azure, location, &mut properties)?;
            }
        }
        size(&proposal, &mut properties)?;
        let kind = body.get("sku").and_then(|sku| text(sku, "name")).unwrap_or(SKUS[0]);
        let region = body.get("location").and_then(Value::as_str).unwrap_or_default();
        disk_quota::check(azure, &proposal, SNAPSHOT_TYPE, kind, region)?;
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
        disk_access::begin(azure, id, action, body)
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
        let gib = properties.get("diskSizeGB").and_then(Value::as_u64).unwrap_or_default();
        fill(properties, "encryption", json!({ "type": "EncryptionAtRestWithPlatformKey" }));
        fill(properties, "networkAccessPolicy", "AllowAll");
        fill(properties, "publicNetworkAccess", "Enabled");
        properties.insert("timeCreated".into(), record.created.to_string().into());
        properties.insert("diskSizeBytes".into(), gib.saturating_mul(GIB).into());
        properties.insert(
            "uniqueId".into(),
            azure.seed.guid("disk", record.id.as_str(), record.incarnation).into(),
        );
        let state = if disk_access::is_granted(azure, record) { "ActiveSAS" } else { "Unattached" };
        properties.insert("diskState".into(), state.into());
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
fn sku(given: Option<&Value>) -> Result<Object, Refusal> {
    let mut sku = given.cloned().map(into_object).unwrap_or_default();
    fill(&mut sku, "name", SKUS[0]);
    let given = sku.get("name").and_then(Value::as_str).unwrap_or_default();
    let Some(name) = SKUS.into_iter().find(|known| known.eq_ignore_ascii_case(given)) else {
        return Err(Refusal::invalid_parameter(
            "sku.name",
            format!(
                "SKU {given} is not supported for resource type Snapshot in this region. Supported SKUs for this region are {}",
                SKUS.join(",")
            ),
        ));
    };
    sku.insert("name".into(), name.into());
    sku.insert("tier".into(), tier(name).into());
    Ok(sku)
}

/// What a snapshot is of, and whether it is incremental, stays.
fn keep(old: &Record, given: &Value, properties: &mut Object) -> Result<(), Refusal> {
    let before = copy_source::creation_data(old.body.get("properties"));
    copy_source::check_unchanged(old.id.name(), &before, given)?;
    if properties.get("incremental") != at(&old.body, "properties/incremental") {
        return Err(copy_source::fixed(old.id.name(), "incremental"));
    }
    properties.insert("creationData".into(), before);
    Ok(())
}

fn size(proposal: &Proposal<'_>, properties: &mut Object) -> Result<(), Refusal> {
    if let Some(size) = copy_source::size_from_outside(properties) {
        fill(properties, "diskSizeGB", size);
    }
    let Some(size) = integer(properties, "diskSizeGB")?.filter(|size| (1..=MAX_GIB).contains(size)) else {
        return Err(Refusal::invalid_parameter(
            "snapshot.diskSizeGB",
            "Required parameter 'snapshot.diskSizeGB' is missing (null).",
        ));
    };
    disk::check_growth("Snapshot", proposal, size)
}

/// What the snapshot is of: a disk or another snapshot, which is remembered by its unique id.
fn source(azure: &AzureState, location: &str, properties: &mut Object) -> Result<(), Refusal> {
    let copy = Copy { noun: "snapshot", location, options: &["Copy", "CopyStart", "Import", "Empty"] };
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
    Err(Refusal::new(
        409,
        "OperationNotAllowed",
        format!("The maximum number of snapshots of {disk} is {most}. It has been reached."),
    ))
}
