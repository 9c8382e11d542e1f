//! The moment that a read sees.

use azure_types::ResourceId;
use tokio::time::Instant;

use crate::provider::AzureState;
use crate::settings::consistency::Consistency;
use crate::settings::latency::bounded;

impl AzureState {
    /// Sets the lag of reads from now on.
    pub fn set_consistency(&mut self, consistency: Consistency) {
        self.consistency = consistency;
        self.store.history.keep(consistency.bound());
    }

    /// The moment whose state a read sees; `None` for the present.
    pub fn seen_at(&self, id: &ResourceId, list: bool) -> Option<Instant> {
        let Consistency { reads_ms, lists_ms, share } = self.consistency;
        let most = if list { lists_ms } else { reads_ms };
        if most == 0 {
            return None;
        }
        let draw = |purpose| self.seed.number(purpose, id.as_str(), self.requests) % 1_000_000;
        if draw("lags") as f64 >= share * 1_000_000.0 {
            return None;
        }
        // From just under the bound down to a lag of one part in a million.
        let lag = bounded(most).mul_f64((draw("lag") + 1) as f64 / 1_000_001.0);
        Instant::now().checked_sub(lag)
    }
}
