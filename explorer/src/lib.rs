//! Runs user input in worlds, alone, in pairs and at random, and compares the results with the expected ones.
//!
//! * [`corpus`] reads `tests/corpus/services`: manifests as users write them, each with its expected result. [`trial`]
//!   runs one: applied, judged, judged again after a restart, deleted.
//! * [`judge`] compares a world with an [`expectation::Expectation`] without any code of the product: it reads Azure's
//!   documents, the Service's status and events, and follows packets.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "used by tests alone: a world that cannot be set up must fail its test"
)]

pub mod clients;
pub mod clusters;
pub mod corpus;
pub mod covering;
pub mod edits;
pub mod expectation;
pub mod features;
pub mod history;
pub mod judge;
pub mod ledger;
pub mod machines;
pub mod neighbours;
pub mod pairs;
pub mod preview;
pub mod property;
pub mod refusals;
pub mod rule;
pub mod service_option;
pub mod shrink;
mod single;
pub mod stage;
pub mod trial;

use std::cell::Cell;
use std::future::Future;
use std::num::NonZero;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

use azure_simulator::FaultAction;

/// Runs something on a runtime of its own, on paused time.
pub fn on_paused_time<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime can be made").block_on(work)
}

/// A failure of Azure with this status and code.
pub(crate) fn failure(status: u16, code: &str) -> FaultAction {
    FaultAction::Fail { status, code: code.to_owned(), message: "An error of this test.".to_owned() }
}

/// A failure of an operation that Azure accepted.
pub(crate) fn late_failure(code: &str) -> FaultAction {
    FaultAction::FailOperation { code: code.to_owned(), message: "An error of this test.".to_owned() }
}

/// The number of worlds that may run in parallel.
pub fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// Runs `world` once for each number, in parallel. A panic ends its worker, and is propagated after the others have
/// finished.
pub fn on_all_cores(numbers: Range<u64>, world: impl Fn(u64) + Sync) {
    let next = AtomicU64::new(numbers.start);
    let (world, next, end) = (&world, &next, numbers.end);
    std::thread::scope(|scope| {
        for _ in 0..workers() {
            let mine = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
            scope.spawn(move || mine.take_while(|number| *number < end).for_each(world));
        }
    });
}

thread_local! {
    /// Whether panics of this thread are handled here, so that they need not be printed.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs something on paused time; a panic is returned as its text and not printed.
///
/// # Errors
/// The panic's text.
pub fn quietly<T>(work: impl AsyncFnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                usual(panic);
            }
        }));
    });
    QUIET.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(|| on_paused_time(work())));
    QUIET.set(false);
    outcome.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
    })
}
