//! What a Service wants, normalised. Every mistake of its owner is found here.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use azure_types::{IpTag, ResourceId, Tags};
use cloud_config::HealthProbeMode;
use k8s::{ObjectKey, Service, ServicePort};

use crate::access::Access;
use crate::annotations::{self as keys, Annotations, full_key, port_key};
use crate::arrival::{self, Arrival};
use crate::cluster::{Cluster, Family, Flavor};
use crate::local_pool;
use crate::mistakes::Mistakes;
use crate::names::{self, Naming};
use crate::placement::{Mode, PlacementIntent};
use crate::plan::{Notice, Refusal};
use crate::private_link::{self, PrivateLinkIntent};
use crate::probe::{self, NodeProbe, PortProbe};
use crate::security_group::Needs;

/// The transport protocol of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP, which Azure supports only as "any protocol".
    Sctp,
}

impl Transport {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "" | "TCP" => Some(Self::Tcp),
            "UDP" => Some(Self::Udp),
            "SCTP" => Some(Self::Sctp),
            _ => None,
        }
    }

    /// The name in Kubernetes, which is part of rule names.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Sctp => "SCTP",
        }
    }

    /// The name in load-balancing rules.
    pub fn in_rule(self) -> &'static str {
        match self {
            Self::Tcp => "Tcp",
            Self::Udp => "Udp",
            Self::Sctp => "All",
        }
    }

    /// The name in security rules.
    pub fn in_security_rule(self) -> &'static str {
        match self {
            Self::Tcp => "Tcp",
            Self::Udp => "Udp",
            Self::Sctp => "*",
        }
    }
}

/// One port of a Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortIntent {
    /// The port that clients use.
    pub port: i32,
    /// The port on every node; 0 where none is allocated and none is needed.
    pub node_port: i32,
    /// The protocol.
    pub protocol: Transport,
    /// Whether the load balancer has a rule for it.
    pub has_rule: bool,
    pub(crate) probe: PortProbe,
}

/// What a Service wants of its public IPs.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct PublicIpIntent {
    /// The prefixes that new addresses come from.
    pub prefixes: BTreeMap<Family, ResourceId>,
    /// Tags of the address itself; `None` to leave them as they are.
    pub ip_tags: Option<Vec<IpTag>>,
    /// Tags of the resource.
    pub tags: Tags,
    /// The DNS label; empty for no label, `None` to leave it as it is.
    pub dns_label: Option<String>,
}

/// What a Service wants, normalised.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceIntent {
    /// Namespace and name.
    pub key: ObjectKey,
    /// The prefix of the names of everything that it owns.
    pub base_name: String,
    /// Which load balancer it belongs to.
    pub flavor: Flavor,
    /// The address families, first the primary one.
    pub families: Vec<Family>,
    /// The subnet annotation of an internal Service.
    pub subnet: Option<String>,
    /// The ports.
    pub ports: Vec<PortIntent>,
    /// Whether one rule serves all ports (HA ports).
    pub ha_ports: bool,
    /// Whether idle TCP flows are reset at their timeout.
    pub tcp_reset: bool,
    /// Minutes until an idle flow is dropped.
    pub idle_timeout: i32,
    /// Whether a client always reaches the same node.
    pub client_affinity: bool,
    /// Whether traffic stays on the node at which it arrives.
    pub local: bool,
    /// Who may reach it.
    pub access: Access,
    /// The private link service that it asks for.
    pub private_link: Option<PrivateLinkIntent>,
    /// The notices about annotations without effect.
    pub(crate) notices: Vec<Notice>,
    pub(crate) node_probe: NodeProbe,
    pub(crate) public_ip: PublicIpIntent,
    pub(crate) placement: PlacementIntent,
    pub(crate) removal: Arc<ServiceRemoval>,
    /// What it needs of the security group.
    pub(crate) needs: Arc<Needs>,
}

/// The default idle timeout, in minutes.
const IDLE_TIMEOUT: i32 = 4;
/// The highest port of a load-balancing rule; Kubernetes allows one more.
pub(crate) const MAX_FRONTEND_PORT: i32 = 65534;

/// What is needed to find and remove everything that a Service has, whatever its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceRemoval {
    /// Namespace and name.
    pub key: ObjectKey,
    /// The prefix of the names of everything that it owns; `None` for an object without a UID, which owns nothing by
    /// name.
    pub base_name: Option<String>,
    /// The flavor of load balancer that it asks for.
    pub flavor: Flavor,
    /// The address families, first the primary one.
    pub families: Vec<Family>,
    /// The resource group of its public IPs.
    pub public_ip_group: String,
    /// All resource groups that may hold its public IPs: that one, the cluster's, and the ones that its frontends were
    /// seen to refer to ([`crate::sequence::Sequence::see_frontends`]).
    pub public_ip_groups: BTreeSet<ResourceId>,
    /// The resource groups that its private link service may be in.
    pub private_link_groups: BTreeSet<ResourceId>,
    /// The public IPs that it names.
    pub public_ip_names: BTreeMap<Family, String>,
    /// The addresses that it asks for, if they can be parsed.
    pub requested_addresses: BTreeMap<Family, IpAddr>,
    /// Addresses that it has by other means, if they can be parsed.
    pub additional_addresses: Vec<IpAddr>,
    /// The addresses in its status.
    pub published_addresses: Vec<IpAddr>,
    /// Where the packets of each family arrive.
    pub(crate) arrivals: BTreeMap<Family, Arrival>,
}

/// The families of a Service; IPv4 if it names none.
fn families(service: &Service) -> Vec<Family> {
    let named: Vec<Family> = service
        .spec
        .ip_families
        .iter()
        .filter_map(|family| match family.as_str() {
            "IPv4" => Some(Family::V4),
            "IPv6" => Some(Family::V6),
            _ => None,
        })
        .collect();
    if named.is_empty() { vec![Family::V4] } else { named }
}

/// Whether a Service is internal: the annotation is `true`, in any case. The only test for it.
pub(crate) fn flavor(service: &Service) -> Flavor {
    if Annotations(service).flag(keys::INTERNAL) { Flavor::Internal } else { Flavor::External }
}

/// A value with one key for each family. A Service of IPv6 alone may use the IPv4 key as well.
fn by_family<'a>(service: &'a Service, v4: &str, v6: &str) -> BTreeMap<Family, (String, &'a str)> {
    let annotations = Annotations(service);
    let families = families(service);
    let mut values = BTreeMap::new();
    for family in &families {
        let own = match family {
            Family::V4 => v4,
            Family::V6 => v6,
        };
        let found = annotations.non_empty(own).map(|value| (own.to_owned(), value)).or_else(|| {
            let alone = families.len() == 1;
            alone.then(|| annotations.non_empty(v4).map(|value| (v4.to_owned(), value))).flatten()
        });
        if let Some(found) = found {
            values.insert(*family, found);
        }
    }
    values
}

/// An address that a Service asks for.
struct Requested {
    /// The annotation or field with the address.
    origin: String,
    address: IpAddr,
}

/// The requested addresses by family: the family's annotation, else `spec.loadBalancerIP` if it is of that family. Text
/// that is not an address is refused with its origin.
fn requested(service: &Service) -> (BTreeMap<Family, Requested>, Vec<Refusal>) {
    let annotations = Annotations(service);
    let (mut addresses, mut problems) = (BTreeMap::new(), Vec::new());
    let families = families(service);
    let unmapped = |text: &str| text.parse::<IpAddr>().map(|address| address.to_canonical());
    let mut annotated = false;
    for (family, key) in [(Family::V4, keys::LOAD_BALANCER_IPV4), (Family::V6, keys::LOAD_BALANCER_IPV6)] {
        let Some(value) = annotations.non_empty(key) else { continue };
        annotated = true;
        let origin = format!("annotation {}", full_key(key));
        match unmapped(value) {
            Ok(address) if Family::of(address) == family => {
                if families.contains(&family) {
                    addresses.insert(family, Requested { origin, address });
                }
            }
            _ => problems.push(Refusal::InvalidAddress {
                origin,
                value: value.to_owned(),
                family: Some(family),
            }),
        }
    }
    let value = service.spec.load_balancer_ip.as_str();
    let origin = "spec.loadBalancerIP".to_owned();
    match unmapped(value) {
        Ok(address) => {
            let family = Family::of(address);
            if families.contains(&family) {
                addresses.entry(family).or_insert(Requested { origin, address });
            }
        }
        Err(_) if value.is_empty() || annotated => {}
        Err(_) => {
            problems.push(Refusal::InvalidAddress { origin, value: value.to_owned(), family: None });
        }
    }
    (addresses, problems)
}

/// Whether Azure can assign this address as a public IP.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, ..] = v4.octets();
            let shared = a == 100 && (b & 0xc0) == 64;
            let platform = v4.octets() == [168, 63, 129, 16];
            !(v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_multicast()
                || v4.is_broadcast()
                || v4.is_unspecified()
                || shared
                || platform)
        }
        IpAddr::V6(v6) => {
            !(v6.is_loopback()
                || v6.is_multicast()
                || v6.is_unspecified()
                || v6.is_unicast_link_local()
                || v6.is_unique_local())
        }
    }
}

/// The node port of a port, for a feature that requires one.
pub(crate) fn node_port(port: &ServicePort, needed_by: &'static str) -> Result<i32, Refusal> {
    if port.node_port > 0 {
        return Ok(port.node_port);
    }
    Err(Refusal::NoNodePort { port: port.port, needed_by })
}

impl ServiceRemoval {
    /// Reads what a Service owns. Never fails: deletion is always possible.
    pub fn of(cluster: &Cluster, service: &Service) -> Self {
        let annotations = Annotations(service);
        let parsed = |text: &str| text.trim().parse::<IpAddr>().ok();
        let (flavor, families) = (flavor(service), families(service));
        let arrival = |family| (family, Arrival::of(cluster, service, flavor, family));
        let of_cluster = &cluster.config.resource_group;
        let public_ip_group = annotations.trimmed(keys::PUBLIC_IP_GROUP).unwrap_or(of_cluster);
        Self {
            key: service.key(),
            base_name: names::base_name(service.uid()),
            flavor,
            arrivals: families.iter().copied().map(arrival).collect(),
            families,
            public_ip_group: public_ip_group.to_owned(),
            public_ip_groups: [public_ip_group, of_cluster].map(|group| cluster.network_group(group)).into(),
            private_link_groups: private_link::groups(cluster, service),
            public_ip_names: by_family(service, keys::PIP_NAME, keys::PIP_NAME_IPV6)
                .into_iter()
                .map(|(family, (_, name))| (family, name.to_owned()))
                .collect(),
            requested_addresses: requested(service)
                .0
                .into_iter()
                .map(|(family, requested)| (family, requested.address))
                .collect(),
            additional_addresses: annotations.items(keys::ADDITIONAL_PUBLIC_IPS).filter_map(parsed).collect(),
            published_addresses: service
                .status
                .load_balancer
                .ingress
                .iter()
                .filter_map(|ingress| parsed(&ingress.ip))
                .collect(),
        }
    }

    /// Whether a rule or probe belongs to the Service. The shared probe belongs to no single Service.
    pub(crate) fn owns_rule(&self, name: &str) -> bool {
        self.base_name.as_deref().is_some_and(|base| names::is_rule_of(name, base))
    }

    /// Where the packets of a family arrive; for a family that the Service does not have, the first family's value.
    pub(crate) fn arrival(&self, family: Family) -> Arrival {
        let arrival = self.arrivals.get(&family).or_else(|| self.arrivals.values().next());
        arrival.copied().unwrap_or(Arrival::Frontend)
    }

    /// Whether the Service asks for certain addresses or public IPs.
    pub(crate) fn is_pinned(&self) -> bool {
        !self.requested_addresses.is_empty() || !self.public_ip_names.is_empty()
    }

    /// Whether a text contains the Service's base name, its addresses or its public IPs, in any case.
    pub(crate) fn is_named_in(&self, lower_case_text: &str) -> bool {
        let names =
            self.public_ip_names.values().map(|name| format!("publicipaddresses/{}", name.to_lowercase()));
        self.base_name.iter().any(|base| lower_case_text.contains(&base.to_lowercase()))
            || names.into_iter().any(|name| names_word(lower_case_text, &name))
            || self
                .requested_addresses
                .values()
                .any(|address| names_word(lower_case_text, &address.to_string().to_lowercase()))
    }
}

/// Whether `word` occurs in `text` without an adjacent letter, digit, dot or dash that would make it part of a longer
/// name.
pub(crate) fn names_word(text: &str, word: &str) -> bool {
    let joins = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | ':');
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let mut after = text[at + word.len()..].chars();
        let next = after.next();
        // A full stop that ends a sentence is not part of an address.
        let dotted = next == Some('.') && after.next().is_some_and(char::is_alphanumeric);
        !before.is_some_and(|c| joins(c) || c == '.') && !next.is_some_and(joins) && !dotted
    })
}

impl ServiceIntent {
    /// Reads what a Service wants.
    ///
    /// # Errors
    ///
    /// All mistakes in it: annotation or field, value, remedy.
    pub fn from_service(cluster: &Cluster, service: &Service) -> Result<Self, Refusal> {
        let annotations = Annotations(service);
        let removal = Arc::new(ServiceRemoval::of(cluster, service));
        let base_name = removal.base_name.clone().ok_or(Refusal::NoUid)?;
        let mut mistakes = Mistakes::default();
        let placement = mistakes.read_or(placement(cluster, service, &removal), PlacementIntent::default());
        let flavor = removal.flavor;
        let (requested, problems) = requested(service);
        problems.into_iter().for_each(|problem| mistakes.note(problem));
        if flavor == Flavor::External {
            for Requested { origin, address } in
                requested.into_values().filter(|requested| !is_public(requested.address))
            {
                mistakes.note(Refusal::NonPublicAddress { origin, service: removal.key.clone(), address });
            }
        }
        let access = Access::read(service);
        mistakes.read_or(access.check(), ());
        mistakes.read_or(annotations.addresses(keys::ADDITIONAL_PUBLIC_IPS).map(drop), ());

        let local = service.is_local();
        let ha_ports = arrival::has_ha_ports(cluster, service, flavor);
        let idle_timeout =
            mistakes.read_or(annotations.integer(keys::IDLE_TIMEOUT), None).unwrap_or(IDLE_TIMEOUT);
        if !(4..=100).contains(&idle_timeout) {
            mistakes.note(Refusal::IdleTimeoutOutOfRange { minutes: idle_timeout });
        }
        // Without it, the ports that need probes of their own cannot be determined.
        let node_probe = node_probe(cluster, service, local).map_err(|mistake| mistakes.note(mistake)).ok();
        mistakes.read_or(local_pool::check(cluster, service, &removal.families), ());
        let mut intent = Self {
            key: removal.key.clone(),
            base_name,
            flavor,
            families: removal.families.clone(),
            subnet: annotations
                .get(keys::INTERNAL_SUBNET)
                .filter(|name| flavor == Flavor::Internal && !name.trim().is_empty())
                .map(str::to_owned),
            ports: Vec::new(),
            ha_ports,
            tcp_reset: !annotations.flag(keys::DISABLE_TCP_RESET),
            idle_timeout,
            client_affinity: service.spec.session_affinity == "ClientIP",
            local,
            private_link: mistakes.read_or(PrivateLinkIntent::read(cluster, service, &removal), None),
            notices: keys::notices(service, cluster),
            node_probe: node_probe.clone().unwrap_or(NodeProbe::None),
            public_ip: mistakes.read_or(public_ip(service), PublicIpIntent::default()),
            placement,
            needs: Arc::new(Needs::of(service, &removal, &access)),
            access,
            removal,
        };
        intent.notices.extend(intent.unused_addresses());
        intent.notices.extend(intent.floats_anyway(service));
        for port in &service.spec.ports {
            let Some((protocol, has_rule)) = intent.read_port(service, port, &mut mistakes) else { continue };
            let probe = match node_probe {
                Some(_) => intent.read_probe(service, port, protocol, has_rule),
                None => Ok(PortProbe::None),
            };
            let mut probe = mistakes.read_or(probe, PortProbe::None);
            if let PortProbe::Own(spec) = &mut probe
                && cluster.config.uses_basic_load_balancer()
            {
                spec.without_tls();
            }
            let (port, node_port) = (port.port, port.node_port);
            intent.ports.push(PortIntent { port, node_port, protocol, has_rule, probe });
        }
        mistakes.or(intent)
    }

    /// If a Service names a prefix for a new public IP as well as the address of an existing one, the prefix wins.
    fn unused_addresses(&self) -> Vec<Notice> {
        let owner = &self.removal;
        let requested = owner.requested_addresses.iter().filter(|(family, _)| {
            self.flavor == Flavor::External
                && self.public_ip.prefixes.contains_key(family)
                && !owner.public_ip_names.contains_key(family)
        });
        let notice = |(_, address): (&Family, &IpAddr)| Notice {
            service: self.key.clone(),
            warning: true,
            reason: "AnnotationIgnored",
            message: format!(
                "the requested address {address} is not used, because annotation {} asks for a new public IP from \
                 a prefix; remove one of the two",
                full_key(keys::PIP_PREFIX)
            ),
        };
        requested.map(notice).collect()
    }

    /// The rule for all ports has no node port as its target, so it uses floating IP for IPv4, as in the replaced
    /// program (LB-413).
    fn floats_anyway(&self, service: &Service) -> Option<Notice> {
        let is_told = self.ha_ports
            && self.families.contains(&Family::V4)
            && Annotations(service).flag(keys::DISABLE_FLOATING_IP);
        is_told.then(|| Notice {
            service: self.key.clone(),
            warning: true,
            reason: "AnnotationIgnored",
            message: format!(
                "annotation {} is ignored for IPv4: with annotation {} packets to all ports keep the Service's address; \
                 remove one of the two",
                full_key(keys::DISABLE_FLOATING_IP),
                full_key(keys::HA_PORTS)
            ),
        })
    }

    /// The protocol of a port, and whether the load balancer has a rule for it; `None` if it has no protocol.
    fn read_port(
        &self,
        service: &Service,
        port: &ServicePort,
        mistakes: &mut Mistakes,
    ) -> Option<(Transport, bool)> {
        let Some(protocol) = Transport::parse(&port.protocol) else {
            mistakes.note(Refusal::UnknownProtocol { port: port.port, protocol: port.protocol.clone() });
            return None;
        };
        let has_rule = !Annotations(service).flag(&port_key(port.port, keys::NO_LB_RULE));
        if protocol == Transport::Sctp && has_rule && !self.ha_ports {
            mistakes.note(Refusal::SctpNeedsHaPorts { port: port.port });
        }
        if has_rule && !self.ha_ports && port.port > MAX_FRONTEND_PORT {
            mistakes.note(Refusal::PortOutOfRange { port: port.port });
        }
        if has_rule && self.removal.arrivals.values().any(|arrival| *arrival == Arrival::NodePort) {
            mistakes.read_or(node_port(port, "a rule without floating IP").map(drop), ());
        }
        Some((protocol, has_rule))
    }

    fn read_probe(
        &self,
        service: &Service,
        port: &ServicePort,
        protocol: Transport,
        has_rule: bool,
    ) -> Result<PortProbe, Refusal> {
        match self.read_port_probe(service, port, protocol) {
            // With HA ports, one working probe is enough.
            Err(_) if self.ha_ports => Ok(PortProbe::None),
            _ if !has_rule && !self.ha_ports => Ok(PortProbe::None),
            probe => probe,
        }
    }

    fn read_port_probe(
        &self,
        service: &Service,
        port: &ServicePort,
        protocol: Transport,
    ) -> Result<PortProbe, Refusal> {
        if probe::is_disabled(service, port.port) {
            return Ok(PortProbe::None);
        }
        let has_node_probe = self.node_probe != NodeProbe::None;
        let own_port = protocol == Transport::Tcp && probe::has_own_port(service, port.port);
        match &self.node_probe {
            NodeProbe::Shared(_) => Ok(PortProbe::Node),
            _ if protocol != Transport::Tcp => {
                Ok(if has_node_probe { PortProbe::Node } else { PortProbe::None })
            }
            NodeProbe::Local(_) if !own_port => Ok(PortProbe::Node),
            NodeProbe::Local(_) | NodeProbe::None => probe::own(service, port).map(PortProbe::Own),
        }
    }

    /// A copy for a Service whose status contains only these addresses.
    pub(crate) fn with_published(&self, addresses: &[IpAddr]) -> Self {
        let mut removal = (*self.removal).clone();
        removal.published_addresses.retain(|address| addresses.contains(address));
        Self { removal: Arc::new(removal), ..self.clone() }
    }

    /// What is needed to find and remove everything that the Service has.
    pub fn removal(&self) -> &Arc<ServiceRemoval> {
        &self.removal
    }

    /// The resource group of the Service's public IPs.
    pub fn public_ip_group(&self) -> &str {
        &self.removal.public_ip_group
    }

    /// The addresses that the Service asks for, by family.
    pub fn requested_addresses(&self) -> &BTreeMap<Family, IpAddr> {
        &self.removal.requested_addresses
    }

    /// Where the packets of a family arrive.
    pub fn arrival(&self, family: Family) -> Arrival {
        self.removal.arrival(family)
    }

    /// Whether packets of any family arrive at the nodes' own addresses.
    pub fn arrives_at_nodes(&self) -> bool {
        self.removal.arrivals.values().any(|arrival| !arrival.is_floating())
    }

    /// Addresses that the Service has by other means; its status lists them after the frontends'.
    pub fn additional_addresses(&self) -> &[IpAddr] {
        &self.removal.additional_addresses
    }

    /// The name of the subnet of an internal frontend: the annotation's or the configured one.
    pub fn subnet_name<'a>(&'a self, cluster: &'a Cluster) -> &'a str {
        self.subnet.as_deref().unwrap_or(&cluster.config.subnet_name)
    }

    pub(crate) fn naming(&self) -> Naming<'_> {
        Naming { base: &self.base_name, subnet: self.subnet.as_deref(), dual_stack: self.families.len() == 2 }
    }
}

fn node_probe(cluster: &Cluster, service: &Service, local: bool) -> Result<NodeProbe, Refusal> {
    let config = &cluster.config;
    let shared = config.cluster_service_load_balancer_health_probe_mode == HealthProbeMode::Shared;
    let port = service.spec.health_check_node_port;
    // kube-proxy's health check node port does not understand the PROXY protocol.
    if local && port > 0 && !private_link::is_created_with_proxy_protocol(service) {
        return probe::local(service, port).map(NodeProbe::Local);
    }
    if shared && !local {
        return Ok(NodeProbe::Shared(probe::shared(
            config.cluster_service_shared_load_balancer_health_probe_port,
            &config.cluster_service_shared_load_balancer_health_probe_path,
        )));
    }
    Ok(NodeProbe::None)
}

/// The Service's placement among several load balancers. If its address decides, it cannot name a load balancer.
fn placement(
    cluster: &Cluster,
    service: &Service,
    removal: &ServiceRemoval,
) -> Result<PlacementIntent, Refusal> {
    if cluster.config.uses_basic_load_balancer() {
        let mode = Mode::parse(Annotations(service).get(keys::MODE));
        return Ok(PlacementIntent { mode, ..PlacementIntent::default() });
    }
    if !cluster.has_several_load_balancers() {
        return Ok(PlacementIntent::default());
    }
    let configurations = Annotations(service).items_in_any_case(keys::CONFIGURATIONS);
    if !configurations.is_empty() && removal.is_pinned() {
        return Err(Refusal::PlacedByAddress { service: removal.key.clone(), configurations });
    }
    let labels = service.metadata.labels.clone().unwrap_or_default();
    Ok(PlacementIntent { configurations, labels, ..PlacementIntent::default() })
}

fn public_ip(service: &Service) -> Result<PublicIpIntent, Refusal> {
    let annotations = Annotations(service);
    let mut prefixes = BTreeMap::new();
    for (family, (key, value)) in by_family(service, keys::PIP_PREFIX, keys::PIP_PREFIX_IPV6) {
        let id = ResourceId::parse(value).map_err(|problem| Refusal::InvalidPrefixId {
            key: full_key(&key),
            value: value.to_owned(),
            problem: problem.to_string(),
        })?;
        prefixes.insert(family, id);
    }
    Ok(PublicIpIntent {
        prefixes,
        ip_tags: annotations.get(keys::PIP_IP_TAGS).map(parse_ip_tags),
        tags: cloud_config::parse_tags(annotations.get(keys::PIP_TAGS).unwrap_or_default()).0,
        dns_label: annotations.get(keys::DNS_LABEL).map(str::to_owned),
    })
}

/// Parses `key=value` pairs. Other items are ignored; the last pair of a key counts.
fn parse_ip_tags(text: &str) -> Vec<IpTag> {
    let mut tags = BTreeMap::new();
    for piece in text.split(',') {
        let mut parts = piece.split('=').map(str::trim);
        if let (Some(kind), Some(tag), None) = (parts.next(), parts.next(), parts.next()) {
            tags.insert(kind.to_owned(), tag.to_owned());
        }
    }
    tags.into_iter()
        .map(|(kind, tag)| IpTag { ip_tag_type: Some(kind), tag: Some(tag), ..Default::default() })
        .collect()
}
