//! The controller manager's writes to Azure and their reasons, taken from its own log lines.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// One write to Azure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Write {
    /// `create`, `update` or `delete`.
    pub action: String,
    /// The id of the resource.
    pub resource: String,
    /// The Services that it was made for.
    pub owners: String,
    /// What changed, in words.
    pub changes: String,
}

/// The writes of this process so far. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Writes(Arc<Mutex<Vec<Write>>>);

impl Writes {
    /// Starts listening to log lines, which are not printed then.
    pub fn listen() -> Self {
        let writes = Self::default();
        // In a process with a logger nothing is captured, and the demo shows no reasons.
        let _already_logging = tracing_subscriber::registry().with(Listener(writes.clone())).try_init();
        writes
    }

    /// Whether a resource of this type has been written since the last call of [`Self::take`].
    pub fn hold(&self, kind: &str) -> bool {
        self.0.lock().iter().any(|write| write.resource.contains(kind))
    }

    /// Returns the writes since the last call.
    pub fn take(&self) -> Vec<Write> {
        std::mem::take(&mut *self.0.lock())
    }
}

struct Listener(Writes);

impl<S: Subscriber> Layer<S> for Listener {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() != "provider::azure" || *event.metadata().level() != tracing::Level::INFO
        {
            return;
        }
        let mut write = Fields::default();
        event.record(&mut write);
        self.0.0.lock().push(write.0);
    }
}

#[derive(Default)]
struct Fields(Write);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        let member = match field.name() {
            "action" => &mut self.0.action,
            "resource" => &mut self.0.resource,
            "owners" => &mut self.0.owners,
            "changes" => &mut self.0.changes,
            _ => return,
        };
        value.clone_into(member);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}
