//! Spans of the controllers. No log subscribes to their target: they are created only where the program exports traces,
//! and cost nothing elsewhere.

use k8s::ObjectKey;
use tracing::field::Empty;
use tracing::{Span, info_span};

use crate::queue::Next;

/// A key of a queue.
pub(crate) trait Key {
    /// The object that the key stands for; empty if it stands for all.
    fn object(&self) -> String;
}

impl Key for ObjectKey {
    fn object(&self) -> String {
        self.to_string()
    }
}

impl Key for String {
    fn object(&self) -> String {
        self.clone()
    }
}

impl Key for () {
    fn object(&self) -> String {
        String::new()
    }
}

/// One reconcile of a key that a worker has taken from this queue.
pub(crate) fn reconcile(queue: &'static str, key: &impl Key) -> Span {
    info_span!(
        target: "spans::controllers",
        "Reconcile",
        otel.name = %format_args!("Reconcile {queue}"),
        queue,
        object = key.object(),
        next = Empty,
    )
}

/// Records what happens to the key.
pub(crate) fn reconciled(span: &Span, next: Next) {
    span.record(
        "next",
        match next {
            Next::Done => "done",
            Next::Retry => "retry",
            Next::After(_) | Next::DoneFor(_) => "later",
        },
    );
}
