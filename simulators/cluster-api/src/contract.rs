//! Reads objects of providers according to the contract that they follow.

use serde_json::{Value, json};

use crate::names::CLUSTER_NAME;
use crate::objects::{GroupKind, add_owner, label, list, text};
use crate::round::Round;

/// A provider's object, read by its contract.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProviderStatus<'a> {
    object: &'a Value,
    /// Whether it follows the contract `v1beta2`.
    second: bool,
}

impl<'a> ProviderStatus<'a> {
    pub(crate) fn by(round: &Round<'a>, kind: &GroupKind, object: &'a Value) -> Self {
        Self { object, second: round.contract(kind).is_some_and(|contract| contract.second) }
    }

    fn is_initialized(&self, second: &str, first: &str) -> bool {
        let status = &self.object["status"];
        if self.second { status["initialization"][second] == true } else { status[first] == true }
    }

    /// For a cluster, a machine or a pool: whether its infrastructure is provisioned.
    pub(crate) fn provisioned(&self) -> bool {
        self.is_initialized("provisioned", "ready")
    }

    /// For a control plane: whether its API has answered.
    pub(crate) fn control_plane_initialized(&self) -> bool {
        self.is_initialized("controlPlaneInitialized", "initialized")
    }

    /// For a bootstrap configuration: the name of the data Secret, once it exists.
    pub(crate) fn data_secret(&self) -> Option<&'a str> {
        if !self.is_initialized("dataSecretCreated", "ready") {
            return None;
        }
        self.object["status"]["dataSecretName"].as_str().filter(|name| !name.is_empty())
    }

    /// For a cluster: its failure domains as a list, sorted by name.
    pub(crate) fn failure_domains(&self) -> Value {
        let domains = &self.object["status"]["failureDomains"];
        let Some(by_name) = domains.as_object() else {
            return list(domains).to_vec().into();
        };
        let mut all: Vec<Value> = by_name
            .iter()
            .map(|(name, domain)| {
                let mut entry = json!({"name": name, "controlPlane": domain["controlPlane"] == true});
                if !domain["attributes"].is_null() {
                    entry["attributes"] = domain["attributes"].clone();
                }
                entry
            })
            .collect();
        all.sort_by(|a, b| text(&a["name"]).cmp(text(&b["name"])));
        all.into()
    }

    /// For a machine: its failure domain.
    pub(crate) fn failure_domain(&self) -> Option<&'a str> {
        let place = if self.second { &self.object["status"] } else { &self.object["spec"] };
        place["failureDomain"].as_str().filter(|name| !name.is_empty())
    }

    /// For a machine: its provider ID.
    pub(crate) fn provider_id(&self) -> Option<&'a str> {
        self.object["spec"]["providerID"].as_str().filter(|id| !id.is_empty())
    }
}

/// Whether `{host, port}` has both members.
pub(crate) fn is_endpoint(endpoint: &Value) -> bool {
    !text(&endpoint["host"]).is_empty() && endpoint["port"].as_u64().is_some_and(|port| port > 0)
}

/// `host:port`, IPv6 addresses in brackets.
pub(crate) fn host_port(endpoint: &Value) -> String {
    let (host, port) = (text(&endpoint["host"]), &endpoint["port"]);
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// Adds an owner and the label of the cluster to a provider's object.
pub(crate) fn claim(round: &mut Round<'_>, kind: &GroupKind, object: &Value, owner: &Value, drop: &[&str]) {
    let mut wanted = object.clone();
    let owners = list(&object["metadata"]["ownerReferences"]).iter();
    let kept: Vec<Value> = owners.filter(|one| !drop.contains(&text(&one["kind"]))).cloned().collect();
    if !kept.is_empty() || !object["metadata"]["ownerReferences"].is_null() {
        wanted["metadata"]["ownerReferences"] = kept.into();
    }
    add_owner(&mut wanted, owner);
    if label(object, CLUSTER_NAME) != Some(round.cluster_name()) {
        wanted["metadata"]["labels"][CLUSTER_NAME] = round.cluster_name().into();
    }
    round.save(kind, object, &wanted);
}
