//! Spans of the writers. No log subscribes to their target: they are created only where the program exports traces, and
//! cost nothing elsewhere.

use std::fmt;

use tracing::field::{Empty, display};
use tracing::{Span, info_span};

/// One turn of a writer: reading, planning, and the write of a shared resource. It is a part of the first of the spans
/// `of` that wait for it, and linked to the others.
pub(crate) fn write<'a>(resource: &str, of: impl Iterator<Item = &'a Span>) -> Span {
    let mut waiting = of.filter(|span| !span.is_disabled());
    let parent = waiting.next().and_then(Span::id);
    let span = info_span!(
        target: "spans::writers",
        parent: parent,
        "Write",
        otel.status_code = Empty,
        otel.status_description = Empty,
        resource,
        changes = Empty,
    );
    for other in waiting {
        span.follows_from(other);
    }
    span
}

/// Records whether anything is to be written.
pub(crate) fn planned(span: &Span, changes: bool) {
    span.record("changes", changes);
}

/// Records that a turn has failed.
pub(crate) fn failed(span: &Span, why: impl fmt::Display) {
    span.record("otel.status_code", "error");
    span.record("otel.status_description", display(why));
}
