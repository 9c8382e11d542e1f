//! Why a Service cannot be served, for its owner or the cluster's operator, as data.
//!
//! A variant's doc line states the rule that is broken, and its fields are the evidence. Texts are made only here. They
//! name the key, the value and the remedy. If the replaced program has a text for the same problem, the text contains
//! it, because people and tools search for it.

use std::net::IpAddr;

use k8s::ObjectKey;

use super::other_name::OtherName;
use super::private_link_refusal::PrivateLinkRefusal;
use crate::model::Family;
use crate::model::annotation_keys::{self as keys, full_key};
use crate::model::limits::{MAX_FRONTEND_PORT, MAX_PRIORITY, MAX_PROBE_SECONDS, MIN_PRIORITY};
use crate::model::words::name_some;

/// Why a Service cannot be served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A Service has a UID from an API server.
    #[error("metadata.uid is empty: create the Service through an API server")]
    NoUid,
    /// Several mistakes of the Service's owner.
    #[error("{} mistakes: {}", .0.len(), number_all(.0))]
    Several(Vec<Self>),
    /// A Service is served once, by load balancers of one name.
    #[error("{0}")]
    OtherClusterName(OtherName),
    /// A load balancer of SKU Basic to be deleted holds no foreign parts.
    #[error(
        "loadBalancerSku is standard, and load balancer {load_balancer} of SKU Basic would be deleted, but {part} on it \
         is not this cluster's; move or delete {part}"
    )]
    BasicLoadBalancerShared {
        /// The load balancer.
        load_balancer: String,
        /// A foreign part, in words.
        part: String,
    },
    /// A Service can have the private link service that it asks for.
    #[error(transparent)]
    PrivateLink(#[from] PrivateLinkRefusal),
    /// The value is a whole number.
    #[error("annotation {key}: {value} value must be a whole number; correct or remove it")]
    NotAWholeNumber {
        /// The annotation's key.
        key: String,
        /// Its value.
        value: String,
    },
    /// Intervals and counts of probes have a minimum.
    #[error(
        "annotation {key}: the minimum value of {what} is {minimum}, and it is {value}; raise or remove it"
    )]
    BelowMinimum {
        /// The annotation's key.
        key: String,
        /// The setting.
        what: &'static str,
        /// Its value.
        value: i32,
        /// Azure's minimum.
        minimum: i32,
    },
    /// Idle flows end after 4 to 100 minutes.
    #[error(
        "annotation {}: idle timeout value must be a whole number representing minutes between 4 and 100, actual \
         value: {minutes}; correct or remove it",
        full_key(keys::IDLE_TIMEOUT)
    )]
    IdleTimeoutOutOfRange {
        /// The annotation's value.
        minutes: i32,
    },
    /// A probe detects a dead member in less than two minutes.
    #[error(
        "health probe of port {port}: interval {interval} s times {threshold} probes is {} s: total probe should be \
         less than {MAX_PROBE_SECONDS}, please adjust interval and number of probe accordingly: lower annotation {} \
         or {}, or those of the port",
        i64::from(*.interval) * i64::from(*.threshold),
        full_key(keys::PROBE_INTERVAL),
        full_key(keys::PROBE_COUNT)
    )]
    ProbeTooSlow {
        /// The port that is probed.
        port: i32,
        /// The interval, in seconds.
        interval: i32,
        /// The number of consecutive answers that change a member's state.
        threshold: i32,
    },
    /// The port of a probe is from 1 to 65535.
    #[error(
        "annotation {key}: port {value} is out of range; name a port from 1 to 65535 or a port of the Service, or \
         remove it"
    )]
    ProbePortOutOfRange {
        /// The annotation's key.
        key: String,
        /// Its value.
        value: i64,
    },
    /// The port of a probe is a number or a named port of the Service.
    #[error(
        "annotation {key}: port {value} not found in service; name a port from 1 to 65535 or a port of the Service, \
         or remove it"
    )]
    ProbePortNotFound {
        /// The annotation's key.
        key: String,
        /// Its value.
        value: String,
    },
    /// The requested address is an address of its family.
    #[error("{origin}: invalid LoadBalancer IP \"{value}\", must be {family} address; correct or remove it",
        family = .family.map_or("an IP".to_owned(), |family| format!("an {family}")))]
    InvalidAddress {
        /// The annotation or field with the address.
        origin: String,
        /// Its value.
        value: String,
        /// The required family.
        family: Option<Family>,
    },
    /// The address of an external Service's frontend is one that Azure assigns to public IPs.
    #[error(
        "{origin}: external Service \"{service}\" cannot use non-public LoadBalancer IP \"{address}\"; set annotation \
         {} to true for an internal load balancer, or ask for the address of an Azure public IP",
        full_key(keys::INTERNAL)
    )]
    NonPublicAddress {
        /// The annotation or field with the address.
        origin: String,
        /// The Service.
        service: ObjectKey,
        /// The address.
        address: IpAddr,
    },
    /// Ranges are in the spec or in annotations, not in both.
    #[error(
        "cannot set both spec.LoadBalancerSourceRanges and service annotation {} (or {}): \
         spec.loadBalancerSourceRanges is {source_ranges}, and the annotation {allowed_ranges}; keep one of them",
        full_key(keys::ALLOWED_IP_RANGES),
        full_key(keys::SOURCE_RANGES)
    )]
    TwoKindsOfRanges {
        /// The ranges of the spec.
        source_ranges: String,
        /// The ranges of the annotations.
        allowed_ranges: String,
    },
    /// Additional addresses are valid addresses.
    #[error(
        "unable to get additional public IPs: invalid service annotation {key}:{value}: `{item}` is not an IP address; \
         separate IP addresses by commas, or remove it",
        key = full_key(keys::ADDITIONAL_PUBLIC_IPS)
    )]
    InvalidAdditionalAddress {
        /// The annotation's value.
        value: String,
        /// The invalid item.
        item: String,
    },
    /// Azure's load balancer supports TCP, UDP and, in one case, SCTP.
    #[error(
        "spec.ports: port {port} has protocol `{protocol}`: only TCP, UDP and SCTP are supported for Azure \
         LoadBalancers; correct or remove the port"
    )]
    UnknownProtocol {
        /// The port.
        port: i32,
        /// Its protocol.
        protocol: String,
    },
    /// Azure supports SCTP only in a rule for all ports and protocols, which only internal load balancers can have.
    #[error(
        "spec.ports: port {port} has protocol SCTP: SCTP is only supported on standard loadbalancer in internal mode, \
         and there for all ports together; set annotations {} and {} to true",
        full_key(keys::INTERNAL),
        full_key(keys::HA_PORTS)
    )]
    SctpNeedsHaPorts {
        /// The port.
        port: i32,
    },
    /// The port of a rule is from 1 to 65534.
    #[error(
        "spec.ports: port {port} is beyond {MAX_FRONTEND_PORT}, the highest that Azure's load balancers take; use a \
         lower port, or give it no rule by annotation {}: true",
        full_key(&keys::port_key(*.port, keys::NO_LB_RULE))
    )]
    PortOutOfRange {
        /// The port.
        port: i32,
    },
    /// Rules without floating IP and probes need a node port.
    #[error(
        "spec.ports: port {port} has no node port, which {needed_by} needs; set spec.allocateLoadBalancerNodePorts to \
         true"
    )]
    NoNodePort {
        /// The port.
        port: i32,
        /// What needs the node port.
        needed_by: &'static str,
    },
    /// A prefix is named by a valid ID.
    #[error(
        "annotation {key}: `{value}` must be the id of a public IP prefix ({problem}); correct or remove it"
    )]
    InvalidPrefixId {
        /// The annotation's key.
        key: String,
        /// Its value.
        value: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Each family has a public IP of its own.
    #[error(
        "annotations {} and {}: public IP {name} is named for both families; name one for each",
        full_key(keys::PIP_NAME),
        full_key(keys::PIP_NAME_IPV6)
    )]
    OnePublicIpForBothFamilies {
        /// The public IP.
        name: String,
    },
    /// A public IP that a Service names exists.
    #[error(
        "failed to find PIP {name} in resource group {group}: PublicIP from annotation azure-pip-name(-IPv6)={name} \
         for service {service} doesn't exist; create it, name its resource group by annotation {}, or remove \
         annotation {} or {}",
        full_key(keys::PUBLIC_IP_GROUP),
        full_key(keys::PIP_NAME),
        full_key(keys::PIP_NAME_IPV6)
    )]
    PublicIpNotFound {
        /// The public IP.
        name: String,
        /// The resource group that was searched.
        group: String,
        /// The Service.
        service: ObjectKey,
    },
    /// A requested address belongs to a public IP.
    #[error(
        "cannot find public IP with IP address {address} in resource group {group}; create it, name its resource \
         group by annotation {}, or ask for no address (spec.loadBalancerIP, annotations {} and {})",
        full_key(keys::PUBLIC_IP_GROUP),
        full_key(keys::LOAD_BALANCER_IPV4),
        full_key(keys::LOAD_BALANCER_IPV6)
    )]
    AddressNotFound {
        /// The address.
        address: IpAddr,
        /// The resource group that was searched.
        group: String,
    },
    /// The resource group that a Service names can be read.
    #[error(
        "service {service}: resource group {group} cannot be read, so its public IPs are unknown \
         ({problem}); give the identity the right to read it, or correct annotation {}",
        full_key(keys::PUBLIC_IP_GROUP)
    )]
    ResourceGroupUnreadable {
        /// The resource group.
        group: String,
        /// The Service.
        service: ObjectKey,
        /// What Azure said.
        problem: String,
    },
    /// A public IP belongs to one cluster.
    #[error(
        "public IP {name} belongs to cluster {cluster} (tag {tag}); name another by annotation {}, or remove the tag",
        full_key(keys::PIP_NAME)
    )]
    PublicIpOfOtherCluster {
        /// The public IP.
        name: String,
        /// The cluster.
        cluster: String,
        /// The tag with the cluster's name.
        tag: &'static str,
    },
    /// A frontend and its public IP are of one family.
    #[error(
        "public IP {name} has an {found} address, and {service} needs an {wanted} one; name another by annotation {} \
         or {}",
        full_key(keys::PIP_NAME),
        full_key(keys::PIP_NAME_IPV6)
    )]
    PublicIpOfOtherFamily {
        /// The public IP.
        name: String,
        /// Its family.
        found: Family,
        /// The family of the Service's frontend.
        wanted: Family,
        /// The Service.
        service: ObjectKey,
    },
    /// The names of all Services that share a public IP fit into one tag.
    #[error(
        "public IP {name} is shared by too many Services: tag {tag} would pass {limit} characters; name another by \
         annotation {}",
        full_key(keys::PIP_NAME)
    )]
    PublicIpSharedByTooMany {
        /// The public IP.
        name: String,
        /// The tag that is full.
        tag: &'static str,
        /// Azure's maximum length, in characters.
        limit: usize,
    },
    /// One Service chooses the DNS label of a public IP.
    #[error(
        "annotation {}: `{label}` for public IP {public_ip}: there is an existing service {owner} consuming the DNS \
         label on the public IP, so the service cannot set the DNS label annotation with this value; remove the \
         annotation from one of the two Services",
        full_key(keys::DNS_LABEL)
    )]
    DnsLabelClaimed {
        /// The requested label.
        label: String,
        /// The public IP.
        public_ip: String,
        /// The Service that chose its label.
        owner: String,
    },
    /// The subnet of an internal frontend exists.
    #[error(
        "failed to get subnet: {network}/{subnet}: it does not exist; create it, or name another by annotation {} or \
         by subnetName in the cloud configuration",
        full_key(keys::INTERNAL_SUBNET)
    )]
    SubnetNotFound {
        /// The virtual network.
        network: String,
        /// The subnet.
        subnet: String,
    },
    /// The subnet of an internal Service's frontends has a range of each of its families.
    #[error(
        "subnet {subnet} of virtual network {network} has no {family} range, and the Service wants {family}: add one \
         to the subnet, name another subnet by annotation {}, or take {family} out of spec.ipFamilies",
        full_key(keys::INTERNAL_SUBNET)
    )]
    SubnetWithoutFamily {
        /// The virtual network.
        network: String,
        /// The subnet.
        subnet: String,
        /// The family without a range.
        family: Family,
    },
    /// The requested private address is in the subnet of the frontend.
    #[error(
        "address {address} is not in subnet {subnet} of virtual network {network}: ask for one of the subnet by \
         annotation {} or spec.loadBalancerIP, or name another subnet by annotation {}",
        full_key(if address.is_ipv6() { keys::LOAD_BALANCER_IPV6 } else { keys::LOAD_BALANCER_IPV4 }),
        full_key(keys::INTERNAL_SUBNET)
    )]
    AddressOutsideSubnet {
        /// The address.
        address: IpAddr,
        /// The virtual network.
        network: String,
        /// The subnet.
        subnet: String,
    },
    /// A frontend gives up its public IP only if nothing else refers to the frontend.
    #[error(
        "frontend {frontend} cannot give up its public IP, because {reference} refers to it; remove that reference, \
         or name another public IP by annotation {}",
        full_key(keys::PIP_NAME)
    )]
    FrontendInUse {
        /// The frontend.
        frontend: String,
        /// What refers to it, in words.
        reference: String,
    },
    /// Without floating IP, a port of a pool's members is used by one rule for each protocol.
    #[error(
        "rule {rule} would deliver {what} at the nodes' own addresses, as rule {holder} does: Azure floats no internal \
         IPv6 addresses, so one Service of a load balancer can have all ports of IPv6; remove annotation {} from \
         one of the two Services, or IPv6 from its spec.ipFamilies",
        full_key(keys::HA_PORTS),
        what = if *.port == 0 { "all ports".to_owned() } else { format!("port {port}") }
    )]
    BackendPortTaken {
        /// The desired rule.
        rule: String,
        /// Its port on the nodes; 0 for all ports.
        port: i32,
        /// The rule that takes the port.
        holder: String,
    },
    /// A port of a frontend is used once for each protocol.
    #[error("{}", describe_taken_port(.rule, *.port, .protocol, .frontend, .holder))]
    PortTaken {
        /// The desired rule.
        rule: String,
        /// Its port; 0 for all ports.
        port: i32,
        /// The protocol of the holder.
        protocol: String,
        /// The frontend's id.
        frontend: String,
        /// The rule or pool that takes the port.
        holder: Box<PortHolder>,
    },
    /// A Service with traffic policy `Local` has a pool of its own where several load balancers share the Services.
    #[error(
        "backend pool {pool}, which this Service would have for itself, is {holder}'s: such pools are named after \
         namespace and name; give the Service another name, or set externalTrafficPolicy: Cluster"
    )]
    PoolNameTaken {
        /// The pool's name.
        pool: String,
        /// The Service that has it.
        holder: String,
    },
    /// The name of such a pool has at most Azure's maximum length.
    #[error(
        "Azure takes no backend pool name of more than {limit} characters, and this Service would have {pool} for \
         itself: give it a shorter name, or set externalTrafficPolicy: Cluster"
    )]
    PoolNameTooLong {
        /// The pool's name.
        pool: String,
        /// Azure's maximum length.
        limit: usize,
    },
    /// A load balancer does not exceed Azure's limits.
    #[error(
        "load balancer {load_balancer} is full: Azure takes {limit} {what} on one load balancer; delete Services that \
         are not needed, or let several share an address by annotation {} or {}",
        full_key(keys::PIP_NAME),
        full_key(keys::LOAD_BALANCER_IPV4)
    )]
    LoadBalancerFull {
        /// The load balancer.
        load_balancer: String,
        /// The limited parts.
        what: &'static str,
        /// Azure's limit.
        limit: usize,
    },
    /// Security rules need an address.
    #[error(
        "no load balancer IP for setting up security rules for service {service}; it is tried again when the address \
         is known"
    )]
    NoAddressYet {
        /// The Service.
        service: ObjectKey,
    },
    /// The cluster has a security group.
    #[error("securityGroupName is not configured; set it in the cloud configuration")]
    SecurityGroupNotConfigured,
    /// The configured security group exists.
    #[error("nsg \"{name}\" not found; create it, or correct securityGroupName in the cloud configuration")]
    SecurityGroupNotFound {
        /// The configured name.
        name: String,
    },
    /// The document of a security group contains its rules.
    #[error(
        "invalid SecurityGroup object: the document of {name} has no list of rules; correct securityGroupName"
    )]
    SecurityGroupWithoutRules {
        /// The security group.
        name: String,
    },
    /// A security group does not exceed Azure's limits.
    #[error(
        "the security group exceeds the maximum number of {what} ({count} > {limit}) with the rules of {service}; give \
         Services the same ports and source ranges so that they share rules"
    )]
    SecurityGroupFull {
        /// The Service.
        service: ObjectKey,
        /// The limited entries.
        what: &'static str,
        /// Their number with the Service's rules.
        count: usize,
        /// Azure's limit.
        limit: usize,
    },
    /// One of several load balancers has the cluster's name.
    #[error(
        "multiple standard load balancers are enabled but no configuration named \"{cluster}\" is found: name one entry \
         of multipleStandardLoadBalancerConfigurations {cluster}, or correct --cluster-name"
    )]
    NoConfigurationOfCluster {
        /// The cluster's name.
        cluster: String,
    },
    /// A Service names only load balancers that are configured.
    #[error(
        "annotation {}: {named}: none of them is defined in cloud provider configuration, which has {configured}; \
         correct or remove it",
        full_key(keys::CONFIGURATIONS),
        named = .named.join(", "),
        configured = .configured.join(", ")
    )]
    UnknownConfigurations {
        /// The names in the annotation.
        named: Vec<String>,
        /// The names of the configured load balancers.
        configured: Vec<String>,
    },
    /// A Service that asks for an address does not name load balancers as well.
    #[error(
        "service {service} has conflicting load balancer configuration: annotation {}: {names}, and an address of its \
         own: it has to use the load balancer where the address is; remove the annotation, or spec.loadBalancerIP and \
         annotations {}, {} and {}",
        full_key(keys::CONFIGURATIONS),
        full_key(keys::LOAD_BALANCER_IPV4),
        full_key(keys::LOAD_BALANCER_IPV6),
        full_key(keys::PIP_NAME),
        names = .configurations.join(", ")
    )]
    PlacedByAddress {
        /// The Service.
        service: ObjectKey,
        /// The names in the annotation.
        configurations: Vec<String>,
    },
    /// A Service is allowed on at least one of the load balancers.
    #[error("{}", describe_unfit(.service, .selected, .unfit))]
    NoEligibleLoadBalancer {
        /// The Service.
        service: ObjectKey,
        /// The load balancers that it asks for: the ones in its annotation, or all.
        selected: Vec<String>,
        /// Why none of them is allowed.
        unfit: Box<Unfit>,
    },
    /// A Service that asks for an address is allowed on the load balancer that has the address.
    #[error(
        "service {service} specifies an IP that resides on load balancer {load_balancer}, which is not in the eligible \
         set ({}): ask for another address, or let multipleStandardLoadBalancerConfigurations allow that load balancer \
         (serviceLabelSelector, serviceNamespaceSelector, allowServicePlacement)",
        .eligible.join(", ")
    )]
    AddressOnOtherLoadBalancer {
        /// The Service.
        service: ObjectKey,
        /// The load balancer with the address.
        load_balancer: String,
        /// The load balancers that the Service is allowed on.
        eligible: Vec<String>,
    },
    /// A Service takes its frontend along when it moves.
    #[error(
        "the service cannot migrate from load balancer {from} to {to}, because {reference} refers to its frontend \
         {frontend}, too: remove that reference, or let the Service stay by annotation {}: {stay}",
        full_key(keys::CONFIGURATIONS),
        stay = crate::model::balancer::without_suffix(.from)
    )]
    CannotMove {
        /// The load balancer that it is on.
        from: String,
        /// The load balancer that it should be on now.
        to: String,
        /// The frontend that would stay behind.
        frontend: String,
        /// What refers to it, in words.
        reference: String,
    },
    /// A load balancer of SKU Basic serves one set of machines.
    #[error(
        "annotation {}: scale set/availability set not found: no node belongs to set {named}; set it to {}",
        full_key(keys::MODE),
        one_of(.sets)
    )]
    MachineSetNotFound {
        /// The set that the annotation names.
        named: String,
        /// The sets of the nodes.
        sets: Vec<String>,
    },
    /// A load balancer of SKU Basic does not exceed its limit of rules.
    #[error(
        "all load balancers exceed the rule limit: those of {} have at least {rules} rules, and \
         maximumLoadBalancerRuleCount is {limit}; remove Services, name another set of machines by annotation {}, or \
         raise maximumLoadBalancerRuleCount",
        name_some(.sets),
        full_key(keys::MODE)
    )]
    RuleLimitReached {
        /// The sets of machines whose load balancers are allowed.
        sets: Vec<String>,
        /// The smallest number of rules among them.
        rules: usize,
        /// The limit.
        limit: usize,
    },
    /// Each rule of a security group has a priority of its own.
    #[error(
        "security rule priority exhausted: none from {MIN_PRIORITY} to {MAX_PRIORITY} is free in the security group \
         for a rule of {service}; remove rules of your own, or give Services the same ports and source ranges so that \
         they share rules"
    )]
    NoPriorityLeft {
        /// The Service.
        service: ObjectKey,
    },
}

/// Something on a load balancer that takes a port of a frontend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortHolder {
    /// A load-balancing rule.
    Rule(String),
    /// An inbound NAT rule.
    InboundNatRule(String),
    /// An inbound NAT pool with its first and last port.
    InboundNatPool(String, i32, i32),
}

impl Refusal {
    /// Whether only a change of the Service can resolve it. Otherwise the remedy lies elsewhere (a missing subnet, an
    /// address that another Service holds), and a retry makes sense.
    pub fn is_terminal(&self) -> bool {
        match self {
            Self::PrivateLink(refusal) => refusal.is_terminal(),
            Self::Several(mistakes) => mistakes.iter().any(Self::is_terminal),
            Self::NoUid
            | Self::NotAWholeNumber { .. }
            | Self::BelowMinimum { .. }
            | Self::IdleTimeoutOutOfRange { .. }
            | Self::ProbeTooSlow { .. }
            | Self::ProbePortOutOfRange { .. }
            | Self::ProbePortNotFound { .. }
            | Self::InvalidAddress { .. }
            | Self::NonPublicAddress { .. }
            | Self::TwoKindsOfRanges { .. }
            | Self::InvalidAdditionalAddress { .. }
            | Self::UnknownProtocol { .. }
            | Self::SctpNeedsHaPorts { .. }
            | Self::PortOutOfRange { .. }
            | Self::NoNodePort { .. }
            | Self::InvalidPrefixId { .. }
            | Self::PoolNameTooLong { .. }
            | Self::OnePublicIpForBothFamilies { .. }
            | Self::UnknownConfigurations { .. }
            | Self::PlacedByAddress { .. }
            | Self::AddressOutsideSubnet { .. } => true,
            Self::PublicIpNotFound { .. }
            | Self::AddressNotFound { .. }
            | Self::ResourceGroupUnreadable { .. }
            | Self::PublicIpOfOtherCluster { .. }
            | Self::PublicIpOfOtherFamily { .. }
            | Self::PublicIpSharedByTooMany { .. }
            | Self::DnsLabelClaimed { .. }
            | Self::SubnetNotFound { .. }
            | Self::SubnetWithoutFamily { .. }
            | Self::BackendPortTaken { .. }
            | Self::FrontendInUse { .. }
            | Self::PortTaken { .. }
            | Self::PoolNameTaken { .. }
            | Self::LoadBalancerFull { .. }
            | Self::NoAddressYet { .. }
            | Self::SecurityGroupNotConfigured
            | Self::SecurityGroupNotFound { .. }
            | Self::SecurityGroupWithoutRules { .. }
            | Self::SecurityGroupFull { .. }
            | Self::NoPriorityLeft { .. }
            | Self::NoConfigurationOfCluster { .. }
            | Self::NoEligibleLoadBalancer { .. }
            | Self::AddressOnOtherLoadBalancer { .. }
            | Self::CannotMove { .. }
            | Self::MachineSetNotFound { .. }
            | Self::RuleLimitReached { .. }
            | Self::BasicLoadBalancerShared { .. }
            | Self::OtherClusterName(_) => false,
        }
    }
}

/// Formats the mistakes as `(1) this; correct it (2) that; remove it`.
fn number_all(mistakes: &[Refusal]) -> String {
    let numbered = mistakes.iter().zip(1..).map(|(mistake, number)| format!("({number}) {mistake}"));
    numbered.collect::<Vec<_>>().join(" ")
}

fn one_of(sets: &[String]) -> String {
    let sets = sets.iter().map(String::as_str).filter(|set| !set.is_empty());
    sets.chain(["__auto__"]).collect::<Vec<_>>().join(" or ")
}

fn describe_unfit(service: &ObjectKey, selected: &[String], unfit: &Unfit) -> String {
    let bucket = |names: &[String], why: &str| {
        (!names.is_empty()).then(|| format!("{} of them ({}) {why}", names.len(), names.join(", ")))
    };
    let buckets = [
        bucket(
            &unfit.closed,
            "have allowServicePlacement set to false and the service is not using any of them",
        ),
        bucket(&unfit.by_labels, "do not match the service label selector"),
        bucket(&unfit.by_namespace, "do not match the service namespace selector"),
    ];
    let buckets: Vec<String> = buckets.into_iter().flatten().collect();
    format!(
        "service {service} selects {} load balancers ({}), but {}: change the labels of the Service or its namespace, \
         annotation {}, or multipleStandardLoadBalancerConfigurations",
        selected.len(),
        selected.join(", "),
        buckets.join(", "),
        full_key(keys::CONFIGURATIONS)
    )
}

fn describe_taken_port(rule: &str, port: i32, protocol: &str, frontend: &str, holder: &PortHolder) -> String {
    let wanted = if port == 0 { "all ports".to_owned() } else { format!("the port {port}") };
    let taken = match holder {
        PortHolder::Rule(name) => format!("referenced by an existing loadBalancing rule {name}"),
        PortHolder::InboundNatRule(name) => format!("referenced by an existing inbound NAT rule {name}"),
        PortHolder::InboundNatPool(name, first, last) => {
            format!("in the range ({first}-{last}) of an existing inbound NAT pool {name}")
        }
    };
    format!(
        "rule {rule} is trying to consume {wanted} which is being {taken} with the same protocol {protocol} and \
         frontend IP config with ID {frontend}; use another port or another address"
    )
}

/// The names of the load balancers that a Service may not use, by reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unfit {
    /// Load balancers that take no new Services.
    pub closed: Vec<String>,
    /// Load balancers whose selector does not match the Service's labels.
    pub by_labels: Vec<String>,
    /// Load balancers whose selector does not match the labels of its namespace.
    pub by_namespace: Vec<String>,
}
