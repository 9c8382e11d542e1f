//! AzureClusterTemplate: a template of AzureClusters for a ClusterClass. It has no names that belong to one cluster.

use std::collections::BTreeMap;

use super::defaults::{
    DEFAULT_BASTION_CIDR, DEFAULT_ENVIRONMENT, DEFAULT_NETWORK_CIDR, IDLE_TIMEOUT_MINUTES,
};
use super::subnet_defaults::{CONTROL_PLANE_CIDR, fill, node_cidr};
use super::types::LoadBalancerPort;
use super::validation;
use super::validation::{check_private_dns, check_sku_and_type};
use crate::cloud_provider::CloudProviderConfigOverrides;
use crate::common::{ExtendedLocation, FailureDomain, ObjectReference, Tags};
use crate::context::Gates;
use crate::field_error::{FieldErrors, Path};
use crate::immutable::changed;
use crate::network::{
    INTERNAL, LoadBalancerClass, PUBLIC, STANDARD, SubnetClass, SubnetView, VirtualNetworkClass, check_cidrs,
    check_idle_timeout, check_peerings, check_subnets, roles,
};
use crate::object::object;

object! {
    /// The spec of a template of clusters.
    AzureClusterTemplateSpec {
        /// The template.
        #[schemars(required)]
        template: AzureClusterTemplateResource,
    }
}

object! {
    /// A template of clusters.
    AzureClusterTemplateResource {
        /// The clusters.
        #[schemars(required)]
        spec: AzureClusterClassSpec,
    }
}

object! {
    /// What clusters of a template have in common.
    AzureClusterClassSpec {
        /// Tags of all resources of a cluster, besides those that are always set.
        additional_tags: Tags,
        /// The cloud: AzurePublicCloud, AzureChinaCloud or AzureUSGovernmentCloud.
        azure_environment: String,
        /// Access for people to machines without a public address.
        bastion_spec: BastionClass,
        /// Overrides of the cloud provider's configuration on the machines (azure.json).
        cloud_provider_config_overrides: CloudProviderConfigOverrides,
        /// An edge zone. Needs the gate EdgeZone.
        extended_location: ExtendedLocation,
        /// Availability zones, to exclude some of them for control plane machines.
        failure_domains: BTreeMap<String, FailureDomain>,
        /// The AzureClusterIdentity with which a cluster's resources are created.
        #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
        identity_ref: ObjectReference,
        /// The region.
        #[schemars(required)]
        location: String,
        /// The network.
        network_spec: NetworkClass,
        /// The subscription; the controller's own if it is not set.
        #[serde(rename = "subscriptionID")]
        subscription_id: String,
    }
}

object! {
    /// Access for people to machines without a public address.
    BastionClass {
        /// Azure Bastion.
        azure_bastion: AzureBastionClass,
    }
}

object! {
    /// Azure Bastion.
    AzureBastionClass {
        /// The subnet of the bastion.
        subnet: SubnetClass,
    }
}

object! {
    /// The network of clusters of a template.
    NetworkClass {
        /// Further ports of the API server's load balancer.
        #[serde(rename = "additionalAPIServerLBPorts")]
        additional_api_server_lb_ports: Vec<LoadBalancerPort>,
        /// The load balancer of the API server.
        #[serde(rename = "apiServerLB")]
        api_server_lb: LoadBalancerClass,
        /// The load balancer for the control plane's outbound traffic, if the API server's is internal.
        #[serde(rename = "controlPlaneOutboundLB")]
        control_plane_outbound_lb: LoadBalancerClass,
        /// The load balancer for the workers' outbound traffic, if their subnets have no NAT gateway.
        #[serde(rename = "nodeOutboundLB")]
        node_outbound_lb: LoadBalancerClass,
        /// The zone with the private name of an internal API server.
        #[serde(rename = "privateDNSZoneName")]
        private_dns_zone_name: String,
        /// The resource group of that zone.
        #[serde(rename = "privateDNSZoneResourceGroup")]
        private_dns_zone_resource_group: String,
        /// The subnets.
        #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
        subnets: Vec<SubnetClass>,
        /// The virtual network.
        vnet: VirtualNetworkClass,
    }
}

/// Sets the defaults of a template.
pub fn set_template_defaults(spec: &mut AzureClusterTemplateSpec) {
    let class = spec.template.get_or_insert_default().spec.get_or_insert_default();
    fill(&mut class.azure_environment, DEFAULT_ENVIRONMENT.to_owned());
    if let Some(bastion) = class.bastion_spec.as_mut().and_then(|bastion| bastion.azure_bastion.as_mut()) {
        let subnet = bastion.subnet.get_or_insert_default();
        // Its name is set when a cluster is created.
        subnet.name.get_or_insert_default();
        fill_cidr(subnet, DEFAULT_BASTION_CIDR);
        fill(&mut subnet.role, roles::BASTION.to_owned());
    }
    let network = class.network_spec.get_or_insert_default();
    let vnet = network.vnet.get_or_insert_default();
    if vnet.cidr_blocks.as_ref().is_none_or(Vec::is_empty) {
        vnet.cidr_blocks = Some(vec![DEFAULT_NETWORK_CIDR.to_owned()]);
    }
    set_subnets(network.subnets.get_or_insert_default());
    let api_server = network.api_server_lb.get_or_insert_default();
    fill(&mut api_server.kind, PUBLIC.to_owned());
    set_balancer(api_server);
    let internal = api_server.kind.as_deref() == Some(INTERNAL);
    if !internal && network.subnets.iter().flatten().any(is_ipv6_for_nodes) {
        network.node_outbound_lb.get_or_insert_default();
    }
    for balancer in
        [&mut network.node_outbound_lb, &mut network.control_plane_outbound_lb].into_iter().flatten()
    {
        balancer.kind = Some(PUBLIC.to_owned());
        balancer.sku = Some(STANDARD.to_owned());
        set_balancer(balancer);
    }
}

fn set_balancer(balancer: &mut LoadBalancerClass) {
    fill(&mut balancer.sku, STANDARD.to_owned());
    balancer.idle_timeout_in_minutes.get_or_insert(IDLE_TIMEOUT_MINUTES);
}

fn set_subnets(subnets: &mut Vec<SubnetClass>) {
    let mut number = 0;
    for subnet in subnets.iter_mut() {
        for rule in
            subnet.security_group.iter_mut().flat_map(|group| group.security_rules.iter_mut().flatten())
        {
            fill(&mut rule.direction, "Inbound".to_owned());
        }
        match subnet.role.as_deref() {
            Some(roles::CLUSTER | roles::CONTROL_PLANE) => fill_cidr(subnet, CONTROL_PLANE_CIDR),
            Some(roles::NODE) => {
                number += 1;
                fill_cidr(subnet, &node_cidr(number));
            }
            _ => {}
        }
    }
    if subnets.iter().any(|subnet| is(subnet, roles::CLUSTER)) {
        return;
    }
    for (role, cidr) in [(roles::CONTROL_PLANE, CONTROL_PLANE_CIDR), (roles::NODE, &node_cidr(1))] {
        if !subnets.iter().any(|subnet| is(subnet, role)) {
            let mut subnet = SubnetClass { role: Some(role.to_owned()), ..SubnetClass::default() };
            fill_cidr(&mut subnet, cidr);
            subnets.push(subnet);
        }
    }
}

fn fill_cidr(subnet: &mut SubnetClass, cidr: &str) {
    if subnet.cidr_blocks.as_ref().is_none_or(Vec::is_empty) {
        subnet.cidr_blocks = Some(vec![cidr.to_owned()]);
    }
}

fn is(subnet: &SubnetClass, role: &str) -> bool {
    subnet.role.as_deref() == Some(role)
}

fn is_ipv6_for_nodes(subnet: &SubnetClass) -> bool {
    (is(subnet, roles::NODE) || is(subnet, roles::CLUSTER))
        && subnet.cidr_blocks.iter().flatten().any(|range| matches!(range.parse(), Ok(ipnet::IpNet::V6(_))))
}

/// Validates a template; `old` is its previous version. A template is immutable.
pub fn validate_template(
    new: &AzureClusterTemplateSpec,
    old: Option<&AzureClusterTemplateSpec>,
    gates: Gates,
) -> FieldErrors {
    let mut errors = FieldErrors::default();
    let path = Path::new("spec.template.spec");
    let default = AzureClusterClassSpec::default();
    let class_of = |spec: &'_ AzureClusterTemplateSpec| {
        spec.template.as_ref().and_then(|template| template.spec.clone())
    };
    let class = class_of(new).unwrap_or(default);
    if let Some(old) = old {
        let old = class_of(old).unwrap_or_default();
        if old != class {
            errors.invalid(
                &path,
                changed(&old, &class),
                "AzureClusterTemplate.spec.template.spec field is immutable. Please create new resource instead.",
            );
        }
        return errors;
    }
    let network_path = path.child("networkSpec");
    let network = class.network_spec.clone().unwrap_or_default();
    let vnet = network.vnet.clone().unwrap_or_default();
    let vnet_path = network_path.child("vnet");
    let ranges = check_cidrs(vnet.cidr_blocks.as_deref(), &vnet_path.child("cidrBlocks"), &mut errors);
    check_peerings(vnet.peerings.as_deref(), &vnet_path.child("peerings"), &mut errors);
    let subnets = network.subnets.as_deref().unwrap_or_default();
    let views: Vec<SubnetView<'_>> = subnets.iter().map(SubnetView::from).collect();
    let needed = [roles::CONTROL_PLANE, roles::NODE];
    check_subnets(&views, &ranges, &needed, &network_path.child("subnets"), &mut errors);
    let api_server = network.api_server_lb.clone().unwrap_or_default();
    let api_path = network_path.child("apiServerLB");
    check_sku_and_type(api_server.sku.as_deref(), api_server.kind.as_deref(), &api_path, &mut errors);
    check_idle_timeout(api_server.idle_timeout_in_minutes, &api_path, &mut errors);
    let internal = api_server.kind.as_deref() == Some(INTERNAL);
    let node_path = network_path.child("nodeOutboundLB");
    // It is used where workers have IPv6 only.
    if subnets.iter().any(is_ipv6_for_nodes) {
        match &network.node_outbound_lb {
            Some(balancer) => check_idle_timeout(balancer.idle_timeout_in_minutes, &node_path, &mut errors),
            None if !internal => {
                errors.required(&node_path, "Node outbound load balancer cannot be nil for public clusters");
            }
            None => {}
        }
    }
    if let Some(balancer) = &network.control_plane_outbound_lb {
        let path = network_path.child("controlPlaneOutboundLB");
        if internal {
            check_idle_timeout(balancer.idle_timeout_in_minutes, &path, &mut errors);
        } else {
            errors.forbidden(&path, "Control plane outbound load balancer cannot be set for public clusters");
        }
    }
    check_private_dns(
        network.private_dns_zone_name.as_deref(),
        network.private_dns_zone_resource_group.as_deref(),
        internal,
        &network_path,
        &mut errors,
    );
    validation::check_extended_location(class.extended_location.as_ref(), gates, &path, &mut errors);
    errors
}
