//! Kinds with few rules: Lease, EndpointSlice, Event, Namespace, Secret, ConfigMap, Pod,
//! CustomResourceDefinition.

use std::collections::BTreeSet;
use std::net::IpAddr;

use base64::Engine as _;
use serde_json::{Map, Value, json};

use super::metadata::{dns_label, dns_subdomain, members};
use super::{Invalid, list_at, text_at};

const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' \
    (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
/// The data of a Secret or ConfigMap, as kube-apiserver: 1 MiB.
const MAX_DATA_BYTES: usize = 1024 * 1024;

pub(super) fn default(kind: &str, object: &mut Value) {
    let Value::Object(members) = object else { return };
    match kind {
        "Namespace" => {
            let name = members.get("metadata").map(|meta| text_at(meta, "/name").to_owned());
            if let (Some(name), Some(Value::Object(metadata))) = (name, members.get_mut("metadata")) {
                let labels = metadata.entry("labels").or_insert_with(|| json!({}));
                if let Value::Object(labels) = labels {
                    labels.insert("kubernetes.io/metadata.name".into(), Value::from(name));
                }
            }
            if let Some(status) = member(members, "status") {
                status.entry("phase").or_insert_with(|| "Active".into());
            }
        }
        "Secret" => {
            members.entry("type").or_insert_with(|| "Opaque".into());
            if let Some(Value::Object(texts)) = members.remove("stringData") {
                let Some(data) = member(members, "data") else { return };
                for (key, text) in texts {
                    let text = text.as_str().unwrap_or_default();
                    data.insert(key, base64::engine::general_purpose::STANDARD.encode(text).into());
                }
            }
        }
        "EndpointSlice" => {
            members.entry("endpoints").or_insert(Value::Null);
            if let Some(Value::Array(ports)) = members.get_mut("ports") {
                for port in ports.iter_mut().filter_map(Value::as_object_mut) {
                    port.entry("name").or_insert_with(|| "".into());
                    port.entry("protocol").or_insert_with(|| "TCP".into());
                }
            }
        }
        "Pod" => {
            let Some(spec) = member(members, "spec") else { return };
            for (name, value) in [
                ("restartPolicy", json!("Always")),
                ("dnsPolicy", json!("ClusterFirst")),
                ("schedulerName", json!("default-scheduler")),
                ("terminationGracePeriodSeconds", json!(30)),
            ] {
                spec.entry(name).or_insert(value);
            }
            let containers = spec.get_mut("containers").and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten() {
                let ports = container.get_mut("ports").and_then(Value::as_array_mut);
                for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
                    port.entry("protocol").or_insert_with(|| "TCP".into());
                }
            }
            if let Some(status) = member(members, "status") {
                status.entry("phase").or_insert_with(|| "Pending".into());
            }
        }
        _ => {}
    }
}

/// The map at `name`, made when it is not there or something else.
fn member<'a>(map: &'a mut Map<String, Value>, name: &str) -> Option<&'a mut Map<String, Value>> {
    let value = map.entry(name).or_insert(Value::Null);
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut()
}

pub(super) fn validate(kind: &str, object: &Value) -> Result<(), Invalid> {
    match kind {
        "Lease" => lease(object),
        "EndpointSlice" => endpoint_slice(object),
        "Event" => event(object),
        "Secret" | "ConfigMap" => data(object),
        "Pod" => pod(object),
        "CustomResourceDefinition" => definition(object),
        _ => Ok(()),
    }
}

fn definition(object: &Value) -> Result<(), Invalid> {
    for (index, version) in list_at(object, "/spec/versions").iter().enumerate() {
        if version.pointer("/schema/openAPIV3Schema").is_none() {
            let field = format!("spec.versions[{index}].schema.openAPIV3Schema");
            return Err(Invalid::required(field, "schemas are required"));
        }
    }
    Ok(())
}

pub(super) fn validate_update(kind: &str, old: &Value, object: &Value) -> Result<(), Invalid> {
    let fixed = match kind {
        "EndpointSlice" => "addressType",
        "Secret" => "type",
        _ => return Ok(()),
    };
    if old.get(fixed) == object.get(fixed) {
        return Ok(());
    }
    Err(Invalid::text(
        fixed,
        object.get(fixed).and_then(Value::as_str).unwrap_or_default(),
        "field is immutable",
    ))
}

fn lease(object: &Value) -> Result<(), Invalid> {
    if let Some(seconds) = object.pointer("/spec/leaseDurationSeconds").and_then(Value::as_i64)
        && seconds <= 0
    {
        return Err(Invalid::value(
            "spec.leaseDurationSeconds",
            &seconds.to_string(),
            "must be greater than 0",
        ));
    }
    if let Some(count) = object.pointer("/spec/leaseTransitions").and_then(Value::as_i64)
        && count < 0
    {
        let why = "must be greater than or equal to 0";
        return Err(Invalid::value("spec.leaseTransitions", &count.to_string(), why));
    }
    Ok(())
}

fn endpoint_slice(object: &Value) -> Result<(), Invalid> {
    let family = text_at(object, "/addressType");
    if family.is_empty() {
        return Err(Invalid::required("addressType", ""));
    }
    if !matches!(family, "IPv4" | "IPv6" | "FQDN") {
        return Err(Invalid::unsupported("addressType", family, &["FQDN", "IPv4", "IPv6"]));
    }
    for (index, endpoint) in list_at(object, "/endpoints").iter().enumerate() {
        let field = format!("endpoints[{index}].addresses");
        let addresses = list_at(endpoint, "/addresses");
        if addresses.is_empty() {
            return Err(Invalid::required(field, "must contain at least 1 address"));
        }
        if addresses.len() > 100 {
            return Err(Invalid::new(
                field,
                format!("Too many: {}: must have at most 100 items", addresses.len()),
            ));
        }
        for (place, address) in addresses.iter().enumerate() {
            let address = address.as_str().unwrap_or_default();
            let good = match family {
                "IPv4" => matches!(address.parse(), Ok(IpAddr::V4(_))),
                "IPv6" => matches!(address.parse(), Ok(IpAddr::V6(_))),
                _ => dns_subdomain(address).is_ok(),
            };
            if !good {
                let why = format!("must be a valid {family} address");
                return Err(Invalid::text(format!("{field}[{place}]"), address, &why));
            }
        }
    }
    let mut names = BTreeSet::new();
    for (index, port) in list_at(object, "/ports").iter().enumerate() {
        let name = text_at(port, "/name");
        let field = format!("ports[{index}].name");
        if !name.is_empty() {
            dns_label(name).map_err(|why| Invalid::text(field.as_str(), name, &why))?;
        }
        if !names.insert(name) {
            return Err(Invalid::duplicate(field, &format!("{name:?}")));
        }
        let protocol = text_at(port, "/protocol");
        if !matches!(protocol, "TCP" | "UDP" | "SCTP") {
            let field = format!("ports[{index}].protocol");
            return Err(Invalid::unsupported(field, protocol, &["SCTP", "TCP", "UDP"]));
        }
    }
    Ok(())
}

fn event(object: &Value) -> Result<(), Invalid> {
    if object.get("apiVersion").and_then(Value::as_str) == Some("events.k8s.io/v1") {
        if object.get("eventTime").is_none_or(Value::is_null) {
            return Err(Invalid::required("eventTime", ""));
        }
        for required in ["reportingController", "reportingInstance", "action", "reason"] {
            if object.get(required).and_then(Value::as_str).is_none_or(str::is_empty) {
                return Err(Invalid::required(required, ""));
            }
        }
        let severity = text_at(object, "/type");
        if !matches!(severity, "Normal" | "Warning") {
            return Err(Invalid::value("type", "\"\"", &format!("has invalid value: {severity}")));
        }
        return Ok(());
    }
    let subject = text_at(object, "/involvedObject/namespace");
    let namespace = text_at(object, "/metadata/namespace");
    let matches = if subject.is_empty() {
        // Events about cluster-wide objects live in the default namespace.
        text_at(object, "/involvedObject/kind").is_empty() || matches!(namespace, "default" | "kube-system")
    } else {
        subject == namespace
    };
    if !matches {
        return Err(Invalid::text("involvedObject.namespace", subject, "does not match event.namespace"));
    }
    Ok(())
}

fn data(object: &Value) -> Result<(), Invalid> {
    let mut size = 0;
    for (key, value) in members(object, "/data").chain(members(object, "/binaryData")) {
        let good = !key.is_empty()
            && key.len() <= 253
            && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
            && key != "."
            && !key.starts_with("..");
        if !good {
            return Err(Invalid::text(format!("data[{key}]"), key, CONFIG_KEY));
        }
        size += value.as_str().unwrap_or_default().len();
    }
    if size > MAX_DATA_BYTES {
        return Err(Invalid::new("data", format!("Too long: must have at most {MAX_DATA_BYTES} bytes")));
    }
    Ok(())
}

fn pod(object: &Value) -> Result<(), Invalid> {
    if list_at(object, "/spec/containers").is_empty() {
        return Err(Invalid::required("spec.containers", ""));
    }
    let mut names = BTreeSet::new();
    for (index, container) in list_at(object, "/spec/containers").iter().enumerate() {
        let name = text_at(container, "/name");
        let field = format!("spec.containers[{index}].name");
        if name.is_empty() {
            return Err(Invalid::required(field, ""));
        }
        dns_label(name).map_err(|why| Invalid::text(field.as_str(), name, &why))?;
        if !names.insert(name) {
            return Err(Invalid::duplicate(field, &format!("{name:?}")));
        }
        if text_at(container, "/image").is_empty() {
            return Err(Invalid::required(format!("spec.containers[{index}].image"), ""));
        }
    }
    Ok(())
}
