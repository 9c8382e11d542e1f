//! The resources of a cluster in the group that the provider creates for it ("Use Azure Kubernetes Service (AKS)
//! clusters", node resource group): network, balancer, outbound addresses, route table, the identity of its kubelets.

use azure_engine::document::{at, into_object, items, name, stored_reference, text};
use azure_engine::provider::AzureState;
use azure_engine::refusal::Result;
use azure_engine::store::State;
use azure_types::ResourceId;
use serde_json::{Value, json};

use super::type_names;
use crate::resources::put_group;

/// Longest name of a node group that the provider chooses.
const LONGEST_NAME: usize = 80;
/// The range of the network that the provider makes, and of its subnet.
const NETWORK_RANGE: &str = "10.224.0.0/12";
const SUBNET_RANGE: &str = "10.224.0.0/16";

/// The balancer's name, which the cloud controller manager knows, too.
const BALANCER: &str = "kubernetes";
/// Its pools: outbound traffic of all nodes uses the first, inbound traffic the second.
pub(super) const POOLS: [&str; 2] = ["aksOutboundBackendPool", "kubernetes"];

/// The default name of a cluster's node group.
pub(super) fn usual_name(cluster: &ResourceId, location: &str) -> String {
    let group = cluster.group_name().unwrap_or_default();
    let whole = format!("MC_{group}_{}_{location}", cluster.name());
    whole.chars().take(LONGEST_NAME).collect()
}

/// The names in one cluster's node group.
pub(super) struct NodeGroup {
    /// The group.
    pub(super) id: ResourceId,
    /// Eight digits that all its names share.
    pub(super) number: String,
    /// The cluster of the nodes.
    pub(super) cluster: ResourceId,
    /// Where they are.
    pub(super) location: String,
    tags: Value,
}

impl NodeGroup {
    /// The node group of a stored cluster.
    pub(super) fn of(azure: &AzureState, cluster: &ResourceId) -> Option<Self> {
        let record = azure.store.get(cluster)?;
        let group = text(&record.body, "properties/nodeResourceGroup")?;
        let number =
            azure.seed.number("node group", cluster.as_str(), record.incarnation) % 90_000_000 + 10_000_000;
        Some(Self {
            id: ResourceId::group(cluster.subscription_id(), group),
            number: number.to_string(),
            cluster: record.id.clone(),
            location: text(&record.body, "location").unwrap_or_default().to_owned(),
            tags: record.body.get("tags").cloned().unwrap_or_else(|| json!({})),
        })
    }

    /// The id of a network resource in the group.
    pub(super) fn network_resource(&self, kind: &str, name: &str) -> ResourceId {
        self.id.resource("Microsoft.Network", kind, name)
    }

    /// The identity that the kubelets of all nodes have.
    pub(super) fn kubelet_identity(&self) -> ResourceId {
        let name = format!("{}-agentpool", self.cluster.name());
        self.id.resource("Microsoft.ManagedIdentity", "userAssignedIdentities", &name)
    }

    /// The subnet of nodes where the client gives none.
    pub(super) fn subnet(&self) -> ResourceId {
        self.network_resource("virtualNetworks", &format!("aks-vnet-{}", self.number))
            .child("subnets", "aks-subnet")
    }

    /// The security group of the nodes.
    pub(super) fn security_group(&self) -> ResourceId {
        self.network_resource("networkSecurityGroups", &format!("aks-agentpool-{}-nsg", self.number))
    }

    fn route_table(&self) -> ResourceId {
        self.network_resource("routeTables", &format!("aks-agentpool-{}-routetable", self.number))
    }

    /// The balancer.
    pub(super) fn balancer(&self) -> ResourceId {
        self.network_resource("loadBalancers", BALANCER)
    }

    /// Tags of everything that belongs to the cluster.
    pub(super) fn tags(&self) -> Value {
        let mut tags = into_object(self.tags.clone());
        tags.insert("aks-managed-cluster-name".into(), self.cluster.name().into());
        tags.insert("aks-managed-cluster-rg".into(), self.cluster.group_name().unwrap_or_default().into());
        Value::Object(tags)
    }

    /// Creates what is missing, and reconciles the rest with the cluster's document.
    ///
    /// # Errors
    /// What the other providers refuse.
    pub(super) fn lay_out(&self, azure: &mut AzureState) -> Result<()> {
        let properties =
            azure.store.get(&self.cluster).and_then(|record| record.body.get("properties")).cloned();
        let properties = properties.unwrap_or_default();
        let document = json!({ "location": self.location, "tags": self.tags(), "managedBy": self.cluster });
        let group = self.id.group_name().unwrap_or_default().to_owned();
        put_group(azure, self.id.subscription_id(), &group, document)?;
        if given_identity(&properties).is_none() {
            self.make(azure, &self.kubelet_identity(), json!({}))?;
        }
        self.make(azure, &self.security_group(), json!({ "securityRules": [] }))?;
        let routed = text(&properties, "networkProfile/networkPlugin") == Some("kubenet");
        if routed {
            self.make(azure, &self.route_table(), json!({ "routes": [] }))?;
        }
        self.lay_out_subnets(azure, routed)?;
        let outbound = text(&properties, "networkProfile/outboundType").unwrap_or_default();
        if outbound == "loadBalancer"
            && text(&properties, "networkProfile/loadBalancerSku") == Some("standard")
        {
            self.lay_out_balancer(azure, &properties)?;
        }
        Ok(())
    }

    /// The subnets of the nodes, each once.
    pub(super) fn node_subnets(&self, azure: &AzureState) -> Vec<ResourceId> {
        let mut subnets: Vec<ResourceId> = Vec::new();
        for pool in azure.store.of_type_below(type_names::POOLS, &self.cluster) {
            let subnet =
                stored_reference(&pool.body, "properties/vnetSubnetID").unwrap_or_else(|| self.subnet());
            if !subnets.contains(&subnet) {
                subnets.push(subnet);
            }
        }
        subnets
    }

    /// Creates the network of nodes where the client gives none; with routes to pods, a given subnet gets the route
    /// table, too.
    fn lay_out_subnets(&self, azure: &mut AzureState, routed: bool) -> Result<()> {
        let pools = azure.store.of_type_below(type_names::POOLS, &self.cluster);
        let given: Vec<Option<ResourceId>> =
            pools.iter().map(|pool| stored_reference(&pool.body, "properties/vnetSubnetID")).collect();
        if given.contains(&None) {
            let mut subnet = json!({ "addressPrefix": SUBNET_RANGE, "networkSecurityGroup": { "id": self.security_group() } });
            if routed {
                subnet["routeTable"] = json!({ "id": self.route_table() });
            }
            let network = self.subnet().parent().unwrap_or_else(|| self.subnet());
            self.make(
                azure,
                &network,
                json!({
                    "addressSpace": { "addressPrefixes": [NETWORK_RANGE] },
                    "subnets": [{ "name": "aks-subnet", "properties": subnet }],
                }),
            )?;
        }
        for subnet in given.into_iter().flatten().filter(|_| routed) {
            let Some(document) = azure.document(&subnet) else { continue };
            if at(&document, "properties/routeTable").is_none() {
                let mut changed = document;
                changed["properties"]["routeTable"] = json!({ "id": self.route_table() });
                azure.ask(azure_engine::state::inner_request::PLATFORM, "PUT", &subnet, None, changed)?;
            }
        }
        Ok(())
    }

    fn address_id(&self, azure: &AzureState, number: u64) -> ResourceId {
        let name = azure.seed.guid("outbound address", self.cluster.as_str(), number);
        self.network_resource("publicIPAddresses", &name)
    }

    /// An outbound address that the provider creates, by its number.
    ///
    /// # Errors
    /// What the network refuses.
    pub(super) fn managed_address(&self, azure: &mut AzureState, number: u64) -> Result<ResourceId> {
        let id = self.address_id(azure, number);
        if azure.store.get(&id).is_none() {
            let mut tags = into_object(self.tags());
            tags.insert("aks-managed-type".into(), "aks-slb-managed-outbound-ip".into());
            let document = json!({
                "location": self.location,
                "tags": tags,
                "sku": { "name": "Standard" },
                "properties": { "publicIPAllocationMethod": "Static", "idleTimeoutInMinutes": 30 },
            });
            azure.make(&id, into_object(document))?;
        }
        Ok(id)
    }

    fn lay_out_balancer(&self, azure: &mut AzureState, properties: &Value) -> Result<()> {
        let profile = at(properties, "networkProfile/loadBalancerProfile").cloned().unwrap_or_default();
        let managed = at(&profile, "managedOutboundIPs/count").and_then(Value::as_u64).unwrap_or_default();
        for number in 0..managed {
            self.managed_address(azure, number)?;
        }
        let wanted = self.outbound(azure, &profile, managed);
        let balancer = self.balancer();
        let shown = azure.document(&balancer).filter(|_| azure.store.get(&balancer).is_some());
        let held: Vec<String> = shown.as_ref().map(outbound_names).unwrap_or_default();
        let names: Vec<String> = wanted.iter().map(|frontend| name(frontend).to_owned()).collect();
        let settings =
            |member: &str, otherwise: i64| at(&profile, member).and_then(Value::as_i64).unwrap_or(otherwise);
        let ports = settings("allocatedOutboundPorts", 0);
        let idle = settings("idleTimeoutInMinutes", 30);
        let same = |document: &Value| {
            let rule = items(document, "properties/outboundRules").first().cloned().unwrap_or_default();
            at(&rule, "properties/allocatedOutboundPorts").and_then(Value::as_i64) == Some(ports)
                && at(&rule, "properties/idleTimeoutInMinutes").and_then(Value::as_i64) == Some(idle)
        };
        if held == names && shown.as_ref().is_some_and(same) {
            return Ok(());
        }
        let frontends: Vec<Value> = names
            .iter()
            .map(|name| json!({ "id": balancer.child("frontendIPConfigurations", name) }))
            .collect();
        let rule = json!({ "name": "aksOutboundRule", "properties": {
            "frontendIPConfigurations": frontends,
            "backendAddressPool": { "id": balancer.child("backendAddressPools", POOLS[0]) },
            "protocol": "All",
            "allocatedOutboundPorts": ports,
            "idleTimeoutInMinutes": idle,
            "enableTcpReset": true,
        } });
        let mut document = shown.unwrap_or_else(|| {
            json!({
                "location": self.location,
                "tags": self.tags(),
                "sku": { "name": "Standard" },
                "properties": { "backendAddressPools": POOLS.map(|pool| json!({ "name": pool })) },
            })
        });
        let exists = azure.store.get(&balancer).is_some();
        // Frontends of Services stay: they belong to the cloud controller manager.
        let others = items(&document, "properties/frontendIPConfigurations").iter();
        let others: Vec<Value> =
            others.filter(|frontend| !held.iter().any(|held| held == name(frontend))).cloned().collect();
        document["properties"]["frontendIPConfigurations"] = wanted.into_iter().chain(others).collect();
        document["properties"]["outboundRules"] = json!([rule]);
        match exists {
            false => azure.make(&balancer, into_object(document)),
            true => azure
                .ask(azure_engine::state::inner_request::PLATFORM, "PUT", &balancer, None, document)
                .map(drop),
        }
    }

    /// The balancer's frontends towards the outside: managed addresses, given ones, given prefixes.
    fn outbound(&self, azure: &AzureState, profile: &Value, managed: u64) -> Vec<Value> {
        let mut frontends = Vec::new();
        let mut add = |id: &ResourceId, member: &str| {
            let frontend = json!({ "name": id.name(), "properties": { member: { "id": id } } });
            frontends.push(frontend);
        };
        for number in 0..managed {
            add(&self.address_id(azure, number), "publicIPAddress");
        }
        for (path, member) in [
            ("outboundIPs/publicIPs", "publicIPAddress"),
            ("outboundIPPrefixes/publicIPPrefixes", "publicIPPrefix"),
        ] {
            items(profile, path)
                .iter()
                .filter_map(|item| stored_reference(item, "id"))
                .for_each(|id| add(&id, member));
        }
        frontends
    }

    /// The present outbound addresses of the cluster.
    pub(super) fn effective_outbound(&self, azure: &AzureState) -> Vec<Value> {
        let Some(balancer) = azure.document(&self.balancer()) else { return Vec::new() };
        let names = outbound_names(&balancer);
        let frontends = items(&balancer, "properties/frontendIPConfigurations").iter();
        frontends
            .filter(|frontend| names.iter().any(|known| known == name(frontend)))
            .filter_map(|frontend| at(frontend, "properties/publicIPAddress/id"))
            .map(|id| json!({ "id": id }))
            .collect()
    }

    /// Creates a resource of the group, unless it exists.
    ///
    /// # Errors
    /// What its provider refuses.
    pub(super) fn make(&self, azure: &mut AzureState, id: &ResourceId, properties: Value) -> Result<()> {
        if azure.store.get(id).is_some_and(|record| record.state != State::Deleting) {
            return Ok(());
        }
        let document = json!({ "location": self.location, "tags": self.tags(), "properties": properties });
        azure.make(id, into_object(document))
    }
}

/// The frontends that the balancer's outbound rules name.
fn outbound_names(balancer: &Value) -> Vec<String> {
    let rules = items(balancer, "properties/outboundRules").iter();
    let frontends = rules.flat_map(|rule| items(rule, "properties/frontendIPConfigurations"));
    let ids = frontends.filter_map(|frontend| stored_reference(frontend, "id"));
    ids.map(|id| id.name().to_owned()).collect()
}

/// The kubelet identity that a client gives.
pub(super) fn given_identity(properties: &Value) -> Option<ResourceId> {
    stored_reference(properties, "identityProfile/kubeletidentity/resourceId")
}
