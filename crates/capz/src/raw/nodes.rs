//! The nodes of a node pool, as the API server of the managed cluster lists them.

use k8s::api::api::core::v1::Node;
use k8s::api::api::core::v1::Secret;
use kube::Api;
use kube::api::ListParams;

use crate::azure::failure::Failure;
use crate::context::manager::Manager;
use crate::kubernetes::store::Key;

/// The maximum length of a label's value: Azure cuts longer ones.
const MAX_LABEL: usize = 63;

impl Manager {
    /// The provider IDs of the nodes of a pool, sorted.
    pub(crate) async fn nodes_of(
        &self,
        cluster: &Key,
        pool: &str,
        node_group: &str,
    ) -> Result<Vec<String>, Failure> {
        let after = self.settings.timeouts.requeue;
        let later = |words: String| Failure::Later { after, words };
        let name = format!("{}-kubeconfig", cluster.name);
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &cluster.namespace);
        let secret = secrets.get_opt(&name).await.map_err(|error| later(controllers::answer(&error)))?;
        let kubeconfig = secret.and_then(|secret| secret.data?.remove("value"));
        let kubeconfig = kubeconfig.ok_or_else(|| later(format!("waiting for Secret {name}")))?;
        let client = self.workloads.connect(&kubeconfig.0).await;
        let client =
            client.map_err(|words| later(format!("the managed cluster cannot be reached: {words}")))?;
        let client = controllers::watch::with_answer_timeout(&client);
        let cut = |text: &str| text.chars().take(MAX_LABEL).collect::<String>();
        let labels = format!(
            "kubernetes.azure.com/agentpool={},kubernetes.azure.com/cluster={}",
            cut(pool),
            cut(node_group)
        );
        let nodes: Api<Node> = Api::all(client);
        let nodes = nodes.list(&ListParams::default().labels(&labels)).await.map_err(|error| {
            later(format!(
                "the nodes of the managed cluster cannot be listed: {}",
                controllers::answer(&error)
            ))
        })?;
        let mut ids = Vec::with_capacity(nodes.items.len());
        for node in nodes.items {
            let id = node.spec.and_then(|spec| spec.provider_id).filter(|id| !id.is_empty());
            let name = node.metadata.name.unwrap_or_default();
            ids.push(id.ok_or_else(|| later(format!("waiting for the provider ID of node {name}")))?);
        }
        ids.sort();
        Ok(ids)
    }
}
