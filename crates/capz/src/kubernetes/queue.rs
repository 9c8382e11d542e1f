//! A queue of objects of a kind, with the times at which each was woken and found as desired.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use controllers::queue::{Backoff, Next, Queue};
use controllers::{Observer, Reconciled};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::kubernetes::controller::Controller;
use crate::kubernetes::store::Key;

/// The permitted age of lists for a reconcile that only the sync period caused.
const FRESH_ENOUGH: Duration = Duration::from_secs(60);

/// The outcome of a reconcile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The object is as desired; reconcile again at the next event, or after the sync period.
    Rest,
    /// There is nothing to do for now: another party has to act, and a watch will show it. In case that is missed, the
    /// object is reconciled again after the sync period.
    Idle,
    /// The status reports everything known; a new observation wakes it.
    Reported,
    /// Reconcile again after this time.
    After(Duration),
    /// Reconcile again after the backoff.
    Retry,
    /// The object is deleted.
    Gone,
}

impl Outcome {
    /// The result in the terms of metrics.
    pub fn result(self) -> Reconciled {
        match self {
            Self::Rest | Self::Idle | Self::Reported | Self::Gone => Reconciled::Success,
            Self::After(_) => Reconciled::RequeueAfter,
            Self::Retry => Reconciled::Error,
        }
    }
}

/// A queue of objects, with the times at which each was woken, reconciled, and found as desired.
pub(crate) struct WorkQueue {
    /// The controller.
    pub controller: &'static Controller,
    pub queue: Queue<Key>,
    observer: Arc<dyn Observer>,
    woken: Mutex<HashMap<Key, Instant>>,
    worked: Mutex<HashMap<Key, Instant>>,
    rested: Mutex<HashMap<Key, Instant>>,
}

impl WorkQueue {
    pub fn new(controller: &'static Controller, observer: &Arc<dyn Observer>) -> Self {
        Self {
            controller,
            observer: Arc::clone(observer),
            queue: Queue::new(controller.name, Backoff::INFRASTRUCTURE, Arc::clone(observer)),
            woken: Mutex::default(),
            worked: Mutex::default(),
            rested: Mutex::default(),
        }
    }

    /// Requests a reconcile of an object because of an event.
    pub fn wake(&self, key: Key) {
        self.woken.lock().insert(key.clone(), Instant::now());
        self.queue.add(key);
    }

    /// Ends the rest of paused objects: `clusterctl` waits for the release of each. They are woken like others.
    pub fn end_rest(&self, of: impl Fn(&Key) -> bool) {
        self.rested.lock().retain(|key, _| !of(key));
    }

    /// The oldest permitted time of reads: that of the event that woke the object, or somewhat older if only time did,
    /// but never older than the last reconcile: resources that it created must not seem to be missing.
    pub fn not_before(&self, key: &Key) -> Instant {
        let now = Instant::now();
        let cause = self.woken.lock().remove(key).or_else(|| now.checked_sub(FRESH_ENOUGH)).unwrap_or(now);
        self.worked.lock().get(key).map_or(cause, |worked| cause.max(*worked))
    }

    /// Records the end of a reconcile, successful or not.
    pub fn worked(&self, key: &Key) {
        self.worked.lock().insert(key.clone(), Instant::now());
    }

    /// How long the object still rests, after it was found as desired.
    pub fn rests(&self, key: &Key, debouncing: Duration) -> Option<Duration> {
        let mut rested = self.rested.lock();
        let since = rested.get(key)?.elapsed();
        if since < debouncing {
            return Some((debouncing - since).max(Duration::from_secs(1)));
        }
        rested.remove(key);
        None
    }

    /// Postpones an object that still rests.
    pub fn put_off(&self, rest: Duration) -> Next {
        self.observer.reconciled(self.controller.name, Reconciled::RequeueAfter);
        Next::DoneFor(rest)
    }

    /// Records the outcome of a reconcile, and returns when the next one is due. An incomplete reconcile may have
    /// written: earlier reads do not show that.
    pub fn ended(&self, key: &Key, outcome: Outcome, sync_period: Duration) -> Next {
        if matches!(outcome, Outcome::After(_) | Outcome::Retry) {
            self.woken.lock().insert(key.clone(), Instant::now());
        }
        self.observer.reconciled(self.controller.name, outcome.result());
        match outcome {
            Outcome::Rest => {
                self.rested.lock().insert(key.clone(), Instant::now());
                Next::DoneFor(sync_period)
            }
            Outcome::Idle => Next::DoneFor(sync_period),
            Outcome::Reported => Next::Done,
            Outcome::After(wait) => Next::DoneFor(wait),
            Outcome::Retry => Next::Retry,
            Outcome::Gone => {
                self.woken.lock().remove(key);
                self.worked.lock().remove(key);
                self.rested.lock().remove(key);
                Next::Done
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reconcile that only time causes reads nothing older than the writes of the previous one.
    #[tokio::test(start_paused = true)]
    async fn a_look_sees_what_the_one_before_it_wrote() {
        let observer: Arc<dyn Observer> = Arc::new(controllers::NoObserver);
        let work = WorkQueue::new(&crate::kubernetes::controller::MACHINE, &observer);
        let key = Key { namespace: "n".to_owned(), name: "m".to_owned() };
        tokio::time::advance(Duration::from_secs(1000)).await;
        let ago = |seconds: u64| Instant::now().checked_sub(Duration::from_secs(seconds)).unwrap();
        assert_eq!(work.not_before(&key), ago(60));
        work.wake(key.clone());
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!((work.not_before(&key), work.not_before(&key)), (ago(3), ago(60)));
        work.worked(&key);
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(work.not_before(&key), ago(5));
        tokio::time::advance(Duration::from_secs(100)).await;
        assert_eq!(work.not_before(&key), ago(60));
        work.worked(&key);
        work.ended(&key, Outcome::Gone, Duration::ZERO);
        assert_eq!(work.not_before(&key), ago(60), "nothing is kept of what has gone");
    }
}
