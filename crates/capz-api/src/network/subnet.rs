//! Subnets and their parts.

use std::collections::BTreeSet;

use ipnet::IpNet;

use super::private_endpoint::{self, PrivateEndpoint};
use super::public_ip::PublicIp;
use super::roles;
use super::security_group::{SecurityGroup, SecurityGroupClass, SecurityRule, check_rules};
use super::virtual_network::check_cidrs;
use crate::field_error::{FieldErrors, Path};
use crate::names;
use crate::object::object;

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
}

object! {
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
}

object! {
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
}

object! {
    /// A NAT gateway in a template.
    NatGatewayClass {
        /// The name of the NAT gateway.
        #[schemars(required)]
        name: String,
    }
}

object! {
    /// A route table.
    RouteTable {
        /// The id of the route table in Azure. Set by the controller.
        id: String,
        /// The name of the route table.
        #[schemars(required)]
        name: String,
    }
}

object! {
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

impl<'a> From<&'a Subnet> for SubnetView<'a> {
    fn from(subnet: &'a Subnet) -> Self {
        Self {
            name: subnet.name.as_deref().unwrap_or_default(),
            role: subnet.role.as_deref().unwrap_or_default(),
            cidr_blocks: subnet.cidr_blocks.as_deref(),
            rules: subnet.security_group.as_ref().and_then(|group| group.security_rules.as_deref()),
            service_endpoints: subnet.service_endpoints.as_deref(),
            private_endpoints: subnet.private_endpoints.as_deref(),
        }
    }
}

impl<'a> From<&'a SubnetClass> for SubnetView<'a> {
    fn from(subnet: &'a SubnetClass) -> Self {
        Self {
            name: subnet.name.as_deref().unwrap_or_default(),
            role: subnet.role.as_deref().unwrap_or_default(),
            cidr_blocks: subnet.cidr_blocks.as_deref(),
            rules: subnet.security_group.as_ref().and_then(|group| group.security_rules.as_deref()),
            service_endpoints: subnet.service_endpoints.as_deref(),
            private_endpoints: subnet.private_endpoints.as_deref(),
        }
    }
}

/// Validates the subnets of a network with these ranges. `needed` are the required roles unless one subnet is for the
/// whole cluster.
pub(crate) fn check_subnets(
    subnets: &[SubnetView<'_>],
    network: &[IpNet],
    needed: &[&str],
    path: &Path,
    errors: &mut FieldErrors,
) {
    let mut seen = BTreeSet::new();
    for (index, subnet) in subnets.iter().enumerate() {
        let path = path.index(index);
        if !names::is_resource_name(subnet.name) {
            errors.invalid(&path.child("name"), subnet.name, names::RESOURCE_NAME);
        }
        if !subnet.name.is_empty() && !seen.insert(subnet.name) {
            errors.duplicate(&path, subnet.name);
        }
        check_rules(subnet.rules, &path.child("securityGroup").child("securityRules"), errors);
        let cidrs = path.child("cidrBlocks");
        let ranges = check_cidrs(subnet.cidr_blocks, &cidrs, errors);
        for range in &ranges {
            if !network.iter().any(|network| network.contains(&range.network())) {
                errors.invalid(
                    &cidrs,
                    range.to_string(),
                    format_args!("subnet CIDR not in the network's address space ({})", joined(network)),
                );
            }
        }
        check_service_endpoints(subnet.service_endpoints, &path.child("serviceEndpoints"), errors);
        private_endpoint::check(subnet.private_endpoints, &ranges, &path.child("privateEndpoints"), errors);
    }
    let has = |role: &str| subnets.iter().any(|subnet| subnet.role == role);
    if has(roles::CLUSTER) {
        return;
    }
    for role in needed {
        if !has(role) {
            errors.required(path, format_args!("required role {role} not included in provided subnets"));
        }
    }
}

fn joined(ranges: &[IpNet]) -> String {
    ranges.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn check_service_endpoints(endpoints: Option<&[ServiceEndpoint]>, path: &Path, errors: &mut FieldErrors) {
    let mut services = BTreeSet::new();
    for (index, endpoint) in endpoints.into_iter().flatten().enumerate() {
        let path = path.index(index);
        let service = endpoint.service.as_deref().unwrap_or_default();
        if service.is_empty() {
            errors.required(&path.child("service"), "service is required for all service endpoints");
        } else if !is_service(service) {
            errors.invalid(&path.child("service"), service, "it must be a name such as Microsoft.Storage");
        }
        if !services.insert(service) {
            errors.duplicate(&path.child("service"), service);
        }
        let locations = endpoint.locations.as_deref().unwrap_or_default();
        if locations.is_empty() {
            errors.required(&path.child("locations"), "locations are required for all service endpoints");
        }
        let mut seen = BTreeSet::new();
        for (index, location) in locations.iter().enumerate() {
            let path = path.child("locations").index(index);
            if !is_location(location) {
                errors.invalid(
                    &path,
                    location.as_str(),
                    "it must be a region such as westeurope or eastus2, or *",
                );
            }
            if !seen.insert(location) {
                errors.duplicate(&path, location.as_str());
            }
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
