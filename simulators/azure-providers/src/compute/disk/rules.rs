//! What a disk can be asked for beside its size, which depends on its kind: how many machines share it, how fast it
//! is, and when its kind can change ("Azure managed disk types", "Share an Azure managed disk").

use serde_json::Value;

use crate::compute::disk::background_copy::is_fast;
use crate::compute::disk::performance as disk_performance;
use crate::compute::disk::sku::kind_of;
use crate::compute::machine::uses_disks;
use crate::compute::tables::codes::{BAD_REQUEST, OPERATION_NOT_ALLOWED};
use azure_engine::document::{Object, at, text};
use azure_engine::error::Refusal;
use azure_engine::provider::{AzureState, Proposal, Record};

/// What fast disks alone are told.
const FIGURES: [&str; 2] = ["diskIOPSReadWrite", "diskMBpsReadWrite"];

/// A disk that is to be written.
pub(crate) struct Wanted<'a> {
    pub(crate) proposal: &'a Proposal<'a>,
    /// The properties that the client sent.
    pub(crate) given: &'a Value,
    pub(crate) sku: &'a str,
    pub(crate) gib: u64,
}

impl Wanted<'_> {
    /// Checks all of it. What follows from kind and size is not kept, so that it changes with them.
    pub(crate) fn check(&self, azure: &AzureState, properties: &mut Object) -> Result<(), Refusal> {
        self.check_kind(azure)?;
        self.check_shares(azure, properties)?;
        let becomes_fast = self.proposal.old.is_some_and(|old| !is_fast(kind_of(old)));
        for member in FIGURES {
            if !is_fast(self.sku) {
                self.drop_echo(member, properties, "disks of the kinds PremiumV2_LRS and UltraSSD_LRS")?;
            } else if becomes_fast && self.is_echo(member) {
                properties.remove(member);
            }
        }
        self.check_tier(properties)
    }

    fn check_shares(&self, azure: &AzureState, properties: &Object) -> Result<(), Refusal> {
        let shares = properties.get("maxShares").and_then(Value::as_i64).unwrap_or(1);
        let most = disk_performance::most_shares(self.sku, self.gib);
        let id = self.proposal.id;
        if !(1..=most).contains(&shares) {
            return Err(BAD_REQUEST.says(format_args!(
                    "MaxShares '{shares}' for disk '{}' of size '{}' GB is invalid. A {} disk of this size takes 1 to {most}.",
                    id.name(),
                    self.gib,
                    self.sku
                )));
        }
        let Some(old) = self.proposal.old else { return Ok(()) };
        let before = at(&old.body, "properties/maxShares").and_then(Value::as_i64).unwrap_or(1);
        if before != shares && azure.store.referrers(id).next().is_some() {
            return Err(OPERATION_NOT_ALLOWED.says(format_args!(
                    "The maxShares of disk {} can be changed from {before} to {shares} only while no machine has the disk.",
                    id.name()
                )));
        }
        Ok(())
    }

    /// The kind changes while no machine uses the disk; fast kinds do not become others, nor others UltraSSD_LRS.
    fn check_kind(&self, azure: &AzureState) -> Result<(), Refusal> {
        let Some(before) = self.proposal.old.map(kind_of).filter(|before| *before != self.sku) else {
            return Ok(());
        };
        let name = self.proposal.id.name();
        let change = format!("The kind of disk {name} cannot be changed from {before} to {}", self.sku);
        if is_fast(before) || self.sku == "UltraSSD_LRS" {
            let text = format!("{change}. Make a snapshot, and a disk of the other kind from it.");
            return Err(OPERATION_NOT_ALLOWED.says(text));
        }
        let user = azure.store.referrers(self.proposal.id).find(|user| uses_disks(azure, &user.from));
        match user {
            None => Ok(()),
            Some(user) => Err(OPERATION_NOT_ALLOWED
                .says(format_args!("{change} while it is attached to running VM {}.", user.from))),
        }
    }

    /// Premium disks may perform as larger ones, but not as smaller ones.
    fn check_tier(&self, properties: &mut Object) -> Result<(), Refusal> {
        let usual = disk_performance::of(self.sku, self.gib, None).tier;
        let Some(usual) = usual else {
            return self.drop_echo("tier", properties, "disks of the kinds Premium_LRS and Premium_ZRS");
        };
        let tier = properties.get("tier").and_then(Value::as_str).unwrap_or(usual);
        let low = disk_performance::size_of_tier(tier) < disk_performance::size_of_tier(usual);
        let asked = self.given.get("tier").is_some() && !self.is_echo("tier");
        if !low && (asked || self.proposal.old_member("properties/tier").is_some()) {
            return Ok(());
        }
        if !asked {
            // A disk that outgrew its tier has the usual one.
            properties.remove("tier");
            return Ok(());
        }
        Err(Refusal::invalid_parameter(
            "disk.tier",
            format!(
                "The value '{tier}' of parameter 'disk.tier' is not allowed for a disk of {} GiB: it must be {usual} or a \
                 higher tier.",
                self.gib
            ),
        ))
    }

    /// Takes a member away that disks of this kind are not told. Who sends back what was shown asks for nothing.
    fn drop_echo(&self, member: &str, properties: &mut Object, of: &str) -> Result<(), Refusal> {
        properties.remove(member);
        match self.given.get(member).filter(|_| !self.is_echo(member)) {
            None => Ok(()),
            Some(value) => Err(Refusal::invalid_parameter(
                &format!("disk.{member}"),
                format!(
                    "The value {value} of parameter 'disk.{member}' is not allowed: it is for {of} alone."
                ),
            )),
        }
    }

    /// Whether the client sent what the disk shows already.
    fn is_echo(&self, member: &str) -> bool {
        let Some(given) = self.given.get(member) else { return false };
        self.proposal.old.is_some_and(|old| shown(old, member).is_some_and(|shown| shown == *given))
    }
}

/// What a disk shows of its speed.
fn shown(disk: &Record, member: &str) -> Option<Value> {
    if let Some(own) = at(&disk.body, &format!("properties/{member}")) {
        return Some(own.clone());
    }
    let gib = at(&disk.body, "properties/diskSizeGB").and_then(Value::as_u64).unwrap_or_default();
    let figures = disk_performance::of(kind_of(disk), gib, text(&disk.body, "properties/tier"));
    match member {
        "diskIOPSReadWrite" => Some(figures.iops.into()),
        "diskMBpsReadWrite" => Some(figures.mbps.into()),
        _ => figures.tier.map(Value::from),
    }
}
