//! The cluster's shape: the resources in Azure before the first Service, and the configuration for programs.

use azure_types::ResourceId;
use serde_json::{Map, Value, json};

/// How a scale set keeps its machines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Orchestration {
    /// Machines are instances of the set, made from its model.
    #[default]
    Uniform,
    /// Machines are virtual machines of their own, with interfaces of their own.
    Flexible,
}

impl Orchestration {
    /// The word in documents.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Uniform => "Uniform",
            Self::Flexible => "Flexible",
        }
    }
}

/// A virtual machine that belongs to no scale set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandaloneMachine {
    /// Its name, host name and node's name.
    pub name: String,
    /// Its size.
    pub size: String,
    /// Whether it runs the control plane: its node is labelled and tainted as kubeadm does it.
    pub control_plane: bool,
    /// The availability set that it belongs to, beside it in its resource group; without one it is in a zone.
    pub availability_set: Option<String>,
    /// The resource group of it and of its interfaces, if it is not that of everything.
    pub resource_group: Option<String>,
    /// Whether it has another network interface behind its primary one.
    pub second_interface: bool,
}

impl StandaloneMachine {
    /// A small machine.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            size: "Standard_D2s_v5".to_owned(),
            control_plane: false,
            availability_set: None,
            resource_group: None,
            second_interface: false,
        }
    }

    /// The same machine in another size.
    #[must_use]
    pub fn of_size(self, size: &str) -> Self {
        Self { size: size.to_owned(), ..self }
    }

    /// The same machine in an availability set.
    #[must_use]
    pub fn in_availability_set(self, name: &str) -> Self {
        Self { availability_set: Some(name.to_owned()), ..self }
    }

    /// The same machine in a resource group of its own. Its kubelet sets its provider ID: machines are found by name
    /// only in the cluster's resource group.
    #[must_use]
    pub fn in_group(self, name: &str) -> Self {
        Self { resource_group: Some(name.to_owned()), ..self }
    }

    /// The same machine with another network interface.
    #[must_use]
    pub fn with_second_interface(self) -> Self {
        Self { second_interface: true, ..self }
    }

    /// A small machine that runs the control plane.
    pub fn control_plane(name: &str) -> Self {
        Self { control_plane: true, ..Self::new(name) }
    }
}

/// A further subnet of the virtual network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtraSubnet {
    /// Its name.
    pub name: String,
    /// Its prefixes, inside [`Shape::NETWORK_V4`] and [`Shape::NETWORK_V6`] and outside the nodes' subnet.
    pub prefixes: Vec<String>,
}

/// A scale set of worker machines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodePool {
    /// The scale set's name.
    pub name: String,
    /// What the machines' host names begin with.
    pub prefix: String,
    /// How many machines.
    pub nodes: u64,
    /// Their size.
    pub size: String,
    /// How the set keeps them.
    pub orchestration: Orchestration,
    /// Whether each machine has a public address of its own.
    pub public_addresses: bool,
    /// Whether they are spot machines, which Azure evicts, and deletes, when it needs the capacity.
    pub spot: bool,
}

impl NodePool {
    /// A uniform scale set of small machines.
    pub fn new(name: &str, prefix: &str, nodes: u64) -> Self {
        Self {
            name: name.to_owned(),
            prefix: prefix.to_owned(),
            nodes,
            size: "Standard_D2s_v5".to_owned(),
            orchestration: Orchestration::Uniform,
            public_addresses: false,
            spot: false,
        }
    }

    /// The same machines in another size.
    #[must_use]
    pub fn of_size(self, size: &str) -> Self {
        Self { size: size.to_owned(), ..self }
    }

    /// The same machines as spot machines.
    #[must_use]
    pub fn spot(self) -> Self {
        Self { spot: true, ..self }
    }

    /// The same machines, each with a public address.
    #[must_use]
    pub fn with_public_addresses(self) -> Self {
        Self { public_addresses: true, ..self }
    }

    /// The same machines in a flexible scale set.
    #[must_use]
    pub fn flexible(self) -> Self {
        Self { orchestration: Orchestration::Flexible, ..self }
    }
}

/// Names and sizes of all of a cluster's resources. `Default` is one pool of three machines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// The subscription's id.
    pub subscription: String,
    /// The tenant's id.
    pub tenant: String,
    /// The region.
    pub region: String,
    /// The resource group of all resources.
    pub resource_group: String,
    /// The resource group of the network, its security group and its route table, if it is another one: what several
    /// clusters share.
    pub network_group: Option<String>,
    /// The virtual network, [`Self::NETWORK_V4`] and, with two families, [`Self::NETWORK_V6`].
    pub virtual_network: String,
    /// The nodes' subnet, [`Self::NODES_V4`] and, with two families, [`Self::NODES_V6`].
    pub subnet: String,
    /// Further subnets, guarded by the same security group.
    pub more_subnets: Vec<ExtraSubnet>,
    /// Whether network and machines have IPv6 addresses beside IPv4 ones.
    pub dual_stack: bool,
    /// The security group that guards the subnet.
    pub security_group: String,
    /// The route table of the nodes' subnet, for clusters whose pods have addresses of their own ([`Self::PODS_V4`])
    /// that machines forward; `None` if the pod network needs none.
    pub route_table: Option<String>,
    /// The region's zones in which machines are: scale sets in all of them, standalone machines in the first one.
    pub zones: Vec<String>,
    /// The worker machines in scale sets.
    pub pools: Vec<NodePool>,
    /// Standalone machines.
    pub machines: Vec<StandaloneMachine>,
    /// The application that the controller manager signs in as.
    pub client_id: String,
    /// That application's object id.
    pub object_id: String,
    /// Further keys of azure.json, or overrides of those that follow from the rest.
    pub settings: Map<String, Value>,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            subscription: "5ca1ab1e-0000-4000-8000-000000000001".to_owned(),
            tenant: "7e4a4700-0000-4000-8000-000000000002".to_owned(),
            region: "westeurope".to_owned(),
            resource_group: "cluster".to_owned(),
            network_group: None,
            virtual_network: "network".to_owned(),
            subnet: "nodes".to_owned(),
            more_subnets: Vec::new(),
            dual_stack: false,
            security_group: "guard".to_owned(),
            route_table: None,
            zones: ["1", "2", "3"].map(str::to_owned).to_vec(),
            pools: vec![NodePool::new("workers", "worker", 3)],
            machines: Vec::new(),
            client_id: "c11e4700-0000-4000-8000-000000000003".to_owned(),
            object_id: "0b1ec700-0000-4000-8000-000000000004".to_owned(),
            settings: Map::new(),
        }
    }
}

impl Shape {
    /// The network's IPv4 range. Pods ([`Self::PODS_V4`]) and Services (`10.0.0.0/16`) are outside of it.
    pub const NETWORK_V4: &str = "10.240.0.0/14";
    /// The network's IPv6 range.
    pub const NETWORK_V6: &str = "fd00:10:240::/48";
    /// The IPv4 range of the nodes' subnet: a quarter of the network.
    pub const NODES_V4: &str = "10.240.0.0/16";
    /// The IPv6 range of the nodes' subnet. Azure requires /64.
    pub const NODES_V6: &str = "fd00:10:240::/64";

    /// The range of all pods, where nodes have ranges of their own.
    pub const PODS_V4: &str = "10.244.0.0/16";
    /// The same of the other family.
    pub const PODS_V6: &str = "fd00:10:244::/56";

    /// The id of the resource group.
    pub fn group(&self) -> ResourceId {
        ResourceId::group(&self.subscription, &self.resource_group)
    }

    /// The id of a scale set.
    pub fn scale_set(&self, name: &str) -> ResourceId {
        self.group().resource("Microsoft.Compute", "virtualMachineScaleSets", name)
    }

    /// The id of a standalone machine.
    pub fn machine(&self, machine: &StandaloneMachine) -> ResourceId {
        self.group_of(machine).resource("Microsoft.Compute", "virtualMachines", &machine.name)
    }

    /// The id of a standalone machine's primary network interface.
    pub fn interface(&self, machine: &StandaloneMachine) -> ResourceId {
        let name = format!("{}-nic", machine.name);
        self.group_of(machine).resource("Microsoft.Network", "networkInterfaces", &name)
    }

    /// The resource group of a standalone machine.
    pub(crate) fn group_of(&self, machine: &StandaloneMachine) -> ResourceId {
        let group = machine.resource_group.as_ref();
        group.map_or_else(|| self.group(), |group| ResourceId::group(&self.subscription, group))
    }

    /// The id of the resource group of the network, its security group and its route table.
    pub fn group_of_network(&self) -> ResourceId {
        let group = self.network_group.as_ref();
        group.map_or_else(|| self.group(), |group| ResourceId::group(&self.subscription, group))
    }

    /// Whether a machine belongs to one of the scale sets, or is one of the standalone machines.
    pub fn has_machine(&self, machine: &Value) -> bool {
        let id = machine["id"].as_str().and_then(|id| ResourceId::parse(id).ok());
        let set = machine.pointer("/properties/virtualMachineScaleSet/id").and_then(Value::as_str);
        let set = set.and_then(|set| ResourceId::parse(set).ok()).or_else(|| id.clone());
        self.pools
            .iter()
            .any(|pool| set.as_ref().is_some_and(|set| set.is_within(&self.scale_set(&pool.name))))
            || self.machines.iter().any(|one| id.as_ref().is_some_and(|id| id.is_within(&self.machine(one))))
    }

    /// The id of the security group.
    pub fn security_group(&self) -> ResourceId {
        self.group_of_network().resource("Microsoft.Network", "networkSecurityGroups", &self.security_group)
    }

    /// The id of the virtual network.
    pub fn network(&self) -> ResourceId {
        self.group_of_network().resource("Microsoft.Network", "virtualNetworks", &self.virtual_network)
    }

    /// The ranges of the network.
    pub fn network_ranges(&self) -> Vec<&'static str> {
        self.of_families(Self::NETWORK_V4, Self::NETWORK_V6)
    }

    /// The ranges of the nodes' subnet.
    pub fn node_ranges(&self) -> Vec<&'static str> {
        self.of_families(Self::NODES_V4, Self::NODES_V6)
    }

    /// The ranges of all pods, where nodes have ranges of their own.
    pub fn pod_ranges(&self) -> Vec<&'static str> {
        self.of_families(Self::PODS_V4, Self::PODS_V6)
    }

    /// The id of the route table.
    pub fn route_table(&self) -> Option<ResourceId> {
        let name = self.route_table.as_ref()?;
        Some(self.group_of_network().resource("Microsoft.Network", "routeTables", name))
    }

    fn of_families<T>(&self, v4: T, v6: T) -> Vec<T> {
        if self.dual_stack { vec![v4, v6] } else { vec![v4] }
    }

    /// azure.json for a program that signs in with `secret` to the Azure behind `resource_manager` (a URL).
    pub fn azure_json(&self, resource_manager: &str, secret: &str) -> Value {
        let mut document = json!({
            "cloud": "AzurePublicCloud",
            "resourceManagerEndpoint": resource_manager,
            "tenantId": self.tenant,
            "subscriptionId": self.subscription,
            "aadClientId": self.client_id,
            "aadClientSecret": secret,
            "resourceGroup": self.resource_group,
            "location": self.region,
            "vmType": "vmss",
            "vnetName": self.virtual_network,
            "subnetName": self.subnet,
            "securityGroupName": self.security_group,
            "loadBalancerSku": "standard",
            "useInstanceMetadata": false,
        });
        if let Some(name) = &self.route_table {
            document["routeTableName"] = name.as_str().into();
        }
        if let Some(group) = &self.network_group {
            for key in ["vnetResourceGroup", "securityGroupResourceGroup", "routeTableResourceGroup"] {
                document[key] = group.as_str().into();
            }
        }
        if let Some(members) = document.as_object_mut() {
            members.extend(self.settings.clone());
        }
        document
    }
}
