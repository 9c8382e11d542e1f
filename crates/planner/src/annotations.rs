//! The annotations of a Service: keys and how their values are read.

mod known;
mod table;

use std::net::IpAddr;

use k8s::Service;
use k8s::names::SERVICE_ANNOTATION_PREFIX;

pub(crate) use known::notices;

use crate::plan::Refusal;

pub(crate) const INTERNAL: &str = "azure-load-balancer-internal";
pub(crate) const INTERNAL_SUBNET: &str = "azure-load-balancer-internal-subnet";
pub(crate) const PUBLIC_IP_GROUP: &str = "azure-load-balancer-resource-group";
pub(crate) const LOAD_BALANCER_IPV4: &str = "azure-load-balancer-ipv4";
pub(crate) const LOAD_BALANCER_IPV6: &str = "azure-load-balancer-ipv6";
pub(crate) const MODE: &str = "azure-load-balancer-mode";
pub(crate) const CONFIGURATIONS: &str = "azure-load-balancer-configurations";
pub(crate) const ADDITIONAL_PUBLIC_IPS: &str = "azure-additional-public-ips";

pub(crate) const PIP_NAME: &str = "azure-pip-name";
pub(crate) const PIP_NAME_IPV6: &str = "azure-pip-name-ipv6";
pub(crate) const PIP_PREFIX: &str = "azure-pip-prefix-id";
pub(crate) const PIP_PREFIX_IPV6: &str = "azure-pip-prefix-id-ipv6";
pub(crate) const PIP_IP_TAGS: &str = "azure-pip-ip-tags";
pub(crate) const PIP_TAGS: &str = "azure-pip-tags";
pub(crate) const DNS_LABEL: &str = "azure-dns-label-name";

pub(crate) const IDLE_TIMEOUT: &str = "azure-load-balancer-tcp-idle-timeout";
pub(crate) const DISABLE_TCP_RESET: &str = "azure-load-balancer-disable-tcp-reset";
pub(crate) const HA_PORTS: &str = "azure-load-balancer-enable-high-availability-ports";
pub(crate) const DISABLE_FLOATING_IP: &str = "azure-disable-load-balancer-floating-ip";
pub(crate) const PROBE_PROTOCOL: &str = "azure-load-balancer-health-probe-protocol";
pub(crate) const PROBE_INTERVAL: &str = "azure-load-balancer-health-probe-interval";
pub(crate) const PROBE_COUNT: &str = "azure-load-balancer-health-probe-num-of-probe";
pub(crate) const PROBE_PATH: &str = "azure-load-balancer-health-probe-request-path";

pub(crate) const ALLOWED_SERVICE_TAGS: &str = "azure-allowed-service-tags";
pub(crate) const ALLOWED_IP_RANGES: &str = "azure-allowed-ip-ranges";
pub(crate) const SOURCE_RANGES: &str = "load-balancer-source-ranges";
pub(crate) const DENY_ALL: &str = "azure-deny-all-except-load-balancer-source-ranges";
pub(crate) const DISABLE_SECURITY_RULE: &str = "azure-disable-load-balancer-nsg-rule";

/// The suffix after `port_<number>_`.
pub(crate) const NO_LB_RULE: &str = "no_lb_rule";
pub(crate) const NO_PROBE_RULE: &str = "no_probe_rule";
pub(crate) const PORT_PROBE_PROTOCOL: &str = "health-probe_protocol";
pub(crate) const PORT_PROBE_PORT: &str = "health-probe_port";
pub(crate) const PORT_PROBE_INTERVAL: &str = "health-probe_interval";
pub(crate) const PORT_PROBE_COUNT: &str = "health-probe_num-of-probe";
pub(crate) const PORT_PROBE_PATH: &str = "health-probe_request-path";

pub(crate) const PLS_CREATE: &str = "azure-pls-create";
pub(crate) const PLS_GROUP: &str = "azure-pls-resource-group";
pub(crate) const PLS_NAME: &str = "azure-pls-name";
pub(crate) const PLS_SUBNET: &str = "azure-pls-ip-configuration-subnet";
pub(crate) const PLS_ADDRESS_COUNT: &str = "azure-pls-ip-configuration-ip-address-count";
pub(crate) const PLS_ADDRESSES: &str = "azure-pls-ip-configuration-ip-address";
pub(crate) const PLS_FQDNS: &str = "azure-pls-fqdns";
pub(crate) const PLS_PROXY_PROTOCOL: &str = "azure-pls-proxy-protocol";
pub(crate) const PLS_VISIBILITY: &str = "azure-pls-visibility";
pub(crate) const PLS_AUTO_APPROVAL: &str = "azure-pls-auto-approval";

/// The annotations of one Service, by the part of the key after the common prefix.
#[derive(Clone, Copy)]
pub(crate) struct Annotations<'a>(pub &'a Service);

impl<'a> Annotations<'a> {
    /// The value, unchanged.
    pub fn get(self, key: &str) -> Option<&'a str> {
        let mut all = self.0.metadata.annotations.iter().flatten();
        let found = all.find(|(full, _)| full.strip_prefix(SERVICE_ANNOTATION_PREFIX) == Some(key));
        found.map(|(_, value)| value.as_str())
    }

    /// The value, unless it is empty.
    pub fn non_empty(self, key: &str) -> Option<&'a str> {
        self.get(key).filter(|value| !value.is_empty())
    }

    /// The trimmed value, unless it is empty.
    pub fn trimmed(self, key: &str) -> Option<&'a str> {
        self.get(key).map(str::trim).filter(|value| !value.is_empty())
    }

    /// Whether the value is `true` in any case. Surrounding spaces are significant.
    pub fn flag(self, key: &str) -> bool {
        self.get(key).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// Like [`Self::flag`], but ignores surrounding spaces.
    pub fn trimmed_flag(self, key: &str) -> bool {
        self.get(key).is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
    }

    /// A whole number.
    pub fn integer(self, key: &str) -> Result<Option<i32>, Refusal> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let value = value.trim();
        let number = value
            .parse()
            .map_err(|_| Refusal::NotAWholeNumber { key: full_key(key), value: value.to_owned() })?;
        Ok(Some(number))
    }

    /// A whole number of at least `minimum`; `what` names the setting.
    pub fn at_least(self, key: &str, what: &'static str, minimum: i32) -> Result<Option<i32>, Refusal> {
        match self.integer(key)? {
            Some(value) if value < minimum => {
                Err(Refusal::BelowMinimum { key: full_key(key), what, value, minimum })
            }
            other => Ok(other),
        }
    }

    /// The items of a comma separated list, trimmed, without empty ones.
    pub fn items(self, key: &str) -> impl Iterator<Item = &'a str> {
        self.get(key).unwrap_or_default().split(',').map(str::trim).filter(|item| !item.is_empty())
    }

    /// The items of all annotations that have this key in any case, as the replaced program reads this one list.
    pub fn items_in_any_case(self, key: &str) -> Vec<String> {
        let full = full_key(key);
        let all = self.0.metadata.annotations.iter().flatten();
        let found = all.filter(|(key, _)| key.eq_ignore_ascii_case(&full));
        let items = found.flat_map(|(_, value)| value.split(',').map(str::trim));
        items.filter(|item| !item.is_empty()).map(str::to_owned).collect()
    }

    /// The items of a list of addresses. Refuses the first item that is not an address.
    pub fn addresses(self, key: &str) -> Result<Vec<IpAddr>, Refusal> {
        let value = self.get(key).unwrap_or_default();
        let invalid =
            |item: &str| Refusal::InvalidAdditionalAddress { value: value.to_owned(), item: item.to_owned() };
        self.items(key).map(|item| item.parse().map_err(|_| invalid(item))).collect()
    }
}

/// The whole key of an annotation.
pub(crate) fn full_key(key: &str) -> String {
    format!("{SERVICE_ANNOTATION_PREFIX}{key}")
}

/// The per-port form of a key, such as `port_80_no_lb_rule`.
pub(crate) fn port_key(port: i32, suffix: &str) -> String {
    format!("port_{port}_{suffix}")
}
