//! The fields of an AzureCluster.

use std::collections::BTreeMap;

use crate::cloud_provider::CloudProviderConfigOverrides;
use crate::common::{
    ApiEndpoint, Condition, ExtendedLocation, FailureDomain, Future, Initialization, ObjectReference, Tags,
    V1Beta2Status,
};
use crate::network::{LoadBalancer, PublicIp, Subnet, VirtualNetwork};
use crate::object::object;

object! {
    /// The desired state of a cluster's network on Azure.
    AzureClusterSpec {
        /// Tags of all resources of the cluster, besides those that are always set.
        additional_tags: Tags,
        /// The cloud: AzurePublicCloud, AzureChinaCloud or AzureUSGovernmentCloud.
        azure_environment: String,
        /// Access for people to machines without a public address.
        bastion_spec: BastionSpec,
        /// Overrides of the cloud provider's configuration on the machines (azure.json).
        cloud_provider_config_overrides: CloudProviderConfigOverrides,
        /// Whether the control plane's machines are on this network. If it is false, the control plane is elsewhere: its
        /// address must be set in controlPlaneEndpoint.
        #[schemars(extend("default" = true))]
        control_plane_enabled: bool,
        /// The endpoint of the API server. Set by the controller unless it is given.
        control_plane_endpoint: ApiEndpoint,
        /// An edge zone. Needs the gate EdgeZone.
        extended_location: ExtendedLocation,
        /// Availability zones, to exclude some of them for control plane machines. The existing zones are read from
        /// Azure.
        failure_domains: BTreeMap<String, FailureDomain>,
        /// The AzureClusterIdentity with which the cluster's resources are created.
        #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
        identity_ref: ObjectReference,
        /// The region.
        #[schemars(required)]
        location: String,
        /// The network: a virtual network with subnets, and the load balancers in front of it. Default names and ranges
        /// are derived from the cluster's name and 10.0.0.0/8.
        network_spec: NetworkSpec,
        /// The resource group; the cluster's name if it is not set.
        resource_group: String,
        /// The subscription; the controller's own if it is not set.
        #[serde(rename = "subscriptionID")]
        subscription_id: String,
    }

    /// The network of a cluster.
    NetworkSpec {
        /// Further ports of the API server's load balancer. Each leads to the same port of the control plane's machines.
        #[serde(rename = "additionalAPIServerLBPorts")]
        additional_api_server_lb_ports: Vec<LoadBalancerPort>,
        /// The load balancer of the API server. Public, with an address of its own, unless its type is Internal; then
        /// its address is one of the control plane's subnet, by default 10.0.0.100.
        #[serde(rename = "apiServerLB")]
        api_server_lb: LoadBalancer,
        /// The load balancer for the control plane's outbound traffic. Only in addition to an internal load balancer of
        /// the API server; a public one carries this traffic, too.
        #[serde(rename = "controlPlaneOutboundLB")]
        control_plane_outbound_lb: LoadBalancer,
        /// The load balancer for the workers' outbound traffic, if their subnets have no NAT gateway: those with IPv6,
        /// or on request.
        #[serde(rename = "nodeOutboundLB")]
        node_outbound_lb: LoadBalancer,
        /// Whether the DNS zone with the private name of an internal API server is managed for the cluster: System, the
        /// default, or None, for DNS that is managed in another way.
        #[serde(rename = "privateDNSZone")]
        #[schemars(extend("enum" = ["System", "None"]))]
        private_dns_zone: String,
        /// The DNS zone with the private name of an internal API server, such as example.com; if it is not set, the cluster's
        /// name and capz.io.
        #[serde(rename = "privateDNSZoneName")]
        private_dns_zone_name: String,
        /// The resource group of that zone; that of the cluster if it is not set.
        #[serde(rename = "privateDNSZoneResourceGroup")]
        private_dns_zone_resource_group: String,
        /// The subnets, by name. Workers need one of the role node, the control plane one of the role control-plane, or
        /// both one of the role cluster. Missing subnets are added.
        #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
        subnets: Vec<Subnet>,
        /// The virtual network. An existing network that was not created for this cluster is used as it is.
        vnet: VirtualNetwork,
    }

    /// A port of a load balancer that leads to the same port of the machines.
    LoadBalancerPort {
        /// The name of the rule.
        #[schemars(required)]
        name: String,
        /// The port.
        #[schemars(required)]
        port: i32,
    }

    /// Access for people to machines without a public address.
    BastionSpec {
        /// Azure Bastion.
        azure_bastion: AzureBastion,
    }

    /// Azure Bastion.
    AzureBastion {
        /// Whether native clients may tunnel. Needs the SKU Standard.
        #[schemars(extend("default" = false))]
        enable_tunneling: bool,
        /// The name of the bastion.
        name: String,
        /// The public address of the bastion.
        #[serde(rename = "publicIP")]
        public_ip: PublicIp,
        /// Basic or Standard.
        #[schemars(extend("default" = "Basic", "enum" = ["Basic", "Standard"]))]
        sku: String,
        /// The subnet of the bastion.
        subnet: Subnet,
    }

    /// The observed state of a cluster's network on Azure.
    AzureClusterStatus {
        /// What is complete, for Cluster API's contract v1beta2.
        initialization: Initialization,
        /// Conditions of the network and its parts.
        conditions: Vec<Condition>,
        /// The availability zones of the region.
        failure_domains: BTreeMap<String, FailureDomain>,
        /// Operations of Azure that had not ended at the last reconcile.
        long_running_operation_states: Vec<Future>,
        /// Whether the network is ready for machines.
        ready: bool,
        /// What Cluster API's contract v1beta2 asks.
        v1beta2: V1Beta2Status,
    }
}
