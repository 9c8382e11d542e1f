//! The clients that a Service's manifest allows. It is read independently of the planner, from the documented meaning
//! of its fields and annotations, so that the planner is not checked against itself.

use std::net::IpAddr;

use azure_simulator::packet::Protocol;
use ipnet::IpNet;
use serde_json::Value;

use super::services::{list, text};

/// The allowed clients of a Service, and the ports.
#[derive(Debug, Clone)]
pub(super) struct AllowedTraffic {
    /// Reachable only from the virtual network.
    pub(super) internal: bool,
    /// The ports that have a rule of their own.
    pub(super) ports: Vec<(Protocol, u16)>,
    /// One rule for all ports.
    pub(super) all_ports: bool,
    /// The Service configures its health probes itself; then only its owner knows the answers.
    pub(super) own_probes: bool,
    /// No security rules are written.
    pub(super) without_rules: bool,
    ranges: Vec<IpNet>,
    /// The lists of ranges contain an invalid network: then all other traffic is denied.
    has_invalid: bool,
    tags: Vec<String>,
    denies: bool,
}

impl AllowedTraffic {
    pub(super) fn of(service: &Value) -> Self {
        let annotation = |key: &str| {
            text(&service["metadata"]["annotations"][format!("service.beta.kubernetes.io/{key}")])
        };
        let is_true = |key: &str| annotation(key).eq_ignore_ascii_case("true");
        let items = |key: &str| annotation(key).split(',').map(|item| item.trim().to_owned());
        let stated =
            list(service, "/spec/loadBalancerSourceRanges").map(|range| text(range).trim().to_owned());
        let wanted = stated
            .chain(items("azure-allowed-ip-ranges"))
            .chain(items("load-balancer-source-ranges"))
            .filter(|item| !item.is_empty())
            .collect::<Vec<_>>();
        let network = |item: &String| item.parse().ok().filter(|net: &IpNet| net.trunc() == *net);
        let internal = is_true("azure-load-balancer-internal");
        let ports = list(service, "/spec/ports").filter_map(|entry| {
            let port = entry["port"].as_u64().and_then(|port| u16::try_from(port).ok())?;
            let protocol = match text(&entry["protocol"]) {
                "" | "TCP" => Protocol::Tcp,
                "UDP" => Protocol::Udp,
                _ => return None,
            };
            (!is_true(&format!("port_{port}_no_lb_rule"))).then_some((protocol, port))
        });
        let annotations = service["metadata"]["annotations"].as_object().into_iter().flatten();
        Self {
            internal,
            ports: ports.collect(),
            all_ports: internal && is_true("azure-load-balancer-enable-high-availability-ports"),
            own_probes: annotations.clone().any(|(key, _)| key.contains("health-probe_port")),
            without_rules: is_true("azure-disable-load-balancer-nsg-rule"),
            ranges: wanted.iter().filter_map(network).collect(),
            has_invalid: wanted.iter().any(|item| network(item).is_none()),
            tags: items("azure-allowed-service-tags").filter(|tag| !tag.is_empty()).collect(),
            denies: is_true("azure-deny-all-except-load-balancer-source-ranges"),
        }
    }

    /// Whether only the named clients are allowed, also from inside the virtual network.
    pub(super) fn denies_all_else(&self) -> bool {
        !self.without_rules && (self.has_invalid || (self.denies && !self.ranges.is_empty()))
    }

    /// Whether a host on the internet is allowed; `None` if it depends on Azure's definition of a service tag.
    pub(super) fn admits(&self, host: IpAddr) -> Option<bool> {
        if self.ranges.iter().any(|range| range.contains(&host)) {
            return Some(true);
        }
        if self.tags.iter().any(|tag| tag.eq_ignore_ascii_case("Internet")) {
            return Some(true);
        }
        if !self.tags.is_empty() {
            return None;
        }
        let of_family = self.ranges.iter().any(|range| range.addr().is_ipv4() == host.is_ipv4());
        let to_everybody = self.ranges.iter().any(|range| range.prefix_len() == 0);
        let unrestricted = self.ranges.is_empty() && !self.internal;
        Some(!of_family && !self.has_invalid && (unrestricted || to_everybody))
    }

    /// Whether a host in the virtual network is allowed.
    pub(super) fn admits_inside(&self, host: IpAddr) -> bool {
        !self.denies_all_else() || self.ranges.iter().any(|range| range.contains(&host))
    }

    /// The ranges that clients may come from.
    pub(super) fn ranges(&self) -> &[IpNet] {
        &self.ranges
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn allowed(annotations: &Value, ranges: &Value) -> AllowedTraffic {
        let keyed = annotations.as_object().unwrap().iter();
        let keyed: serde_json::Map<String, Value> =
            keyed.map(|(key, value)| (format!("service.beta.kubernetes.io/{key}"), value.clone())).collect();
        AllowedTraffic::of(&json!({"metadata": {"annotations": keyed}, "spec": {
            "loadBalancerSourceRanges": ranges, "ports": [{"port": 80}, {"port": 53, "protocol": "UDP"}]}}))
    }

    #[test]
    fn who_is_let_in_follows_the_documented_rules() {
        let (v4, v6): (IpAddr, IpAddr) = ("192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap());
        for (annotations, ranges, admitted) in [
            (json!({}), json!([]), [Some(true), Some(true)]),
            (json!({}), json!(["192.0.2.0/24"]), [Some(true), Some(false)]),
            (json!({}), json!(["198.51.100.0/24"]), [Some(false), Some(false)]),
            (json!({}), json!(["0.0.0.0/0"]), [Some(true), Some(true)]),
            (json!({}), json!(["0.0.0.0/0", "2001:db9::/32"]), [Some(true), Some(false)]),
            (json!({"azure-allowed-ip-ranges": "192.0.2.7/24"}), json!([]), [Some(false), Some(false)]),
            (json!({"azure-allowed-service-tags": "Internet"}), json!([]), [Some(true), Some(true)]),
            (json!({"azure-allowed-service-tags": "Storage"}), json!([]), [None, None]),
            (json!({"azure-load-balancer-internal": "true"}), json!([]), [Some(false), Some(false)]),
        ] {
            let allowed = allowed(&annotations, &ranges);
            assert_eq!([allowed.admits(v4), allowed.admits(v6)], admitted, "{annotations} {ranges}");
        }
    }

    #[test]
    fn ports_without_a_rule_are_not_allowed() {
        let allowed = allowed(&json!({"port_80_no_lb_rule": "true"}), &json!([]));
        assert_eq!(allowed.ports, [(Protocol::Udp, 53)]);
    }
}
