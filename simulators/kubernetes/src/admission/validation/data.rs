//! Kinds that hold data: ConfigMap, Secret, Event, Lease, EndpointSlice.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::Value;

use crate::admission::metadata::{dns_label, dns_subdomain, members};
use crate::admission::{Causes, Invalid, list_at, text_at};

const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' \
    (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
/// kube-apiserver's limit for the data of a Secret or ConfigMap: 1 MiB.
const MAX_DATA_BYTES: usize = 1024 * 1024;

/// Validates a Lease: its times are positive.
pub(super) fn lease(object: &Value, causes: &mut Causes) {
    if let Some(seconds) = object.pointer("/spec/leaseDurationSeconds").and_then(Value::as_i64)
        && seconds <= 0
    {
        let why = "must be greater than 0";
        causes.push(Invalid::value("spec.leaseDurationSeconds", &seconds.to_string(), why));
    }
    if let Some(count) = object.pointer("/spec/leaseTransitions").and_then(Value::as_i64)
        && count < 0
    {
        let why = "must be greater than or equal to 0";
        causes.push(Invalid::value("spec.leaseTransitions", &count.to_string(), why));
    }
}

/// Validates an EndpointSlice: addresses of one family, and distinct port names.
pub(super) fn endpoint_slice(object: &Value) -> Result<(), Invalid> {
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

/// Validates an Event by the rules of its group.
pub(super) fn event(object: &Value) -> Result<(), Invalid> {
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
        // Events about cluster-scoped objects are in the default namespace.
        text_at(object, "/involvedObject/kind").is_empty() || matches!(namespace, "default" | "kube-system")
    } else {
        subject == namespace
    };
    if !matches {
        return Err(Invalid::text("involvedObject.namespace", subject, "does not match event.namespace"));
    }
    Ok(())
}

/// Validates the keys, which are file names, and the total size.
pub(super) fn keys_and_size(object: &Value) -> Result<(), Invalid> {
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
