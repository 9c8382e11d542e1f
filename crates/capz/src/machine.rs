//! The controller of AzureMachines. Source: spec/capz/self-managed.md, section 6.

use std::sync::Arc;

use tokio::time::Instant;

use crate::manager::{Manager, Outcome};
use crate::store::Key;

impl Manager {
    /// Brings Azure to what an AzureMachine declares.
    pub(crate) async fn reconcile_machine(self: Arc<Self>, key: &Key, _not_before: Instant) -> Outcome {
        if self.stores.azure_machines.get(key).is_none() { Outcome::Gone } else { Outcome::Idle }
    }
}
