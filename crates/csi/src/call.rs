//! The call in progress: what is known of it when it is logged and counted.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::operation::Operation;

/// How much of a request is logged, in bytes.
const REQUEST_LIMIT: usize = 2048;

tokio::task_local! {
    static CURRENT: Call;
}

/// The call in progress. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Call(Arc<Mutex<Facts>>);

/// What is known of a call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    /// What it is counted as; nothing if it is not counted.
    pub operation: Option<Operation>,
    /// Labels for the labeled series.
    pub labels: Vec<(&'static str, String)>,
    /// The request, without secrets.
    pub request: String,
}

impl Call {
    pub(crate) fn new(operation: Option<Operation>) -> Self {
        Self(Arc::new(Mutex::new(Facts { operation, ..Facts::default() })))
    }

    /// The call that the running task serves. Outside of one it is a call that is neither logged nor counted.
    pub fn current() -> Self {
        CURRENT.try_with(Clone::clone).unwrap_or_default()
    }

    /// Says that the request turned out to be this operation: a volume from a snapshot, a snapshot in another region.
    pub fn is(&self, operation: Operation) {
        self.0.lock().operation = Some(operation);
    }

    /// Adds a label (`storage_account_type`, `protocol`): the call is then also in the labeled series.
    pub fn label(&self, name: &'static str, value: impl Into<String>) {
        self.0.lock().labels.push((name, value.into()));
    }

    /// Keeps the text of a request. Its `Debug` prints no secrets.
    pub(crate) fn received(&self, request: &impl fmt::Debug) {
        let mut text = Limited(String::new());
        if write!(text, "{request:?}").is_err() {
            text.0.push('…');
        }
        self.0.lock().request = text.0;
    }

    pub(crate) fn facts(&self) -> Facts {
        self.0.lock().clone()
    }

    /// Serves the call by this future.
    pub(crate) fn scope<F: Future>(self, serving: F) -> impl Future<Output = F::Output> {
        CURRENT.scope(self, serving)
    }
}

/// Text that takes no more than [`REQUEST_LIMIT`].
struct Limited(String);

impl fmt::Write for Limited {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let left = REQUEST_LIMIT - self.0.len();
        self.0.push_str(&text[..text.floor_char_boundary(left)]);
        if text.len() > left { Err(fmt::Error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_request_has_a_limit() {
        let call = Call::default();
        call.received(&"a".repeat(10));
        assert_eq!(call.facts().request, format!("{:?}", "a".repeat(10)));
        call.received(&"ä".repeat(REQUEST_LIMIT));
        let text = call.facts().request;
        assert!(text.len() <= REQUEST_LIMIT + '…'.len_utf8() && text.ends_with("ä…"), "{text}");
    }

    #[tokio::test]
    async fn what_a_driver_says_of_its_call_reaches_it() {
        let call = Call::new(Some(Operation::CreateVolume));
        let serving = async {
            Call::current().is(Operation::CreateVolumeFromSnapshot);
            Call::current().label("storage_account_type", "Premium_LRS");
        };
        call.clone().scope(serving).await;
        let facts = call.facts();
        assert_eq!(facts.operation, Some(Operation::CreateVolumeFromSnapshot));
        assert_eq!(facts.labels, [("storage_account_type", "Premium_LRS".to_owned())]);
        // Outside of a call it changes none.
        Call::current().is(Operation::DeleteVolume);
        assert_eq!(call.facts().operation, Some(Operation::CreateVolumeFromSnapshot));
    }
}
