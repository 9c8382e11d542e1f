//! Objects of clusters that are not supported here, and what to do instead: they contain no mistake to correct.

use std::collections::BTreeSet;

use capz_api::crd::GROUP;
use serde_json::Value;

use crate::manifests::Manifest;

/// Whether an object belongs to a cluster that Azure manages (AKS).
fn is_managed(object: &Value) -> bool {
    let text = |member: &str| object[member].as_str().unwrap_or_default();
    text("apiVersion").split('/').next() == Some(GROUP)
        && ["AzureManaged", "AzureASOManaged"].iter().any(|begin| text("kind").starts_with(begin))
}

/// The name of a Cluster's ClusterClass.
fn class_of(object: &Value) -> Option<&str> {
    let is_cluster = object["kind"] == "Cluster"
        && object["apiVersion"].as_str().is_some_and(|it| it.starts_with("cluster.x-k8s.io/"));
    let topology = object["spec"]["topology"].as_object().filter(|_| is_cluster)?;
    let class = topology.get("class").or_else(|| topology.get("classRef")?.get("name"));
    Some(class.and_then(Value::as_str).unwrap_or_default())
}

/// Why an object of a cluster that Azure manages is not accepted; `None` for any other.
pub fn refusal(object: &Value) -> Option<String> {
    is_managed(object).then(|| {
        format!(
            "{} is a kind for clusters that Azure manages (AKS), which this release does not serve yet; the established \
             provider (Cluster API Provider Azure) does",
            object["kind"].as_str().unwrap_or_default()
        )
    })
}

/// The same if Cluster API's core is played, which does not support ClusterClasses.
pub fn refusal_of_the_demo(object: &Value) -> Option<String> {
    let of_class = object["kind"] == "ClusterClass" || class_of(object).is_some();
    let words = || {
        "the demo does not support ClusterClasses: generate a flavor without a class \
         (`clusterctl generate cluster` without --flavor)"
            .to_owned()
    };
    refusal(object).or_else(|| of_class.then(words))
}

/// Why nothing can be planned from manifests without an AzureCluster, and what can be done.
pub fn without_azure_cluster(manifests: &[Manifest]) -> String {
    let managed: BTreeSet<&str> =
        manifests.iter().filter(|it| is_managed(&it.object)).map(Manifest::kind).collect();
    if !managed.is_empty() {
        let kinds = managed.into_iter().collect::<Vec<_>>().join(", ");
        return format!(
            "the manifests have {kinds}: kinds for clusters that Azure manages (AKS), which this release does not serve \
             yet. The established provider (Cluster API Provider Azure) serves them. Planned here are clusters with an \
             AzureCluster"
        );
    }
    topologies(manifests).into_iter().next().unwrap_or_else(|| {
        "the manifests have objects of Cluster API, but no AzureCluster, without which nothing can be planned of them"
            .to_owned()
    })
}

/// The notes on each Cluster with a ClusterClass.
pub fn topologies(manifests: &[Manifest]) -> Vec<String> {
    let of_class = manifests.iter().filter_map(|it| Some((it, class_of(&it.object)?)));
    let words = |(cluster, class): (&Manifest, &str)| {
        format!(
            "Cluster {} is made of ClusterClass {class} (spec.topology): Cluster API makes its AzureCluster, its machines and \
             their templates in the management cluster, and none of them can be planned before. Apply it there and plan what \
             has come of it: kubectl get cluster,azurecluster,kubeadmcontrolplane,machinedeployment,machinepool,machine,\
             azuremachine,azuremachinepool,azuremachinetemplate -o yaml | cerulean plan -f -",
            cluster.text("/metadata/name")
        )
    };
    of_class.map(words).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn manifest(api_version: &str, kind: &str, spec: Value) -> Manifest {
        let object =
            json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": "c" }, "spec": spec });
        Manifest { source: "c.yaml".to_owned(), object }
    }

    const OURS: &str = "infrastructure.cluster.x-k8s.io/v1beta1";
    const CORE: &str = "cluster.x-k8s.io/v1beta2";

    #[test]
    fn kinds_that_are_not_served_are_named_with_what_serves_them() {
        let managed = manifest(OURS, "AzureASOManagedControlPlane", json!({}));
        for said in [
            refusal(&managed.object).unwrap(),
            refusal_of_the_demo(&managed.object).unwrap(),
            without_azure_cluster(std::slice::from_ref(&managed)),
        ] {
            for words in ["AzureASOManagedControlPlane", "does not serve yet", "established provider"] {
                assert!(said.contains(words), "{words}: {said}");
            }
        }
        for served in
            [manifest(OURS, "AzureCluster", json!({})), manifest("x.io/v1", "AzureManagedCluster", json!({}))]
        {
            assert_eq!(refusal_of_the_demo(&served.object), None);
        }
    }

    #[test]
    fn a_topology_is_called_by_its_name_with_what_can_be_done() {
        for (topology, class) in
            [(json!({ "class": "ours" }), "ours"), (json!({ "classRef": { "name": "theirs" } }), "theirs")]
        {
            let cluster = manifest(CORE, "Cluster", json!({ "topology": topology }));
            let said = without_azure_cluster(std::slice::from_ref(&cluster));
            let begins = format!("Cluster c is made of ClusterClass {class} (spec.topology)");
            assert!(said.starts_with(&begins) && said.contains("cerulean plan -f -"), "{said}");
            assert!(refusal_of_the_demo(&cluster.object).unwrap().contains("flavor without a class"));
            assert_eq!(refusal(&cluster.object), None);
        }
        let plain = manifest(CORE, "Cluster", json!({}));
        assert!(without_azure_cluster(&[plain]).contains("no AzureCluster"));
    }
}
