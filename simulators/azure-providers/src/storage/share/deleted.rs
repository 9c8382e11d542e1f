//! Deleted shares that can be restored for some days ("Prevent accidental deletion of Azure file shares").

use std::time::Duration;

use azure_engine::answer::Answer;
use azure_engine::document::text;
use azure_engine::provider::{AzureState, Record};
use azure_engine::refusal::{Code, Result};
use azure_types::ResourceId;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::super::contents::{self, DeletedShare};
use super::super::protocol::said;
use super::super::service::share_retention;
use super::names::{RESOURCE_TYPE, absent, account_of};
use super::shown;

/// Stores a share that is about to be deleted, if the account has soft delete, and blocks its name meanwhile.
pub(super) fn keep(azure: &mut AzureState, id: &ResourceId) {
    let now = azure.now();
    let retention = account_of(id).and_then(|account| share_retention(azure, &account));
    let Some(record) = azure.store.get(id) else { return };
    if let Some(days) = retention {
        let number = azure.seed.number("share version", id.as_str(), record.incarnation);
        let share = DeletedShare {
            id: record.id.clone(),
            version: format!("{number:016X}"),
            body: record.body.clone(),
            hidden: record.hidden.clone(),
            deleted: now,
            until: later(now, SignedDuration::from_hours(24 * days)),
        };
        contents::keep(azure, share);
    }
    // The name becomes free when everything behind it is gone.
    let draw = azure.seed.number("share garbage", id.as_str(), azure.requests);
    let wait = azure.latency.of("DELETE", RESOURCE_TYPE, Some("collect"), draw);
    if wait > Duration::ZERO {
        let wait = SignedDuration::try_from(wait).unwrap_or_default();
        contents::hold_name(azure, id, later(now, wait));
    }
}

fn later(time: Timestamp, wait: SignedDuration) -> Timestamp {
    time.checked_add(wait).unwrap_or(Timestamp::MAX)
}

/// The document of a deleted share, as lists show it.
pub(super) fn document(azure: &AzureState, share: &DeletedShare) -> Option<Value> {
    let left = share.until.duration_since(azure.time());
    let days = (left.as_secs() + 86_399) / 86_400;
    let mut record =
        Record::new(azure.resource_type(RESOURCE_TYPE)?, &share.id, share.body.clone(), share.deleted);
    record.hidden = share.hidden.clone();
    let mut document = shown::listed(azure, &record);
    for (member, value) in [
        ("deleted", json!(true)),
        ("deletedTime", json!(share.deleted.to_string())),
        ("remainingRetentionDays", json!(days)),
        ("version", json!(share.version)),
    ] {
        document["properties"][member] = value;
    }
    Some(document)
}

/// `POST shares/{name}/restore`: the path has the new name of the share.
pub(crate) fn restore(azure: &mut AzureState, id: &ResourceId, body: &Value) -> Result<Answer> {
    let name = text(body, "deletedShareName").unwrap_or_else(|| id.name()).to_owned();
    let version = text(body, "deletedShareVersion").unwrap_or_default().to_owned();
    Code::azures(409, "ShareAlreadyExists")
        .says_when(azure.store.get(id).is_some(), said(azure, "The specified share already exists."))?;
    let Some(service) = id.parent() else { return Err(absent(azure)) };
    if azure.store.get(&service).is_none() {
        return Err(azure.not_found(id));
    }
    let share =
        contents::take(azure, &service.child("shares", &name), &version, id).ok_or_else(|| absent(azure))?;
    let created = azure.now();
    let Some(shares) = azure.resource_type(RESOURCE_TYPE) else { return Err(absent(azure)) };
    let mut record = Record::new(shares, id, share.body, created);
    record.hidden = share.hidden;
    azure.insert(record);
    azure.revision += 1;
    Ok(Answer::empty(200))
}
