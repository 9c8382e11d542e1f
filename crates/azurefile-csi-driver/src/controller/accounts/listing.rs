//! The accounts of groups as Azure listed them: one list for all requests that wait for it.

use std::collections::HashMap;
use std::sync::Arc;

use azure_types::ResourceId;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;
use tonic::Status;

use crate::controller::azure::Azure;

/// A list, and when it was asked for.
#[derive(Clone)]
struct Listed {
    accounts: Arc<Vec<Value>>,
    asked: Instant,
}

/// The list of a group. Who holds the lock is asking for it; the others wait.
type Cell = Arc<tokio::sync::Mutex<Option<Listed>>>;

/// The lists of all groups that were asked for.
#[derive(Clone)]
pub(crate) struct Listings {
    azure: Azure,
    groups: Arc<Mutex<HashMap<String, Cell>>>,
}

impl Listings {
    pub(crate) fn new(azure: Azure) -> Self {
        Self { azure, groups: Arc::default() }
    }

    fn cell(&self, group: &ResourceId) -> Cell {
        Arc::clone(self.groups.lock().entry(group.as_str().to_ascii_lowercase()).or_default())
    }

    /// The accounts of a group, by a list that was asked for no earlier than this.
    pub(crate) async fn since(
        &self,
        group: &ResourceId,
        earliest: Instant,
    ) -> Result<Arc<Vec<Value>>, Status> {
        let cell = self.cell(group);
        let mut held = cell.lock().await;
        if let Some(listed) = held.as_ref().filter(|listed| listed.asked >= earliest) {
            return Ok(Arc::clone(&listed.accounts));
        }
        let asked = Instant::now();
        let accounts = Arc::new(self.azure.accounts(group).await?);
        *held = Some(Listed { accounts: Arc::clone(&accounts), asked });
        Ok(accounts)
    }

    /// The accounts of a group by the last list, if there is one.
    pub(crate) async fn known(&self, group: &ResourceId) -> Option<Arc<Vec<Value>>> {
        let cell = self.cell(group);
        let held = cell.lock().await;
        held.as_ref().map(|listed| Arc::clone(&listed.accounts))
    }

    /// Puts what is now known of an account into the list, if there is one.
    pub(crate) async fn note(&self, group: &ResourceId, account: Value) {
        let cell = self.cell(group);
        let mut held = cell.lock().await;
        let Some(listed) = held.as_mut() else { return };
        let name = |account: &Value| account.get("name").and_then(Value::as_str).map(str::to_owned);
        let accounts = Arc::make_mut(&mut listed.accounts);
        accounts.retain(|known| name(known) != name(&account));
        accounts.push(account);
    }
}
