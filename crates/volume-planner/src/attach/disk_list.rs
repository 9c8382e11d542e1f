//! The list of data disks that serves all waiting attaches and detaches of a machine in one write.
//!
//! [`plan`] is a pure function of the observed list, the intents and the machine. Its guarantees:
//!
//! * Entries of other disks stay as they were read, in their order.
//! * Entries that it adds have different LUNs, which neither the list nor a reservation of another disk holds.
//! * The list never has more entries than the machine takes, unless it had them before.
//! * Every intent has an outcome; an attach that is served is in the list.
//! * Planning again with the new list changes nothing, and the order of intents does not matter.
//!
//! What it assumes: the observed list is what Azure has now, which the caller ensures by writing with `If-Match`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::data_disk::{find, is_leaving, is_of, lun, mark_leaving, new_entry};
use super::intent::{Attach, Detach};
use super::machine::{Machine, manager_id};
use crate::model::error::Refusal;
use crate::model::id::DiskId;

/// The number of LUNs that any machine has.
pub const MAX_LUNS: u32 = 64;
/// The state of a disk that can be attached.
const UNATTACHED: &str = "Unattached";

/// What becomes of an attach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttachOutcome {
    /// Azure's list has the disk at this LUN: the caller can be answered.
    Present(u32),
    /// The new list has it at this LUN: the caller is answered once Azure's list shows it.
    Added(u32),
    /// It waits for a detach, either of the same disk or of another one whose slot it needs: plan again when that has ended.
    WaitsForDetach,
    /// It cannot be served.
    Refused(Refusal),
}

/// What becomes of a detach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DetachOutcome {
    /// The list has no such disk: the caller can be answered.
    Absent,
    /// Azure is detaching it already.
    Leaving,
    /// The new list detaches it.
    Requested,
}

/// What is to be written, and an outcome for each intent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPlan {
    /// The whole new list; absent if nothing changes.
    pub data_disks: Option<Vec<Value>>,
    /// By disk: of several attaches of one disk, the first one to arrive counts.
    pub attaches: BTreeMap<DiskId, AttachOutcome>,
    /// By disk.
    pub detaches: BTreeMap<DiskId, DetachOutcome>,
}

/// The slots that a machine has left while attaches are served one by one.
struct Slots<'a> {
    machine: &'a Machine,
    /// LUNs of the list, also of entries that are removed: they are free only once Azure has done so.
    taken: BTreeSet<u32>,
    /// Entries of the list.
    entries: usize,
    /// Entries that leave and have not been promised to an attach that waits.
    leaving: usize,
}

impl Slots<'_> {
    /// The LUN for a disk: the one that is reserved for it, else the lowest free one.
    fn take(&mut self, disk: &DiskId) -> Option<u32> {
        let bound = self.machine.capacity.min(MAX_LUNS);
        if self.entries >= bound as usize {
            return None;
        }
        let reserved = &self.machine.reserved_luns;
        let is_free = |lun: &u32| *lun < bound && !self.taken.contains(lun);
        let own = reserved.iter().filter(|(_, owner)| *owner == disk).map(|(lun, _)| *lun).find(is_free);
        let lun = own.or_else(|| (0..bound).find(|lun| is_free(lun) && !reserved.contains_key(lun)))?;
        self.taken.insert(lun);
        self.entries += 1;
        Some(lun)
    }

    fn full(&self, disk: &DiskId) -> Refusal {
        let reserved = self.machine.reserved_luns.keys().filter(|lun| !self.taken.contains(lun)).count();
        Refusal::MachineFull {
            disk: disk.resource().clone(),
            capacity: self.machine.capacity,
            attached: self.entries as u32,
            reserved: reserved as u32,
        }
    }
}

/// Plans the list of a machine for all waiting intents.
pub fn plan(observed: &[Value], attaches: &[Attach], detaches: &[Detach], machine: &Machine) -> ListPlan {
    let is_absent = |entry: &Value| machine.absent_disks.iter().any(|disk| is_of(entry, disk));
    let mut list: Vec<Value> = observed.iter().filter(|entry| !is_absent(entry)).cloned().collect();
    let detach_outcomes = detach_all(&mut list, detaches, machine);
    let mut slots = Slots {
        machine,
        taken: observed.iter().filter_map(lun).collect(),
        entries: list.len(),
        leaving: list.iter().filter(|entry| is_leaving(entry)).count(),
    };
    let mut waiting: Vec<&Attach> = attaches.iter().collect();
    waiting.sort();
    let mut attach_outcomes = BTreeMap::new();
    for attach in waiting {
        if attach_outcomes.contains_key(&attach.disk) {
            continue;
        }
        let outcome = if detach_outcomes.contains_key(&attach.disk) {
            AttachOutcome::WaitsForDetach
        } else {
            attach_one(&mut list, attach, &mut slots)
        };
        attach_outcomes.insert(attach.disk.clone(), outcome);
    }
    let data_disks = (list != observed).then_some(list);
    ListPlan { data_disks, attaches: attach_outcomes, detaches: detach_outcomes }
}

fn detach_all(
    list: &mut Vec<Value>,
    detaches: &[Detach],
    machine: &Machine,
) -> BTreeMap<DiskId, DetachOutcome> {
    // A disk is detached by force if one of its detaches says so.
    let mut forced: BTreeMap<DiskId, bool> = BTreeMap::new();
    for detach in detaches {
        *forced.entry(detach.disk.clone()).or_default() |= detach.is_forced;
    }
    let mut outcomes = BTreeMap::new();
    for (disk, is_forced) in forced {
        let Some(at) = list.iter().position(|entry| is_of(entry, &disk)) else {
            outcomes.insert(disk, DetachOutcome::Absent);
            continue;
        };
        let outcome = if machine.is_stack {
            list.remove(at);
            DetachOutcome::Requested
        } else if mark_leaving(&mut list[at], is_forced) {
            DetachOutcome::Requested
        } else {
            DetachOutcome::Leaving
        };
        outcomes.insert(disk, outcome);
    }
    outcomes
}

fn attach_one(list: &mut Vec<Value>, attach: &Attach, slots: &mut Slots<'_>) -> AttachOutcome {
    let id = || attach.disk.resource().clone();
    if let Some(entry) = find(list, &attach.disk) {
        return match lun(entry) {
            _ if is_leaving(entry) => AttachOutcome::Refused(Refusal::DetachInProgress(id())),
            Some(lun) => AttachOutcome::Present(lun),
            None => AttachOutcome::Refused(Refusal::NoLun(id())),
        };
    }
    if let Err(refusal) = check(attach, slots.machine) {
        return AttachOutcome::Refused(refusal);
    }
    match slots.take(&attach.disk) {
        Some(lun) => {
            list.push(new_entry(attach, lun, slots.machine.os_encryption_set.as_deref()));
            AttachOutcome::Added(lun)
        }
        None if slots.leaving > 0 => {
            slots.leaving -= 1;
            AttachOutcome::WaitsForDetach
        }
        None => AttachOutcome::Refused(slots.full(&attach.disk)),
    }
}

/// Whether a disk that the list lacks can be attached.
fn check(attach: &Attach, machine: &Machine) -> Result<(), Refusal> {
    let disk = || attach.disk.resource().clone();
    if machine.absent_disks.contains(&attach.disk) {
        return Err(Refusal::DiskNotFound(disk()));
    }
    if attach.is_ultra && machine.has_ultra == Some(false) {
        return Err(Refusal::UltraDisabled(disk()));
    }
    if attach.max_shares > 1 {
        return Ok(());
    }
    match (attach.managed_by.as_ref().map(manager_id), attach.state.as_deref()) {
        (Some(holder), _) if holder == manager_id(&machine.id) => Err(Refusal::ListBehindDisk(disk())),
        (Some(holder), _) => Err(Refusal::AttachedElsewhere { disk: disk(), machine: holder }),
        (None, Some(state)) if !state.eq_ignore_ascii_case(UNATTACHED) => {
            Err(Refusal::DiskState { disk: disk(), state: state.to_owned() })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
#[path = "disk_list_tests.rs"]
mod tests;
