//! Work on objects of a kind: a queue, and when each object was woken and found as it should be.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use controllers::queue::{Backoff, Next, Queue};
use controllers::{Observer, Reconciled};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::controller::Controller;
use crate::store::Key;

/// A look that nothing but time has caused may use lists that are this old.
const FRESH_ENOUGH: Duration = Duration::from_secs(60);

/// How work on an object ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is as it should be; look again when something happens, or after the sync period.
    Rest,
    /// There is nothing to do for now: somebody else is to act, which will be seen. Should that be missed, it is looked at
    /// again after the sync period.
    Idle,
    /// It says all that is known of it; who comes to know more wakes it.
    Told,
    /// Look again after this time.
    After(Duration),
    /// Look again after the back-off.
    Retry,
    /// It is gone.
    Gone,
}

impl Outcome {
    /// The same as those see it who count.
    pub fn result(self) -> Reconciled {
        match self {
            Self::Rest | Self::Idle | Self::Told | Self::Gone => Reconciled::Success,
            Self::After(_) => Reconciled::RequeueAfter,
            Self::Retry => Reconciled::Error,
        }
    }
}

/// A queue of objects, with when each was woken, worked on, and found as it should be.
pub(crate) struct Work {
    /// Who works.
    pub controller: &'static Controller,
    pub queue: Queue<Key>,
    observer: Arc<dyn Observer>,
    woken: Mutex<HashMap<Key, Instant>>,
    worked: Mutex<HashMap<Key, Instant>>,
    rested: Mutex<HashMap<Key, Instant>>,
}

impl Work {
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

    /// Asks for work on an object: something has happened.
    pub fn wake(&self, key: Key) {
        self.woken.lock().insert(key.clone(), Instant::now());
        self.queue.add(key);
    }

    /// Ends the rest of objects that are paused: `clusterctl` waits for each to be let go. They are woken as others are.
    pub fn end_rest(&self, of: impl Fn(&Key) -> bool) {
        self.rested.lock().retain(|key, _| !of(key));
    }

    /// How old what is read may be: as old as the event that woke the object, or a bit older where only time did, but never
    /// older than what was written for it before: what we have made ourselves must not seem to be missing.
    pub fn not_before(&self, key: &Key) -> Instant {
        let now = Instant::now();
        let cause = self.woken.lock().remove(key).or_else(|| now.checked_sub(FRESH_ENOUGH)).unwrap_or(now);
        self.worked.lock().get(key).map_or(cause, |worked| cause.max(*worked))
    }

    /// Work on the object was begun and has ended, well or not.
    pub fn worked(&self, key: &Key) {
        self.worked.lock().insert(key.clone(), Instant::now());
    }

    /// How long the object still rests, after it was found as it should be.
    pub fn rests(&self, key: &Key, debouncing: Duration) -> Option<Duration> {
        let mut rested = self.rested.lock();
        let since = rested.get(key)?.elapsed();
        if since < debouncing {
            return Some((debouncing - since).max(Duration::from_secs(1)));
        }
        rested.remove(key);
        None
    }

    /// Puts an object off that still rests.
    pub fn put_off(&self, rest: Duration) -> Next {
        self.observer.reconciled(self.controller.name, Reconciled::RequeueAfter);
        Next::DoneFor(rest)
    }

    /// Takes note of how work ended, and says when the object is looked at again. Work that has not come to its end may have
    /// written: what was read before does not show it.
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
            Outcome::Told => Next::Done,
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

    /// A look that only time causes reads nothing that is older than what the look before it wrote.
    #[tokio::test(start_paused = true)]
    async fn a_look_sees_what_the_one_before_it_wrote() {
        let observer: Arc<dyn Observer> = Arc::new(controllers::NoObserver);
        let work = Work::new(&crate::controller::MACHINE, &observer);
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
