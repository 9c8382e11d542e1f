//! The endpoint of a cluster's API server.

use capz_api::ApiEndpoint;

use crate::scope::ClusterScope;

/// The state of the endpoint.
#[derive(Debug, Clone, PartialEq)]
pub enum Endpoint {
    /// The endpoint is known.
    Known(ApiEndpoint),
    /// The control plane is externally managed, and its `host` or `port` is not set yet.
    Awaited(&'static str),
}

/// The endpoint: as declared, otherwise the public name of the load balancer, or the name in the private zone.
pub fn endpoint(scope: ClusterScope<'_>) -> Endpoint {
    let declared = scope.spec.control_plane_endpoint.clone().unwrap_or_default();
    let host = declared.host.clone().filter(|host| !host.is_empty());
    let port = declared.port.filter(|port| *port != 0);
    if !scope.has_control_plane() {
        return match (host, port) {
            (None, _) => Endpoint::Awaited("host"),
            (_, None) => Endpoint::Awaited("port"),
            _ => Endpoint::Known(declared),
        };
    }
    let derived = || match scope.api_server_balancer() {
        Some(balancer) if !balancer.is_internal() => balancer
            .frontend_ips
            .iter()
            .flatten()
            .find_map(|frontend| frontend.public_ip.as_ref()?.dns_name.clone()),
        Some(_) => Some(format!("{}.{}", super::private_dns::RECORD, super::private_dns::zone_name(scope))),
        None => None,
    };
    match host.or_else(derived) {
        Some(host) => Endpoint::Known(ApiEndpoint {
            host: Some(host),
            port: Some(port.unwrap_or_else(|| scope.port())),
            ..declared
        }),
        None => Endpoint::Awaited("host"),
    }
}
