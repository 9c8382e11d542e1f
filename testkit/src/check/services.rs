//! The Services of a world, as the checker reads them.

use serde_json::Value;

use crate::world::World;

/// The Services that should be served.
pub(super) struct Services(pub(super) Vec<Value>);

impl Services {
    pub(super) fn of(world: &World) -> Self {
        let all = world.kubernetes.list("Service").into_iter().map(|service| service.value().clone());
        Self(all.filter(wants_load_balancer).collect())
    }

    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|service| key_of(service).eq_ignore_ascii_case(key))
    }

    /// The Service with this prefix of resource names.
    pub(super) fn by_base_name(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|service| name.starts_with(&base_name(service)))
    }
}

pub(super) fn wants_load_balancer(service: &Value) -> bool {
    service["spec"]["type"] == "LoadBalancer"
        && service["spec"]["loadBalancerClass"].is_null()
        && service["metadata"]["deletionTimestamp"].is_null()
}

pub(super) fn key_of(service: &Value) -> String {
    format!("{}/{}", text(&service["metadata"]["namespace"]), text(&service["metadata"]["name"]))
}

/// The prefix of the names of a Service's frontends, rules and probes.
pub(super) fn base_name(service: &Value) -> String {
    let mut name = format!("a{}", text(&service["metadata"]["uid"]).replace('-', ""));
    name.truncate(32);
    name
}

/// Whether a name starts like those of a Service's resources: `a` and 31 hexadecimal digits.
pub(super) fn is_of_a_service(name: &str) -> bool {
    let digits = name.strip_prefix('a').and_then(|rest| rest.get(..31));
    digits.is_some_and(|digits| digits.chars().all(|digit| digit.is_ascii_hexdigit()))
}

/// The addresses in a Service's status.
pub(super) fn published(service: &Value) -> impl Iterator<Item = std::net::IpAddr> {
    let entries = service.pointer("/status/loadBalancer/ingress").and_then(Value::as_array);
    entries.into_iter().flatten().filter_map(|entry| text(&entry["ip"]).parse().ok())
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub(super) fn list<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

pub(super) fn id_of(document: &Value) -> azure_types::ResourceId {
    text(&document["id"]).parse().expect("documents have ids")
}
