//! The whole state as one document: saved, and taken up again elsewhere or later. Uids, versions and the record of who
//! wrote what are kept, so that clients go on where they were. Of past changes nothing is kept: a client that has seen
//! all of them continues its watch, and one that has not is told to list again.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fault::Declared;
use crate::journal::Journal;
use crate::kubernetes::Kubernetes;
use crate::store::SavedShelf;
use crate::verbs::SavedChore;

/// The form of a saved state; raised when an older program could not read it.
const FORMAT: u64 = 1;

/// Why a saved state cannot be taken up.
#[derive(Debug, thiserror::Error)]
pub enum BadSnapshot {
    /// It is no saved state.
    #[error("this is no saved state of a simulated Kubernetes: {0}")]
    Unreadable(#[source] serde_json::Error),
    /// A newer program has written it.
    #[error("the saved state has format {0}, and this program knows formats up to {FORMAT}")]
    Format(u64),
    /// It holds objects of a kind that is neither built in nor defined by it.
    #[error("the saved state has {0}, which are not served here")]
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
    /// The whole state: objects, versions, what is still to be collected, faults and journal. Options, credentials, hooks
    /// and the clock are not part of it. Secrets are: keep it as you keep them.
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
        // Its members are texts, numbers and JSON: it can always be written.
        serde_json::to_value(snapshot).unwrap_or_default()
    }

    /// Takes up a saved state in place of this one. Open watches end. Where this server has given out newer versions than
    /// the saved ones, clients are told that theirs are too old.
    ///
    /// # Errors
    /// The document is no saved state, or holds what this server does not know; nothing is changed then.
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
