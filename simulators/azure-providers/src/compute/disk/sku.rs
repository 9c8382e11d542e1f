//! Kinds of managed disks, and how large they can be.

use azure_engine::error::Refusal;

/// Kinds of disks, the default first.
pub(crate) const SKUS: [&str; 7] = [
    "Standard_LRS",
    "StandardSSD_LRS",
    "StandardSSD_ZRS",
    "Premium_LRS",
    "Premium_ZRS",
    "PremiumV2_LRS",
    "UltraSSD_LRS",
];

/// The largest disk of a kind, in GiB.
pub(crate) fn largest(sku: &str) -> i64 {
    if matches!(sku, "PremiumV2_LRS" | "UltraSSD_LRS") { 65_536 } else { 32_767 }
}

/// A disk has a size that there is.
pub(crate) fn check_size(member: &str, gib: i64, largest: i64) -> Result<(), Refusal> {
    if (1..=largest).contains(&gib) {
        return Ok(());
    }
    Err(Refusal::invalid_parameter(
        member,
        format!(
            "The value {gib} of parameter '{member}' is out of range. The value must be between 1 and {largest}, \
             inclusive."
        ),
    ))
}

pub(crate) fn tier(sku: &str) -> &'static str {
    match sku {
        name if name.starts_with("Premium") => "Premium",
        name if name.starts_with("Ultra") => "Ultra",
        _ => "Standard",
    }
}

/// The kind of system disk that a size gets: those with an `s` behind their number take premium disks.
pub(crate) fn usual_disk(size: &str) -> &'static str {
    let series = size.split('_').nth(1).unwrap_or_default();
    let premium = series.trim_start_matches(|c: char| !c.is_ascii_digit()).contains('s');
    if premium { "Premium_LRS" } else { "Standard_LRS" }
}
