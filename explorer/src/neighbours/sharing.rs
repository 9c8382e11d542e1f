//! The resources and names that clusters share.

use azure_simulator::{Azure, LatencyProfile, typical_latency};
use azure_types::ResourceId;
use rand::Rng as _;
use rand::rngs::SmallRng;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use testkit::{ExtraSubnet, NodePool, Shape};

use crate::service_option::KEPT_GROUP;

/// The group of resources outside of the clusters' own groups.
const COMMON_GROUP: &str = "common";

/// The resources and names that clusters share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Sharing {
    /// One resource group.
    pub group: bool,
    /// One network.
    pub network: bool,
    /// One subnet of it, and so one security group.
    pub subnet: bool,
    /// One security group.
    pub guard: bool,
    /// Machines with equal host names.
    pub hosts: bool,
    /// The clusters' name; then each has a group of its own.
    pub name: bool,
    /// Pools hold addresses.
    pub by_address: bool,
    /// One route table: nodes have pod ranges, which differ by cluster.
    pub routes: bool,
    /// One resource group for all load balancers, which have different names.
    pub balancers: bool,
}

impl Sharing {
    pub(super) fn draw(random: &mut SmallRng) -> Self {
        let name = random.random_bool(0.15);
        let network = random.random_bool(0.7);
        let subnet = network && random.random_bool(0.5);
        Self {
            name,
            group: !name && random.random_bool(0.6),
            network,
            subnet,
            // Networks of equal ranges behind one security group:
            // tests/corpus/neighbours/equal-addresses-in-two-networks.txt.
            guard: subnet || network && random.random_bool(0.6),
            hosts: random.random_bool(0.3),
            by_address: random.random_bool(0.25),
            routes: subnet && random.random_bool(0.3),
            balancers: !name && random.random_bool(0.2),
        }
    }

    /// The name of a cluster.
    pub(crate) fn name_of(self, cluster: usize) -> String {
        if self.name { "kubernetes".to_owned() } else { format!("cluster-{cluster}") }
    }

    /// The private address that Services may request: the same for all clusters of a subnet.
    pub(crate) fn static_address(self, cluster: usize) -> String {
        let subnet = if self.subnet || !self.network { 0 } else { cluster };
        format!("10.{}.200.9", 240 + subnet)
    }

    /// Additional members of the clusters' azure.json.
    pub(super) fn config(self) -> Value {
        let kind = if self.by_address { "nodeIP" } else { "nodeIPConfiguration" };
        let mut config = json!({"loadBalancerBackendPoolConfigurationType": kind});
        if self.balancers {
            config["loadBalancerResourceGroup"] = COMMON_GROUP.into();
        }
        config
    }

    /// The range of a cluster's pods.
    pub(super) fn pod_range(cluster: usize) -> String {
        format!("10.{}.0.0/16", 244 + cluster)
    }

    /// The initial resources of a cluster.
    pub(crate) fn shape(self, cluster: usize, clusters: usize) -> Shape {
        let own =
            |what: &str, shared: bool| if shared { what.to_owned() } else { format!("{what}-{cluster}") };
        let group = own("cluster", self.group);
        // In addition to the subnets of the clusters, one for private links.
        let mut more_subnets = Vec::new();
        if self.network && !self.subnet {
            more_subnets.extend((1..clusters).map(|other| subnet(&format!("nodes-{other}"), 240 + other)));
        }
        more_subnets.push(subnet("links", 243));
        let in_first = self.subnet || !self.network || cluster == 0;
        Shape {
            resource_group: group,
            network_group: Some(COMMON_GROUP.to_owned()),
            virtual_network: own("network", self.network),
            subnet: if in_first { "nodes".to_owned() } else { format!("nodes-{cluster}") },
            more_subnets,
            security_group: own("guard", self.guard),
            route_table: self.routes.then(|| "routes".to_owned()),
            pools: vec![NodePool::new(
                &format!("workers-{cluster}"),
                if self.hosts { "node" } else { ["red", "green", "blue"][cluster % 3] },
                1,
            )],
            ..Shape::default()
        }
    }

    /// An Azure with the users' resources for their Services.
    pub(crate) fn azure(seed: u64, slow: bool) -> Azure {
        let mut latency = if slow { typical_latency() } else { LatencyProfile::instant() };
        // A write is done when its answer arrives.
        latency.answers.clear();
        latency.answer_otherwise_ms = 0;
        let shape = Shape::default();
        let azure = Azure::new(azure_simulator::Options {
            seed,
            subscription: shape.subscription.clone(),
            tenant: shape.tenant.clone(),
            region: shape.region.clone(),
            latency,
            ..Default::default()
        });
        let group = ResourceId::group(&shape.subscription, KEPT_GROUP);
        let put = |id: &ResourceId, document| {
            azure.put(id, document).unwrap_or_else(|refusal| panic!("{id}: {refusal:?}"));
        };
        put(&group, json!({"location": shape.region}));
        let address = group.resource("Microsoft.Network", "publicIPAddresses", "address");
        put(
            &address,
            json!({"location": shape.region, "sku": {"name": "Standard"}, "tags": {"owner": "user"},
                "properties": {"publicIPAllocationMethod": "Static"}}),
        );
        let prefix = group.resource("Microsoft.Network", "publicIPPrefixes", "prefix");
        put(
            &prefix,
            json!({"location": shape.region, "sku": {"name": "Standard"}, "properties": {"prefixLength": 30}}),
        );
        azure
    }
}

fn subnet(name: &str, second: usize) -> ExtraSubnet {
    ExtraSubnet { name: name.to_owned(), prefixes: vec![format!("10.{second}.0.0/16")] }
}

/// Attaches the cluster's own security group to its subnet, whichever cluster created it, and prepares the subnet of
/// private links.
pub(crate) fn guard(azure: &Azure, shape: &Shape) {
    let links = shape.network().child("subnets", "links");
    let open = |document: &mut Value| {
        document["properties"]["privateLinkServiceNetworkPolicies"] = "Disabled".into();
    };
    azure.edit(&links, open).expect("the subnet is there");
    let subnet = shape.network().child("subnets", &shape.subnet);
    let guard = shape.security_group();
    if azure.document(&guard).is_none() {
        azure.put(&guard, json!({"location": shape.region})).expect("the group can be made");
    }
    let set = |document: &mut Value| {
        document["properties"]["networkSecurityGroup"] = json!({"id": guard});
    };
    azure.edit(&subnet, set).expect("the subnet is there");
}
