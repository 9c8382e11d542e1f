//! The whole state as one document, which can be saved and restored elsewhere or later. UIDs, resource versions and
//! `managedFields` are kept, so that clients continue where they were. Past changes are not kept: a client that has
//! seen all of them continues its watch; any other client has to list again.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fault::Declared;
use crate::server::handle::Kubernetes;
use crate::server::journal::Journal;
use crate::store::SavedShelf;
use crate::verbs::SavedChore;

/// The format of a saved state; increased when older programs can no longer read it.
const FORMAT: u64 = 1;

/// Why a saved state cannot be restored.
#[derive(Debug, thiserror::Error)]
pub enum BadSnapshot {
    /// It is not a saved state.
    #[error("not a saved state of a simulated Kubernetes: {0}")]
    Unreadable(#[source] serde_json::Error),
    /// A newer program wrote it.
    #[error("the saved state has format {0}, but this program supports only formats up to {FORMAT}")]
    Format(u64),
    /// It contains objects of a kind that is neither built in nor defined by it.
    #[error("the saved state contains {0}, which are not served here")]
    UnknownKind(String),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Snapshot {
    format: u64,
    time: Timestamp,
    revision: u64,
    compacted: u64,
    resources: Vec<SavedShelf>,
    #[serde(default)]
    chores: Vec<SavedChore>,
    #[serde(default)]
    faults: Vec<Declared>,
    #[serde(default)]
    journal: Journal,
}

impl Kubernetes {
    /// The whole state: objects, versions, pending garbage collection, faults and journal. Options, credentials, hooks
    /// and the clock are not part of it. It contains Secrets: protect it accordingly.
    #[must_use]
    pub fn save(&self) -> Value {
        let snapshot = {
            let state = self.shared.state.lock();
            Snapshot {
                format: FORMAT,
                time: self.now(),
                revision: state.store.version(),
                compacted: state.store.compacted(),
                resources: state.store.save(),
                chores: state.save_chores(),
                faults: self.shared.faults.lock().declared().to_vec(),
                journal: self.journal(),
            }
        };
        // It consists of texts, numbers and JSON, so serialization cannot fail.
        serde_json::to_value(snapshot).unwrap_or_default()
    }

    /// Replaces the current state by a saved one. Open watches end. If this server has issued newer versions than the
    /// saved ones, the versions of all clients are too old.
    ///
    /// # Errors
    /// The document is not a saved state, or contains something that this server does not support; nothing is changed
    /// then.
    pub fn restore(&self, saved: Value) -> Result<(), BadSnapshot> {
        if let Some(format) = saved["format"].as_u64().filter(|format| *format > FORMAT) {
            return Err(BadSnapshot::Format(format));
        }
        let snapshot: Snapshot = serde_json::from_value(saved).map_err(BadSnapshot::Unreadable)?;
        {
            let mut state = self.shared.state.lock();
            state
                .restore(&self.shared.options, snapshot.revision, snapshot.compacted, snapshot.resources)
                .map_err(BadSnapshot::UnknownKind)?;
            state.restore_chores(snapshot.chores);
        }
        self.shared.faults.lock().restore(snapshot.faults);
        self.shared.journal.lock().restore(snapshot.journal);
        self.forget_registrations();
        self.drop_watches();
        self.keep_house();
        Ok(())
    }
}
