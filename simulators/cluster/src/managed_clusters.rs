//! Managed clusters in the simulated Azure. Where there is one Kubernetes beside it, that serves them, and the machines of
//! their pools are its nodes, initialized as by AKS's own cloud controller manager.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use azure_simulator::Azure;
use azure_simulator::managed_clusters::{AttachedKubernetes, KubernetesOfClusters};
use azure_types::ResourceId;
use k8s::api::api::core::v1::{Node, Taint};
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::Value;
use stand_ins::Machine;
use tokio_util::sync::CancellationToken;

use crate::files::HostError;
use crate::instance::{INSTANCES, host_name};

/// The tag of a scale set with the name of its pool.
const POOL_TAG: &str = "aks-managed-poolName";
/// The label of a node with the name of its pool.
const POOL_LABEL: &str = "kubernetes.azure.com/agentpool";
/// The type of managed clusters.
pub(crate) const CLUSTERS: &str = "Microsoft.ContainerService/managedClusters";
/// The maximum length of a label's value.
const MAX_LABEL: usize = 63;
/// Interval between checks for machines that are gone.
const PAUSE: Duration = Duration::from_millis(500);

/// Makes kubeconfigs of managed clusters lead to the Kubernetes of this kubeconfig.
///
/// # Errors
/// The text is not a kubeconfig.
pub(crate) fn attach(azure: &Azure, kubeconfig: &str) -> Result<(), HostError> {
    let bad = |text: String| HostError::Kubernetes(format!("the kubeconfig cannot be read: {text}"));
    let config: Value = serde_saphyr::from_str(kubeconfig).map_err(|error| bad(error.to_string()))?;
    let part = |list: &str, name: &Value, member: &str| {
        let items = config[list].as_array().map_or(&[] as &[Value], Vec::as_slice);
        let found = items.iter().find(|item| item["name"] == *name).map(|item| item[member].clone());
        found.ok_or_else(|| bad(format!("{list} has no {name}")))
    };
    let context = part("contexts", &config["current-context"], "context")?;
    let cluster = part("clusters", &context["cluster"], "cluster")?;
    let user = part("users", &context["user"], "user")?;
    let attached = AttachedKubernetes { cluster, user };
    azure.attach(KubernetesOfClusters::new(move |_| Some(attached.clone())));
    Ok(())
}

/// Adds the settings that AKS gives the kubelet of a pool's machine, and those of its cloud controller manager.
pub(crate) fn complete(azure: &Azure, instance: &Value, machine: &mut Machine) {
    let Some((pool, cluster)) = pool_of(azure, instance) else { return };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let properties = &pool["properties"];
    let group: String = text(&cluster["properties"]["nodeResourceGroup"]).chars().take(MAX_LABEL).collect();
    let zone = instance["zones"][0].as_str();
    let region = text(&instance["location"]);
    let mut labels: BTreeMap<String, String> = [
        ("agentpool", text(&pool["name"])),
        (POOL_LABEL, text(&pool["name"])),
        ("kubernetes.azure.com/cluster", group),
        ("kubernetes.azure.com/mode", text(&properties["mode"]).to_ascii_lowercase()),
        ("kubernetes.azure.com/role", "agent".to_owned()),
        ("node.kubernetes.io/instance-type", text(&properties["vmSize"])),
        (
            "topology.kubernetes.io/zone",
            zone.map_or_else(|| "0".to_owned(), |zone| format!("{region}-{zone}")),
        ),
        ("topology.kubernetes.io/region", region),
    ]
    .map(|(label, value)| (label.to_owned(), value))
    .into();
    let own = properties["nodeLabels"].as_object().into_iter().flatten();
    labels.extend(own.map(|(label, value)| (label.clone(), text(value))));
    machine.labels.extend(labels);
    let taints = properties["nodeTaints"].as_array().into_iter().flatten();
    machine.taints.extend(taints.filter_map(|taint| parse_taint(taint.as_str()?)));
    if let Some(version) = properties["currentOrchestratorVersion"].as_str() {
        machine.kubelet_version = format!("v{version}");
    }
    machine.provider_id = instance["id"].as_str().map(provider_id).unwrap_or_default();
    machine.initialized = true;
}

/// The documents of a machine's pool and cluster.
fn pool_of(azure: &Azure, instance: &Value) -> Option<(Value, Value)> {
    let (pool, cluster) = (instance["tags"][POOL_TAG].as_str()?, cluster_of(instance)?);
    Some((azure.document(&cluster.child("agentPools", pool))?, azure.document(&cluster)?))
}

/// The managed cluster to whose pools a machine belongs.
pub(crate) fn cluster_of(instance: &Value) -> Option<ResourceId> {
    let tag = |name: &str| instance["tags"][name].as_str();
    let (cluster, group) = (tag("aks-managed-cluster-name")?, tag("aks-managed-cluster-rg")?);
    let id: ResourceId = instance["id"].as_str()?.parse().ok()?;
    let group = ResourceId::group(id.subscription_id(), group);
    Some(group.resource("Microsoft.ContainerService", "managedClusters", cluster))
}

/// The provider ID that the cloud controller manager sets: the name of the resource group is in lower case.
pub(crate) fn provider_id(instance: &str) -> String {
    let Some((before, rest)) = instance.split_once("/resourceGroups/") else {
        return format!("azure://{instance}");
    };
    let (group, after) = rest.split_once('/').unwrap_or((rest, ""));
    format!("azure://{before}/resourceGroups/{}/{after}", group.to_ascii_lowercase())
}

/// Parses a taint of a pool: `key=value:effect`.
pub(crate) fn parse_taint(text: &str) -> Option<Taint> {
    let (key, effect) = text.rsplit_once(':')?;
    let (key, value) = key.split_once('=').map_or((key, None), |(key, value)| (key, Some(value.to_owned())));
    Some(Taint { key: key.to_owned(), value, effect: effect.to_owned(), ..Taint::default() })
}

/// Deletes Nodes of pools whose machines are gone, until `stop`. Sends no requests while there is no managed cluster.
pub(crate) async fn forget_lost_nodes(azure: Azure, client: Client, stop: CancellationToken) {
    let nodes: Api<Node> = Api::all(client);
    let mut changed = azure.subscribe();
    let mut seen = false;
    loop {
        changed.mark_unchanged();
        seen |= !azure.documents_of_type(CLUSTERS).is_empty();
        if seen && let Err(error) = forget(&azure, &nodes).await {
            tracing::debug!(%error, "cannot check the nodes of pools");
        }
        let next = async {
            // Several changes in a row cause one check.
            tokio::time::sleep(PAUSE).await;
            changed.changed().await
        };
        match stop.run_until_cancelled(next).await {
            Some(Ok(())) => {}
            _ => return,
        }
    }
}

async fn forget(azure: &Azure, nodes: &Api<Node>) -> Result<(), kube::Error> {
    // Nodes are listed first, so that a machine created meanwhile is in the list of machines.
    let registered = nodes.list_metadata(&ListParams::default().labels(POOL_LABEL)).await?;
    let machines: BTreeSet<String> =
        azure.documents_of_type(INSTANCES).iter().filter_map(host_name).collect();
    for node in registered.items {
        if !machines.contains(&node.name_any()) {
            nodes.delete(&node.name_any(), &DeleteParams::default()).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{parse_taint, provider_id};

    #[test]
    fn taints_and_provider_ids_are_read() {
        let taint = parse_taint("a/b=c:NoSchedule").unwrap();
        assert_eq!(
            (taint.key.as_str(), taint.value.as_deref(), taint.effect.as_str()),
            ("a/b", Some("c"), "NoSchedule")
        );
        assert_eq!(parse_taint("a:NoExecute").unwrap().value, None);
        assert_eq!(
            provider_id("/subscriptions/s/resourceGroups/MC_g/providers/N/t/a"),
            "azure:///subscriptions/s/resourceGroups/mc_g/providers/N/t/a"
        );
    }
}
