//! The hook before the driver stops (section 3.19 of the specification of the drivers).

use std::time::Duration;

use azuredisk_csi_driver::node::kubernetes::{PreStopError, wait_before_stop};
use kube::Client;
use kubernetes_simulator::{Fault, Kubernetes};
use serde_json::json;
use tokio::task::JoinHandle;

const DRIVER: &str = "disk.csi.azure.com";

fn kubernetes(taint: Option<&str>) -> Kubernetes {
    let kubernetes = Kubernetes::new(kubernetes_simulator::Options::default());
    let taints: Vec<_> = taint.iter().map(|key| json!({ "key": key, "effect": "NoSchedule" })).collect();
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": "node-1" }, "spec": { "taints": taints },
    });
    kubernetes.create(node).unwrap();
    kubernetes
}

fn attach(kubernetes: &Kubernetes, name: &str, driver: &str, node: &str) {
    let attachment = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": { "name": name },
        "spec": { "attacher": driver, "nodeName": node, "source": { "persistentVolumeName": name } },
    });
    kubernetes.create(attachment).unwrap();
}

fn start(kubernetes: &Kubernetes) -> JoinHandle<Result<(), PreStopError>> {
    let client = Client::new(kubernetes.router(), "default");
    tokio::spawn(async move { wait_before_stop(client, "node-1", DRIVER).await })
}

async fn minute() {
    tokio::time::sleep(Duration::from_secs(60)).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_stays_is_not_waited_for() {
    for taint in [None, Some("mine"), Some("node.kubernetes.io/not-ready")] {
        let kubernetes = kubernetes(taint);
        attach(&kubernetes, "one", DRIVER, "node-1");
        start(&kubernetes).await.unwrap().unwrap();
    }
}

/// Section 3.19: each taint, and a node that is gone; FIX: our own driver's attachments alone.
#[tokio::test(start_paused = true)]
async fn a_node_that_goes_is_waited_for_until_our_volumes_are_detached() {
    for taint in [
        Some("node.kubernetes.io/unschedulable"),
        Some("ToBeDeletedByClusterAutoscaler"),
        Some("karpenter.sh/disrupted"),
        Some("karpenter.sh/disruption"),
        None,
    ] {
        let kubernetes = kubernetes(taint);
        if taint.is_none() {
            kubernetes.delete("Node", "", "node-1").unwrap();
        }
        attach(&kubernetes, "one", DRIVER, "node-1");
        attach(&kubernetes, "two", DRIVER, "node-1");
        attach(&kubernetes, "foreign", "file.csi.azure.com", "node-1");
        attach(&kubernetes, "elsewhere", DRIVER, "node-2");
        let waiting = start(&kubernetes);
        minute().await;
        kubernetes.delete("VolumeAttachment", "", "one").unwrap();
        kubernetes.drop_watches();
        minute().await;
        assert!(!waiting.is_finished(), "{taint:?}");
        kubernetes.delete("VolumeAttachment", "", "two").unwrap();
        minute().await;
        assert!(waiting.is_finished(), "{taint:?}");
    }
}

/// What cannot be read is not absent.
#[tokio::test(start_paused = true)]
async fn errors_do_not_end_the_wait() {
    let kubernetes = kubernetes(Some("node.kubernetes.io/unschedulable"));
    attach(&kubernetes, "one", DRIVER, "node-1");
    for resource in ["nodes", "volumeattachments"] {
        kubernetes.inject(Fault::status(503).resource(resource).times(1_000));
        let waiting = start(&kubernetes);
        minute().await;
        assert!(!waiting.is_finished(), "{resource}");
        kubernetes.clear_faults();
        minute().await;
        assert!(!waiting.is_finished(), "{resource}");
        waiting.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn the_name_of_the_node_is_needed() {
    let kubernetes = kubernetes(None);
    let client = Client::new(kubernetes.router(), "default");
    let error = wait_before_stop(client, "", DRIVER).await.unwrap_err();
    assert!(error.to_string().contains("KUBE_NODE_NAME is not set"), "{error}");
}
