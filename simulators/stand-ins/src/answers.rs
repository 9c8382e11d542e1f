//! What a node answers: kube-proxy's side of load balancing, as a pure function of the objects.
//!
//! Source: Kubernetes, "Virtual IPs and Service Proxies" (traffic policies, health check node
//! port); what Azure's probes ask for: LB-153, LB-158.

use std::net::IpAddr;

use serde_json::Value;

/// kube-proxy's own health port (`--healthz-bind-address`), which runs wherever kube-proxy runs.
pub const KUBE_PROXY_HEALTH_PORT: u16 = 10256;

/// Whether the running node `node` answers a health probe on `port`: an open TCP connection, or
/// status 200 for a `GET` of `path` where one is given.
///
/// * 10256 answers `/healthz` (and any TCP connection) on every node.
/// * A node port answers where kube-proxy forwards it: with `externalTrafficPolicy: Cluster` on
///   every node, as long as the Service has a ready endpoint anywhere; with `Local` on the nodes
///   that have one. The pretend pods behind it answer every path with 200.
/// * A health check node port accepts connections on every node and answers 200 where there is a
///   ready endpoint.
///
/// `services` and `endpoint_slices` are whole objects as the API gives them (`v1`,
/// `discovery.k8s.io/v1`).
pub fn node_answers<'a>(
    services: impl IntoIterator<Item = &'a Value>,
    endpoint_slices: impl IntoIterator<Item = &'a Value>,
    node: &str,
    port: u16,
    path: Option<&str>,
) -> bool {
    if port == KUBE_PROXY_HEALTH_PORT {
        return path.is_none_or(|path| path == "/healthz" || path == "/livez");
    }
    let Some(service) = services.into_iter().find(|service| {
        number(service, "/spec/healthCheckNodePort") == Some(port)
            || list(service, "/spec/ports")
                .iter()
                .any(|entry| number(entry, "/nodePort") == Some(port) && text(entry, "/protocol") != "UDP")
    }) else {
        return false;
    };
    if number(service, "/spec/healthCheckNodePort") == Some(port) {
        return path.is_none() || ready_endpoint(service, endpoint_slices, Some(node));
    }
    forwards(service, endpoint_slices, node)
}

/// Whether the node passes on a packet for a load balancer's own address, as it comes through a rule
/// with floating IP: `address` is the Service's (`status.loadBalancer.ingress`), `port` its port.
pub fn node_forwards<'a>(
    services: impl IntoIterator<Item = &'a Value>,
    endpoint_slices: impl IntoIterator<Item = &'a Value>,
    node: &str,
    address: IpAddr,
    port: u16,
    protocol: &str,
) -> bool {
    let service = services.into_iter().find(|service| {
        let ours = list(service, "/status/loadBalancer/ingress")
            .iter()
            .any(|entry| text(entry, "/ip").parse() == Ok(address));
        ours && list(service, "/spec/ports").iter().any(|entry| {
            let spoken = text(entry, "/protocol");
            let spoken = if spoken.is_empty() { "TCP" } else { spoken };
            number(entry, "/port") == Some(port) && spoken.eq_ignore_ascii_case(protocol)
        })
    });
    service.is_some_and(|service| forwards(service, endpoint_slices, node))
}

fn forwards<'a>(service: &Value, slices: impl IntoIterator<Item = &'a Value>, node: &str) -> bool {
    let local = text(service, "/spec/externalTrafficPolicy") == "Local";
    ready_endpoint(service, slices, local.then_some(node))
}

/// Whether the Service has a ready endpoint, on `node` if one is given.
fn ready_endpoint<'a>(
    service: &Value,
    slices: impl IntoIterator<Item = &'a Value>,
    node: Option<&str>,
) -> bool {
    let (namespace, name) = (text(service, "/metadata/namespace"), text(service, "/metadata/name"));
    slices
        .into_iter()
        .filter(|slice| {
            text(slice, "/metadata/namespace") == namespace
                && text(slice, "/metadata/labels/kubernetes.io~1service-name") == name
        })
        .flat_map(|slice| list(slice, "/endpoints"))
        .any(|endpoint| {
            // Unknown readiness counts as ready: the API's rule for consumers.
            let ready = endpoint.pointer("/conditions/ready") != Some(&Value::Bool(false));
            ready && node.is_none_or(|node| text(endpoint, "/nodeName") == node)
        })
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn number(object: &Value, pointer: &str) -> Option<u16> {
    object.pointer(pointer).and_then(Value::as_u64).and_then(|port| port.try_into().ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn world(policy: &str) -> ([Value; 1], [Value; 2]) {
        let service = json!({
            "metadata": {"namespace": "default", "name": "web"},
            "spec": {
                "type": "LoadBalancer", "externalTrafficPolicy": policy,
                "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"},
                    {"port": 53, "nodePort": 30053, "protocol": "UDP"}],
                "healthCheckNodePort": if policy == "Local" { json!(30999) } else { Value::Null },
            },
            "status": {"loadBalancer": {"ingress": [{"ip": "20.0.0.1"}]}},
        });
        let slice = |name: &str, node: &str, ready: bool| {
            json!({
                "metadata": {"namespace": "default", "labels": {"kubernetes.io/service-name": name}},
                "endpoints": [{"addresses": ["10.9.0.1"], "nodeName": node, "conditions": {"ready": ready}}],
            })
        };
        ([service], [slice("web", "n0", true), slice("web", "n1", false)])
    }

    #[test]
    fn cluster_policy_answers_on_every_node() {
        let (services, slices) = world("Cluster");
        for node in ["n0", "n1", "n2"] {
            assert!(node_answers(&services, &slices, node, 30080, None));
            assert!(node_answers(&services, &slices, node, 30080, Some("/")));
        }
        assert!(!node_answers(&services, &slices, "n0", 30081, None), "no program listens there");
        assert!(!node_answers(&services, &slices, "n0", 30053, None), "a UDP port takes no connection");
        assert!(!node_answers(&services, &[], "n0", 30080, None), "no endpoint, no answer");
    }

    #[test]
    fn local_policy_answers_where_the_endpoints_are() {
        let (services, slices) = world("Local");
        assert!(node_answers(&services, &slices, "n0", 30080, None));
        assert!(!node_answers(&services, &slices, "n1", 30080, None), "its endpoint is not ready");
        assert!(node_answers(&services, &slices, "n0", 30999, Some("/healthz")));
        assert!(!node_answers(&services, &slices, "n1", 30999, Some("/healthz")));
        assert!(!node_answers(&services, &slices, "n2", 30999, Some("/healthz")));
        assert!(node_answers(&services, &slices, "n2", 30999, None), "the port itself is open");
    }

    #[test]
    fn kube_proxy_is_healthy_everywhere() {
        assert!(node_answers([], [], "n9", 10256, Some("/healthz")));
        assert!(!node_answers([], [], "n9", 10256, Some("/other")));
    }

    #[test]
    fn floating_addresses_are_forwarded_by_policy() {
        let address = "20.0.0.1".parse().unwrap();
        let (services, slices) = world("Local");
        assert!(node_forwards(&services, &slices, "n0", address, 80, "Tcp"));
        assert!(!node_forwards(&services, &slices, "n1", address, 80, "Tcp"));
        assert!(node_forwards(&services, &slices, "n0", address, 53, "Udp"));
        assert!(!node_forwards(&services, &slices, "n0", address, 53, "Tcp"));
        assert!(!node_forwards(&services, &slices, "n0", "20.0.0.2".parse().unwrap(), 80, "Tcp"));
    }
}
