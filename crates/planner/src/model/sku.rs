//! The SKU of load balancers and public IPs: all that is different with SKU Basic, which Azure has retired.
//!
//! Once no cluster needs SKU Basic, this file goes, with `placement/basic.rs` and the annotation
//! `azure-load-balancer-mode`: every question below is answered as for SKU Standard then.

use azure_types::Sku;

use super::cluster::Cluster;
use super::family::Family;

/// The SKU of a cluster's load balancers and public IPs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoadBalancerSku {
    Basic,
    Standard,
}

use LoadBalancerSku::{Basic, Standard};

impl Cluster {
    /// The SKU of its load balancers and public IPs.
    pub(crate) fn sku(&self) -> LoadBalancerSku {
        if self.config.uses_basic_load_balancer() { Basic } else { Standard }
    }
}

impl LoadBalancerSku {
    /// The SKU in the document of a new resource.
    pub(crate) fn document(self) -> Sku {
        let name = if self == Basic { "Basic" } else { "Standard" };
        Sku { name: Some(name.to_owned()), ..Default::default() }
    }

    /// Whether each load balancer serves one set of machines, so that a Service is placed on that of a set (3.1).
    pub(crate) fn serves_one_set(self) -> bool {
        self == Basic
    }

    /// Whether a load balancer reaches virtual machines in clusters of scale sets, and those of flexible sets (LB-204).
    pub(crate) fn reaches_virtual_machines(self) -> bool {
        self == Standard
    }

    /// Whether the configuration may exclude control-plane nodes from pools.
    pub(crate) fn may_exclude_control_planes(self) -> bool {
        self == Standard
    }

    /// Whether one rule can serve all ports.
    pub(crate) fn has_ha_ports(self) -> bool {
        self == Standard
    }

    /// Whether rules can reset idle flows.
    pub(crate) fn has_tcp_reset(self) -> bool {
        self == Standard
    }

    /// Whether probes can use HTTPS.
    pub(crate) fn probes_https(self) -> bool {
        self == Standard
    }

    /// Whether public IPs have zones, and may come from prefixes.
    pub(crate) fn has_zones_and_prefixes(self) -> bool {
        self == Standard
    }

    /// The allocation of a new address (4.9).
    pub(crate) fn allocation(self, family: Family) -> &'static str {
        if self == Basic && family == Family::V6 { "Dynamic" } else { "Static" }
    }

    /// Whether a load balancer of this other SKU has to be deleted, because Azure cannot change it.
    pub(crate) fn replaces(self, other: Option<&Sku>) -> bool {
        self == Standard && name_of(other).eq_ignore_ascii_case("Basic")
    }

    /// Whether a public IP of this other SKU is changed, because standard load balancers do not accept it.
    pub(crate) fn upgrades(self, other: Option<&Sku>) -> bool {
        self == Standard && !name_of(other).to_ascii_lowercase().starts_with("standard")
    }
}

fn name_of(sku: Option<&Sku>) -> &str {
    sku.and_then(|sku| sku.name.as_deref()).unwrap_or_default()
}
