//! Facts from the machine's Node.

use async_trait::async_trait;
use k8s::api::api::core::v1::{Node, ObjectReference};
use k8s::names;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Api, Client};

use super::call::call;
use crate::annotations;
use crate::node::machine::{FactSource, Facts, FactsError};

/// How the attach-detach controller names a volume of a driver: this, the driver, `^` and the volume's ID.
const VOLUME_PREFIX: &str = "kubernetes.io/csi/";

/// Facts from labels, an annotation and the status of the machine's Node.
#[derive(Clone)]
pub struct NodeObject {
    nodes: Api<Node>,
    name: String,
    driver: String,
    events: Recorder,
}

impl NodeObject {
    /// Facts from the Node of this name, for this driver.
    pub fn new(client: Client, name: impl Into<String>, driver: impl Into<String>) -> Self {
        let (name, driver) = (name.into(), driver.into());
        let reporter = Reporter { controller: driver.clone(), instance: Some(name.clone()) };
        let events = Recorder::new(client.clone(), reporter);
        Self { nodes: Api::all(client), name, driver, events }
    }
}

#[async_trait]
impl FactSource for NodeObject {
    async fn read(&self) -> Result<Facts, FactsError> {
        let what = format!("read node {}", self.name);
        let node = call(what, self.nodes.get(&self.name)).await;
        node.map(|node| facts(&node, &self.driver)).map_err(|error| FactsError::new("the Node", error))
    }

    async fn warn(&self, reason: &'static str, note: &str) {
        let event = Event {
            type_: EventType::Warning,
            reason: reason.to_owned(),
            note: Some(note.to_owned()),
            action: "GetInfo".to_owned(),
            secondary: None,
        };
        let node = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Node".to_owned()),
            name: Some(self.name.clone()),
            ..ObjectReference::default()
        };
        let written = self.events.publish(&event, &node);
        if let Err(error) = call(format!("write an event of node {}", self.name), written).await {
            tracing::warn!(node = self.name, %error, "cannot write an event");
        }
    }
}

fn facts(node: &Node, driver: &str) -> Facts {
    let labels = node.metadata.labels.as_ref();
    let label = |key: &str| labels.and_then(|all| all.get(key)).filter(|value| !value.is_empty()).cloned();
    let either = |key: &str, old: &str| label(key).or_else(|| label(old));
    let published = node.metadata.annotations.as_ref();
    let published = published.and_then(|all| all.get(&annotations::max_data_disks(driver)));
    Facts {
        zone: either(names::LABEL_ZONE, names::LABEL_ZONE_BETA),
        region: either(names::LABEL_REGION, names::LABEL_REGION_BETA),
        size: either(names::LABEL_INSTANCE_TYPE, names::LABEL_INSTANCE_TYPE_BETA),
        max_data_disks: published.and_then(|number| number.parse().ok()),
        data_disks: None,
        volumes: Some(volumes(node, driver)),
    }
}

/// The volumes of the driver that are attached to a node, or that its kubelet is about to use.
fn volumes(node: &Node, driver: &str) -> Vec<String> {
    let Some(status) = &node.status else { return Vec::new() };
    let attached = status.volumes_attached.iter().flatten().map(|volume| volume.name.as_str());
    let used = status.volumes_in_use.iter().flatten().map(String::as_str);
    let of_driver = |name: &str| {
        let own = name.strip_prefix(VOLUME_PREFIX)?.strip_prefix(driver)?.strip_prefix('^')?;
        Some(own.to_owned())
    };
    attached.chain(used).filter_map(of_driver).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(node: Value) -> Facts {
        facts(&serde_json::from_value(node).unwrap(), "disk.csi.azure.com")
    }

    /// Sections 3.3 and 3.12: labels, old and new; trap 5: the published number; trap 2: volumes.
    #[test]
    fn facts_are_read_from_the_node() {
        let facts = of(json!({
            "metadata": {
                "labels": {
                    "topology.kubernetes.io/zone": "westus2-1",
                    "failure-domain.beta.kubernetes.io/region": "westus2",
                    "node.kubernetes.io/instance-type": "Standard_D2s_v3",
                    "beta.kubernetes.io/instance-type": "old",
                },
                "annotations": { "disk.csi.azure.com/max-data-disks": "12" },
            },
            "status": {
                "volumesAttached": [
                    { "name": "kubernetes.io/csi/disk.csi.azure.com^/disks/a", "devicePath": "" },
                    { "name": "kubernetes.io/csi/other.csi.azure.com^/disks/x", "devicePath": "" },
                ],
                "volumesInUse": ["kubernetes.io/csi/disk.csi.azure.com^/disks/b"],
            },
        }));
        let text = |text: &str| Some(text.to_owned());
        let expected = Facts {
            zone: text("westus2-1"),
            region: text("westus2"),
            size: text("Standard_D2s_v3"),
            max_data_disks: Some(12),
            data_disks: None,
            volumes: Some(vec!["/disks/a".to_owned(), "/disks/b".to_owned()]),
        };
        assert_eq!(facts, expected);
        assert_eq!(of(json!({ "metadata": {} })), Facts { volumes: Some(vec![]), ..Facts::default() });
    }
}
