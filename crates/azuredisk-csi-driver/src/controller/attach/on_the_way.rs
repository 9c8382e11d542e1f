//! A disk on its way shows when an operation ends that another process has begun.
//!
//! Such an operation cannot be followed, and Azure allows twelve reads of a machine in a minute: between two of them, a disk that the
//! operation moves is read. A disk names its manager as soon as it is attached, and none when it is detached.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use volume_planner::attach::data_disk;
use volume_planner::id::DiskId;

use super::observed::ObservedMachine;

/// The disks whose attach is asked for, each with the number of requests.
#[derive(Debug, Default)]
pub(crate) struct Expected(Mutex<BTreeMap<DiskId, usize>>);

/// A request to attach a disk, until it is dropped.
pub(super) struct Expecting<'a>(&'a Expected, DiskId);

impl Drop for Expecting<'_> {
    fn drop(&mut self) {
        let mut all = self.0.0.lock();
        if let Some(requests) = all.get_mut(&self.1) {
            *requests -= 1;
            all.retain(|_, requests| *requests > 0);
        }
    }
}

impl Expected {
    /// Announces a disk that is to be attached.
    pub(super) fn announce(&self, disk: &DiskId) -> Expecting<'_> {
        *self.0.lock().entry(disk.clone()).or_default() += 1;
        Expecting(self, disk.clone())
    }

    /// The disks in a machine's list that the operation on it may move: those that leave, and those that are expected.
    pub(super) fn on_the_way(&self, machine: &ObservedMachine) -> Vec<OnTheWay> {
        let expected = self.0.lock();
        let leaving = machine.disks().filter(|(_, entry)| data_disk::is_leaving(entry));
        let leaving = leaving.map(|(disk, _)| OnTheWay { disk, leaves: true });
        let coming = machine
            .disks()
            .filter(|(disk, entry)| !data_disk::is_leaving(entry) && expected.contains_key(disk));
        leaving.chain(coming.map(|(disk, _)| OnTheWay { disk, leaves: false })).collect()
    }
}

/// A disk that an operation moves.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OnTheWay {
    pub(super) disk: DiskId,
    /// Whether it leaves the machine; otherwise it comes.
    pub(super) leaves: bool,
}
