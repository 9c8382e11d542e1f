//! Rules for the members of a disk that depend on its kind: the number of machines that share it, its performance, and
//! changes of its kind ("Azure managed disk types", "Share an Azure managed disk").

use serde_json::Value;

use crate::compute::disk::background_copy::is_fast;
use crate::compute::disk::sku::kind_of;
use crate::compute::disk::{background_copy, performance};
use crate::compute::machine::uses_disks;
use crate::compute::tables::codes::{BAD_REQUEST, OPERATION_NOT_ALLOWED};
use azure_engine::document::{number, remove_at};
use azure_engine::provider::{AzureState, Proposal};
use azure_engine::refusal::{Refusal, Result};

/// Disks above this size, 4 TiB, are of another make.
const LARGE_GIB: u64 = 4_096;

/// Checks all of it. Figures that follow from kind and size are not stored, so that they change with them.
pub(crate) fn check(azure: &AzureState, proposal: &Proposal<'_>, sku: &str, body: &mut Value) -> Result<()> {
    check_kind(azure, proposal, sku)?;
    check_shares(azure, proposal, sku, body)?;
    check_growth(azure, proposal, sku, body)?;
    check_figures(proposal, sku, body)
}

fn check_shares(azure: &AzureState, proposal: &Proposal<'_>, sku: &str, body: &Value) -> Result<()> {
    let shares_of = |body| number(body, "properties/maxShares").unwrap_or(1);
    let (name, shares) = (proposal.id.name(), shares_of(body));
    let gib = number(body, "properties/diskSizeGB").unwrap_or_default();
    let most = performance::most_shares(sku, gib);
    BAD_REQUEST.says_when(
        !(1..=most).contains(&shares),
        format_args!(
            "MaxShares '{shares}' for disk '{name}' of size '{gib}' GB is invalid. A {sku} disk of this size takes 1 to \
             {most}."
        ),
    )?;
    let before = proposal.old.map_or(shares, |old| shares_of(&old.body));
    let used = azure.store.referrers(proposal.id).next().is_some();
    OPERATION_NOT_ALLOWED.says_when(
        used && before != shares,
        format_args!(
            "The maxShares of disk {name} can be changed from {before} to {shares} only while no machine has the disk."
        ),
    )
}

/// Disks that running machines have grow up to 4 TiB or beyond it, but not across; fast ones do ("Expand virtual hard
/// disks on a Linux VM"). No disk grows while its data are copied.
fn check_growth(azure: &AzureState, proposal: &Proposal<'_>, sku: &str, body: &Value) -> Result<()> {
    let size_of = |body| number(body, "properties/diskSizeGB").unwrap_or_default();
    let (before, size) = (proposal.old.map_or(0, |old| size_of(&old.body)), size_of(body));
    if let Some(old) = proposal.old.filter(|_| before != size) {
        let change = format!("The size of disk {} cannot be changed", proposal.id.name());
        background_copy::check_disk_complete(azure, old, &change)?;
    }
    if is_fast(sku) || proposal.old.is_none() || before > LARGE_GIB || size <= LARGE_GIB {
        return Ok(());
    }
    let used = azure.store.referrers(proposal.id).any(|user| uses_disks(azure, &user.from));
    OPERATION_NOT_ALLOWED.says_when(
        used,
        format_args!(
            "Disk of size {before} GB (<={LARGE_GIB} GB) cannot be resized to {size} GB (>{LARGE_GIB} GB) while it is attached              to a running VM. Please stop your VM or detach the disk and retry the operation."
        ),
    )
}

/// The kind changes while no machine uses the disk; fast kinds do not become others, nor others UltraSSD_LRS.
fn check_kind(azure: &AzureState, proposal: &Proposal<'_>, sku: &str) -> Result<()> {
    let Some(before) = proposal.old.map(kind_of).filter(|before| *before != sku) else { return Ok(()) };
    let name = proposal.id.name();
    let change = format!("The kind of disk {name} cannot be changed from {before} to {sku}");
    if let Some(old) = proposal.old {
        background_copy::check_disk_complete(azure, old, &change)?;
    }
    OPERATION_NOT_ALLOWED.says_when(
        is_fast(before) || sku == "UltraSSD_LRS",
        format_args!("{change}. Make a snapshot, and a disk of the other kind from it."),
    )?;
    match azure.store.referrers(proposal.id).find(|user| uses_disks(azure, &user.from)) {
        None => Ok(()),
        Some(user) => Err(OPERATION_NOT_ALLOWED
            .says(format_args!("{change} while it is attached to running VM {}.", user.from))),
    }
}

/// Only fast disks take performance figures. For other disks, a client that sends back the figures it was shown changes
/// nothing.
fn check_figures(proposal: &Proposal<'_>, sku: &str, body: &mut Value) -> Result<()> {
    let shown = proposal.old.filter(|old| !is_fast(kind_of(old))).map(|old| {
        performance::of(kind_of(old), number(&old.body, "properties/diskSizeGB").unwrap_or_default())
    });
    for (member, shown) in [
        ("diskIOPSReadWrite", shown.as_ref().map(|shown| shown.iops)),
        ("diskMBpsReadWrite", shown.as_ref().map(|shown| shown.mbps)),
    ] {
        let given = number(&proposal.given, member).filter(|given| Some(*given) != shown);
        if let (Some(given), false) = (given, is_fast(sku)) {
            let text = format!(
                "The value {given} of parameter 'disk.{member}' is not allowed: it is for disks of the kinds PremiumV2_LRS \
                 and UltraSSD_LRS alone."
            );
            return Err(Refusal::invalid_parameter(&format!("disk.{member}"), text));
        }
        if !is_fast(sku) || (given.is_none() && shown.is_some()) {
            remove_at(body, &format!("properties/{member}"));
        }
    }
    Ok(())
}
