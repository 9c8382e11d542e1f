//! All record sets of a zone, whatever type they are of (`ALL`, and `recordsets` of public zones).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use azure_engine::provider::{AzureState, Expand, Record};
use azure_engine::refusal::Refusal;

/// GET of all record sets, those whose names end as `$recordsetnamesuffix` says.
pub(crate) fn all(
    azure: &AzureState,
    zone: &Record,
    below: &[&str],
    query: &BTreeMap<String, String>,
) -> Option<Result<Value, Refusal>> {
    match below {
        [word] if word.eq_ignore_ascii_case("all") || word.eq_ignore_ascii_case("recordsets") => {}
        _ => return None,
    }
    let suffix = query.get("$recordsetnamesuffix").map(|suffix| suffix.to_lowercase()).unwrap_or_default();
    let top = query.get("$top").and_then(|top| top.parse().ok()).unwrap_or(usize::MAX);
    let sets =
        azure.store.below(&zone.id).filter(|record| record.resource_type.protocol().noun == "RecordSet");
    let named = sets.filter(|record| record.id.name().to_lowercase().ends_with(&suffix));
    let shown: Vec<Value> = named.take(top).map(|record| azure.present(record, Expand::default())).collect();
    Some(Ok(json!({ "value": shown })))
}
