//! The static pods of a control plane, as mirror pods at the API server. Cluster API's control plane provider reads
//! them to judge the health of a control plane machine. A deleted one is not created again.

use serde_json::{Value, json};

/// kubeadm's control plane components, each with the repository of its image.
const COMPONENTS: [(&str, &str); 4] = [
    ("etcd", "registry.k8s.io/etcd"),
    ("kube-apiserver", "registry.k8s.io/kube-apiserver"),
    ("kube-controller-manager", "registry.k8s.io/kube-controller-manager"),
    ("kube-scheduler", "registry.k8s.io/kube-scheduler"),
];
/// kubeadm's version of etcd.
const ETCD: &str = "3.6.4-0";

/// The mirror pods of `node`.
pub(super) fn mirrored(node: &Value) -> Vec<Value> {
    let name = node["metadata"]["name"].as_str().unwrap_or_default();
    let version = node["status"]["nodeInfo"]["kubeletVersion"].as_str().unwrap_or_default();
    let pod = |(component, image): (&str, &str)| {
        let tag = if component == "etcd" { ETCD } else { version };
        // In a cluster this is the hash of the manifest file: here there is one file for each component.
        let hash = format!("{component}-{tag}");
        json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "namespace": "kube-system", "name": format!("{component}-{name}"),
            "labels": {"component": component, "tier": "control-plane"},
            "annotations": {"kubernetes.io/config.source": "file", "kubernetes.io/config.hash": hash,
                "kubernetes.io/config.mirror": hash},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"],
                "controller": true}],
        },
        "spec": {
            "nodeName": name, "hostNetwork": true,
            "priorityClassName": "system-node-critical", "tolerations": [{"operator": "Exists", "effect": "NoExecute"}],
            "containers": [{"name": component, "image": format!("{image}:{tag}")}],
        }})
    };
    COMPONENTS.map(pod).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_of_a_control_plane_is_shown_as_its_nodes() {
        let node = json!({"metadata": {"name": "cp-0", "uid": "u"}, "status": {"nodeInfo": {"kubeletVersion": "v1.33.2"}}});
        let pods = mirrored(&node);
        let names: Vec<&str> = pods.iter().map(|pod| pod["metadata"]["name"].as_str().unwrap()).collect();
        let expected =
            ["etcd-cp-0", "kube-apiserver-cp-0", "kube-controller-manager-cp-0", "kube-scheduler-cp-0"];
        assert_eq!(names, expected);
        assert_eq!(pods[1]["spec"]["containers"][0]["image"], "registry.k8s.io/kube-apiserver:v1.33.2");
        for pod in &pods {
            assert_eq!(pod["metadata"]["labels"]["tier"], "control-plane");
            assert_eq!(pod["metadata"]["ownerReferences"][0]["uid"], "u");
        }
    }
}
