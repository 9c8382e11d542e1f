//! Locks between writes of a load balancer and writes of the network interfaces in its pools. Azure records a
//! membership on both: while one is written, a write of the other is refused (429 `RetryableError`) or has an outdated
//! version (412).

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use azure_types::ResourceId;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// How long a load balancer has priority over interfaces after interfaces have changed it: it is read and written
/// within that time. Otherwise a thousand machines that join would change it before each of its writes.
const RESERVED: Duration = Duration::from_secs(3);

/// How long one side waits for the other. Azure takes some ten seconds for either; a longer write, such as an interface
/// of a broken machine, must not delay all Services of its load balancer. Azure's refusal is then handled like any
/// other.
const PATIENCE: Duration = Duration::from_secs(60);

/// The locks, by load balancer.
#[derive(Debug)]
pub(crate) struct Turns {
    balancers: Mutex<HashMap<ResourceId, Turn>>,
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Turn {
    /// Number of interfaces being written.
    interfaces: usize,
    /// Whether the load balancer is being written, or is next.
    is_claimed: bool,
    /// Until when the load balancer has priority without having requested it yet.
    reserved: Option<Instant>,
    /// Number of finished writes of interfaces.
    ended: u64,
}

impl Default for Turns {
    fn default() -> Self {
        Self { balancers: Mutex::default(), changed: watch::Sender::new(()) }
    }
}

impl Turns {
    /// Number of finished writes of its interfaces: a new number means a new version of the load balancer.
    pub(crate) fn ended(&self, balancer: &ResourceId) -> u64 {
        self.balancers.lock().get(balancer).map_or(0, |turn| turn.ended)
    }

    /// Waits, for at most a minute, until none of these load balancers is being written or is next; blocks them until
    /// the guard is dropped.
    pub(crate) async fn of_interface(&self, balancers: BTreeSet<ResourceId>) -> InterfaceTurn<'_> {
        let mut changed = self.changed.subscribe();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let now = Instant::now();
            let until = {
                let mut turns = self.balancers.lock();
                let theirs = || balancers.iter().filter_map(|balancer| turns.get(balancer));
                let is_claimed = theirs().any(|turn| turn.is_claimed);
                let until = theirs().filter_map(|turn| turn.reserved).filter(|until| *until > now).max();
                if (!is_claimed && until.is_none()) || now >= deadline {
                    for balancer in &balancers {
                        turns.entry(balancer.clone()).or_default().interfaces += 1;
                    }
                    return InterfaceTurn { turns: self, balancers };
                }
                until.filter(|_| !is_claimed)
            };
            // The sender lives as long as `self`.
            let until = until.map_or(deadline, |until| until.min(deadline));
            drop(timeout_at(until, changed.changed()).await);
        }
    }

    /// Makes this load balancer the next, and waits, for at most a minute, until none of its interfaces is being
    /// written.
    pub(crate) async fn of_balancer(&self, balancer: &ResourceId) -> BalancerTurn<'_> {
        let mut changed = self.changed.subscribe();
        while !self.claim(balancer) {
            drop(changed.changed().await);
        }
        let turn = BalancerTurn { turns: self, balancer: balancer.clone() };
        let deadline = Instant::now() + PATIENCE;
        while self.balancers.lock().get(balancer).is_some_and(|turn| turn.interfaces > 0) {
            if timeout_at(deadline, changed.changed()).await.is_err() {
                break;
            }
        }
        turn
    }

    fn claim(&self, balancer: &ResourceId) -> bool {
        let mut turns = self.balancers.lock();
        let turn = turns.entry(balancer.clone()).or_default();
        if turn.is_claimed {
            return false;
        }
        turn.is_claimed = true;
        turn.reserved = None;
        true
    }
}

/// Guard of a write of an interface.
#[derive(Debug)]
pub(crate) struct InterfaceTurn<'a> {
    turns: &'a Turns,
    balancers: BTreeSet<ResourceId>,
}

impl Drop for InterfaceTurn<'_> {
    fn drop(&mut self) {
        let mut turns = self.turns.balancers.lock();
        for balancer in &self.balancers {
            let turn = turns.entry(balancer.clone()).or_default();
            turn.interfaces = turn.interfaces.saturating_sub(1);
            turn.ended += 1;
        }
        drop(turns);
        self.turns.changed.send_replace(());
    }
}

/// Guard of a write of a load balancer.
#[derive(Debug)]
pub(crate) struct BalancerTurn<'a> {
    turns: &'a Turns,
    balancer: ResourceId,
}

impl BalancerTurn<'_> {
    /// Ends the write, and gives the same load balancer priority for a while.
    pub(crate) fn reserve_the_next(self) {
        {
            let mut turns = self.turns.balancers.lock();
            turns.entry(self.balancer.clone()).or_default().reserved = Some(Instant::now() + RESERVED);
        }
        drop(self);
    }
}

impl Drop for BalancerTurn<'_> {
    fn drop(&mut self) {
        let mut turns = self.turns.balancers.lock();
        turns.entry(self.balancer.clone()).or_default().is_claimed = false;
        drop(turns);
        self.turns.changed.send_replace(());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt as _;

    use super::*;

    fn balancer(name: &str) -> ResourceId {
        ResourceId::group("s", "rg").resource("Microsoft.Network", "loadBalancers", name)
    }

    fn both() -> BTreeSet<ResourceId> {
        BTreeSet::from(["a", "b"].map(balancer))
    }

    #[tokio::test(start_paused = true)]
    async fn interfaces_are_written_beside_each_other_and_not_beside_their_load_balancers() {
        let turns = Turns::default();
        let (a, b) = (balancer("a"), balancer("b"));
        let one = turns.of_interface(both()).await;
        let other = turns.of_interface(both()).await;
        let mut of_a = Box::pin(turns.of_balancer(&a));
        assert!(of_a.as_mut().now_or_never().is_none());
        // It is next: no further interface of any of its load balancers starts.
        let mut third = Box::pin(turns.of_interface(both()));
        assert!(third.as_mut().now_or_never().is_none());
        drop((one, other));
        let of_a = of_a.await;
        assert_eq!((turns.ended(&a), turns.ended(&b)), (2, 2));
        assert!(third.as_mut().now_or_never().is_none());
        // The other load balancer is not affected.
        drop(turns.of_balancer(&b).await);
        drop(of_a);
        drop(third.await);
    }

    /// Unused priority expires: an interface does not wait long for it.
    #[tokio::test(start_paused = true)]
    async fn a_load_balancer_that_is_planned_again_comes_before_interfaces() {
        let turns = Turns::default();
        let a = balancer("a");
        turns.of_balancer(&a).await.reserve_the_next();
        let mut interface = Box::pin(turns.of_interface(both()));
        assert!(interface.as_mut().now_or_never().is_none());
        drop(turns.of_balancer(&a).await);
        drop(interface.as_mut().now_or_never().unwrap());

        turns.of_balancer(&a).await.reserve_the_next();
        let begun = Instant::now();
        drop(turns.of_interface(both()).await);
        assert_eq!(begun.elapsed(), RESERVED);
        // A write that does not end blocks the other side for a minute.
        let stuck = turns.of_interface(both()).await;
        let begun = Instant::now();
        let balancer = turns.of_balancer(&a).await;
        assert_eq!(begun.elapsed(), PATIENCE);
        drop(turns.of_interface(both()).await);
        assert_eq!(begun.elapsed(), PATIENCE * 2);
        drop((stuck, balancer));
        // A load balancer that gives up while waiting leaves no lock behind.
        let held = turns.of_interface(both()).await;
        drop(tokio::time::timeout(Duration::from_secs(1), turns.of_balancer(&a)).await);
        drop(turns.of_interface(both()).await);
        drop(held);
    }
}
