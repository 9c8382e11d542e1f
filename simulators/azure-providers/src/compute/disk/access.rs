//! Access to the bytes of a disk or snapshot by URL (`beginGetAccess`, `endGetAccess`).

use azure_types::ResourceId;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::compute::machine::uses_disks;
use crate::compute::tables::codes::OPERATION_NOT_ALLOWED;
use crate::compute::tables::words::missing;
use azure_engine::document::text;
use azure_engine::operation::Completion;
use azure_engine::provider::{Action, AzureState, Record};
use azure_engine::refusal::{Handled, Result};

/// The hidden member with the time until which access is granted.
const HIDDEN: &str = "accessUntil";

/// Whether access to the bytes is granted now.
pub(crate) fn is_granted(azure: &AzureState, record: &Record) -> bool {
    let until = record.hidden.get(HIDDEN).and_then(Value::as_str);
    until.and_then(|until| until.parse::<Timestamp>().ok()).is_some_and(|until| azure.time() < until)
}

/// Refuses operations that need a disk without granted access.
pub(crate) fn check_none(azure: &AzureState, disk: &Record) -> Result<()> {
    OPERATION_NOT_ALLOWED.says_when(
        is_granted(azure, disk),
        format_args!(
            "There is an active shared access signature outstanding for disk {}. Call EndGetAccess before attaching or \
             deleting the disk, or starting its machine.",
            disk.id.name()
        ),
    )
}

/// Starts either action; `None` for any other.
pub(crate) fn begin(azure: &mut AzureState, id: &ResourceId, action: &str, body: &Value) -> Handled<Action> {
    match action.to_ascii_lowercase().as_str() {
        "begingetaccess" => Some(grant(azure, id, body)),
        "endgetaccess" => {
            let completion = Completion::Action("endGetAccess".into(), json!([id]));
            azure.store.get_mut(id)?.hidden.remove(HIDDEN);
            azure.changed(id);
            Some(Ok(Action::begun(completion)))
        }
        _ => None,
    }
}

fn grant(azure: &mut AzureState, id: &ResourceId, body: &Value) -> Result<Action> {
    let access = text(body, "access").filter(|access| ["None", "Read", "Write"].contains(access));
    let access = access.ok_or_else(|| missing("grantAccessData.access"))?;
    let seconds = body.get("durationInSeconds").and_then(Value::as_i64).filter(|seconds| *seconds > 0);
    let seconds = seconds.ok_or_else(|| missing("grantAccessData.durationInSeconds"))?;
    let name = id.name();
    if let Some(user) = azure.store.referrers(id).find(|user| uses_disks(azure, &user.from)) {
        return Err(OPERATION_NOT_ALLOWED.says(format_args!(
            "Cannot grant access to disk {name} while it is attached to running VM {}.",
            user.from
        )));
    }
    let until = azure.now().checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX);
    let key = azure.seed.guid("access", id.as_str(), azure.store.incarnation(id)).replace('-', "");
    let rights = if access == "Write" { "rw" } else { "r" };
    // The host name does not resolve: there are no bytes behind a simulated disk.
    let url = format!("https://md-{key}.blob.storage.invalid/{key}?sr=b&sp={rights}&sig={key}");
    if let Some(record) = azure.store.get_mut(id) {
        let denied = text(&record.body, "properties/networkAccessPolicy") == Some("DenyAll");
        let text = format_args!("{name} cannot be exported: its network access policy is DenyAll.");
        OPERATION_NOT_ALLOWED.says_when(denied, text)?;
        record.hidden.insert(HIDDEN.into(), until.to_string().into());
    }
    azure.changed(id);
    Ok(Action::begun(Completion::Report(json!({ "accessSAS": url }))))
}
