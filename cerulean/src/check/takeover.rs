//! The obstacles to replacing the established provider by `capz-controller-manager`.

use std::collections::BTreeSet;

use capz::{OperatorObjects, Settings};
use capz_planner::operator::{OperatorObject, kinds};

use crate::kubernetes::Cluster;

/// The maximum number of objects that are named for one reason.
const NAMED: usize = 5;

/// A finding.
#[derive(Debug, PartialEq)]
pub struct Finding {
    /// Whether nothing has to be done about it.
    pub is_good: bool,
    /// The finding in words, and what to do.
    pub words: String,
}

impl Finding {
    fn good(words: impl Into<String>) -> Self {
        Self { is_good: true, words: words.into() }
    }

    fn bad(words: impl Into<String>) -> Self {
        Self { is_good: false, words: words.into() }
    }
}

/// Reads the management cluster.
///
/// # Errors
/// It does not answer.
pub async fn look(cluster: &Cluster, settings: &Settings) -> anyhow::Result<Vec<Finding>> {
    operator(cluster, settings).await
}

/// Objects of Azure Service Operator.
async fn operator(cluster: &Cluster, settings: &Settings) -> anyhow::Result<Vec<Finding>> {
    let reader = OperatorObjects::new(cluster.client.clone(), settings.namespace.clone());
    let (mut of_clusters, mut of_others, mut findings) = (Vec::new(), Vec::new(), Vec::new());
    for kind in kinds() {
        let name = kind.definition();
        let definition = reader.definition(kind).await;
        let definition = definition.map_err(|error| cluster.failed(&format!("definition {name}"), &error))?;
        let Some(definition) = definition else { continue };
        match reader.list(kind, &definition.storage).await {
            Ok(listed) => {
                of_clusters.extend(listed.of_clusters);
                of_others.extend(listed.of_others.into_iter().map(|object| format!("{} {object}", kind.kind)));
            }
            Err(_) if matches!(reader.is_gone(&definition.converter).await, Ok(true)) => findings.push(Finding::good(format!(
                "The objects of {name} cannot be listed, for what converts them is gone: capz-controller-manager reads them as they are stored, \
                 and changes the definition for that (spec.conversion.strategy: None)."
            ))),
            Err(error) => findings.push(Finding::bad(format!(
                "{} Start Azure Service Operator again.",
                cluster.failed(&format!("The objects of {name} cannot be listed"), &error)
            ))),
        }
    }
    let kept: Vec<String> = of_clusters
        .iter()
        .filter_map(OperatorObject::kept)
        .map(|(id, policy)| format!("{id} ({policy})"))
        .collect();
    let owners: BTreeSet<&str> = of_clusters.iter().map(|object| object.owner.as_str()).collect();
    findings.push(Finding::good(match of_clusters.len() {
        0 => "Azure Service Operator has no objects that belong to a cluster.".to_owned(),
        count => format!(
            "Azure Service Operator has {count} objects that belong to {} clusters and pools: they become harmless, and are then deleted. What they \
             stand for stays in Azure.",
            owners.len()
        ),
    }));
    if !kept.is_empty() {
        findings.push(Finding::good(format!(
            "{} of them stand for what the operator was not to delete. It is used as it is, and neither written nor deleted: {}.",
            kept.len(),
            shortened(&kept)
        )));
    }
    if !of_others.is_empty() {
        findings.push(Finding::bad(format!(
            "{} objects of Azure Service Operator belong to no cluster or pool, and stay with it: {}. Install an operator of your own before \
             clusterctl upgrade takes this one away, or delete them.",
            of_others.len(),
            shortened(&of_others)
        )));
    }
    Ok(findings)
}

fn shortened(names: &[String]) -> String {
    let more = names.len().saturating_sub(NAMED);
    let shown = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

#[cfg(test)]
mod tests {
    use kube::Client;
    use kubernetes_simulator::{Kubernetes, Options};
    use serde_json::{Value, json};

    use super::*;

    fn definition(group: &str, kind: &str, plural: &str) -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{plural}.{group}") },
            "spec": {
                "group": group, "scope": "Namespaced",
                "names": { "kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase() },
                "versions": [{ "name": "v1beta1", "served": true, "storage": true,
                    "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } } }],
            },
        })
    }

    async fn said(kubernetes: &Kubernetes, settings: &Settings) -> Vec<(bool, String)> {
        let cluster = Cluster::new(Client::new(kubernetes.router(), "default"), "default");
        look(&cluster, settings).await.unwrap().into_iter().map(|it| (it.is_good, it.words)).collect()
    }

    /// S3: before an upgrade, users learn what happens to the operator's objects.
    #[tokio::test]
    async fn what_is_in_the_way_is_said_before() {
        let kubernetes = Kubernetes::new(Options::default());
        let all = Settings::default();
        assert!(said(&kubernetes, &all).await.iter().all(|(is_good, _)| *is_good));

        let infrastructure = "infrastructure.cluster.x-k8s.io";
        kubernetes.create(definition("network.azure.com", "NatGateway", "natgateways")).unwrap();
        let create = |metadata: Value| {
            let mut object = json!({ "apiVersion": "network.azure.com/v1beta1", "kind": "NatGateway", "metadata": metadata });
            object["metadata"]["namespace"] = json!("default");
            kubernetes.create(object).unwrap();
        };
        let owner = json!([{ "apiVersion": format!("{infrastructure}/v1beta1"), "kind": "AzureCluster", "name": "c", "uid": "u",
            "controller": true }]);
        let id = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/natGateways/kept";
        create(json!({ "name": "ours", "ownerReferences": owner.clone() }));
        create(json!({ "name": "kept", "ownerReferences": owner, "annotations": {
            "serviceoperator.azure.com/reconcile-policy": "detach-on-delete", "serviceoperator.azure.com/resource-id": id } }));
        let found = said(&kubernetes, &all).await;
        assert!(found.iter().all(|(is_good, _)| *is_good), "{found:?}");
        assert!(
            found.iter().any(|(_, words)| words.contains("2 objects that belong to 1 clusters and pools")),
            "{found:?}"
        );
        assert!(
            found.iter().any(|(_, words)| words.contains(&format!("{id} (detach-on-delete)"))),
            "{found:?}"
        );

        create(json!({ "name": "theirs" }));
        let found = said(&kubernetes, &all).await;
        let bad: Vec<&String> =
            found.iter().filter(|(is_good, _)| !is_good).map(|(_, words)| words).collect();
        assert_eq!(bad.len(), 1, "{found:?}");
        assert!(bad[0].contains("NatGateway default/theirs"), "{bad:?}");
    }

    /// S4: objects that cannot be listed are reported, and nothing is written.
    #[tokio::test]
    async fn objects_without_a_converter_are_said() {
        let kubernetes = Kubernetes::new(Options::default());
        let mut old = definition("network.azure.com", "NatGateway", "natgateways");
        old["spec"]["versions"][0]["name"] = json!("v1");
        kubernetes.create(old.clone()).unwrap();
        kubernetes
            .create(json!({ "apiVersion": "network.azure.com/v1", "kind": "NatGateway", "metadata": { "name": "n", "namespace": "default" } }))
            .unwrap();
        let mut new = old.clone();
        let mut versions = vec![old["spec"]["versions"][0].clone(), old["spec"]["versions"][0].clone()];
        versions[0]["storage"] = json!(false);
        versions[1]["name"] = json!("v2");
        let service = json!({ "namespace": "capz-system", "name": "gone" });
        new["spec"]["versions"] = versions.into();
        new["spec"]["conversion"] = json!({ "strategy": "Webhook", "webhook": {
            "conversionReviewVersions": ["v1"], "clientConfig": { "service": service } } });
        let held = kubernetes.get("CustomResourceDefinition", "", "natgateways.network.azure.com").unwrap();
        new["metadata"]["resourceVersion"] = held["metadata"]["resourceVersion"].clone();
        let before = kubernetes.update(new).unwrap().value().clone();
        let found = said(&kubernetes, &Settings::default()).await;
        assert!(
            found.iter().any(|(is_good, words)| *is_good && words.contains("strategy: None")),
            "{found:?}"
        );
        let after = kubernetes.get("CustomResourceDefinition", "", "natgateways.network.azure.com").unwrap();
        assert_eq!(after.value()["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);
    }
}
