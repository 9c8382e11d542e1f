//! `default/kubernetes`: the Service by which pods find the server, and its endpoints.

use std::net::SocketAddr;

use serde_json::{Value, json};

/// The name of the Service and of its slice.
const NAME: &str = "kubernetes";

/// The first address of `--service-cluster-ip-range`, which is reserved for the server.
const CLUSTER_ADDRESS: &str = "10.0.0.1";

/// kube-apiserver's port in most clusters; the slice has the actual one.
const TARGET_PORT: u16 = 6443;

pub(crate) fn service() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "namespace": "default",
            "name": NAME,
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "clusterIP": CLUSTER_ADDRESS,
            "ipFamilyPolicy": "SingleStack",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": TARGET_PORT}],
        },
    })
}

/// The slice of a server that listens on this address.
pub(crate) fn slice(address: SocketAddr) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "namespace": "default",
            "name": NAME,
            "labels": {"kubernetes.io/service-name": NAME},
        },
        "addressType": if address.is_ipv4() { "IPv4" } else { "IPv6" },
        "endpoints": [{"addresses": [address.ip()], "conditions": {"ready": true}}],
        "ports": [{"name": "https", "port": address.port(), "protocol": "TCP"}],
    })
}
