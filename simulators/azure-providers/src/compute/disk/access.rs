//! Access to the bytes of a disk or snapshot by URL (`beginGetAccess`, `endGetAccess`).

use azure_types::ResourceId;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::compute::machine::members::STORAGE;
use crate::compute::machine::uses_disks;
use crate::compute::tables::codes::OPERATION_NOT_ALLOWED;
use azure_engine::document::{at, text};
use azure_engine::error::Refusal;
use azure_engine::member_table::pointers_below;
use azure_engine::operation::Completion;
use azure_engine::provider::{Action, AzureState, Record};
use azure_engine::reference::Role;
use azure_engine::store::Referrer;

/// Where a disk keeps until when access is granted.
const HIDDEN: &str = "accessUntil";

/// Whether somebody may have access to the bytes now.
pub(crate) fn is_granted(azure: &AzureState, record: &Record) -> bool {
    let until = record.hidden.get(HIDDEN).and_then(Value::as_str);
    until.and_then(|until| until.parse::<Timestamp>().ok()).is_some_and(|until| azure.time() < until)
}

/// Refuses what cannot be done while somebody has access.
pub(crate) fn check_none(azure: &AzureState, disk: &Record) -> Result<(), Refusal> {
    if !is_granted(azure, disk) {
        return Ok(());
    }
    Err(OPERATION_NOT_ALLOWED.says(format_args!(
            "There is an active shared access signature outstanding for disk {}. Call EndGetAccess before attaching or \
             deleting the disk, or starting its machine.",
            disk.id.name()
        )))
}

/// Refuses what a machine cannot do while somebody has access to one of its disks.
pub(crate) fn check_none_of(azure: &AzureState, machine: &Record) -> Result<(), Refusal> {
    let storage = at(&machine.body, "properties/storageProfile");
    let disks = storage.into_iter().flat_map(|all| pointers_below(&STORAGE, &machine.id, all, Role::Uses));
    let mut records = disks.filter_map(|disk| azure.store.get(&disk.to));
    records.try_for_each(|disk| check_none(azure, disk))
}

/// Starts either action; `None` for any other.
pub(crate) fn begin(
    azure: &mut AzureState,
    id: &ResourceId,
    action: &str,
    body: &Value,
) -> Option<Result<Action, Refusal>> {
    match action.to_ascii_lowercase().as_str() {
        "begingetaccess" => Some(grant(azure, id, body)),
        "endgetaccess" => {
            if let Some(record) = azure.store.get_mut(id) {
                record.hidden.remove(HIDDEN);
            }
            azure.changed(id);
            let completion = Completion::Action("endGetAccess".into(), json!([id]));
            Some(Ok(Action { completion, answer: None }))
        }
        _ => None,
    }
}

fn grant(azure: &mut AzureState, id: &ResourceId, body: &Value) -> Result<Action, Refusal> {
    let record = azure.store.get(id).ok_or_else(|| azure.not_found(id))?;
    let access = text(body, "access").unwrap_or_default();
    if !["None", "Read", "Write"].contains(&access) {
        return Err(Refusal::invalid_parameter(
            "grantAccessData.access",
            "Required parameter 'grantAccessData.access' is missing (null).",
        ));
    }
    let seconds = body.get("durationInSeconds").and_then(Value::as_i64).filter(|seconds| *seconds > 0);
    let Some(seconds) = seconds else {
        return Err(Refusal::invalid_parameter(
            "grantAccessData.durationInSeconds",
            "Required parameter 'grantAccessData.durationInSeconds' is missing (null).",
        ));
    };
    if text(&record.body, "properties/networkAccessPolicy") == Some("DenyAll") {
        return Err(OPERATION_NOT_ALLOWED
            .says(format_args!("{} cannot be exported: its network access policy is DenyAll.", id.name())));
    }
    let uses = |user: &&Referrer| uses_disks(azure, &user.from);
    if let Some(user) = azure.store.referrers(id).find(uses) {
        return Err(OPERATION_NOT_ALLOWED.says(format_args!(
            "Cannot grant access to disk {} while it is attached to running VM {}.",
            id.name(),
            user.from
        )));
    }
    let key = azure.seed.guid("access", id.as_str(), record.incarnation).replace('-', "");
    let rights = if access == "Write" { "rw" } else { "r" };
    // Nobody can be reached by this name: there are no bytes behind a simulated disk.
    let url = format!("https://md-{key}.blob.storage.invalid/{key}?sr=b&sp={rights}&sig={key}");
    let until = azure.now().checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX);
    if let Some(record) = azure.store.get_mut(id) {
        record.hidden.insert(HIDDEN.into(), until.to_string().into());
    }
    azure.changed(id);
    Ok(Action { completion: Completion::Report(json!({ "accessSAS": url })), answer: None })
}
