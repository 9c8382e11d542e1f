//! The machine of a node from Resource Manager, where instance metadata is not used.
//!
//! Every machine of a cluster runs this, so it reads single documents, and lists only to find a machine that its node
//! does not name yet.

use std::collections::HashMap;

use arm::{ApiVersion, Class, Client, Error, Listing};
use async_trait::async_trait;
use azure_types::{
    NetworkInterface, PublicIpAddress, ResourceId, ScaleSet, ScaleSetInstance, VirtualMachine,
};
use cloud::{Existence, Instance, LogicalTime, Machines, Presence};
use cloud_config::CloudConfig;
use k8s::Node;
use machine::{InstanceName, MachineDocument, ProviderId};
use serde::de::DeserializeOwned;

const COMPUTE: &str = "Microsoft.Compute";
/// Fault domains are only in instance views.
const WITH_VIEW: [(&str, &str); 1] = [("$expand", "instanceView")];

/// Machines from Resource Manager.
#[derive(Debug)]
pub struct ResourceManager {
    client: Client,
    /// The resource group in which machines are found by name.
    group: ResourceId,
    /// The region of machines that do not name theirs.
    location: String,
}

impl ResourceManager {
    /// The machines of the configured resource group.
    pub fn new(client: Client, config: &CloudConfig) -> Self {
        let group = ResourceId::group(&config.subscription_id, &config.resource_group);
        Self { client, group, location: config.location.clone() }
    }

    async fn read<T: DeserializeOwned>(
        &self,
        id: &ResourceId,
        version: ApiVersion,
        query: &[(&str, &str)],
    ) -> Result<Option<T>, Error> {
        match self.client.get_with(id, version, query, Class::Refresh).await {
            Ok(document) => Ok(Some(document)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn list<T: DeserializeOwned>(&self, kind: &str) -> Result<Vec<T>, Error> {
        let listing = Listing::of(&self.group, COMPUTE, kind);
        self.client.list(&listing, ApiVersion::COMPUTE, &[], Class::Refresh).await
    }

    async fn instance(&self, name: &InstanceName) -> Result<Option<ScaleSetInstance>, Error> {
        self.read(&name.id(), ApiVersion::COMPUTE, &WITH_VIEW).await
    }

    async fn virtual_machine(&self, id: &ResourceId) -> Result<Option<VirtualMachine>, Error> {
        self.read(id, ApiVersion::COMPUTE, &WITH_VIEW).await
    }

    /// The machine that the node names, or whose name is the node's.
    async fn found(&self, node: &Node) -> Result<Instance, String> {
        let text = |error: Error| error.to_string();
        let absent = || format!("instance not found: Azure has no machine for the node {}", node.name());
        match machine::parse_provider_id(&node.spec.provider_id) {
            ProviderId::Instance(name) => {
                let document = self.instance(&name).await.map_err(text)?.ok_or_else(absent)?;
                return self.described(node, &document).await;
            }
            ProviderId::Machine(id) => {
                let document = self.virtual_machine(&id).await.map_err(text)?.ok_or_else(absent)?;
                return self.described(node, &document).await;
            }
            ProviderId::Other if node.spec.provider_id.is_empty() => {}
            ProviderId::Unreadable | ProviderId::Other => {
                return Err(format!("spec.providerID {:?} names no machine of Azure", node.spec.provider_id));
            }
        }
        let own = self.group.resource(COMPUTE, "virtualMachines", node.name());
        let document = self.virtual_machine(&own).await.map_err(text)?;
        // A machine's name may be another one's computer name.
        let is_called = |document: &VirtualMachine| {
            document.host_name().is_none() || machine::is_called(document, node.name())
        };
        if let Some(document) = document.filter(is_called) {
            return self.described(node, &document).await;
        }
        let mut sets: Vec<ScaleSet> = self.list("virtualMachineScaleSets").await.map_err(text)?;
        sets.retain(|set| !is_flexible(set));
        for name in machine::candidates_for_node_name(node.name(), &sets) {
            let document = self.instance(&name).await.map_err(text)?;
            if let Some(document) = document.filter(|document| machine::is_called(document, node.name())) {
                return self.described(node, &document).await;
            }
        }
        // Those of flexible scale sets have names of their own.
        let all: Vec<VirtualMachine> = self.list("virtualMachines").await.map_err(text)?;
        let id = all.iter().find(|one| machine::is_called(*one, node.name())).and_then(|one| one.id.clone());
        let document = self.virtual_machine(&id.ok_or_else(absent)?).await.map_err(text)?;
        self.described(node, &document.ok_or_else(absent)?).await
    }

    async fn described(
        &self,
        node: &Node,
        document: &(impl MachineDocument + Sync),
    ) -> Result<Instance, String> {
        let text = |error: Error| error.to_string();
        let mut interfaces = Vec::new();
        for id in machine::described_interfaces(document) {
            let interface: Option<NetworkInterface> =
                self.read(id, network_version(id), &[]).await.map_err(text)?;
            interfaces.extend(interface);
        }
        let mut public = HashMap::new();
        for id in interfaces.iter().flat_map(public_ips_of) {
            let found: Option<PublicIpAddress> =
                self.read(id, network_version(id), &[]).await.map_err(text)?;
            let address = found.and_then(|found| found.properties?.ip_address);
            public.insert(id.clone(), address);
        }
        let of_public = |id: &ResourceId| public.get(id).cloned().flatten();
        let interfaces: Vec<&NetworkInterface> = interfaces.iter().collect();
        let facts = machine::describe(node.name(), document, None, &interfaces, &of_public, &self.location)
            .map_err(|error| error.to_string())?;
        // A node described by it would lose the addresses that its kubelet reported.
        if !facts.addresses.iter().any(|address| address.kind == "InternalIP") {
            return Err(format!("Azure shows no interface of {} with an address yet", facts.provider_id));
        }
        Ok(Instance {
            provider_id: facts.provider_id,
            instance_type: facts.instance_type,
            zone: facts.zone,
            region: facts.region,
            addresses: facts.addresses,
            ..Instance::default()
        })
    }
}

/// Whether the machines of a scale set are virtual machines. Azure refuses requests for an instance of such a set.
fn is_flexible(set: &ScaleSet) -> bool {
    let mode = set.properties.as_ref().and_then(|properties| properties.orchestration_mode.as_ref());
    mode.is_some_and(|mode| mode.is("Flexible"))
}

/// Only one API version serves interfaces and public IPs of a uniform scale set's instances.
fn network_version(id: &ResourceId) -> ApiVersion {
    match machine::of_interface(id) {
        Some(_) => ApiVersion::SCALE_SET_NETWORK,
        None => ApiVersion::NETWORK,
    }
}

/// The IDs of the public IPs of an interface.
fn public_ips_of(interface: &NetworkInterface) -> impl Iterator<Item = &ResourceId> {
    let properties = interface.properties.iter();
    let configurations = properties.flat_map(|properties| properties.ip_configurations.iter().flatten());
    configurations.filter_map(|one| one.properties.as_ref()?.public_ip_address.as_ref()?.id.as_ref())
}

#[async_trait]
impl Machines for ResourceManager {
    /// A node manager deletes no nodes, and never needs this.
    async fn presence(&self, _: &Node, _: LogicalTime) -> Existence<Presence> {
        Existence::Present(Presence { shut_down: false })
    }

    async fn describe(&self, node: &Node, _: LogicalTime) -> Existence<Instance> {
        self.found(node).await.map_or_else(Existence::Unknown, Existence::Present)
    }
}
