//! One value that many callers read.

use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use logical_time::LogicalTime;
use parking_lot::Mutex;

use crate::flight::Flight;
use crate::{Moment, Recent, SharedError};

/// The latest reading of one value. Callers that ask while it is read wait, and one further request answers them all.
#[derive(Debug)]
pub struct SharedReading<V, E> {
    latest: Mutex<Option<(Moment, V)>>,
    flight: Flight<E>,
}

impl<V, E> Default for SharedReading<V, E> {
    fn default() -> Self {
        Self { latest: Mutex::default(), flight: Flight::default() }
    }
}

impl<V: Clone, E: SharedError> SharedReading<V, E> {
    /// The latest value, if its age `serves`, or else a new one, read with `ask`. `serves` gets the moment at which the
    /// value was requested.
    ///
    /// # Errors
    /// The request fails, or one that began after this call has failed.
    pub async fn get<F>(&self, serves: impl Fn(Moment) -> bool, ask: impl FnOnce() -> F) -> Result<V, E>
    where
        F: Future<Output = Result<V, E>>,
    {
        let came = LogicalTime::now();
        let known = || {
            let latest = self.latest.lock();
            latest.as_ref().filter(|(asked, _)| serves(*asked)).map(|(_, value)| value.clone())
        };
        if let Some(value) = known() {
            return Ok(value);
        }
        let store = |asked, value: V| {
            *self.latest.lock() = Some((asked, value.clone()));
            value
        };
        self.flight.share(came, known, ask, store).await
    }
}

/// Readings by key. Those that are not asked for are forgotten after a while, unless a request is in flight.
#[derive(Debug)]
pub struct SharedReadings<K, V, E> {
    readings: Mutex<Recent<K, Arc<SharedReading<V, E>>>>,
    /// Values that were requested before this are outdated.
    floor: Mutex<LogicalTime>,
}

impl<K: Eq + Hash, V: Clone, E: SharedError> SharedReadings<K, V, E> {
    /// No readings yet; each is kept for at least this long after it was last asked for.
    pub fn kept_for(kept: Duration) -> Self {
        Self { readings: Mutex::new(Recent::kept_for(kept)), floor: Mutex::new(LogicalTime::BEGINNING) }
    }

    /// The value of a key, as [`SharedReading::get`] returns it.
    ///
    /// # Errors
    /// As there.
    pub async fn get<F>(
        &self,
        key: K,
        serves: impl Fn(Moment) -> bool,
        ask: impl FnOnce() -> F,
    ) -> Result<V, E>
    where
        F: Future<Output = Result<V, E>>,
    {
        let reading = {
            let mut readings = self.readings.lock();
            readings.forget_unused(|reading| Arc::strong_count(reading) > 1);
            Arc::clone(readings.get_or_insert_with(key, Arc::default))
        };
        reading.get(|asked| asked.order > *self.floor.lock() && serves(asked), ask).await
    }

    /// Marks all values as outdated: any of them may have changed.
    pub fn invalidate(&self) {
        *self.floor.lock() = LogicalTime::now();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::join_all;
    use tokio::time::{Instant, sleep};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[derive(Debug, Clone, PartialEq)]
    struct Refused;

    impl SharedError for Refused {}

    /// A server that counts its requests, and answers each after a minute with their number.
    #[derive(Default)]
    struct Server(AtomicUsize);

    impl Server {
        async fn answer(&self) -> Result<usize, Refused> {
            let number = self.0.fetch_add(1, Ordering::Relaxed) + 1;
            sleep(60 * SECOND).await;
            Ok(number)
        }

        async fn refuse(&self) -> Result<usize, Refused> {
            self.answer().await.and(Err(Refused))
        }

        fn requests(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    /// I3: a hundred callers that wait for one value of a failing server cost one request at a time.
    #[tokio::test(start_paused = true)]
    async fn a_failure_is_shared_like_an_answer() {
        let (reading, server) = (SharedReading::<usize, Refused>::default(), Server::default());
        let begin = Instant::now();
        let callers = (0..100).map(|_| reading.get(|_| false, || server.refuse()));
        assert!(join_all(callers).await.iter().all(Result::is_err));
        assert_eq!((server.requests(), begin.elapsed()), (1, 60 * SECOND));
        // A later caller asks again, and those that come meanwhile share the request after that.
        let late = (0..100).map(|_| async {
            sleep(SECOND).await;
            reading.get(|_| false, || server.refuse()).await
        });
        let (first, others) = tokio::join!(reading.get(|_| false, || server.refuse()), join_all(late));
        assert!(first.is_err() && others.iter().all(Result::is_err));
        assert_eq!(server.requests(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_value_serves_those_that_accept_its_age() {
        let (reading, server) = (SharedReading::default(), Server::default());
        let before = Instant::now();
        assert_eq!(reading.get(|_| false, || server.answer()).await, Ok(1));
        assert_eq!(reading.get(|asked| asked.at >= before, || server.answer()).await, Ok(1));
        // It is as old as its question, not as its answer.
        let event = before + SECOND;
        let callers = (0..10).map(|_| reading.get(|asked| asked.at > event, || server.answer()));
        assert!(join_all(callers).await.iter().all(|answer| *answer == Ok(2)));
    }

    /// A caller that gives up leaves the request to the next one.
    #[tokio::test(start_paused = true)]
    async fn a_caller_that_goes_takes_no_other_with_it() {
        let (reading, server) = (SharedReading::default(), Server::default());
        let hasty = tokio::time::timeout(SECOND, reading.get(|_| false, || server.answer()));
        let (hasty, patient) = tokio::join!(hasty, reading.get(|_| false, || server.answer()));
        assert!(hasty.is_err());
        assert_eq!(patient, Ok(2));
    }

    #[tokio::test(start_paused = true)]
    async fn outdated_values_are_read_again() {
        let (readings, server) = (SharedReadings::kept_for(600 * SECOND), Server::default());
        for expected in [1, 1] {
            assert_eq!(readings.get("a", |_| true, || server.answer()).await, Ok(expected));
        }
        readings.invalidate();
        assert_eq!(readings.get("a", |_| true, || server.answer()).await, Ok(2));
    }

    #[tokio::test(start_paused = true)]
    async fn readings_that_are_not_asked_for_are_forgotten_unless_they_are_in_flight() {
        let (readings, server) = (SharedReadings::kept_for(20 * SECOND), Server::default());
        let held = || readings.readings.lock().values.len();
        let slow = readings.get("slow", |_| false, || server.answer());
        let others = async {
            for number in 0..50 {
                let key = ["a", "b", "c"][number % 3];
                readings.get(key, |_| true, async || Ok(0)).await.unwrap();
                sleep(SECOND).await;
            }
            assert_eq!(held(), 4, "the one that is read, and those that are asked for");
        };
        let (slow, ()) = tokio::join!(slow, others);
        assert_eq!(slow, Ok(1));
        sleep(60 * SECOND).await;
        readings.get("new", |_| true, async || Ok(0)).await.unwrap();
        assert_eq!(held(), 1);
    }
}
