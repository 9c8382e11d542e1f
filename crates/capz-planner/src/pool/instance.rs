//! Instances of a scale set, as Azure shows them.

use std::collections::BTreeMap;

use azure_types::ResourceId;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use capz_api::Condition;
use serde_json::Value;

use crate::condition::{Severity, fails, holds};
use crate::goal::{Goal, OwnershipRule};
use crate::profile::{PROVIDER_ID, provider_id};
use crate::{cluster, image, service};

/// The prefix and suffix of the name of the extension that waits for a machine to join its cluster.
const BOOTSTRAPPING: (&str, &str) = ("CAPZ.", ".Bootstrapping");
/// The longest value of a label.
const LABEL: usize = 63;

/// An instance of a scale set.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    /// Its id in Azure.
    pub id: String,
    /// Its id in the scale set.
    pub instance_id: String,
    /// Its computer name.
    pub computer_name: String,
    /// Its provisioning state.
    pub state: String,
    /// The provisioning state of the extension that waits for it to join its cluster.
    pub bootstrapping: Option<String>,
    /// Its image, as a reference in documents.
    image: Value,
    /// Its provider ID.
    pub provider_id: String,
}

impl Instance {
    /// Parses an instance of a uniform scale set, or a machine of a flexible one.
    pub fn read(document: &Value, flexible: bool) -> Option<Self> {
        let id = document["id"].as_str()?;
        let properties = &document["properties"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let name = id.rsplit('/').next().unwrap_or_default();
        let bootstrapping = document["resources"].as_array().into_iter().flatten().find(|resource| {
            let (begin, end) = BOOTSTRAPPING;
            resource["name"].as_str().is_some_and(|name| name.starts_with(begin) && name.ends_with(end))
        });
        Some(Self {
            id: id.to_owned(),
            instance_id: text(&document["instanceId"]).unwrap_or_else(|| name.to_owned()),
            computer_name: text(&properties["osProfile"]["computerName"]).unwrap_or_default(),
            state: text(&properties["provisioningState"]).unwrap_or_else(|| "Creating".to_owned()),
            bootstrapping: bootstrapping.and_then(|it| text(&it["properties"]["provisioningState"])),
            image: properties["storageProfile"]["imageReference"].clone(),
            provider_id: if flexible { provider_id(&as_machine(id)) } else { provider_id(id) },
        })
    }

    /// Whether it is being deleted.
    pub fn is_leaving(&self) -> bool {
        matches!(self.state.as_str(), "Deleting" | "Deleted")
    }

    /// Whether its creation has ended: it is created and started, or has failed.
    pub fn is_settled(&self) -> bool {
        matches!(self.state.as_str(), "Succeeded" | "Failed")
            && self.bootstrapping.as_deref() != Some("Creating")
    }

    /// Whether it has the image of this scale set. Tags and other additions to the set do not count.
    pub fn has_latest_model(&self, scale_set: &Value) -> bool {
        let profile = &scale_set["properties"]["virtualMachineProfile"];
        image::is_same(&self.image, &profile["storageProfile"]["imageReference"])
    }

    /// The name of the AzureMachinePoolMachine that represents it.
    pub fn object_name(&self, pool: &str) -> String {
        let last = self.id.rsplit('/').next().unwrap_or_default();
        format!("{pool}-{}", last.replace('_', "-"))
    }

    /// The condition of its bootstrapping.
    pub fn bootstrap_condition(&self) -> Option<Condition> {
        const BOOTSTRAPPED: &str = "BootstrapSucceeded";
        Some(match self.bootstrapping.as_deref()? {
            "Creating" => fails(BOOTSTRAPPED, "BootstrapInProgress", Severity::Info, "VM bootstrapping"),
            "Failed" => fails(BOOTSTRAPPED, "BootstrapFailed", Severity::Info, "VM bootstrapping failed"),
            "Succeeded" => holds(BOOTSTRAPPED),
            _ => return None,
        })
    }
}

/// Whether a machine belongs to this scale set, according to its document.
pub fn is_of(document: &Value, scale_set: &ResourceId) -> bool {
    let set = document["properties"]["virtualMachineScaleSet"]["id"].as_str();
    set.and_then(|id| ResourceId::parse(id).ok()).is_some_and(|set| set == *scale_set)
}

/// The ID of an instance in the form of a virtual machine's, in a flexible scale set.
fn as_machine(id: &str) -> String {
    let segments: Vec<&str> = id.split('/').collect();
    match segments.as_slice() {
        [before @ .., set, _, kind, name] if set.eq_ignore_ascii_case("virtualMachineScaleSets") => {
            [before, &[*kind, *name]].concat().join("/")
        }
        _ => id.to_owned(),
    }
}

/// The goal of an instance's deletion, by its provider ID: it is the cluster's if its scale set is.
pub fn end(provider_id: &str, scale_set: &ResourceId) -> Option<Goal> {
    let id = ResourceId::parse(provider_id.strip_prefix(PROVIDER_ID)?).ok()?;
    Some(Goal::gone(id, &service::SCALE_SET_INSTANCE).owned(OwnershipRule::Inside(scale_set.clone())))
}

/// Labels of the objects that represent instances.
pub fn labels(cluster: &str, pool: &str, machine_pool: &str) -> BTreeMap<String, String> {
    [
        ("cluster.x-k8s.io/cluster-name", cluster.to_owned()),
        ("azuremachinepool.infrastructure.cluster.x-k8s.io/machine-pool", pool.to_owned()),
        ("cluster.x-k8s.io/pool-name", label_value(machine_pool)),
        (cluster, crate::tags::OWNED.to_owned()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into()
}

/// A name as the value of a label, as Cluster API shortens it.
fn label_value(name: &str) -> String {
    if name.len() <= LABEL {
        return name.to_owned();
    }
    format!("hash_{}_z", URL_SAFE_NO_PAD.encode(cluster::hash(name).to_be_bytes()))
}
