//! The cluster's shape: what exists in Azure before the first Service, and how programs are told of it.

use azure_simulator::{Azure, Refusal};
use azure_types::ResourceId;
use serde_json::{Value, json};

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
}

impl NodePool {
    /// A pool of small machines.
    pub fn new(name: &str, prefix: &str, nodes: u64) -> Self {
        Self { name: name.to_owned(), prefix: prefix.to_owned(), nodes, size: "Standard_D2s_v5".to_owned() }
    }
}

/// Names and sizes of everything that a cluster stands on. `Default` is one pool of three machines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// The subscription's id.
    pub subscription: String,
    /// The tenant's id.
    pub tenant: String,
    /// The region.
    pub region: String,
    /// The resource group of everything.
    pub resource_group: String,
    /// The virtual network, `10.240.0.0/16`.
    pub virtual_network: String,
    /// Its subnet, the whole of it.
    pub subnet: String,
    /// The security group that guards the subnet.
    pub security_group: String,
    /// The worker machines.
    pub pools: Vec<NodePool>,
    /// The application that the controller manager signs in as.
    pub client_id: String,
    /// That application's object id.
    pub object_id: String,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            subscription: "5ca1ab1e-0000-4000-8000-000000000001".to_owned(),
            tenant: "7e4a4700-0000-4000-8000-000000000002".to_owned(),
            region: "westeurope".to_owned(),
            resource_group: "cluster".to_owned(),
            virtual_network: "network".to_owned(),
            subnet: "nodes".to_owned(),
            security_group: "guard".to_owned(),
            pools: vec![NodePool::new("workers", "worker", 3)],
            client_id: "c11e4700-0000-4000-8000-000000000003".to_owned(),
            object_id: "0b1ec700-0000-4000-8000-000000000004".to_owned(),
        }
    }
}

/// The subnet's range, which is also the whole network's.
const RANGE: &str = "10.240.0.0/16";

impl Shape {
    /// The id of the resource group.
    pub fn group(&self) -> ResourceId {
        ResourceId::group(&self.subscription, &self.resource_group)
    }

    /// The id of a scale set.
    pub fn scale_set(&self, name: &str) -> ResourceId {
        self.group().resource("Microsoft.Compute", "virtualMachineScaleSets", name)
    }

    /// Builds all of it, at once.
    ///
    /// # Errors
    /// What Azure would refuse: impossible names, for example.
    pub fn lay_out(&self, azure: &Azure) -> Result<(), Refusal> {
        let (group, location) = (self.group(), &self.region);
        azure.put(&group, json!({"location": location}))?;
        let guard = group.resource("Microsoft.Network", "networkSecurityGroups", &self.security_group);
        azure.put(&guard, json!({"location": location, "properties": {"securityRules": []}}))?;
        let network = group.resource("Microsoft.Network", "virtualNetworks", &self.virtual_network);
        let subnet = json!({"name": self.subnet, "properties": {
            "addressPrefix": RANGE, "networkSecurityGroup": {"id": guard}}});
        azure.put(
            &network,
            json!({"location": location, "properties": {
            "addressSpace": {"addressPrefixes": [RANGE]}, "subnets": [subnet]}}),
        )?;
        let subnet = network.child("subnets", &self.subnet);
        for pool in &self.pools {
            azure.put(&self.scale_set(&pool.name), scale_set(location, pool, &subnet))?;
        }
        Ok(())
    }

    /// azure.json for a program that signs in with `secret` at the Azure behind `resource_manager` (a URL).
    pub fn azure_json(&self, resource_manager: &str, secret: &str) -> Value {
        json!({
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
            "primaryScaleSetName": self.pools.first().map(|pool| pool.name.as_str()).unwrap_or_default(),
            "loadBalancerSku": "standard",
            "useInstanceMetadata": false,
        })
    }
}

fn scale_set(location: &str, pool: &NodePool, subnet: &ResourceId) -> Value {
    let address = json!({"name": "primary", "properties": {"primary": true, "subnet": {"id": subnet}}});
    let interface = json!({"name": "first", "properties": {"primary": true, "ipConfigurations": [address]}});
    json!({
        "location": location,
        "sku": {"name": pool.size, "tier": "Standard", "capacity": pool.nodes},
        "zones": ["1", "2", "3"],
        "properties": {
            "orchestrationMode": "Uniform",
            "upgradePolicy": {"mode": "Manual"},
            "overprovision": false,
            // One placement group holds a hundred machines.
            "singlePlacementGroup": pool.nodes <= 100,
            "virtualMachineProfile": {
                "osProfile": {"computerNamePrefix": pool.prefix, "adminUsername": "azureuser"},
                "storageProfile": {
                    "imageReference": {"publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server", "version": "latest"},
                    "osDisk": {"createOption": "FromImage", "managedDisk": {"storageAccountType": "Premium_LRS"}},
                },
                "networkProfile": {"networkInterfaceConfigurations": [interface]},
            },
        },
    })
}
