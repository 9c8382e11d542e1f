//! The addresses in a Service's status (LB-330 to LB-333).

use std::net::IpAddr;

use k8s::Service;
use kube::Client;
use serde_json::json;

use crate::api::ApiError;
use crate::finalizer::patch_status;

/// Whether the status differs from the addresses.
fn differs(service: &Service, addresses: &[IpAddr]) -> bool {
    let ingress = &service.status.load_balancer.ingress;
    ingress.len() != addresses.len()
        || ingress.iter().zip(addresses).any(|(entry, address)| entry.ip != address.to_string())
}

/// Writes the addresses if the status differs: one entry each, with only the address. Returns whether anything was
/// written. A deleted Service needs no status.
pub(crate) async fn write(
    client: &Client,
    service: &Service,
    addresses: &[IpAddr],
) -> Result<bool, ApiError> {
    if !differs(service, addresses) {
        return Ok(false);
    }
    let ingress: Vec<_> = addresses.iter().map(|address| json!({"ip": address.to_string()})).collect();
    let patch = json!({
        "metadata": {"uid": service.uid()},
        "status": {"loadBalancer": {"ingress": ingress}},
    });
    match patch_status(client, service, patch, "write the status of").await {
        Err(error) if error.is_not_found() => Ok(false),
        other => other.map(|()| true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// LB-330: an `ipMode` that the API server added is not a difference.
    #[test]
    fn lb_330_a_status_is_written_only_when_it_differs() {
        let service = |ips: &[&str]| -> Service {
            let ingress: Vec<_> = ips.iter().map(|ip| json!({"ip": ip, "ipMode": "VIP"})).collect();
            serde_json::from_value(json!({"status": {"loadBalancer": {"ingress": ingress}}})).unwrap()
        };
        let ips = |ips: &[&str]| -> Vec<IpAddr> { ips.iter().map(|ip| ip.parse().unwrap()).collect() };
        let (one, two) = (["20.0.0.1"], ["20.0.0.1", "fd00::1"]);
        assert!(!differs(&service(&[]), &ips(&[])));
        assert!(!differs(&service(&two), &ips(&two)));
        assert!(differs(&service(&one), &ips(&two)));
        assert!(differs(&service(&two), &ips(&one)));
        assert!(differs(&service(&["fd00::1", "20.0.0.1"]), &ips(&two)), "the order is the frontends'");
        assert!(differs(&service(&[""]), &ips(&one)), "a foreign host name");
    }
}
