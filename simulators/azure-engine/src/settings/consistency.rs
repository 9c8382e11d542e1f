//! The configured lag of reads behind writes.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::settings::latency::bounded;

/// The lag of reads behind writes. With the default of zero, every read sees every write before it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Consistency {
    /// Most milliseconds by which a GET of one resource lags: one that was just created may be absent
    /// for that long, one that was just deleted may be shown.
    pub reads_ms: u64,
    /// The same for lists.
    pub lists_ms: u64,
    /// The share of reads that lag.
    pub share: f64,
}

impl Default for Consistency {
    fn default() -> Self {
        Self { reads_ms: 0, lists_ms: 0, share: 1.0 }
    }
}

impl Consistency {
    /// The longest lag there can be.
    pub(crate) fn bound(&self) -> Duration {
        bounded(self.reads_ms.max(self.lists_ms))
    }
}
