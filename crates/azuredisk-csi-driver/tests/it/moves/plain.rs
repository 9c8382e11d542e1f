//! A plain controller, one call at a time for each machine: it shows that the world can be mastered, and, with lists kept
//! in memory, that the world finds what costs data.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arm::{Accepted, ApiVersion, Class, Client, Cloud, Credential};
use azure_simulator::Azure;
use azure_types::ResourceId;
use parking_lot::Mutex;
use serde_json::{Value, json};
use simulated_cluster::Shape;
use testkit::KillSwitch;
use tokio::time::sleep;

use super::attacher::Controller;

/// Attaches and detaches disks one by one.
pub struct Plain {
    client: Client,
    group: ResourceId,
    turns: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
    /// The list of each machine after the latest write, if lists are written from memory.
    remembered: Option<Mutex<HashMap<String, Vec<Value>>>>,
}

impl Plain {
    pub fn new(azure: &Azure, shape: &Shape) -> Self {
        let cloud = Cloud::built_in(&cloud_config::PUBLIC).unwrap();
        let transport = KillSwitch::never().transport(azure);
        let client = Client::builder(cloud, transport, Credential::fixed("token")).build();
        Self { client, group: shape.group(), turns: Mutex::default(), remembered: None }
    }

    /// One that writes lists from its memory, without their version.
    pub fn from_memory(azure: &Azure, shape: &Shape) -> Self {
        Self { remembered: Some(Mutex::default()), ..Self::new(azure, shape) }
    }

    /// Changes the list of a node's machine, and answers what it is afterwards.
    async fn change(
        &self,
        node: &str,
        change: impl Fn(&mut Vec<Value>) -> bool,
    ) -> Result<Vec<Value>, String> {
        let turn = Arc::clone(self.turns.lock().entry(node.to_owned()).or_default());
        let _turn = turn.lock().await;
        let id = self.group.resource("Microsoft.Compute", "virtualMachines", node);
        let read = async || -> Result<Value, String> {
            self.client.get(&id, ApiVersion::COMPUTE, Class::Create).await.map_err(|error| error.to_string())
        };
        let list = |machine: &Value| {
            machine["properties"]["storageProfile"]["dataDisks"].as_array().cloned().unwrap_or_default()
        };
        let mut machine = read().await?;
        while machine["properties"]["provisioningState"] == "Updating" {
            sleep(Duration::from_secs(1)).await;
            machine = read().await?;
        }
        let remembered = self.remembered.as_ref().and_then(|all| all.lock().get(node).cloned());
        let etag = machine["etag"].as_str().filter(|_| remembered.is_none()).map(str::to_owned);
        let mut wanted = remembered.unwrap_or_else(|| list(&machine));
        if change(&mut wanted) {
            let properties = json!({ "storageProfile": { "dataDisks": wanted } });
            let body = json!({ "location": machine["location"], "properties": properties });
            let put = self.client.put(&id, ApiVersion::COMPUTE, &body, etag.as_deref(), Class::Create).await;
            let accepted: Accepted<Value> = put.map_err(|error| error.to_string())?;
            if let Some(operation) = &accepted.operation {
                self.client.wait(operation).await.map_err(|error| error.to_string())?;
            }
            machine = read().await?;
        }
        let now = list(&machine);
        if let Some(all) = &self.remembered {
            all.lock().insert(node.to_owned(), now.clone());
        }
        Ok(now)
    }
}

fn is(entry: &Value, disk: &str) -> bool {
    entry["managedDisk"]["id"].as_str().is_some_and(|id| id.eq_ignore_ascii_case(disk))
}

impl Controller for Plain {
    async fn publish(&self, volume: &str, node: &str) -> Result<i64, String> {
        let attach = |list: &mut Vec<Value>| {
            if list.iter().any(|entry| is(entry, volume)) {
                return false;
            }
            let free = (0..32).find(|lun| !list.iter().any(|entry| entry["lun"] == json!(lun)));
            list.push(json!({ "lun": free, "createOption": "Attach", "managedDisk": { "id": volume } }));
            true
        };
        let list = self.change(node, attach).await?;
        let lun = list.iter().find(|entry| is(entry, volume)).and_then(|entry| entry["lun"].as_i64());
        lun.ok_or_else(|| "it is not in the list".to_owned())
    }

    async fn unpublish(&self, volume: &str, node: &str) -> Result<(), String> {
        let detach = |list: &mut Vec<Value>| {
            let leaving = list.iter_mut().find(|entry| is(entry, volume));
            leaving.map(|entry| entry["toBeDetached"] = true.into()).is_some()
        };
        let list = self.change(node, detach).await?;
        if list.iter().any(|entry| is(entry, volume)) {
            Err("it is still in the list".to_owned())
        } else {
            Ok(())
        }
    }
}
