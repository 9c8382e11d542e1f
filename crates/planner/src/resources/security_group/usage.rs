//! What the cluster's Services and Nodes need of the security group, so that changes for some do not affect others.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use azure_types::ResourceId;
use k8s::{Node, ObjectKey, Service};
use ownership::{Evidence, Proof};

use super::addresses::ShownAddress;
use crate::model::{Balancer, Cluster, Family, Flavor, names};
use crate::outcome::proof;
use crate::resources::load_balancer::ListedLoadBalancer;
use crate::service::{ParsedService, ParsedServices, SecurityNeeds, ServiceRemoval, security_rule};

/// What one Service needs of the security group, as far as its object says without validation.
#[derive(Debug, Clone)]
pub(super) struct Footprint {
    /// Its needs, and more while it holds on.
    pub needs: Arc<SecurityNeeds>,
    /// The addresses at which packets arrive, except those of nodes.
    pub addresses: BTreeSet<IpAddr>,
    /// Whether its load-balancing rules differ from what it asks for now, because it is refused or still being
    /// reconciled: everything that it may depend on stays until it is planned itself.
    pub holds_on: bool,
}

/// The traffic that a load-balancing rule delivers.
struct Delivery {
    /// The flavor of the load balancer.
    flavor: Flavor,
    family: Family,
    is_floating: bool,
    /// The port of the packets on arrival; 0 for all.
    port: i32,
}

/// Lower-cases a text without a copy if possible, as nearly all names are lower case.
fn lower(text: &str) -> Cow<'_, str> {
    match text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => text.to_ascii_lowercase().into(),
        false => text.into(),
    }
}

/// The traffic that load balancers deliver, by the base name of the rule's Service.
fn deliveries(load_balancers: &[(Balancer, ListedLoadBalancer)]) -> HashMap<Cow<'_, str>, Vec<Delivery>> {
    let mut all: HashMap<Cow<'_, str>, Vec<Delivery>> = HashMap::new();
    let rules = load_balancers.iter().flat_map(|(balancer, document)| {
        let rules = document.properties.iter().flat_map(|p| p.load_balancing_rules.iter().flatten());
        rules.map(|rule| (balancer.flavor, rule))
    });
    for (flavor, rule) in rules {
        let (Some(name), Some(p)) = (&rule.name, &rule.properties) else { continue };
        let base = lower(name.split('-').next().unwrap_or_default());
        let pool = p.backend_address_pool.as_ref().and_then(|pool| pool.id.as_ref());
        all.entry(base).or_default().push(Delivery {
            flavor,
            family: names::family_of_name(pool.map(ResourceId::name).unwrap_or_default()),
            is_floating: p.enable_floating_ip == Some(true),
            port: p.backend_port.unwrap_or_default(),
        });
    }
    all
}

impl Footprint {
    /// Whether its rules allow the traffic that a load-balancing rule delivers.
    fn covers(&self, owner: &ServiceRemoval, delivery: &Delivery) -> bool {
        let is_floating = owner.arrival(delivery.family).is_floating();
        let mut ports = self.needs.ports.of_family(delivery.family);
        delivery.flavor == owner.flavor
            && owner.families.contains(&delivery.family)
            && delivery.is_floating == is_floating
            && (delivery.port == 0 || ports.any(|(_, port)| port == delivery.port))
    }

    /// Keeps everything that the Service may depend on: all its addresses, and its ports at nodes.
    fn hold_on(&mut self, service: &Service, addresses: BTreeSet<IpAddr>, deliveries: &[Delivery]) {
        self.holds_on = true;
        self.addresses = addresses;
        let spec = service.spec.ports.iter().flat_map(|port| [port.port, port.node_port]);
        let ports: BTreeSet<i32> = spec.chain(deliveries.iter().map(|delivery| delivery.port)).collect();
        let needs = Arc::make_mut(&mut self.needs);
        for family in Family::BOTH {
            needs.at_nodes.insert(family);
            for protocol in security_rule::PROTOCOLS {
                ports.iter().for_each(|port| needs.ports.insert(family, protocol, *port));
            }
        }
    }
}

/// The internal addresses of the nodes that Azure manages.
pub fn addresses_of_nodes(nodes: &[Arc<Node>]) -> BTreeSet<IpAddr> {
    nodes.iter().filter(|node| node.is_managed()).flat_map(|node| node.internal_addresses()).collect()
}

/// What all Services and Nodes of the cluster need of the security group.
#[derive(Debug, Clone, Default)]
pub struct ClusterUsage {
    /// Whether all Services and Nodes have been listed. Until then nothing is removed: it may belong to a Service or
    /// Node that is not known yet.
    pub is_complete: bool,
    /// The addresses of all Services.
    pub service_addresses: BTreeSet<IpAddr>,
    /// The internal addresses of all nodes that Azure manages.
    pub node_addresses: Arc<BTreeSet<IpAddr>>,
    pub(super) footprints: BTreeMap<ObjectKey, Footprint>,
    /// The proofs that addresses are or were the cluster's: only such addresses are removed from rules.
    pub(super) proven: BTreeMap<String, Proof>,
    /// Addresses that others have by now: what is open there is up to them.
    of_others: BTreeSet<String>,
}

impl ClusterUsage {
    /// Adds addresses that are proven to be or to have been the cluster's. The first proof of an address counts.
    #[must_use]
    pub fn with_proofs(mut self, proven: impl IntoIterator<Item = (IpAddr, Proof)>) -> Self {
        for (address, proof) in proven {
            self.proven.entry(address.to_string()).or_insert(proof);
        }
        self
    }

    /// Adds addresses that Azure shows to be used outside of the cluster. A user's address may have moved from one
    /// cluster to another that shares the security group: its rules are left unchanged.
    #[must_use]
    pub fn with_others(mut self, addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        self.of_others.extend(addresses.into_iter().map(|address| address.to_string()));
        self
    }

    /// Whether others have an address.
    pub(super) fn is_of_others(&self, destination: &str) -> bool {
        self.of_others.contains(destination)
    }

    /// Removes from Services the addresses that Azure shows to belong only to other Services: the status of a Service
    /// that has moved still contains its previous address. A Service whose load-balancing rules differ from what it
    /// asks for keeps all.
    #[must_use]
    pub fn as_shown(mut self, shown: &[ShownAddress]) -> Self {
        let mut owners: HashMap<IpAddr, BTreeSet<&ObjectKey>> = HashMap::new();
        for one in shown {
            owners.entry(one.address).or_default().insert(&one.service);
        }
        for (key, footprint) in &mut self.footprints {
            if !footprint.holds_on {
                let is_others = |address: &IpAddr| owners.get(address).is_some_and(|of| !of.contains(key));
                footprint.addresses.retain(|address| !is_others(address));
            }
        }
        self
    }

    /// Whether a Service or a Node of the cluster has this address now.
    pub fn has(&self, address: &IpAddr) -> bool {
        self.service_addresses.contains(address) || self.node_addresses.contains(address)
    }

    /// Collects the needs of all Services and Nodes. `nodes` are their [addresses](addresses_of_nodes), `recently_programmed` are addresses that Services were given and
    /// that their status may not contain yet, and `load_balancers` deliver the current traffic.
    pub fn of_known(
        cluster: &Cluster,
        known: &mut ParsedServices,
        services: &[Arc<Service>],
        nodes: Arc<BTreeSet<IpAddr>>,
        recently_programmed: &[(ObjectKey, IpAddr)],
        load_balancers: &[(Balancer, ListedLoadBalancer)],
        is_complete: bool,
    ) -> Self {
        let parsed = known.all(cluster, services);
        Self::of_parsed(cluster, &parsed, nodes, recently_programmed, load_balancers, is_complete)
    }

    /// The same for parsed Services.
    pub(crate) fn of_parsed(
        cluster: &Cluster,
        services: &[ParsedService],
        nodes: Arc<BTreeSet<IpAddr>>,
        recently_programmed: &[(ObjectKey, IpAddr)],
        load_balancers: &[(Balancer, ListedLoadBalancer)],
        is_complete: bool,
    ) -> Self {
        let deliveries = deliveries(load_balancers);
        let mut usage = Self { is_complete, node_addresses: nodes, ..Self::default() };
        let mut recent: HashMap<&ObjectKey, Vec<IpAddr>> = HashMap::new();
        for (key, address) in recently_programmed {
            recent.entry(key).or_default().push(*address);
        }
        for parsed in services {
            let owner = &parsed.owner;
            let mut addresses: BTreeSet<IpAddr> = owner.published_addresses.iter().copied().collect();
            for address in &addresses {
                let status = || Evidence::Recorded { place: format!("the status of Service {}", owner.key) };
                let proof = || Proof::new(proof::service(cluster, &owner.key), status());
                usage.proven.entry(address.to_string()).or_insert_with(proof);
            }
            addresses.extend(recent.get(&owner.key).into_iter().flatten());
            addresses.extend(&owner.additional_addresses);
            usage.service_addresses.extend(&addresses);
            // A Service that is being removed needs no rule any more: none is added for it.
            let Some(needs) = &parsed.needs else { continue };
            let of_it = owner.base_name.as_ref().and_then(|base| deliveries.get(&lower(base)));
            let of_it = of_it.map(Vec::as_slice).unwrap_or_default();
            let all = addresses.clone();
            addresses.retain(|address| owner.arrival(Family::of(*address)).is_floating());
            addresses.extend(&owner.additional_addresses);
            let mut footprint = Footprint { needs: Arc::clone(needs), addresses, holds_on: false };
            if !of_it.iter().all(|delivery| footprint.covers(owner, delivery)) || parsed.is_refused() {
                footprint.hold_on(&parsed.service, all, of_it);
            }
            usage.footprints.insert(owner.key.clone(), footprint);
        }
        for (_, address) in recently_programmed {
            usage.service_addresses.insert(*address);
        }
        usage
    }
}
