//! The keys of a Service's annotations.

use k8s::names::SERVICE_ANNOTATION_PREFIX;

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

/// The whole key of an annotation.
pub(crate) fn full_key(key: &str) -> String {
    format!("{SERVICE_ANNOTATION_PREFIX}{key}")
}

/// The per-port form of a key, such as `port_80_no_lb_rule`.
pub(crate) fn port_key(port: i32, suffix: &str) -> String {
    format!("port_{port}_{suffix}")
}
