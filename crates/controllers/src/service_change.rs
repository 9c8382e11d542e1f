//! The changes of a Service that matter to its load balancer (NODE-089).

use std::collections::BTreeMap;

use k8s::Service;

/// Whether the difference between two states of a Service matters to its load balancer. Selectors and the status do not
/// matter; labels only if they [choose](cloud::FollowedLabels) among several load balancers.
///
/// The configuration of session affinity is not in the slim type, because Azure has no such setting.
pub(crate) fn needs_update(old: &Service, new: &Service) -> bool {
    if !old.wants_load_balancer() && !new.wants_load_balancer() {
        return false;
    }
    let (a, b) = (&old.spec, &new.spec);
    old.wants_load_balancer() != new.wants_load_balancer()
        || old.metadata.uid != new.metadata.uid
        || a.load_balancer_source_ranges != b.load_balancer_source_ranges
        || a.ports != b.ports
        || a.session_affinity != b.session_affinity
        || a.load_balancer_ip != b.load_balancer_ip
        || a.external_ips != b.external_ips
        || a.external_traffic_policy != b.external_traffic_policy
        || a.health_check_node_port != b.health_check_node_port
        || a.ip_families.len() != b.ip_families.len()
        || annotations(old) != annotations(new)
}

/// No annotations and an empty map of them are the same.
fn annotations(service: &Service) -> Option<&BTreeMap<String, String>> {
    service.metadata.annotations.as_ref().filter(|annotations| !annotations.is_empty())
}

/// Whether a Service may concern load balancers: it wants one, or may still have one. Others are not kept in memory.
pub(crate) fn is_relevant(service: &Service) -> bool {
    service.wants_load_balancer()
        || service.has_finalizer()
        || service.status.load_balancer.ingress.iter().any(|ingress| !ingress.ip.is_empty())
}

#[cfg(test)]
mod tests {
    use k8s::names;
    use serde_json::{Value, json};

    use super::*;

    fn service(change: &Value) -> Service {
        let mut base = json!({
            "metadata": {"name": "web", "namespace": "shop", "uid": "1", "labels": {"a": "b"},
                         "annotations": {"service.beta.kubernetes.io/azure-load-balancer-internal": "false"}},
            "spec": {"type": "LoadBalancer", "sessionAffinity": "None", "externalTrafficPolicy": "Cluster",
                     "selector": {"app": "web"}, "ipFamilies": ["IPv4"],
                     "ports": [{"name": "http", "protocol": "TCP", "port": 80, "nodePort": 30080,
                                "targetPort": 8080, "appProtocol": "http"}]},
            "status": {"loadBalancer": {}},
        });
        merge(&mut base, change);
        serde_json::from_value(base).unwrap()
    }

    fn merge(into: &mut Value, change: &Value) {
        match (into, change) {
            (Value::Object(into), Value::Object(change)) => {
                for (key, value) in change {
                    merge(into.entry(key).or_insert(Value::Null), value);
                }
            }
            (into, change) => *into = change.clone(),
        }
    }

    /// NODE-089, each field in turn.
    #[test]
    fn node_089_only_what_a_load_balancer_is_made_from_needs_an_update() {
        let port = |change: Value| {
            let mut port = json!({"name": "http", "protocol": "TCP", "port": 80, "nodePort": 30080,
                                  "targetPort": 8080, "appProtocol": "http"});
            merge(&mut port, &change);
            json!({"spec": {"ports": [port]}})
        };
        let rows = [
            ("nothing", json!({}), false),
            ("labels", json!({"metadata": {"labels": {"a": "c"}}}), false),
            ("selector", json!({"spec": {"selector": {"app": "other"}}}), false),
            ("status", json!({"status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}}), false),
            ("resource version", json!({"metadata": {"resourceVersion": "7"}}), false),
            ("finalizer", json!({"metadata": {"finalizers": [names::LOAD_BALANCER_FINALIZER]}}), false),
            ("internal traffic policy", json!({"spec": {"internalTrafficPolicy": "Local"}}), false),
            ("node port allocation", json!({"spec": {"allocateLoadBalancerNodePorts": false}}), false),
            ("order of families", json!({"spec": {"ipFamilies": ["IPv6"]}}), false),
            ("type", json!({"spec": {"type": "ClusterIP"}}), true),
            ("class", json!({"spec": {"loadBalancerClass": "example.com/other"}}), true),
            ("uid", json!({"metadata": {"uid": "2"}}), true),
            ("annotation", json!({"metadata": {"annotations": {"x": "y"}}}), true),
            ("source ranges", json!({"spec": {"loadBalancerSourceRanges": ["10.0.0.0/8"]}}), true),
            ("port name", port(json!({"name": "web"})), true),
            ("port protocol", port(json!({"protocol": "UDP"})), true),
            ("port", port(json!({"port": 81})), true),
            ("node port", port(json!({"nodePort": 30081})), true),
            ("target port", port(json!({"targetPort": "http"})), true),
            ("application protocol", port(json!({"appProtocol": "https"})), true),
            ("number of ports", json!({"spec": {"ports": []}}), true),
            ("session affinity", json!({"spec": {"sessionAffinity": "ClientIP"}}), true),
            ("requested address", json!({"spec": {"loadBalancerIP": "10.0.0.9"}}), true),
            ("external addresses", json!({"spec": {"externalIPs": ["192.0.2.1"]}}), true),
            ("external traffic policy", json!({"spec": {"externalTrafficPolicy": "Local"}}), true),
            ("health check port", json!({"spec": {"healthCheckNodePort": 32000}}), true),
            ("number of families", json!({"spec": {"ipFamilies": ["IPv4", "IPv6"]}}), true),
        ];
        let old = service(&json!({}));
        for (name, change, expected) in rows {
            let new = service(&change);
            assert_eq!(needs_update(&old, &new), expected, "{name}");
            assert_eq!(needs_update(&new, &old), expected, "{name}, the other way");
        }
    }

    #[test]
    fn changes_of_services_that_never_want_a_load_balancer_do_not_matter() {
        let old = service(&json!({"spec": {"type": "ClusterIP"}}));
        let new = service(&json!({"spec": {"type": "NodePort", "ports": []}}));
        assert!(!needs_update(&old, &new));
    }

    /// A Service that is being deleted gets no finalizer any more, whatever other finalizers keep it: its load balancer
    /// is deleted.
    #[test]
    fn cleanup_needs_a_reason_and_a_load_balancer_that_was_asked_for() {
        let finalizer = json!({"metadata": {"finalizers": [names::LOAD_BALANCER_FINALIZER]}});
        let deleting = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
        let other_type = json!({"spec": {"type": "ClusterIP"}});
        let all = |changes: &[&Value]| {
            let mut sum = json!({});
            changes.iter().for_each(|change| merge(&mut sum, change));
            service(&sum).is_to_be_cleaned_up()
        };
        assert!(!all(&[]));
        assert!(!all(&[&finalizer]));
        assert!(!all(&[&other_type]));
        assert!(!all(&[&deleting, &other_type]));
        assert!(all(&[&deleting]));
        assert!(all(&[&finalizer, &deleting]));
        assert!(all(&[&finalizer, &other_type]));
    }
}
