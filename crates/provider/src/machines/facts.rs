//! The description of a machine: its document, its interfaces and its public addresses, all from shared lists.

use std::collections::HashMap;
use std::sync::Arc;

use azure_types::{NetworkInterface, ResourceId, VirtualMachine};
use cloud::{Instance, LogicalTime};
use k8s::{Node, names};
use planner::instance::{self, MachineDocument, MachineName};

use crate::failure::{Failure, Kind};
use crate::observed::{InstanceInterface, MachineAnswer};
use crate::provider::Inner;

/// Whether a node is not initialised yet.
fn is_new(node: &Node) -> bool {
    node.has_taint(names::TAINT_UNINITIALIZED)
}

/// Whether an interface belongs to an instance of a uniform scale set.
fn is_of_instance(interface: &ResourceId) -> bool {
    instance::of_interface(interface).is_some()
}

/// The ids of the public IPs of an interface.
fn public_ips_of(interface: &NetworkInterface) -> Vec<&ResourceId> {
    let properties = interface.properties.iter();
    let configurations = properties.flat_map(|properties| properties.ip_configurations.iter().flatten());
    let public = configurations.filter_map(|one| one.properties.as_ref()?.public_ip_address.as_ref());
    public.filter_map(|public| public.id.as_ref()).collect()
}

impl Inner {
    /// Describes a virtual machine for its node. Lists of a resource group contain no instance views; the fault domain
    /// of a machine outside of zones is read separately.
    pub(super) async fn describe_virtual_machine(
        &self,
        node: &Node,
        document: &VirtualMachine,
        newer_than: LogicalTime,
    ) -> Result<Instance, Failure> {
        let mut fault_domain = None;
        if let Some(id) = document.id.as_ref().filter(|_| instance::needs_fault_domain(document)) {
            // A node's zone is written once; afterwards it is only a by-product of the addresses.
            let known = (!is_new(node)).then_some(self.observed.started);
            for age in known.into_iter().chain([newer_than]) {
                fault_domain = match self.fault_domain(id, age).await {
                    // The cached view may be of an earlier machine of the same name.
                    Err(failure) if failure.is_not_found() && age != newer_than => None,
                    answer => answer?,
                };
                if fault_domain.is_some() {
                    break;
                }
            }
        }
        self.describe_by(node, document, fault_domain, newer_than).await
    }

    /// The fault domain of a machine, if it has one. A machine that Azure does not return by itself is a failure: its
    /// fault domain is unknown, even if a list contains the machine.
    async fn fault_domain(&self, id: &ResourceId, newer_than: LogicalTime) -> Result<Option<i32>, Failure> {
        if let Some(set) = self.flexible_set_of(id).await? {
            let view = self.observed.flexible_views(&set).get(id.name(), newer_than).await?;
            return Ok(view.and_then(|machine| machine.view()?.platform_fault_domain));
        }
        let reading = self.observed.read_machine(&MachineName::Machine(id.clone()), newer_than).await?;
        match &reading.answer {
            MachineAnswer::Exists { fault_domain, .. } => Ok(*fault_domain),
            MachineAnswer::Gone(answer) => Err(Failure::new(
                Kind::NotFound,
                format!(
                    "the fault domain of {id} is not known yet: a list shows it, but Azure answers: {answer}"
                ),
            )),
        }
    }

    /// The ages that data about a machine's addresses may have, in the order in which they are tried. Instance ids are
    /// never reused: for a new instance the cached interfaces suffice, and are read again only if there are none. Names
    /// of virtual machines are reused, and addresses may change later.
    fn ages<M: MachineDocument>(
        &self,
        node: &Node,
        document: &M,
        newer_than: LogicalTime,
    ) -> impl Iterator<Item = LogicalTime> + use<M> {
        let is_instance = document.interfaces().iter().any(|nic| nic.id.as_ref().is_some_and(is_of_instance));
        (is_instance && is_new(node)).then_some(self.observed.started).into_iter().chain([newer_than])
    }

    /// Describes a machine for its node.
    pub(super) async fn describe_by<M: MachineDocument + Sync>(
        &self,
        node: &Node,
        document: &M,
        fault_domain: Option<i32>,
        newer_than: LogicalTime,
    ) -> Result<Instance, Failure> {
        for age in self.ages(node, document, newer_than) {
            let interfaces = self.interfaces(document, age).await?;
            let public = self.public_addresses(&interfaces, age).await?;
            let interfaces: Vec<&NetworkInterface> = interfaces.iter().map(|nic| &**nic).collect();
            let address_of = |id: &ResourceId| public.get(id).cloned().flatten();
            let location = &self.cluster.config.location;
            let facts =
                instance::describe(node.name(), document, fault_domain, &interfaces, &address_of, location)
                    .map_err(|error| Failure::new(Kind::Unavailable, error.to_string()))?;
            // A list that was read while the machine was created lacks its interface, or its addresses: a node
            // described by it would lose the addresses that its kubelet reported.
            let has_address = facts.addresses.iter().any(|address| address.kind == "InternalIP");
            let is_whole = public.values().all(Option::is_some);
            if has_address && (is_whole || age == newer_than) {
                return Ok(Instance {
                    provider_id: facts.provider_id,
                    instance_type: facts.instance_type,
                    zone: facts.zone,
                    region: facts.region,
                    addresses: facts.addresses,
                    ..Instance::default()
                });
            }
        }
        let id = document.id().map(ToString::to_string).unwrap_or_default();
        Err(Failure::new(Kind::Unavailable, format!("Azure shows no interface of {id} with an address yet")))
    }

    /// The interfaces that describe a machine.
    async fn interfaces<M: MachineDocument + Sync>(
        &self,
        document: &M,
        newer_than: LogicalTime,
    ) -> Result<Vec<Arc<NetworkInterface>>, Failure> {
        let mut found = Vec::new();
        for id in instance::described_interfaces(document) {
            let interface = match instance::of_interface(id) {
                Some(MachineName::Instance(name)) => {
                    let known = self.observed.interfaces(&name.scale_set);
                    let known = known.get(&InstanceInterface::name_of(id), newer_than).await?;
                    known.map(|known| Arc::new(known.document()))
                }
                _ => {
                    let group = MachineName::Machine(id.clone()).group();
                    self.observed.machine_interfaces(&group).get(id.name(), newer_than).await?
                }
            };
            found.extend(interface);
        }
        Ok(found)
    }

    /// The public addresses of interfaces that reference them by id; `None` for one that no list contains.
    async fn public_addresses(
        &self,
        interfaces: &[Arc<NetworkInterface>],
        newer_than: LogicalTime,
    ) -> Result<HashMap<ResourceId, Option<String>>, Failure> {
        let mut found = HashMap::new();
        for id in interfaces.iter().flat_map(|nic| public_ips_of(nic)) {
            let known = match instance::of_interface(id) {
                Some(MachineName::Instance(name)) => {
                    self.observed.instance_public_ips(&name.scale_set).get(id.as_str(), newer_than).await?
                }
                _ => {
                    let group = MachineName::Machine(id.clone()).group();
                    self.observed.machine_public_ips(&group).get(id.name(), newer_than).await?
                }
            };
            let address = known.and_then(|known| known.properties.as_ref()?.ip_address.clone());
            found.insert(id.clone(), address);
        }
        Ok(found)
    }
}
