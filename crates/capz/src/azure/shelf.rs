//! One read that reconciles share: its answer, and its failure. Reconciles that ask during a read wait for it, and the
//! next read answers them all. A failed read answers all that waited for it: while Azure fails, a hundred reconciles
//! cost one call at a time, and not a hundred calls one after the other.

use arm::Error;
use tokio::time::Instant;

/// The answer of the last read, and the failure of the last one that failed, each with the time at which the read
/// began.
pub struct Shelf<T>(tokio::sync::Mutex<Kept<T>>);

struct Kept<T> {
    answer: Option<(Instant, T)>,
    failure: Option<(Instant, Error)>,
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self(tokio::sync::Mutex::new(Kept { answer: None, failure: None }))
    }
}

impl<T: Clone> Shelf<T> {
    /// Returns the present answer, if it `serves`, or the answer of a new read.
    ///
    /// # Errors
    /// The read fails, or a read that began after this call has failed.
    pub async fn read(
        &self,
        serves: impl Fn(Instant) -> bool,
        ask: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let came = Instant::now();
        let mut kept = self.0.lock().await;
        if let Some((_, answer)) = kept.answer.as_ref().filter(|(began, _)| serves(*began)) {
            return Ok(answer.clone());
        }
        if let Some((_, failure)) = kept.failure.as_ref().filter(|(began, _)| *began >= came) {
            return Err(failure.clone());
        }
        let began = Instant::now();
        match ask.await {
            Ok(answer) => {
                *kept = Kept { answer: Some((began, answer.clone())), failure: None };
                Ok(answer)
            }
            Err(error) => {
                kept.failure = Some((began, error.clone()));
                Err(error)
            }
        }
    }

    /// Whether there is an answer that was requested after this moment, or a read is running.
    pub fn is_used_since(&self, moment: Instant) -> bool {
        let Ok(kept) = self.0.try_lock() else { return true };
        kept.answer.as_ref().is_some_and(|(began, _)| *began > moment)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    fn refused() -> Error {
        Error::OperationLost { subject: "a list".into() }
    }

    /// I3: a hundred reconciles that wait for one list of a failing Azure cost one call at a time.
    #[tokio::test(start_paused = true)]
    async fn a_failure_is_shared_like_an_answer() {
        let (shelf, calls) = (Shelf::<u32>::default(), AtomicUsize::new(0));
        let failing = async || {
            calls.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(60)).await;
            Err(refused())
        };
        let begin = Instant::now();
        let loops = (0..100).map(|_| shelf.read(|_| false, failing()));
        assert!(futures::future::join_all(loops).await.iter().all(Result::is_err));
        assert_eq!((calls.load(Ordering::Relaxed), begin.elapsed()), (1, Duration::from_secs(60)));
        // A later reconcile asks Azure, and those that arrive meanwhile share the read after that.
        let late = (0..100).map(|_| async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            shelf.read(|_| false, failing()).await
        });
        let (first, others) = tokio::join!(shelf.read(|_| false, failing()), futures::future::join_all(late));
        assert!(first.is_err() && others.iter().all(Result::is_err));
        assert_eq!(calls.load(Ordering::Relaxed), 3);
    }
}
