//! Resolves webhooks' hosts that are not overridden: a Service by its endpoints, all others by the system.

use std::net::{IpAddr, SocketAddr};

use serde_json::Value;

use super::config::{ClientConfig, ServiceName};
use super::error::DialError;
use crate::object::{list_at, string_at, value_at};
use crate::server::handle::Kubernetes;

pub(super) async fn addresses(
    kubernetes: &Kubernetes,
    config: &ClientConfig,
) -> Result<Vec<SocketAddr>, DialError> {
    let (host, port) = match config.service() {
        None => (config.host().to_owned(), config.port()),
        Some(service) => match behind(kubernetes, service, config.port())? {
            Backend::Endpoints(addresses) => return Ok(addresses),
            Backend::Name(name) => (name, config.port()),
        },
    };
    let found = tokio::net::lookup_host((host.as_str(), port)).await;
    let found = found.map_err(|error| DialError::Dial { address: host.clone(), why: error.to_string() })?;
    Ok(found.collect())
}

/// The endpoints or the external name of a Service.
enum Backend {
    Endpoints(Vec<SocketAddr>),
    /// A Service of type ExternalName.
    Name(String),
}

fn behind(kubernetes: &Kubernetes, service: &ServiceName, port: u16) -> Result<Backend, DialError> {
    let ServiceName { namespace, name } = service;
    let found = kubernetes.get("services", namespace, name);
    let found = found.ok_or_else(|| DialError::NoService(name.clone()))?;
    if string_at(&found, &["spec", "type"]) == Some("ExternalName") {
        return Ok(Backend::Name(
            string_at(&found, &["spec", "externalName"]).unwrap_or_default().to_owned(),
        ));
    }
    let served = list_at(&found, &["spec", "ports"])
        .iter()
        .find(|served| number(served, "port") == Some(port))
        .ok_or_else(|| DialError::NoPort(name.clone(), port))?;
    let port_name = string_at(served, &["name"]).unwrap_or_default();
    let mut addresses = in_slices(kubernetes, namespace, name, port_name);
    if addresses.is_empty() {
        addresses = in_endpoints(kubernetes, namespace, name, port_name);
    }
    if addresses.is_empty() {
        Err(DialError::NoEndpoints(name.clone()))
    } else {
        Ok(Backend::Endpoints(addresses))
    }
}

fn in_slices(kubernetes: &Kubernetes, namespace: &str, service: &str, port_name: &str) -> Vec<SocketAddr> {
    let mut found = Vec::new();
    for slice in kubernetes.list_in("endpointslices", namespace) {
        if string_at(&slice, &["metadata", "labels", "kubernetes.io/service-name"]) != Some(service) {
            continue;
        }
        let Some(port) = port_of(list_at(&slice, &["ports"]), port_name) else { continue };
        let ready = |endpoint: &&Value| {
            value_at(endpoint, &["conditions", "ready"]).and_then(Value::as_bool) != Some(false)
        };
        let ready = list_at(&slice, &["endpoints"]).iter().filter(ready);
        let addresses = ready.flat_map(|endpoint| list_at(endpoint, &["addresses"]));
        found.extend(addresses.filter_map(Value::as_str).filter_map(|address| at(address, port)));
    }
    found
}

fn in_endpoints(kubernetes: &Kubernetes, namespace: &str, service: &str, port_name: &str) -> Vec<SocketAddr> {
    let Some(endpoints) = kubernetes.get("endpoints", namespace, service) else { return Vec::new() };
    let mut found = Vec::new();
    for subset in list_at(&endpoints, &["subsets"]) {
        let Some(port) = port_of(list_at(subset, &["ports"]), port_name) else { continue };
        let addresses = list_at(subset, &["addresses"]).iter();
        found.extend(addresses.filter_map(|address| at(string_at(address, &["ip"])?, port)));
    }
    found
}

/// The port of this name; a Service's only port has no name.
fn port_of(ports: &[Value], name: &str) -> Option<u16> {
    let named = ports.iter().find(|port| string_at(port, &["name"]).unwrap_or_default() == name)?;
    number(named, "port")
}

fn number(value: &Value, member: &str) -> Option<u16> {
    value.get(member).and_then(Value::as_u64).and_then(|number| u16::try_from(number).ok())
}

fn at(address: &str, port: u16) -> Option<SocketAddr> {
    address.parse::<IpAddr>().ok().map(|address| SocketAddr::new(address, port))
}
