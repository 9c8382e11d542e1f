//! Snapshots of disks (Azure REST reference, "Snapshots").

use azure_types::ResourceId;
use serde_json::Value;

use crate::compute::disk::sku::take_kind;
use crate::compute::disk::{access, background_copy, contents, copy_source, members, protection};
use crate::compute::disk::{check_growth, disk_protocol, present_usual};
use crate::compute::tables::type_names::SNAPSHOT_TYPE;
use azure_engine::document::{Object, at, flag, text};
use azure_engine::provider::{
    Acting, Action, AzureState, Expand, Presenting, Proposal, Protocol, Record, Writing,
};
use azure_engine::refusal::{Handled, Refusal, Result};
use azure_engine::store::State;

/// Kinds of snapshots, the default first.
const SKUS: [&str; 3] = ["Standard_LRS", "Standard_ZRS", "Premium_LRS"];

pub(crate) struct Snapshots;

const PROTOCOL: Protocol = Protocol {
    members: &members::SNAPSHOT,
    envelope: &members::SNAPSHOT_ENVELOPE,
    example: include_str!("snapshot.json"),
    actions: &["beginGetAccess", "endGetAccess"],
    ..disk_protocol(SNAPSHOT_TYPE, "Snapshot")
};

shape!(Snapshots, PROTOCOL);

impl Writing for Snapshots {
    fn before_write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value> {
        let mut body = proposal.take();
        let kind = take_kind(&mut body);
        let known = SKUS.join(",");
        Refusal::invalid_when(
            !SKUS.contains(&kind.as_str()),
            "sku.name",
            format_args!(
                "SKU {kind} is not supported for resource type Snapshot in this region. Supported SKUs for this region are {known}"
            ),
        )?;
        if proposal.old.is_none()
            && let Some(source) = copy_source::find(azure, "snapshot", &mut body)?
        {
            check_way(source, &body)?;
        }
        check_growth("snapshot", &proposal, &body)?;
        protection::check(azure, "snapshot", &mut body)?;
        Ok(body)
    }

    fn after_write(&self, azure: &mut AzureState, id: &ResourceId, old: Option<&Value>) {
        if old.is_none() {
            background_copy::remember(azure, id);
            contents::copy(azure, id);
        }
    }
}

impl Presenting for Snapshots {
    fn present_unfinished(&self, _azure: &AzureState, _record: &Record, document: &mut Object) {
        document["properties"]["provisioningState"] = "Updating".into();
    }

    fn present(&self, azure: &AzureState, record: &Record, document: &mut Object, _expand: Expand) {
        if record.state == State::Creating {
            return;
        }
        let state = if access::is_granted(azure, record) { "ActiveSAS" } else { "Unattached" };
        present_usual(azure, record, document, state);
        let family = at(&record.body, "properties/creationData/sourceUniqueId");
        if let Some(family) = family.filter(|_| flag(&record.body, "properties/incremental")) {
            document["properties"]["incrementalSnapshotFamilyId"] = family.clone();
        }
        if let Some(percent) = background_copy::progress(azure, record) {
            document["properties"]["completionPercent"] = percent.into();
        }
    }
}

impl Acting for Snapshots {
    fn act(&self, azure: &mut AzureState, id: &ResourceId, action: &str, body: &Value) -> Handled<Action> {
        access::begin(azure, id, action, body)
    }
}

/// Checks the way of copying: only incremental snapshots are copied in the background, and fast disks only into
/// incremental snapshots.
fn check_way(source: &Record, body: &Value) -> Result<()> {
    let background = text(body, "properties/creationData/createOption") == Some("CopyStart");
    let incremental = flag(body, "properties/incremental");
    let id = &source.id;
    Refusal::invalid_when(
        background && !(incremental && flag(&source.body, "properties/incremental")),
        "snapshot.creationData.createOption",
        format_args!(
            "The value 'CopyStart' of parameter 'snapshot.creationData.createOption' is not allowed: it makes an \
             incremental snapshot of another one, which {id} is not or which is not asked for."
        ),
    )?;
    Refusal::invalid_when(
        !incremental && background_copy::is_of_fast_disk(source),
        "snapshot.incremental",
        format_args!(
            "The value 'false' of parameter 'snapshot.incremental' is not allowed: of {id} there are incremental snapshots \
             only."
        ),
    )
}
