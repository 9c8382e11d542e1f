//! What Services want of one load balancer, and what is known of the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use azure_types::{NetworkInterface, PrivateLinkService, ResourceId, Subnet};
use k8s::{Node, ObjectKey, Service};

use crate::machines::admin_state::EntryKey;
use crate::machines::node_places::NodeShare;
use crate::model::{Family, Flavor};
use crate::service::{LocalService, ServiceIntent, ServiceRemoval};

/// What one Service wants of a load balancer.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "nearly all intents of a batch are of the larger kind")]
pub enum LoadBalancerIntent {
    /// The Service is placed on this load balancer.
    Present {
        /// The Service.
        service: Arc<ServiceIntent>,
        /// The public IP of each family's frontend; a family without one gets no frontend. Empty for internal Services.
        public_ips: BTreeMap<Family, ResourceId>,
        /// The observed subnet of an internal Service's frontends; `None` if it does not exist.
        subnet: Option<Arc<Subnet>>,
    },
    /// All parts of the Service are removed.
    Absent {
        /// The Service.
        service: Arc<ServiceRemoval>,
        /// The public IPs that it names or asks for by address ([`crate::resources::public_ip::claimed`]). They identify the
        /// frontends that it shares.
        public_ips: BTreeMap<Family, ResourceId>,
    },
    /// If the load balancer has another SKU than the configured one, all parts of the Service are removed (LB-205).
    Retired {
        /// The Service.
        service: Arc<ServiceRemoval>,
    },
}

/// The Services of the cluster, by [`ServiceRemoval::base_name`], each with the flavor of the load balancer that should
/// serve it; `None` if no load balancer should.
pub type KnownServices = BTreeMap<String, Option<Flavor>>;

/// The Services that parts of load balancers may be named after.
pub fn known_services(services: &[Arc<Service>]) -> KnownServices {
    let known = services.iter().filter_map(|service| {
        let flavor = service.is_to_be_served().then(|| crate::service::owner::flavor(service));
        Some((crate::model::names::base_name(service.uid())?, flavor))
    });
    known.collect()
}

/// The known state of the cluster. Absent means unknown, and nothing is concluded from it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Known<'a> {
    /// All Services. Without them no frontend counts as left over from a deleted Service.
    pub services: Option<&'a KnownServices>,
    /// All nodes. Without them the members of pools are not written.
    pub nodes: Option<&'a [Arc<Node>]>,
    /// The known network interfaces of virtual machines. They map an entry of a pool to its node.
    pub interfaces: &'a [Arc<NetworkInterface>],
    /// The nodes that it may have, where several load balancers share them. Without it the members of its pools stay as
    /// they are.
    pub share: Option<&'a NodeShare>,
    /// The entries of pools that were `Up` before their nodes drained.
    pub was_up: Option<&'a BTreeSet<EntryKey>>,
    /// The Services that have pools of their own, with the nodes that belong in those. Without them the pools stay as
    /// they are.
    pub local_services: Option<&'a [LocalService]>,
    /// Private link services that may offer frontends: a frontend that is offered by an unmanaged one stays.
    pub private_links: &'a [Arc<PrivateLinkService>],
}

impl LoadBalancerIntent {
    /// The Service of this intent.
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Present { service, .. } => &service.key,
            Self::Absent { service, .. } | Self::Retired { service } => &service.key,
        }
    }

    /// What the Service owns, and how that is found.
    pub fn owner(&self) -> &ServiceRemoval {
        match self {
            Self::Present { service, .. } => service.removal(),
            Self::Absent { service, .. } | Self::Retired { service } => service,
        }
    }

    pub(super) fn public_ips(&self) -> &BTreeMap<Family, ResourceId> {
        static NONE: BTreeMap<Family, ResourceId> = BTreeMap::new();
        match self {
            Self::Present { public_ips, .. } | Self::Absent { public_ips, .. } => public_ips,
            Self::Retired { .. } => &NONE,
        }
    }
}

/// The Services whose parts Azure's error text names: by base name, address, public IP or a subnet of their own. Empty
/// if it names none of the batch.
pub fn services_named_in(error_text: &str, batch: &[LoadBalancerIntent]) -> Vec<ObjectKey> {
    let text = error_text.to_lowercase();
    let named = |intent: &&LoadBalancerIntent| {
        let by_id = intent.public_ips().values().any(|id| {
            crate::model::words::names_word(&text, &format!("publicipaddresses/{}", id.name().to_lowercase()))
        });
        let subnet = match intent {
            LoadBalancerIntent::Present { service, subnet, .. } if service.subnet.is_some() => {
                subnet.as_ref()
            }
            _ => None,
        };
        // The default subnet identifies no single Service.
        let by_subnet = subnet.and_then(|subnet| subnet.id.as_ref()).is_some_and(|id| {
            crate::model::words::names_word(&text, &format!("subnets/{}", id.name().to_lowercase()))
        });
        by_id || by_subnet || intent.owner().is_named_in(&text)
    };
    crate::outcome::plan::ordered(batch.iter().filter(named).map(|intent| intent.key().clone()))
}
