//! The machines of workload clusters: the configuration of their kubelets, and whether they still run.

use std::time::Duration;

use azure_simulator::Azure;
use azure_types::ResourceId;
use serde_json::Value;
use stand_ins::Machine;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::options::CloudProvider;
use super::registration::Registration;
use super::state::WorkloadClusters;
use crate::machines::AzureMachines;
use crate::managed_clusters::provider_id;

/// Interval between checks for machines that are gone.
const PAUSE: Duration = Duration::from_secs(1);

/// The machines of one cluster, for its kubelets.
pub(super) struct Members {
    pub(super) clusters: WorkloadClusters,
    /// The key of the cluster.
    pub(super) at: String,
    pub(super) changed: watch::Sender<u64>,
}

impl stand_ins::Machines for Members {
    fn machines(&self) -> Vec<Machine> {
        let clusters = self.clusters.inner.clusters.lock();
        let Some(cluster) = clusters.get(&self.at) else { return Vec::new() };
        let members = cluster.members.values().filter_map(|member| member.node.as_ref());
        members.chain(&cluster.pooled).cloned().collect()
    }

    fn changed(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }
}

/// Follows the machines of all clusters.
pub(super) async fn follow(clusters: WorkloadClusters) {
    let mut changed = clusters.inner.azure.subscribe();
    loop {
        changed.mark_unchanged();
        clusters.look_at_members();
        clusters.look_at_managed();
        // Several changes in a row cause one check.
        tokio::time::sleep(PAUSE).await;
        if changed.changed().await.is_err() {
            return;
        }
    }
}

impl WorkloadClusters {
    /// Checks which machines still exist and run. A cluster without any control plane machine is deleted.
    pub(super) fn look_at_members(&self) {
        let known: Vec<(String, ResourceId, Registration)> = {
            let clusters = self.inner.clusters.lock();
            let members =
                clusters.iter().flat_map(|(at, cluster)| cluster.members.values().map(move |one| (at, one)));
            members.map(|(at, one)| (at.clone(), one.machine.clone(), one.registration.clone())).collect()
        };
        // Azure is read without the lock: a caller inside Azure may be waiting for answers to its probes.
        let (azure, provider) = (&self.inner.azure, self.inner.options.cloud_provider);
        let observed: Vec<Option<Option<Machine>>> = known
            .iter()
            .map(|(_, id, registration)| Some(node(azure, &azure.document(id)?, registration, provider)))
            .collect();
        let mut clusters = self.inner.clusters.lock();
        for ((at, id, registration), node) in known.iter().zip(observed) {
            let Some(cluster) = clusters.get_mut(at) else { continue };
            let Some(member) = cluster.members.get_mut(&registration.host) else { continue };
            if member.machine != *id {
                continue;
            }
            let Some(node) = node else {
                member.up.cancel();
                cluster.members.remove(&registration.host);
                cluster.changed.send_modify(|revision| *revision += 1);
                continue;
            };
            let runs = node.as_ref().is_some_and(|node| node.running);
            match (runs, member.up.is_cancelled()) {
                (true, true) => member.up = CancellationToken::new(),
                (false, false) if member.node.is_some() => member.up.cancel(),
                _ => {}
            }
            if node != member.node {
                member.node = node;
                cluster.changed.send_modify(|revision| *revision += 1);
            }
        }
        clusters.retain(|_, cluster| {
            let stays =
                cluster.managed.is_some() || cluster.members.values().any(|member| member.api_port.is_some());
            if !stays {
                cluster.stop.cancel();
            }
            stays
        });
    }
}

/// The node of a machine.
fn node(
    azure: &Azure,
    document: &Value,
    registration: &Registration,
    provider: CloudProvider,
) -> Option<Machine> {
    let mut machine = AzureMachines::all(azure.clone()).machine(document)?;
    machine.name.clone_from(&registration.node);
    machine.labels.extend(registration.labels.clone());
    machine.taints.extend(registration.taints.clone());
    if registration.control_plane {
        for label in [k8s::names::LABEL_CONTROL_PLANE, k8s::names::LABEL_EXCLUDE_FROM_LOAD_BALANCERS] {
            machine.labels.insert(label.to_owned(), String::new());
        }
    }
    if let Some(version) = kubelet_version(document) {
        machine.kubelet_version = version;
    }
    match provider {
        CloudProvider::Unseen => {
            machine.provider_id = document["id"].as_str().map(provider_id).unwrap_or_default();
            machine.initialized = true;
            let region = document["location"].as_str().unwrap_or_default().to_owned();
            let zone = document["zones"][0]
                .as_str()
                .map_or_else(|| "0".to_owned(), |zone| format!("{region}-{zone}"));
            machine.labels.insert("topology.kubernetes.io/region".to_owned(), region);
            machine.labels.insert("topology.kubernetes.io/zone".to_owned(), zone);
        }
        CloudProvider::Awaited => machine.initialized = !registration.external,
    }
    Some(machine)
}

/// The version of Kubernetes in a machine's image: gallery images are named after it, marketplace images have it in
/// their version (`127.14.20240517`).
fn kubelet_version(document: &Value) -> Option<String> {
    let image = document.pointer("/properties/storageProfile/imageReference")?;
    let galleries =
        ["id", "communityGalleryImageId", "sharedGalleryImageId"].map(|member| image[member].as_str());
    let is_version =
        |id: &str| id.to_lowercase().rsplit_once("/versions/").map(|(_, version)| version.to_owned());
    let version = match galleries.into_iter().flatten().find_map(is_version) {
        Some(version) => version,
        None => {
            let mut parts = image["version"].as_str()?.split('.');
            let (first, second) = (parts.next()?, parts.next()?);
            let (major, minor) = first.split_at_checked(1)?;
            format!("{major}.{minor}.{second}")
        }
    };
    let numbers = version.split('.').take(3).filter(|part| part.parse::<u64>().is_ok()).count();
    (numbers == 3 && version.starts_with("1.")).then(|| format!("v{version}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn images_say_which_kubernetes_they_hold() {
        let of = |image: Value| {
            kubelet_version(&json!({"properties": {"storageProfile": {"imageReference": image}}}))
        };
        let community = json!({"communityGalleryImageId": "/CommunityGalleries/g/Images/i/Versions/1.33.2"});
        assert_eq!(of(community).as_deref(), Some("v1.33.2"));
        assert_eq!(
            of(json!({"id": "/subscriptions/s/galleries/g/images/i/versions/1.34.0"})).as_deref(),
            Some("v1.34.0")
        );
        assert_eq!(of(json!({"offer": "capi", "version": "127.14.20240517"})).as_deref(), Some("v1.27.14"));
        assert_eq!(of(json!({"offer": "0001-com-ubuntu-server-jammy", "version": "latest"})), None);
    }
}
