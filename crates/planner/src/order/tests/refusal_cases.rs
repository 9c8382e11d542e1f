//! The texts of refusals, and what each says about a retry.

use std::collections::BTreeSet;

use k8s::ObjectKey;

use super::*;
use crate::model::Family;
use crate::model::annotation_keys::{INTERNAL, full_key};
use crate::outcome::{OtherClusterName, PortHolder, PrivateLinkRefusal, UnfitLoadBalancers};
use crate::resources::load_balancer::rule;

/// The expected contents of a text.
struct Case {
    refusal: Refusal,
    /// The key, and the value that was found.
    evidence: [&'static str; 2],
    /// The replaced program's text; empty if it has none.
    theirs: &'static str,
    /// What to do.
    remedy: &'static str,
}

fn case(refusal: Refusal, evidence: [&'static str; 2], theirs: &'static str, remedy: &'static str) -> Case {
    Case { refusal, evidence, theirs, remedy }
}

fn key(name: &str) -> String {
    format!("service.beta.kubernetes.io/{name}")
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn service() -> ObjectKey {
    svc("test1").0.key()
}

fn taken(holder: PortHolder) -> Refusal {
    Refusal::PortTaken {
        rule: "atest1-TCP-80".into(),
        port: 80,
        protocol: "Tcp".into(),
        frontend: "/f/atest1".into(),
        holder: Box::new(holder),
    }
}

/// A refusal for a mistake of the Service's owner, the Service with the mistake, and the Service after the remedy.
struct Mistake {
    service: Svc,
    mended: Svc,
    case: Case,
}

fn mistake(
    service: Svc,
    mended: impl FnOnce(Svc) -> Svc,
    evidence: [&'static str; 2],
    theirs: &'static str,
    remedy: &'static str,
) -> Mistake {
    let mended = mended(service.clone());
    let refusal = service.refusal();
    Mistake { service, mended, case: case(refusal, evidence, theirs, remedy) }
}

fn mistakes() -> Vec<Mistake> {
    let web = || svc("test1").tcp(80);
    let link = || web().internal().annotate("azure-pls-create", "true");
    let links_count = "azure-pls-ip-configuration-ip-address-count";
    let links_addresses = "azure-pls-ip-configuration-ip-address";
    let without = |key: &'static str| {
        move |service: Svc| {
            service.change(|s| {
                s.metadata.annotations.as_mut().unwrap().remove(&format!("service.beta.kubernetes.io/{key}"));
            })
        }
    };
    let set = |key: &'static str, value: &'static str| move |service: Svc| service.annotate(key, value);
    let idle = "azure-load-balancer-tcp-idle-timeout";
    let interval = "azure-load-balancer-health-probe-interval";
    let count = "azure-load-balancer-health-probe-num-of-probe";
    let probe_port = "port_80_health-probe_port";
    let requested = |ip: &'static str| web().change(|s| s.spec.load_balancer_ip = ip.into());
    let no_request = |service: Svc| service.change(|s| s.spec.load_balancer_ip.clear());
    vec![
        mistake(
            web().change(|s| s.metadata.uid = None),
            |service| service.change(|s| s.metadata.uid = Some("test1".into())),
            ["metadata.uid", "empty"],
            "",
            "create the Service through an API server",
        ),
        mistake(
            web().annotate("azure-pls-create", " True "),
            without("azure-pls-create"),
            ["annotation service.beta.kubernetes.io/azure-pls-create", "true"],
            "service requiring private link service must be internal or disable floating ip",
            "set annotation service.beta.kubernetes.io/azure-load-balancer-internal",
        ),
        mistake(
            web().internal().annotate("azure-pls-create", "true").families(&["IPv6"]),
            Svc::dual,
            ["annotation service.beta.kubernetes.io/azure-pls-create", "IPv6"],
            "IPv6 is not supported for private link service",
            "add IPv4 to spec.ipFamilies",
        ),
        mistake(
            link().annotate(links_count, "0"),
            set(links_count, "1"),
            ["service.beta.kubernetes.io/azure-pls-ip-configuration-ip-address-count", "0 provided"],
            "minimum number of private link service ipConfig is 1, 0 provided",
            "write a number from 1 to 8",
        ),
        mistake(
            link().annotate(links_count, "9"),
            set(links_count, "8"),
            ["service.beta.kubernetes.io/azure-pls-ip-configuration-ip-address-count", "9 provided"],
            "maximum number of private link service ipConfig is 8, 9 provided",
            "write a number from 1 to 8",
        ),
        mistake(
            link().annotate(links_addresses, "10.0.0.4,10.0.0.5"),
            set(links_addresses, "10.0.0.4"),
            ["service.beta.kubernetes.io/azure-pls-ip-configuration-ip-address", "10.0.0.4,10.0.0.5"],
            "10.0.0.4,10.0.0.5 is not a valid IP address",
            "separate IPv4 addresses by spaces",
        ),
        mistake(
            link().annotate(links_addresses, "fd00::4"),
            without(links_addresses),
            ["service.beta.kubernetes.io/azure-pls-ip-configuration-ip-address", "fd00::4"],
            "private link service ip config only supports IPv4, fd00::4 provided",
            "correct or remove it",
        ),
        mistake(
            link().annotate(links_addresses, "10.0.0.4 10.0.0.5"),
            set(links_count, "2"),
            ["service.beta.kubernetes.io/azure-pls-ip-configuration-ip-address-count", "(1)"],
            "ipConfigCount(1) must be no smaller than number of static IPs specified(2)",
            "raise it",
        ),
        mistake(
            web().annotate(idle, "abc"),
            without(idle),
            ["service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout", "abc"],
            "abc value must be a whole number",
            "correct or remove it",
        ),
        mistake(
            web().annotate(idle, "3"),
            set(idle, "4"),
            ["service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout", "3"],
            "idle timeout value must be a whole number representing minutes between 4 and 100, actual value: 3",
            "correct or remove it",
        ),
        mistake(
            web().annotate("port_80_health-probe_interval", "4"),
            set("port_80_health-probe_interval", "5"),
            ["service.beta.kubernetes.io/port_80_health-probe_interval", "it is 4"],
            "the minimum value of interval is 5",
            "raise or remove it",
        ),
        mistake(
            web().annotate(count, "1"),
            set(count, "2"),
            ["service.beta.kubernetes.io/azure-load-balancer-health-probe-num-of-probe", "it is 1"],
            "the minimum value of num-of-probe is 2",
            "raise or remove it",
        ),
        mistake(
            web().annotate(interval, "60"),
            set(interval, "59"),
            [
                "service.beta.kubernetes.io/azure-load-balancer-health-probe-interval",
                "60 s times 2 probes is 120 s",
            ],
            "total probe should be less than 120, please adjust interval and number of probe accordingly",
            "lower annotation",
        ),
        mistake(
            web().annotate(probe_port, "65536"),
            set(probe_port, "65535"),
            ["annotation service.beta.kubernetes.io/port_80_health-probe_port", "65536"],
            "port_80_health-probe_port: port 65536 is out of range",
            "name a port from 1 to 65535",
        ),
        mistake(
            web().annotate(probe_port, "web"),
            set(probe_port, "80"),
            ["annotation service.beta.kubernetes.io/port_80_health-probe_port", "web"],
            "port_80_health-probe_port: port web not found in service",
            "or a port of the Service",
        ),
        mistake(
            requested("abc"),
            no_request,
            ["spec.loadBalancerIP", "abc"],
            "invalid LoadBalancer IP \"abc\"",
            "correct or remove it",
        ),
        mistake(
            web().annotate("azure-load-balancer-ipv6", "20.1.2.3"),
            without("azure-load-balancer-ipv6"),
            ["annotation service.beta.kubernetes.io/azure-load-balancer-ipv6", "an IPv6 address"],
            "invalid LoadBalancer IP \"20.1.2.3\"",
            "correct or remove it",
        ),
        mistake(
            requested("10.0.0.5"),
            Svc::internal,
            ["spec.loadBalancerIP", "10.0.0.5"],
            "external Service \"default/test1\" cannot use non-public LoadBalancer IP \"10.0.0.5\"",
            "set annotation service.beta.kubernetes.io/azure-load-balancer-internal to true",
        ),
        mistake(
            web().ranges(&["10.0.0.0/24"]).annotate("azure-allowed-ip-ranges", "10.1.0.0/24"),
            without("azure-allowed-ip-ranges"),
            ["spec.loadBalancerSourceRanges", "10.0.0.0/24, and the annotation 10.1.0.0/24"],
            "cannot set both spec.LoadBalancerSourceRanges and service annotation \
             service.beta.kubernetes.io/azure-allowed-ip-ranges",
            "keep one of them",
        ),
        mistake(
            web().annotate("azure-additional-public-ips", "1.2.3.4,x"),
            set("azure-additional-public-ips", "1.2.3.4"),
            ["service.beta.kubernetes.io/azure-additional-public-ips", "`x`"],
            "unable to get additional public IPs: invalid service annotation \
             service.beta.kubernetes.io/azure-additional-public-ips:1.2.3.4,x",
            "separate IP addresses by commas",
        ),
        mistake(
            svc("test1").port("DCCP", 80),
            |service| service.change(|s| s.spec.ports[0].protocol = "TCP".into()),
            ["spec.ports: port 80", "DCCP"],
            "only TCP, UDP and SCTP are supported for Azure LoadBalancers",
            "correct or remove the port",
        ),
        mistake(
            svc("test1").port("SCTP", 9000),
            |service| {
                service.internal().annotate("azure-load-balancer-enable-high-availability-ports", "true")
            },
            ["spec.ports: port 9000", "SCTP"],
            "SCTP is only supported on standard loadbalancer in internal mode",
            "set annotations service.beta.kubernetes.io/azure-load-balancer-internal and \
             service.beta.kubernetes.io/azure-load-balancer-enable-high-availability-ports to true",
        ),
        mistake(
            svc("test1").tcp(65535),
            set("port_65535_no_lb_rule", "true"),
            ["spec.ports: port 65535", "65534"],
            "",
            "use a lower port",
        ),
        mistake(
            web().change(|s| s.spec.ports[0].node_port = 0),
            |service| service.change(|s| s.spec.ports[0].node_port = 30080),
            ["spec.ports: port 80", "no node port, which the health probe needs"],
            "",
            "set spec.allocateLoadBalancerNodePorts to true",
        ),
        mistake(
            web().annotate("azure-pip-prefix-id", "no id"),
            without("azure-pip-prefix-id"),
            ["service.beta.kubernetes.io/azure-pip-prefix-id", "no id"],
            "",
            "correct or remove it",
        ),
    ]
}

fn cases() -> Vec<Case> {
    let group = || "rg".to_owned();
    let mut cases: Vec<Case> = mistakes().into_iter().map(|mistake| mistake.case).collect();
    cases.extend([
        case(
            Refusal::OnePublicIpForBothFamilies { name: "pip1".into() },
            ["service.beta.kubernetes.io/azure-pip-name-ipv6", "pip1"],
            "",
            "name one for each",
        ),
        case(
            Refusal::PublicIpNotFound { name: "pip1".into(), group: group(), service: service() },
            ["service.beta.kubernetes.io/azure-pip-name", "pip1 in resource group rg"],
            "PublicIP from annotation azure-pip-name(-IPv6)=pip1 for service default/test1 doesn't exist",
            "create it",
        ),
        case(
            Refusal::ResourceGroupUnreadable {
                group: "other".into(),
                service: service(),
                problem: "AuthorizationFailed: no role".into(),
            },
            ["service.beta.kubernetes.io/azure-load-balancer-resource-group", "resource group other"],
            "",
            "give the identity the right to read it",
        ),
        case(
            Refusal::AddressNotFound { address: [20, 1, 2, 3].into(), group: group() },
            ["service.beta.kubernetes.io/azure-load-balancer-ipv4", "20.1.2.3"],
            "cannot find public IP with IP address 20.1.2.3 in resource group rg",
            "create it",
        ),
        case(
            Refusal::BasicLoadBalancerShared { load_balancer: "prod".into(), part: "frontend shop".into() },
            ["loadBalancerSku", "load balancer prod"],
            "",
            "move or delete frontend shop",
        ),
        case(
            Refusal::OtherClusterName(OtherClusterName {
                given: "kubernetes".into(),
                found: vec!["prod".into()],
                services: vec![service()],
                setting: "--cluster-name",
            }),
            ["--cluster-name=kubernetes", "`prod` already serve default/test1"],
            "",
            "set --cluster-name=prod, or delete load balancer prod first",
        ),
        case(
            Refusal::Several(vec![Refusal::NoUid, Refusal::IdleTimeoutOutOfRange { minutes: 3 }]),
            ["2 mistakes: (1) metadata.uid is empty", "(2) "],
            "",
            "create the Service through an API server",
        ),
        case(
            Refusal::NoConfigurationOfCluster { cluster: "kubernetes".into() },
            ["multipleStandardLoadBalancerConfigurations", "kubernetes"],
            "multiple standard load balancers are enabled but no configuration named \"kubernetes\" is found",
            "name one entry",
        ),
        case(
            Refusal::UnknownConfigurations { named: vec!["lb4".into()], configured: names(&["lb1", "lb2"]) },
            ["service.beta.kubernetes.io/azure-load-balancer-configurations", "lb4"],
            "none of them is defined in cloud provider configuration",
            "correct or remove it",
        ),
        case(
            Refusal::PlacedByAddress { service: service(), configurations: names(&["lb1"]) },
            ["service.beta.kubernetes.io/azure-load-balancer-configurations", "lb1"],
            "has conflicting load balancer configuration",
            "remove the annotation, or spec.loadBalancerIP",
        ),
        case(
            Refusal::NoEligibleLoadBalancer {
                service: service(),
                selected: names(&["lb1", "lb2", "lb3"]),
                unfit: Box::new(UnfitLoadBalancers {
                    closed: names(&["lb1"]),
                    by_labels: names(&["lb2"]),
                    by_namespace: names(&["lb3"]),
                }),
            },
            ["multipleStandardLoadBalancerConfigurations", "selects 3 load balancers (lb1, lb2, lb3)"],
            "1 of them (lb2) do not match the service label selector",
            "change the labels of the Service or its namespace",
        ),
        case(
            Refusal::AddressOnOtherLoadBalancer {
                service: service(),
                load_balancer: "lb2".into(),
                eligible: names(&["lb1"]),
            },
            ["multipleStandardLoadBalancerConfigurations", "lb2"],
            "specifies an IP that resides on load balancer lb2, which is not in the eligible set (lb1)",
            "ask for another address",
        ),
        case(
            Refusal::CannotMove {
                from: "lb1-internal".into(),
                to: "lb2-internal".into(),
                frontend: "atest1".into(),
                reference: "load-balancing rule atest2-TCP-80".into(),
            },
            ["azure-load-balancer-configurations: lb1", "load-balancing rule atest2-TCP-80"],
            "cannot migrate from load balancer lb1-internal to lb2-internal",
            "remove that reference, or let the Service stay",
        ),
        case(
            Refusal::PublicIpOfOtherCluster {
                name: "pip1".into(),
                cluster: "other".into(),
                tag: "k8s-azure-cluster-name",
            },
            ["tag k8s-azure-cluster-name", "other"],
            "",
            "name another by annotation",
        ),
        case(
            Refusal::PublicIpOfOtherFamily {
                name: "pip1".into(),
                found: Family::V6,
                wanted: Family::V4,
                service: service(),
            },
            ["public IP pip1", "IPv6"],
            "",
            "name another by annotation",
        ),
        case(
            Refusal::PublicIpSharedByTooMany { name: "pip1".into(), tag: "k8s-azure-service", limit: 256 },
            ["tag k8s-azure-service", "256"],
            "",
            "name another by annotation",
        ),
        case(
            Refusal::DnsLabelClaimed {
                label: "web".into(),
                public_ip: "pip1".into(),
                owner: "default/test2".into(),
            },
            ["service.beta.kubernetes.io/azure-dns-label-name", "web"],
            "there is an existing service default/test2 consuming the DNS label on the public IP, so the service \
             cannot set the DNS label annotation with this value",
            "remove the annotation from one of the two Services",
        ),
        case(
            Refusal::SubnetNotFound { network: "vnet".into(), subnet: "gone".into() },
            ["service.beta.kubernetes.io/azure-load-balancer-internal-subnet", "gone"],
            "failed to get subnet: vnet/gone",
            "create it",
        ),
        case(
            Refusal::SubnetWithoutFamily { network: "vnet".into(), subnet: "pods".into(), family: Family::V6 },
            ["subnet pods of virtual network vnet", "no IPv6 range"],
            "",
            "add one to the subnet",
        ),
        case(
            Refusal::AddressOutsideSubnet {
                address: "10.99.0.1".parse().unwrap(),
                network: "vnet".into(),
                subnet: "pods".into(),
            },
            ["address 10.99.0.1", "subnet pods of virtual network vnet"],
            "",
            "ask for one of the subnet by annotation service.beta.kubernetes.io/azure-load-balancer-ipv4",
        ),
        case(
            Refusal::BackendPortTaken { rule: "atest1-TCP-80-IPv6".into(), port: 0, holder: "theirs".into() },
            ["rule atest1-TCP-80-IPv6", "as rule theirs does"],
            "",
            "remove annotation service.beta.kubernetes.io/azure-load-balancer-enable-high-availability-ports",
        ),
        case(
            Refusal::PoolNameTaken { pool: "a-b-c".into(), holder: "load-balancing rule theirs".into() },
            ["backend pool a-b-c", "rule theirs"],
            "",
            "give the Service another name, or set externalTrafficPolicy: Cluster",
        ),
        case(
            Refusal::PoolNameTooLong { pool: "n-s".into(), limit: 80 },
            ["more than 80 characters", "n-s"],
            "",
            "give it a shorter name, or set externalTrafficPolicy: Cluster",
        ),
        case(
            Refusal::FrontendInUse { frontend: "atest1".into(), reference: "outbound rule out".into() },
            ["frontend atest1", "outbound rule out"],
            "",
            "remove that reference",
        ),
        case(
            taken(PortHolder::Rule("theirs".into())),
            ["rule atest1-TCP-80", "theirs"],
            "is trying to consume the port 80 which is being referenced by an existing loadBalancing rule theirs with \
             the same protocol Tcp and frontend IP config with ID /f/atest1",
            "use another port",
        ),
        case(
            taken(PortHolder::InboundNatRule("theirs".into())),
            ["rule atest1-TCP-80", "theirs"],
            "is trying to consume the port 80 which is being referenced by an existing inbound NAT rule theirs with \
             the same protocol Tcp and frontend IP config with ID /f/atest1",
            "use another port",
        ),
        case(
            taken(PortHolder::InboundNatPool("theirs".into(), 50, 100)),
            ["rule atest1-TCP-80", "theirs"],
            "is trying to consume the port 80 which is being in the range (50-100) of an existing inbound NAT pool \
             theirs with the same protocol Tcp and frontend IP config with ID /f/atest1",
            "use another port",
        ),
        case(
            Refusal::LoadBalancerFull { load_balancer: "lb1".into(), what: "frontends", limit: 600 },
            ["load balancer lb1", "600 frontends"],
            "",
            "delete Services",
        ),
        case(
            PrivateLinkRefusal::SubnetNotFound {
                network: "vnet".into(),
                subnet: "gone".into(),
                service: service(),
            }
            .into(),
            ["service.beta.kubernetes.io/azure-pls-ip-configuration-subnet", "gone"],
            "failed to get private link service subnet(gone) for service(default/test1)",
            "create it",
        ),
        case(
            PrivateLinkRefusal::Unmanaged { frontend: "atest1".into(), private_link: "/p/theirs".into(), tag: "k8s-azure-cluster-name" }.into(),
            ["k8s-azure-cluster-name", "/p/theirs"],
            "LB frontend(atest1) already has unmanaged private link service(/p/theirs)",
            "delete that private link service",
        ),
        case(
            PrivateLinkRefusal::OwnedByOther {
                frontend: "atest1".into(),
                private_link: "pls-atest1".into(),
                owner: "default/test2".into(),
                key: key("azure-pls-fqdns"),
            }
            .into(),
            ["service.beta.kubernetes.io/azure-pls-fqdns", "default/test2"],
            "LB frontend(atest1) already has existing private link service(pls-atest1) owned by service(default/test2)",
            "remove it here",
        ),
        case(
            PrivateLinkRefusal::NameFixed { existing: "pls-atest1".into(), wanted: "other".into() }.into(),
            ["service.beta.kubernetes.io/azure-pls-name", "(other)"],
            "cannot change existing private link service name (pls-atest1) to (other)",
            "write pls-atest1",
        ),
        case(
            PrivateLinkRefusal::ListInAnItem { key: key("azure-pls-visibility"), item: "a,b".into() }.into(),
            ["service.beta.kubernetes.io/azure-pls-visibility", "a,b"],
            "",
            "separate names by spaces",
        ),
        case(
            PrivateLinkRefusal::NameTaken { name: "shop".into(), group: "rg".into() }.into(),
            ["service.beta.kubernetes.io/azure-pls-name", "shop"],
            "private link service",
            "write another name",
        ),
        case(
            PrivateLinkRefusal::GroupUnreadable { group: "links".into(), problem: "403".into() }.into(),
            ["service.beta.kubernetes.io/azure-pls-resource-group", "links"],
            "cannot be read",
            "give the identity the right",
        ),
        case(
            Refusal::NoAddressYet { service: service() },
            ["default/test1", "no load balancer IP"],
            "no load balancer IP for setting up security rules for service",
            "it is tried again",
        ),
        case(
            Refusal::SecurityGroupNotConfigured,
            ["securityGroupName", "not configured"],
            "securityGroupName is not configured",
            "set it in the cloud configuration",
        ),
        case(
            Refusal::SecurityGroupNotFound { name: "nsg".into() },
            ["securityGroupName", "nsg"],
            "nsg \"nsg\" not found",
            "create it",
        ),
        case(
            Refusal::SecurityGroupWithoutRules { name: "nsg".into() },
            ["securityGroupName", "nsg"],
            "invalid SecurityGroup object",
            "correct securityGroupName",
        ),
        case(
            Refusal::SecurityGroupFull { service: service(), what: "rules", count: 1001, limit: 1000 },
            ["default/test1", "1001"],
            "exceeds the maximum number of rules (1001 > 1000)",
            "give Services the same ports",
        ),
        case(
            Refusal::MachineSetNotFound { named: "delta".into(), sets: names(&["alpha", "beta"]) },
            ["azure-load-balancer-mode", "no node belongs to set delta"],
            "scale set/availability set not found",
            "set it to alpha or beta or __auto__",
        ),
        case(
            Refusal::RuleLimitReached { sets: names(&["alpha", "beta"]), rules: 250, limit: 250 },
            ["maximumLoadBalancerRuleCount is 250", "alpha, beta"],
            "all load balancers exceed the rule limit",
            "remove Services, name another set",
        ),
        case(
            Refusal::NoPriorityLeft { service: service() },
            ["default/test1", "500 to 4095"],
            "security rule priority exhausted",
            "remove rules of your own",
        ),
    ]);
    cases
}

/// A number for each variant; a new variant does not compile until it is added here.
fn number(refusal: &Refusal) -> usize {
    match refusal {
        Refusal::NoUid => 0,
        Refusal::PrivateLink(refusal) => number_of_private_link(refusal),
        Refusal::NotAWholeNumber { .. } => 2,
        Refusal::BelowMinimum { .. } => 3,
        Refusal::IdleTimeoutOutOfRange { .. } => 4,
        Refusal::ProbeTooSlow { .. } => 5,
        Refusal::ProbePortOutOfRange { .. } => 6,
        Refusal::ProbePortNotFound { .. } => 7,
        Refusal::InvalidAddress { .. } => 8,
        Refusal::NonPublicAddress { .. } => 9,
        Refusal::TwoKindsOfRanges { .. } => 10,
        Refusal::InvalidAdditionalAddress { .. } => 11,
        Refusal::UnknownProtocol { .. } => 12,
        Refusal::SctpNeedsHaPorts { .. } => 13,
        Refusal::PortOutOfRange { .. } => 14,
        Refusal::NoNodePort { .. } => 15,
        Refusal::InvalidPrefixId { .. } => 16,
        Refusal::OnePublicIpForBothFamilies { .. } => 17,
        Refusal::PublicIpNotFound { .. } => 18,
        Refusal::AddressNotFound { .. } => 19,
        Refusal::PublicIpOfOtherCluster { .. } => 20,
        Refusal::PublicIpOfOtherFamily { .. } => 21,
        Refusal::PublicIpSharedByTooMany { .. } => 22,
        Refusal::DnsLabelClaimed { .. } => 23,
        Refusal::SubnetNotFound { .. } => 24,
        Refusal::SubnetWithoutFamily { .. } => 25,
        Refusal::BackendPortTaken { .. } => 26,
        Refusal::FrontendInUse { .. } => 27,
        Refusal::PortTaken { .. } => 28,
        Refusal::LoadBalancerFull { .. } => 29,
        Refusal::NoAddressYet { .. } => 30,
        Refusal::SecurityGroupNotConfigured => 31,
        Refusal::SecurityGroupNotFound { .. } => 32,
        Refusal::SecurityGroupWithoutRules { .. } => 33,
        Refusal::SecurityGroupFull { .. } => 34,
        Refusal::NoPriorityLeft { .. } => 35,
        Refusal::ResourceGroupUnreadable { .. } => 36,
        Refusal::OtherClusterName(_) => 46,
        Refusal::NoConfigurationOfCluster { .. } => 47,
        Refusal::UnknownConfigurations { .. } => 48,
        Refusal::PlacedByAddress { .. } => 49,
        Refusal::NoEligibleLoadBalancer { .. } => 50,
        Refusal::AddressOnOtherLoadBalancer { .. } => 51,
        Refusal::CannotMove { .. } => 52,
        Refusal::PoolNameTaken { .. } => 53,
        Refusal::PoolNameTooLong { .. } => 54,
        Refusal::BasicLoadBalancerShared { .. } => 55,
        Refusal::MachineSetNotFound { .. } => 58,
        Refusal::RuleLimitReached { .. } => 59,
        Refusal::AddressOutsideSubnet { .. } => 60,
        Refusal::Several(_) => 62,
    }
}

fn number_of_private_link(refusal: &PrivateLinkRefusal) -> usize {
    match refusal {
        PrivateLinkRefusal::FloatsOutside => 1,
        PrivateLinkRefusal::NoIpv4 => 37,
        PrivateLinkRefusal::CountOutOfRange { .. } => 38,
        PrivateLinkRefusal::InvalidAddress { .. } => 39,
        PrivateLinkRefusal::AddressOfIpv6 { .. } => 40,
        PrivateLinkRefusal::TooManyAddresses { .. } => 41,
        PrivateLinkRefusal::SubnetNotFound { .. } => 42,
        PrivateLinkRefusal::Unmanaged { .. } => 43,
        PrivateLinkRefusal::OwnedByOther { .. } => 44,
        PrivateLinkRefusal::NameFixed { .. } => 45,
        PrivateLinkRefusal::NameTaken { .. } => 56,
        PrivateLinkRefusal::GroupUnreadable { .. } => 57,
        PrivateLinkRefusal::ListInAnItem { .. } => 61,
    }
}

#[test]
fn every_refusal_names_key_value_and_remedy_and_says_what_the_replaced_program_says() {
    let cases = cases();
    for Case { refusal, evidence, theirs, remedy } in &cases {
        let text = refusal.to_string();
        for part in evidence.iter().chain([theirs, remedy]) {
            assert!(text.contains(part), "`{part}` is missing in: {text}");
        }
        let at = text.rfind(remedy).unwrap();
        assert!(
            text[..at].ends_with("; ") || text[..at].ends_with(": ") || text[..at].contains("; "),
            "{text}"
        );
        assert!(text.len() < 1024, "events hold 1024 bytes: {text}");
    }
    let seen: BTreeSet<usize> = cases.iter().map(|case| number(&case.refusal)).collect();
    assert_eq!(seen, (0..63).collect(), "each variant has a case");
}

#[test]
fn what_the_owner_got_wrong_is_terminal_and_its_remedy_leads_to_no_other_refusal() {
    for Mistake { service, mended, case } in mistakes() {
        assert!(case.refusal.is_terminal(), "{}", case.refusal);
        assert_eq!(service.refusal(), case.refusal, "the same each time");
        let intent = mended.intent(&cluster());
        for family in &intent.families {
            for rule in rule::desired(&cluster(), &intent, *family).rules {
                // Azure accepts protocol All only for all ports at once.
                assert_eq!(rule.protocol == "All", rule.frontend_port == 0, "{rule:?}");
                assert_eq!(rule.protocol == "All", rule.backend_port == 0, "{rule:?}");
            }
        }
    }
}

/// A refusal is not terminal if others can resolve it, or if it resolves itself.
#[test]
fn what_may_pass_without_a_change_of_the_service_is_not_terminal() {
    let of_owner: BTreeSet<usize> = (0..18).chain(37..42).chain([48, 49, 54, 60, 61, 62]).collect();
    for Case { refusal, .. } in cases() {
        assert_eq!(refusal.is_terminal(), of_owner.contains(&number(&refusal)), "{refusal}");
    }
}

#[test]
fn keys_are_named_with_their_prefix() {
    assert_eq!(full_key(INTERNAL), key("azure-load-balancer-internal"));
}

#[test]
fn the_highest_port_of_a_rule_is_accepted() {
    assert!(ServiceIntent::from_service(&cluster(), &svc("test1").tcp(65534).0).is_ok());
}
