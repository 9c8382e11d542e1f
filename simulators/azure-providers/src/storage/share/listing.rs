//! Lists of shares, with snapshots and deleted shares.

use std::collections::BTreeMap;

use azure_engine::answer::Answer;
use azure_engine::answer::paging::page;
use azure_engine::provider::AzureState;
use azure_engine::refusal::{Refusal, Result};
use azure_types::ResourceId;
use serde_json::Value;

use super::super::contents;
use super::super::listing::{admits, page_size};
use super::names::RESOURCE_TYPE;
use super::{deleted, shown, snapshot};

/// What a list includes beside the shares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Expanded {
    pub(crate) snapshots: bool,
    pub(crate) deleted: bool,
}

impl Expanded {
    /// Reads words such as `deleted,snapshots`.
    pub(crate) fn parse(text: &str) -> Self {
        let has = |word: &str| text.split(',').any(|given| given.trim().eq_ignore_ascii_case(word));
        Self { snapshots: has("snapshots"), deleted: has("deleted") }
    }

    pub(super) fn any(self) -> bool {
        self.snapshots || self.deleted
    }
}

/// Everything of a service that a list shows, each with a key that orders it.
pub(crate) fn all(azure: &AzureState, service: &ResourceId, expanded: Expanded) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for record in azure.store.of_type_below(RESOURCE_TYPE, service) {
        if expanded.snapshots {
            for time in snapshot::times(record) {
                if let Ok(document) = snapshot::read(azure, &record.id, &time) {
                    all.push((format!("{}/{time}", record.id.name()), document));
                }
            }
        }
        // A share comes after its snapshots.
        all.push((format!("{}/~", record.id.name()), shown::listed(azure, record)));
    }
    if let (true, Some(account)) = (expanded.deleted, service.parent()) {
        for share in contents::deleted_shares(azure, &account) {
            let key = format!("{}/~{}", share.id.name(), share.version);
            all.extend(deleted::document(azure, share).map(|document| (key, document)));
        }
    }
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

/// The answer to a list with `$expand`.
pub(super) fn answer(
    azure: &AzureState,
    service: &ResourceId,
    expanded: Expanded,
    query: &BTreeMap<String, String>,
) -> Result<Answer> {
    azure.require_group(service)?;
    if azure.store.get(service).is_none() {
        return match service.parent().filter(|account| azure.store.get(account).is_none()) {
            Some(account) => Err(Refusal::parent_not_found("read", RESOURCE_TYPE, &account)),
            None => Err(azure.not_found(service)),
        };
    }
    let filter = query.get("$filter").map(String::as_str).unwrap_or_default();
    let mut all = all(azure, service, expanded);
    all.retain(|(key, _)| admits(filter, key.split('/').next().unwrap_or_default()));
    let token = query.get("$skiptoken").map(String::as_str);
    let (items, next_page) = page(all, |item| &item.0, token, page_size(query))
        .ok_or_else(|| Refusal::invalid_parameter("$skiptoken", "The skip token is invalid."))?;
    Ok(Answer { next_page, ..Answer::list(items.into_iter().map(|(_, document)| document)) })
}
