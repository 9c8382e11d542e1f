//! What a Service wants, normalised. Every mistake of its owner is found here.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use azure_types::{IpTag, ResourceId, Tags};
use cloud_config::HealthProbeMode;
use k8s::{Notice, ObjectKey, Service, ServicePort};

use super::access::Access;
use super::annotations::{Annotations, notices};
use super::arrival::{self, Arrival};
use super::local_pool;
use super::mistakes::Mistakes;
use super::owner::{RequestedAddress, ServiceRemoval, by_family, requested};
use super::placement::{PlacementIntent, placement};
use super::port::{PortIntent, Transport};
use super::private_link::{self, PrivateLinkIntent};
use super::probe::{self, NodeProbe, PortProbe, node_port};
use super::security_needs::SecurityNeeds;
use crate::model::annotation_keys::{self as keys, full_key, port_key};
use crate::model::{Cluster, Family, Flavor, MAX_FRONTEND_PORT, Naming, is_public};
use crate::outcome::{Refusal, warning};

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
    pub(crate) needs: Arc<SecurityNeeds>,
}

/// The default idle timeout, in minutes.
const IDLE_TIMEOUT: i32 = 4;

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
            for RequestedAddress { origin, address } in
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
            notices: notices::notices(service, cluster),
            node_probe: node_probe.clone().unwrap_or(NodeProbe::None),
            public_ip: mistakes.read_or(public_ip(service), PublicIpIntent::default()),
            placement,
            needs: Arc::new(SecurityNeeds::of(service, &removal, &access)),
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
                && !cluster.sku().probes_https()
            {
                spec.without_tls();
            }
            let (port, node_port) = (port.port, port.node_port);
            intent.ports.push(PortIntent { port, node_port, protocol, has_rule, probe });
        }
        mistakes.or(intent)
    }

    /// The prefixes that its public IPs come from.
    pub fn public_ip_prefixes(&self) -> impl Iterator<Item = &ResourceId> {
        self.public_ip.prefixes.values()
    }

    /// If a Service names a prefix for a new public IP as well as the address of an existing one, the prefix wins.
    fn unused_addresses(&self) -> Vec<Notice> {
        let owner = &self.removal;
        let requested = owner.requested_addresses.iter().filter(|(family, _)| {
            self.flavor == Flavor::External
                && self.public_ip.prefixes.contains_key(family)
                && !owner.public_ip_names.contains_key(family)
        });
        let notice = |(_, address): (&Family, &IpAddr)| {
            let message = format!(
                "the requested address {address} is not used, because annotation {} asks for a new public IP from \
                 a prefix; remove one of the two",
                full_key(keys::PIP_PREFIX)
            );
            warning(&self.key, "AnnotationIgnored", message)
        };
        requested.map(notice).collect()
    }

    /// The rule for all ports has no node port as its target, so it uses floating IP for IPv4, as in the replaced
    /// program (LB-413).
    fn floats_anyway(&self, service: &Service) -> Option<Notice> {
        let floats = self.ha_ports
            && self.families.contains(&Family::V4)
            && Annotations(service).flag(keys::DISABLE_FLOATING_IP);
        floats.then(|| {
            let message = format!(
                "annotation {} is ignored for IPv4: with annotation {} packets to all ports keep the Service's address; \
                 remove one of the two",
                full_key(keys::DISABLE_FLOATING_IP),
                full_key(keys::HA_PORTS)
            );
            warning(&self.key, "AnnotationIgnored", message)
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
