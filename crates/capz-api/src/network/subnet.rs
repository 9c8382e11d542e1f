//! Subnets and their parts.

use std::collections::BTreeSet;

use ipnet::IpNet;

use super::private_endpoint::{self, PrivateEndpoint};
use super::public_ip::PublicIp;
use super::roles;
use super::security_group::{SecurityGroup, SecurityGroupClass, SecurityRule, check_rules};
use super::virtual_network::{check_cidrs, joined};
use crate::field_error::Field;
use crate::names;
use crate::object::object;
use crate::text::text;

object! {
    /// A subnet of a cluster's network.
    Subnet {
        /// The ranges of the subnet in CIDR notation.
        cidr_blocks: Vec<String>,
        /// The id of the subnet in Azure. Set by the controller.
        id: String,
        /// The name of the subnet.
        #[schemars(required)]
        name: String,
        /// The NAT gateway for the outbound traffic of the subnet's machines.
        nat_gateway: NatGateway,
        /// Private endpoints in the subnet.
        #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
        private_endpoints: Vec<PrivateEndpoint>,
        /// The role of the subnet: node, control-plane, bastion, or cluster for both nodes and the control plane.
        #[schemars(required, extend("enum" = ["node", "control-plane", "bastion", "cluster"]))]
        role: String,
        /// The route table of the subnet.
        route_table: RouteTable,
        /// The network security group of the subnet.
        security_group: SecurityGroup,
        /// Services of Azure that the subnet's machines reach without leaving Azure's network.
        #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["service"]))]
        service_endpoints: Vec<ServiceEndpoint>,
    }

    /// A subnet of a cluster's network in a template.
    SubnetClass {
        /// The ranges of the subnet in CIDR notation.
        cidr_blocks: Vec<String>,
        /// The name of the subnet.
        #[schemars(required)]
        name: String,
        /// The NAT gateway for the outbound traffic of the subnet's machines.
        nat_gateway: NatGatewayClass,
        /// Private endpoints in the subnet.
        #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
        private_endpoints: Vec<PrivateEndpoint>,
        /// The role of the subnet: node, control-plane, bastion, or cluster for both nodes and the control plane.
        #[schemars(required, extend("enum" = ["node", "control-plane", "bastion", "cluster"]))]
        role: String,
        /// The network security group of the subnet.
        security_group: SecurityGroupClass,
        /// Services of Azure that the subnet's machines reach without leaving Azure's network.
        #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["service"]))]
        service_endpoints: Vec<ServiceEndpoint>,
    }

    /// A NAT gateway.
    NatGateway {
        /// The id of the NAT gateway in Azure. Set by the controller.
        id: String,
        /// The public address of outbound traffic.
        ip: PublicIp,
        /// The name of the NAT gateway.
        #[schemars(required)]
        name: String,
        /// The availability zones of the NAT gateway.
        zones: Vec<String>,
    }

    /// A NAT gateway in a template.
    NatGatewayClass {
        /// The name of the NAT gateway.
        #[schemars(required)]
        name: String,
    }

    /// A route table.
    RouteTable {
        /// The id of the route table in Azure. Set by the controller.
        id: String,
        /// The name of the route table.
        #[schemars(required)]
        name: String,
    }

    /// A service of Azure that a subnet's machines reach without leaving Azure's network.
    ServiceEndpoint {
        /// The regions of the service, or `*`.
        #[schemars(required)]
        locations: Vec<String>,
        /// The service, such as Microsoft.Storage.
        #[schemars(required)]
        service: String,
    }
}

/// The parts of a subnet that validation reads, of a cluster or of a template.
pub(crate) struct SubnetView<'a> {
    pub name: &'a str,
    pub role: &'a str,
    pub cidr_blocks: Option<&'a [String]>,
    pub rules: Option<&'a [SecurityRule]>,
    pub service_endpoints: Option<&'a [ServiceEndpoint]>,
    pub private_endpoints: Option<&'a [PrivateEndpoint]>,
}

macro_rules! subnet_view {
    ($($kind:ident),*) => {
        $(impl<'a> From<&'a $kind> for SubnetView<'a> {
            fn from(subnet: &'a $kind) -> Self {
                Self {
                    name: text(&subnet.name),
                    role: text(&subnet.role),
                    cidr_blocks: subnet.cidr_blocks.as_deref(),
                    rules: subnet.security_group.as_ref().and_then(|group| group.security_rules.as_deref()),
                    service_endpoints: subnet.service_endpoints.as_deref(),
                    private_endpoints: subnet.private_endpoints.as_deref(),
                }
            }
        })*
    };
}
subnet_view!(Subnet, SubnetClass);

/// Validates the subnets of a network with these ranges. `needed` are the required roles unless one subnet is for the
/// whole cluster.
pub(crate) fn check_subnets(
    subnets: &[SubnetView<'_>],
    network: &[IpNet],
    needed: &[&str],
    list: &Field<'_>,
) {
    let mut names = BTreeSet::new();
    for (index, subnet) in subnets.iter().enumerate() {
        let field = list.index(index);
        let is_wrong = !names::is_resource_name(subnet.name);
        field.child("name").invalid_if(is_wrong, subnet.name, names::RESOURCE_NAME);
        field.duplicate_if(!subnet.name.is_empty() && !names.insert(subnet.name), subnet.name);
        check_rules(subnet.rules, &field.child("securityGroup.securityRules"));
        let cidrs = field.child("cidrBlocks");
        let ranges = check_cidrs(subnet.cidr_blocks, &cidrs);
        for range in &ranges {
            cidrs.invalid_if(
                !network.iter().any(|network| network.contains(&range.network())),
                range.to_string(),
                format_args!("subnet CIDR not in the network's address space ({})", joined(network)),
            );
        }
        check_service_endpoints(subnet.service_endpoints, &field.child("serviceEndpoints"));
        private_endpoint::check(subnet.private_endpoints, &ranges, &field.child("privateEndpoints"));
    }
    let has = |role: &str| subnets.iter().any(|subnet| subnet.role == role);
    for role in needed.iter().filter(|role| !has(role) && !has(roles::CLUSTER)) {
        list.required(format_args!("required role {role} not included in provided subnets"));
    }
}

fn check_service_endpoints(endpoints: Option<&[ServiceEndpoint]>, list: &Field<'_>) {
    let mut services = BTreeSet::new();
    for (index, endpoint) in endpoints.into_iter().flatten().enumerate() {
        let field = list.index(index);
        let service = text(&endpoint.service);
        match service {
            "" => field.child("service").required("service is required for all service endpoints"),
            _ => field.child("service").invalid_if(
                !is_service(service),
                service,
                "it must be a name such as Microsoft.Storage",
            ),
        }
        field.child("service").duplicate_if(!services.insert(service), service);
        let locations = endpoint.locations.as_deref().unwrap_or_default();
        let list = field.child("locations");
        list.required_if(locations.is_empty(), "locations are required for all service endpoints");
        let mut known = BTreeSet::new();
        for (index, location) in locations.iter().enumerate() {
            let words = "it must be a region such as westeurope or eastus2, or *";
            list.index(index).invalid_if(!is_location(location), location, words);
            list.index(index).duplicate_if(!known.insert(location), location);
        }
    }
}

/// `Microsoft.` and 1 to 84 letters and digits, of which the first is a letter.
fn is_service(text: &str) -> bool {
    text.strip_prefix("Microsoft.").is_some_and(|rest| {
        (1..=84).contains(&rest.len())
            && rest.starts_with(|c: char| c.is_ascii_alphabetic())
            && rest.chars().all(|c| c.is_ascii_alphanumeric())
    })
}

/// Up to 42 small letters and then up to 5 digits, or `*`.
fn is_location(text: &str) -> bool {
    let digits = text.trim_start_matches(|c: char| c.is_ascii_lowercase());
    let letters = text.len() - digits.len();
    text == "*"
        || ((1..=42).contains(&letters) && digits.len() <= 5 && digits.chars().all(|c| c.is_ascii_digit()))
}
