//! ARM's generic lists of resources, whatever provider they are of, and pages of ARM's own lists.

use std::collections::BTreeMap;

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::filter::Filter;
use azure_engine::answer::Answer;
use azure_engine::answer::paging::{page, sort};
use azure_engine::document::text;
use azure_engine::provider::{AzureState, Record};
use azure_engine::refusal::{Code, Result};

/// Most items of one page.
const MAX_PAGE_ITEMS: usize = 1_000;

/// One page of a list of ARM's own, after `$filter` and `$top`.
pub(super) fn listed(
    azure: &AzureState,
    records: Vec<&Record>,
    query: &BTreeMap<String, String>,
    show: impl Fn(&AzureState, &Record) -> Value,
) -> Result<Answer> {
    let given = |name: &str| query.get(name).map(String::as_str).filter(|value| !value.is_empty());
    let filter = given("$filter").map(Filter::parse).transpose()?;
    let top = match given("$top") {
        None => MAX_PAGE_ITEMS,
        Some(top) => {
            top.parse().ok().filter(|top| *top > 0).map(|top: usize| top.min(MAX_PAGE_ITEMS)).ok_or_else(
                || {
                    Code::ours(400, "InvalidTopInQueryString")
                        .says(format_args!("The value '{top}' of $top in the query string is invalid."))
                },
            )?
        }
    };
    let mut records = records;
    if let Some(filter) = &filter {
        records
            .retain(|record| filter.admits(record.body.get("tags"), &|field| field_of(azure, record, field)));
    }
    sort(&mut records, |record| record.id.as_str());
    let (records, next_page) = page(records, |record: &&Record| record.id.as_str(), given("$skiptoken"), top)
        .ok_or_else(|| {
            Code::ours(400, "InvalidSkipTokenInQueryString")
                .says("The $skiptoken in the query string is invalid.")
        })?;
    let shown = records.into_iter().map(|record| show(azure, record));
    Ok(Answer { next_page, ..Answer::list(shown) })
}

fn field_of(azure: &AzureState, record: &Record, field: &str) -> Option<String> {
    let member = |path: &str| text(&record.body, path).map(str::to_owned);
    match field {
        "resourcetype" => Some(record.resource_type.name().to_owned()),
        "name" => Some(record.id.name().to_owned()),
        "resourcegroup" => record.id.group_name().map(str::to_owned),
        "location" => member("location"),
        "plan/publisher" | "plan/product" | "plan/name" | "plan/version" => member(field),
        "identity/principalid" => {
            let shown = azure.present(record, Default::default());
            text(&shown, "identity/principalId").map(str::to_owned)
        }
        _ => None,
    }
}

/// GET of every tracked resource of a group or subscription, as ARM's generic lists show them.
pub(crate) fn list_resources(
    azure: &AzureState,
    scope: &ResourceId,
    query: &BTreeMap<String, String>,
) -> Result<Answer> {
    let records = azure
        .store
        .below(scope)
        .filter(|record| record.resource_type.protocol().tracked && record.id.namespace().is_some())
        .collect();
    let expand = query.get("$expand").map(|expand| expand.to_ascii_lowercase()).unwrap_or_default();
    listed(azure, records, query, |azure, record| {
        let shown = azure.present(record, Default::default());
        let mut item = json!({
            "id": shown.get("id"),
            "name": record.id.name(),
            "type": record.resource_type.name(),
        });
        for member in ["location", "tags", "sku", "zones", "kind", "identity", "plan", "managedBy"] {
            if let Some(value) = shown.get(member) {
                item[member] = value.clone();
            }
        }
        for (word, value) in [
            ("createdTime", record.created.to_string()),
            ("changedTime", record.created.to_string()),
            ("provisioningState", azure.state_name(record).to_owned()),
        ] {
            if expand.contains(&word.to_ascii_lowercase()) {
                item[word] = value.into();
            }
        }
        item
    })
}
