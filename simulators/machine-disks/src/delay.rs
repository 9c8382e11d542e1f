//! The time between Azure's list of a machine's disks and the device in the machine.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::observed::{Observed, Slot};

/// A disk at its place: machine, slot and unique ID.
type Place = (String, Slot, String);

/// Holds back disks that came to a machine just now.
#[derive(Debug)]
pub(crate) struct Delay {
    wait: Duration,
    since: BTreeMap<Place, Instant>,
}

impl Delay {
    pub(crate) fn new(wait: Duration) -> Self {
        Self { wait, since: BTreeMap::new() }
    }

    /// Leaves out the disks that are not there yet. Returns when the next one is.
    pub(crate) fn hold_back(&mut self, observed: &mut Observed, now: Instant) -> Option<Instant> {
        let before = std::mem::take(&mut self.since);
        let mut next: Option<Instant> = None;
        for (name, machine) in &mut observed.machines {
            machine.disks.retain(|slot, unique| {
                let place = (name.clone(), *slot, unique.clone());
                let since = before.get(&place).copied().unwrap_or(now);
                self.since.insert(place, since);
                // A machine starts from its system disk.
                let due = if *slot == Slot::System { since } else { since + self.wait };
                let is_there = due <= now;
                if !is_there {
                    next = Some(next.map_or(due, |next| next.min(due)));
                }
                is_there
            });
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::Delay;
    use crate::observed::{Controller, Machine, Observed, Slot};

    fn with(unique: &str) -> Observed {
        let disks = [(Slot::System, "system".to_owned()), (Slot::Data(0), unique.to_owned())].into();
        let machine = Machine { controller: Controller::Scsi, disks };
        Observed { machines: [("m".to_owned(), machine)].into(), ..Observed::default() }
    }

    #[test]
    fn a_disk_comes_after_the_delay_and_a_system_disk_at_once() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut delay = Delay::new(3 * second);
        let mut look = |unique: &str, passed: u32| {
            let mut observed = with(unique);
            let next = delay.hold_back(&mut observed, start + passed * second);
            (observed.machines["m"].disks.len(), next)
        };
        assert_eq!(look("a", 0), (1, Some(start + 3 * second)));
        assert_eq!(look("a", 2), (1, Some(start + 3 * second)));
        assert_eq!(look("a", 3), (2, None));
        // Another disk at the same place waits, too.
        assert_eq!(look("b", 4), (1, Some(start + 7 * second)));
    }
}
