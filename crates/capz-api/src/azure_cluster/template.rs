//! AzureClusterTemplate: a template of AzureClusters for a ClusterClass. It has no names that belong to one cluster.

use std::collections::BTreeMap;

use super::defaults::{
    DEFAULT_BASTION_CIDR, DEFAULT_ENVIRONMENT, DEFAULT_NETWORK_CIDR, IDLE_TIMEOUT_MINUTES,
};
use super::subnet_defaults::{CONTROL_PLANE_CIDR, fill_ranges, is_ipv6, node_cidr};
use super::types::LoadBalancerPort;
use super::validation::{check_extended_location, check_private_dns, check_sku_and_type};
use crate::cloud_provider::CloudProviderConfigOverrides;
use crate::common::{ExtendedLocation, FailureDomain, ObjectReference, Tags};
use crate::context::Gates;
use crate::field_error::{Field, FieldErrors};
use crate::immutable::changed;
use crate::network::{
    INTERNAL, LoadBalancerClass, PUBLIC, STANDARD, SubnetClass, SubnetView, VirtualNetworkClass, check_cidrs,
    check_idle_timeout, check_peerings, check_subnets, roles,
};
use crate::object::object;
use crate::text::fill;

object! {
    /// The spec of a template of clusters.
    AzureClusterTemplateSpec {
        /// The template.
        #[schemars(required)]
        template: AzureClusterTemplateResource,
    }

    /// A template of clusters.
    AzureClusterTemplateResource {
        /// The clusters.
        #[schemars(required)]
        spec: AzureClusterClassSpec,
    }

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

    /// Access for people to machines without a public address.
    BastionClass {
        /// Azure Bastion.
        azure_bastion: AzureBastionClass,
    }

    /// Azure Bastion.
    AzureBastionClass {
        /// The subnet of the bastion.
        subnet: SubnetClass,
    }

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
    fill(&mut class.azure_environment, DEFAULT_ENVIRONMENT);
    if let Some(bastion) = class.bastion_spec.as_mut().and_then(|bastion| bastion.azure_bastion.as_mut()) {
        let subnet = bastion.subnet.get_or_insert_default();
        // Its name is set when a cluster is created.
        subnet.name.get_or_insert_default();
        fill_ranges(&mut subnet.cidr_blocks, DEFAULT_BASTION_CIDR);
        fill(&mut subnet.role, roles::BASTION);
    }
    let network = class.network_spec.get_or_insert_default();
    let vnet = network.vnet.get_or_insert_default();
    fill_ranges(&mut vnet.cidr_blocks, DEFAULT_NETWORK_CIDR);
    set_subnets(network.subnets.get_or_insert_default());
    let api_server = network.api_server_lb.get_or_insert_default();
    fill(&mut api_server.kind, PUBLIC);
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
    fill(&mut balancer.sku, STANDARD);
    balancer.idle_timeout_in_minutes.get_or_insert(IDLE_TIMEOUT_MINUTES);
}

fn set_subnets(subnets: &mut Vec<SubnetClass>) {
    let mut number = 0;
    for subnet in subnets.iter_mut() {
        for rule in
            subnet.security_group.iter_mut().flat_map(|group| group.security_rules.iter_mut().flatten())
        {
            fill(&mut rule.direction, "Inbound");
        }
        match subnet.role.as_deref() {
            Some(roles::CLUSTER | roles::CONTROL_PLANE) => {
                fill_ranges(&mut subnet.cidr_blocks, CONTROL_PLANE_CIDR)
            }
            Some(roles::NODE) => {
                number += 1;
                fill_ranges(&mut subnet.cidr_blocks, &node_cidr(number));
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
            fill_ranges(&mut subnet.cidr_blocks, cidr);
            subnets.push(subnet);
        }
    }
}

fn is(subnet: &SubnetClass, role: &str) -> bool {
    subnet.role.as_deref() == Some(role)
}

fn is_ipv6_for_nodes(subnet: &SubnetClass) -> bool {
    (is(subnet, roles::NODE) || is(subnet, roles::CLUSTER)) && is_ipv6(subnet.cidr_blocks.as_ref())
}

/// Validates a template; `old` is its previous version. A template is immutable.
pub fn validate_template(
    new: &AzureClusterTemplateSpec,
    old: Option<&AzureClusterTemplateSpec>,
    gates: Gates,
) -> FieldErrors {
    let class_of = |spec: &AzureClusterTemplateSpec| {
        spec.template.as_ref().and_then(|template| template.spec.clone()).unwrap_or_default()
    };
    let class = class_of(new);
    FieldErrors::of(|object| {
        let spec = object.child("spec.template.spec");
        match old.map(class_of) {
            Some(old) => spec.invalid_if(
                old != class,
                changed(&old, &class),
                "AzureClusterTemplate.spec.template.spec field is immutable. Please create new resource instead.",
            ),
            None => check(&class, gates, &spec),
        }
    })
}

fn check(class: &AzureClusterClassSpec, gates: Gates, spec: &Field<'_>) {
    let field = spec.child("networkSpec");
    let network = class.network_spec.clone().unwrap_or_default();
    let vnet = network.vnet.clone().unwrap_or_default();
    let vnet_field = field.child("vnet");
    let ranges = check_cidrs(vnet.cidr_blocks.as_deref(), &vnet_field.child("cidrBlocks"));
    check_peerings(vnet.peerings.as_deref(), &vnet_field.child("peerings"));
    let subnets = network.subnets.as_deref().unwrap_or_default();
    let views: Vec<SubnetView<'_>> = subnets.iter().map(SubnetView::from).collect();
    check_subnets(&views, &ranges, &[roles::CONTROL_PLANE, roles::NODE], &field.child("subnets"));
    let api_server = network.api_server_lb.clone().unwrap_or_default();
    let balancer = field.child("apiServerLB");
    check_sku_and_type(api_server.sku.as_deref(), api_server.kind.as_deref(), &balancer);
    check_idle_timeout(api_server.idle_timeout_in_minutes, &balancer);
    let internal = api_server.kind.as_deref() == Some(INTERNAL);
    // It is used where workers have IPv6 only.
    if subnets.iter().any(is_ipv6_for_nodes) {
        let words = "Node outbound load balancer cannot be nil for public clusters";
        let balancer = field.child("nodeOutboundLB");
        match &network.node_outbound_lb {
            Some(declared) => check_idle_timeout(declared.idle_timeout_in_minutes, &balancer),
            None => balancer.required_if(!internal, words),
        }
    }
    if let Some(declared) = &network.control_plane_outbound_lb {
        let balancer = field.child("controlPlaneOutboundLB");
        if internal {
            check_idle_timeout(declared.idle_timeout_in_minutes, &balancer);
        } else {
            balancer.forbidden("Control plane outbound load balancer cannot be set for public clusters");
        }
    }
    let group = network.private_dns_zone_resource_group.as_deref();
    check_private_dns(network.private_dns_zone_name.as_deref(), group, internal, &field);
    check_extended_location(class.extended_location.as_ref(), gates, spec);
}
