//! Objects of clusters that the demo does not support, and what to do instead: they contain no mistake to correct.

use capz_api::crd::GROUP;
use serde_json::Value;

/// Why the demo does not accept an object; `None` for all others.
pub fn refusal_of_the_demo(object: &Value) -> Option<String> {
    let text = |member: &str| object[member].as_str().unwrap_or_default();
    let (group, kind) = (text("apiVersion").split('/').next().unwrap_or_default(), text("kind"));
    let is_managed =
        group == GROUP && ["AzureManaged", "AzureASOManaged"].iter().any(|begin| kind.starts_with(begin));
    if is_managed {
        return Some(format!(
            "{kind} is a kind for clusters that Azure manages (AKS), which the demo does not run: plan it (`cerulean plan -f`), or \
             apply it to a management cluster"
        ));
    }
    let of_class = kind == "ClusterClass" || (kind == "Cluster" && object["spec"]["topology"].is_object());
    (group == "cluster.x-k8s.io" && of_class).then(|| {
        "the demo does not support ClusterClasses: generate a flavor without a class \
         (`clusterctl generate cluster` without --flavor)"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_demo_does_not_run_is_named_with_what_does() {
        const OURS: &str = "infrastructure.cluster.x-k8s.io/v1beta1";
        const CORE: &str = "cluster.x-k8s.io/v1beta2";
        for (api_version, kind, spec, words) in [
            (OURS, "AzureASOManagedControlPlane", json!({}), "cerulean plan -f"),
            (OURS, "AzureManagedCluster", json!({}), "cerulean plan -f"),
            (CORE, "ClusterClass", json!({}), "flavor without a class"),
            (CORE, "Cluster", json!({ "topology": { "class": "x" } }), "flavor without a class"),
            (CORE, "Cluster", json!({}), ""),
            (OURS, "AzureCluster", json!({}), ""),
            ("x.io/v1", "AzureManagedCluster", json!({}), ""),
        ] {
            let object = json!({ "apiVersion": api_version, "kind": kind, "spec": spec });
            let said = refusal_of_the_demo(&object);
            assert_eq!(said.is_some(), !words.is_empty(), "{kind}");
            assert!(said.unwrap_or_default().contains(words), "{kind}");
        }
    }
}
