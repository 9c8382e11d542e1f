//! How big shares may be, and what they provision ("Azure Files scalability and performance targets", "Understand Azure
//! Files billing").

use azure_engine::document::{Object, at};
use azure_engine::provider::AzureState;
use azure_engine::refusal::{Code, Result};
use azure_types::ResourceId;
use serde_json::Value;

use super::super::account::sku::{is_provisioned_v2, kind_of, sku_of};
use super::super::protocol::said;
use super::names::{RESOURCE_TYPE, account_of, bad_header};
use crate::storage::contents;

/// Least, most and default GiB of a share.
fn range(account: &Value) -> (i64, i64, i64) {
    let premium = sku_of(account).starts_with("Premium");
    let large = at(account, "properties/largeFileSharesState").and_then(Value::as_str) == Some("Enabled");
    match (kind_of(account).name, is_provisioned_v2(sku_of(account))) {
        ("FileStorage", true) => (32, 262_144, 1_024),
        ("FileStorage", false) if premium => (100, 102_400, 100),
        _ if large => (1, 102_400, 102_400),
        _ => (1, 5_120, 5_120),
    }
}

/// Checks `shareQuota` and fills in what follows from it.
pub(super) fn normalise(
    azure: &AzureState,
    share: &ResourceId,
    account: &Value,
    properties: &mut Object,
) -> Result<()> {
    let (least, most, usual) = range(account);
    let quota = match properties.get("shareQuota") {
        None => usual,
        Some(given) => given.as_i64().ok_or_else(|| bad_header(azure))?,
    };
    if !(least..=most).contains(&quota) {
        return Err(bad_header(azure));
    }
    properties.insert("shareQuota".into(), quota.into());
    if kind_of(account).name == "FileStorage" {
        check_room(azure, share, account, quota)?;
    }
    if is_provisioned_v2(sku_of(account)) {
        let (iops, bandwidth) = provisioned(sku_of(account), quota);
        properties.entry("provisionedIops").or_insert_with(|| iops.into());
        properties.entry("provisionedBandwidthMibps").or_insert_with(|| bandwidth.into());
    }
    Ok(())
}

/// The default performance of a share: operations a second and MiB a second.
fn provisioned(sku: &str, quota: i64) -> (i64, i64) {
    let share = |parts: i64, of: i64| (quota * parts + of - 1) / of;
    match sku.starts_with("Premium") {
        true => ((3_000 + quota).min(102_400), (100 + share(1, 10)).min(10_340)),
        false => ((1_000 + share(1, 5)).min(50_000), (60 + share(1, 50)).min(5_120)),
    }
}

/// All shares of an account together must fit its size; deleted shares that can be restored count.
fn check_room(azure: &AzureState, share: &ResourceId, account: &Value, quota: i64) -> Result<()> {
    let Some(id) = account_of(share) else { return Ok(()) };
    let size = |body: &Value| at(body, "properties/shareQuota").and_then(Value::as_i64).unwrap_or_default();
    let others = azure.store.of_type_below(RESOURCE_TYPE, &id);
    let mut sizes: Vec<i64> =
        others.iter().filter(|other| other.id != *share).map(|other| size(&other.body)).collect();
    sizes.extend(contents::deleted_shares(azure, &id).map(|deleted| size(&deleted.body)));
    let v2 = is_provisioned_v2(sku_of(account));
    Code::azures(409, "TotalSharesCountExceedsAccountLimit").says_when(
        v2 && sizes.len() as u64 >= azure.limit("storage.provisionedV2SharesPerAccount"),
        said(azure, "The total number of the shares cannot exceed the account limit."),
    )?;
    let limit = if v2 { "storage.provisionedV2GibPerAccount" } else { "storage.premiumGibPerAccount" };
    let total = sizes.iter().sum::<i64>() + quota;
    Code::azures(409, "TotalSharesProvisionedCapacityExceedsAccountLimit").says_when(
        !u64::try_from(total).is_ok_and(|total| total <= azure.limit(limit)),
        said(
            azure,
            "The total provisioned capacity of the shares cannot exceed the account maximum size limit.",
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::provisioned;

    #[test]
    fn performance_follows_from_the_size() {
        assert_eq!(provisioned("StandardV2_LRS", 100), (1_020, 62));
        assert_eq!(provisioned("PremiumV2_ZRS", 1_000), (4_000, 200));
        assert_eq!(provisioned("PremiumV2_LRS", 262_144), (102_400, 10_340));
    }
}
