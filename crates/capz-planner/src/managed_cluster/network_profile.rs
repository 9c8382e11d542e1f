//! The network inside a managed cluster, and its way out.

use std::net::IpAddr;

use capz_api::azure_managed_control_plane::LoadBalancerProfile;
use serde_json::{Value, json};

use super::scope::ManagedScope;
use crate::compare::Withdrawn;
use crate::document::{items, text};
use crate::goal::GoalError;
use crate::terminal::Terminal;

const BALANCER: &str = "properties/networkProfile/loadBalancerProfile";
/// The ways in which a load balancer gets its outbound addresses: it has one of them.
const OUTBOUND: [&str; 3] = ["managedOutboundIPs", "outboundIPPrefixes", "outboundIPs"];
/// The last number of the address of a cluster's DNS service.
const DNS: u8 = 10;

pub(super) fn document(scope: ManagedScope<'_>) -> Result<Value, GoalError> {
    let spec = scope.spec;
    let services = only(scope.service_ranges);
    let dns = match (services, text(&spec.dns_service_ip)) {
        (None, _) => None,
        (Some(_), Some(declared)) => Some(declared.to_owned()),
        (Some(range), None) => Some(dns_address(range)?),
    };
    Ok(json!({
        "networkPlugin": text(&spec.network_plugin),
        "networkPluginMode": text(&spec.network_plugin_mode),
        "networkPolicy": text(&spec.network_policy),
        "networkDataplane": text(&spec.network_dataplane),
        "outboundType": text(&spec.outbound_type),
        "loadBalancerSku": text(&spec.load_balancer_sku).map(str::to_lowercase),
        "podCidr": only(scope.pod_ranges),
        "serviceCidr": services,
        "dnsServiceIP": dns,
        "loadBalancerProfile": spec.load_balancer_profile.as_ref().map(balancer),
    }))
}

/// Outbound addresses of other kinds than that in the desired document.
pub(super) fn withdrawn(wanted: &Value, held: &Value) -> Vec<Withdrawn> {
    let profile = wanted.pointer(&format!("/{BALANCER}"));
    let is_declared = |kind: &&str| {
        profile.and_then(|profile| profile.get(*kind)).is_some_and(|addresses| !addresses.is_null())
    };
    if !OUTBOUND.iter().any(is_declared) {
        return Vec::new();
    }
    let held = held.pointer(&format!("/{BALANCER}"));
    OUTBOUND
        .into_iter()
        .filter(|kind| !is_declared(kind) && held.is_some_and(|held| held.get(kind).is_some()))
        .map(|kind| Withdrawn::Member { within: BALANCER, name: kind.to_owned() })
        .collect()
}

/// The range, if there is exactly one.
fn only(ranges: &[String]) -> Option<&str> {
    match ranges {
        [range] => Some(range),
        _ => None,
    }
}

/// The address of the DNS service in this range of Services: the one whose last number is 10.
fn dns_address(range: &str) -> Result<String, Terminal> {
    let invalid = || {
        Terminal::configuration(format!(
            "failed to parse service cidr {range}: spec.clusterNetwork.services.cidrBlocks of the Cluster must hold a range like 10.0.0.0/16"
        ))
    };
    let (address, _) = range.split_once('/').ok_or_else(invalid)?;
    Ok(match address.parse().map_err(|_| invalid())? {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            IpAddr::from([a, b, c, DNS])
        }
        IpAddr::V6(address) => {
            let mut octets = address.octets();
            octets[15] = DNS;
            IpAddr::from(octets)
        }
    }
    .to_string())
}

fn balancer(profile: &LoadBalancerProfile) -> Value {
    let ids = |ids: &[String]| ids.iter().map(|id| json!({ "id": id })).collect::<Vec<_>>();
    json!({
        "managedOutboundIPs": profile.managed_outbound_ips.map(|count| json!({ "count": count })),
        "outboundIPPrefixes":
            items(&profile.outbound_ip_prefixes).map(|known| json!({ "publicIPPrefixes": ids(known) })),
        "outboundIPs": items(&profile.outbound_ips).map(|known| json!({ "publicIPs": ids(known) })),
        "allocatedOutboundPorts": profile.allocated_outbound_ports,
        "idleTimeoutInMinutes": profile.idle_timeout_in_minutes,
    })
}
