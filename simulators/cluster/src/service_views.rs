//! The page's view of Kubernetes Services.

use azure_simulator::view::ServiceView;
use serde_json::Value;

/// Maximum length of the name that a Service's UID gives its load balancer, which names of frontends and rules contain
/// (LB-001).
const BASE_LENGTH: usize = 32;

/// The view of a Service of type LoadBalancer.
pub(crate) fn service_view(service: &Value) -> Option<ServiceView> {
    let text = |path: &str| service.pointer(path).and_then(Value::as_str);
    if text("/spec/type") != Some("LoadBalancer") || text("/metadata/deletionTimestamp").is_some() {
        return None;
    }
    let ingress = service.pointer("/status/loadBalancer/ingress").and_then(Value::as_array);
    let uid = text("/metadata/uid")?.replace('-', "").to_ascii_lowercase();
    Some(ServiceView {
        name: format!("{}/{}", text("/metadata/namespace")?, text("/metadata/name")?),
        base: format!("a{uid}").chars().take(BASE_LENGTH).collect(),
        addresses: ingress
            .into_iter()
            .flatten()
            .filter_map(|one| one.get("ip")?.as_str()?.parse().ok())
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::service_view;

    #[test]
    fn services_that_want_a_load_balancer_are_shown_with_and_without_address() {
        let mut service = json!({
            "metadata": { "namespace": "shop", "name": "web", "uid": "0123ABCD-4567-89ab-cdef-0123456789ab" },
            "spec": { "type": "LoadBalancer" },
        });
        let view = service_view(&service).unwrap();
        assert_eq!(
            (view.name.as_str(), view.base.as_str()),
            ("shop/web", "a0123abcd456789abcdef0123456789a")
        );
        assert!(view.addresses.is_empty(), "it waits");
        service["status"] =
            json!({ "loadBalancer": { "ingress": [{ "ip": "198.18.0.4" }, { "hostname": "h" }] } });
        assert_eq!(
            service_view(&service).unwrap().addresses,
            ["198.18.0.4".parse::<std::net::IpAddr>().unwrap()]
        );
        service["spec"]["type"] = json!("ClusterIP");
        assert_eq!(service_view(&service), None);
    }
}
