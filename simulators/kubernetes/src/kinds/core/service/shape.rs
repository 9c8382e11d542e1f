//! What kind of Service it is.

use crate::kinds::prelude::*;

pub(super) fn service_type(object: &Value) -> &str {
    match text_at(object, "/spec/type") {
        "" => "ClusterIP",
        other => other,
    }
}

pub(super) fn has_node_ports(object: &Value) -> bool {
    matches!(service_type(object), "NodePort" | "LoadBalancer")
}

pub(super) fn is_headless(object: &Value) -> bool {
    text_at(object, "/spec/clusterIP") == "None"
}

pub(super) fn is_headless_without_selector(object: &Value) -> bool {
    let selector = object.pointer("/spec/selector").and_then(Value::as_object);
    is_headless(object) && selector.is_none_or(Map::is_empty)
}

/// Only a load balancer that must find the nodes with local endpoints has a health check node port.
pub(super) fn has_health_check(object: &Value) -> bool {
    service_type(object) == "LoadBalancer" && text_at(object, "/spec/externalTrafficPolicy") == "Local"
}

pub(super) fn port_number(object: &Value, pointer: &str) -> u16 {
    object.pointer(pointer).and_then(Value::as_u64).and_then(|port| port.try_into().ok()).unwrap_or(0)
}

pub(super) fn spec(object: &mut Value) -> Option<&mut Map<String, Value>> {
    let Value::Object(object) = object else { return None };
    object.entry("spec").or_insert_with(|| json!({})).as_object_mut()
}
