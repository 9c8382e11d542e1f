//! kubeadm's configuration of nodes.

use std::collections::BTreeMap;

use azure_simulator::GuestStart;
use k8s::api::api::core::v1::Taint;
use serde_json::Value;

use crate::managed_clusters::parse_taint;

/// kubeadm's configuration of a node (`nodeRegistration`).
#[derive(Debug, Clone)]
pub(super) struct Registration {
    /// The host name of the machine.
    pub(super) host: String,
    /// The name of the node.
    pub(super) node: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) taints: Vec<Taint>,
    /// Whether the node is the control plane's.
    pub(super) control_plane: bool,
    /// Whether the kubelet leaves its identity to an external cloud provider.
    pub(super) external: bool,
}

impl Registration {
    pub(super) fn read(registration: &Value, start: &GuestStart, control_plane: bool) -> Self {
        let host = start.computer_name.to_ascii_lowercase();
        let node = registration["name"].as_str().filter(|name| !name.is_empty()).unwrap_or(&host);
        let arguments = arguments(&registration["kubeletExtraArgs"]);
        let parts = |name: &str| {
            let all = arguments.get(name).map(String::as_str).unwrap_or_default();
            all.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect::<Vec<_>>()
        };
        let labels = parts("node-labels").into_iter().map(|label| match label.split_once('=') {
            Some((name, value)) => (name.to_owned(), value.to_owned()),
            None => (label, String::new()),
        });
        let taints = registration["taints"].as_array();
        let mut all: Vec<Taint> =
            parts("register-with-taints").iter().filter_map(|taint| parse_taint(taint)).collect();
        all.extend(taints.into_iter().flatten().filter_map(|one| serde_json::from_value(one.clone()).ok()));
        Self {
            node: node.to_ascii_lowercase(),
            host: host.clone(),
            labels: labels.collect(),
            // An empty list is for control plane nodes that accept any pod.
            taints: if control_plane && taints.is_none() { control_plane_taints(all) } else { all },
            control_plane,
            external: arguments.get("cloud-provider").is_some_and(|provider| provider == "external"),
        }
    }
}

fn control_plane_taints(mut taints: Vec<Taint>) -> Vec<Taint> {
    taints.push(Taint {
        key: k8s::names::LABEL_CONTROL_PLANE.to_owned(),
        effect: "NoSchedule".to_owned(),
        ..Taint::default()
    });
    taints
}

/// Arguments in either form of kubeadm's versions: by name, or as a list.
fn arguments(arguments: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match arguments {
        Value::Object(named) => named.iter().map(|(name, value)| (name.clone(), text(value))).collect(),
        Value::Array(all) => all.iter().map(|one| (text(&one["name"]), text(&one["value"]))).collect(),
        _ => BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn registrations_name_labels_and_taints() {
        let start = |name: &str| GuestStart {
            machine: "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/m"
                .parse()
                .unwrap(),
            computer_name: name.to_owned(),
            first: true,
            boots: true,
            custom_data: None,
            user_data: None,
            extensions: Vec::new(),
            identities: Vec::new(),
            addresses: Vec::new(),
        };
        let registration = json!({"name": "Node-1", "kubeletExtraArgs": [{"name": "cloud-provider", "value": "external"},
            {"name": "node-labels", "value": "a=b,c="}, {"name": "register-with-taints", "value": "x=y:NoExecute"}]});
        let read = Registration::read(&registration, &start("Host"), true);
        assert_eq!((read.node.as_str(), read.host.as_str(), read.external), ("node-1", "host", true));
        assert_eq!(read.labels["a"], "b");
        let effects: Vec<&str> = read.taints.iter().map(|taint| taint.effect.as_str()).collect();
        assert_eq!(effects, ["NoExecute", "NoSchedule"]);
        let read =
            Registration::read(&json!({"taints": [], "kubeletExtraArgs": {"v": "2"}}), &start("h"), true);
        assert!(read.taints.is_empty() && !read.external);
    }
}
