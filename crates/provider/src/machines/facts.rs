//! What a machine is like: its document, its interfaces and its public addresses, all from lists that many share.

use std::collections::HashMap;
use std::sync::Arc;

use azure_types::{NetworkInterface, ResourceId, VirtualMachine};
use cloud::{Instance, LogicalTime};
use k8s::{Node, names};
use planner::instance::{self, MachineDocument, MachineName};

use crate::failure::{Failure, Kind};
use crate::observed::{InstanceInterface, Said};
use crate::provider::Inner;

/// Whether a node is still to be initialised.
fn is_new(node: &Node) -> bool {
    node.has_taint(names::TAINT_UNINITIALIZED)
}

/// Whether an interface is that of an instance of a uniform scale set.
fn is_of_instance(interface: &ResourceId) -> bool {
    instance::of_interface(interface).is_some()
}

/// The ids of the public IPs that an interface has.
fn public_ips_of(interface: &NetworkInterface) -> Vec<&ResourceId> {
    let properties = interface.properties.iter();
    let configurations = properties.flat_map(|properties| properties.ip_configurations.iter().flatten());
    let public = configurations.filter_map(|one| one.properties.as_ref()?.public_ip_address.as_ref());
    public.filter_map(|public| public.id.as_ref()).collect()
}

impl Inner {
    /// A virtual machine as its node should describe it. Lists of a resource group come without views; a machine that
    /// is in no zone is asked for its fault domain.
    pub(super) async fn describe_virtual_machine(
        &self,
        node: &Node,
        document: &VirtualMachine,
        newer_than: LogicalTime,
    ) -> Result<Instance, Failure> {
        let mut fault_domain = None;
        if let Some(id) = document.id.as_ref().filter(|_| instance::needs_fault_domain(document)) {
            // A node's zone is written once; later this is no more than a part of what is described with its addresses.
            let known = (!is_new(node)).then_some(self.observed.started);
            for age in known.into_iter().chain([newer_than]) {
                fault_domain = match self.fault_domain(id, age).await {
                    // What was known may be of a machine that had the name before.
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

    /// The fault domain of a machine, if Azure gives it one. A machine that Azure does not show by itself is a failure:
    /// nothing is known of its fault domain, whatever a list says of the machine.
    async fn fault_domain(&self, id: &ResourceId, newer_than: LogicalTime) -> Result<Option<i32>, Failure> {
        if let Some(set) = self.flexible_set_of(id).await? {
            let view = self.observed.flexible_views(&set).get(id.name(), newer_than).await?;
            return Ok(view.and_then(|machine| machine.view()?.platform_fault_domain));
        }
        let sighting = self.observed.sighting(&MachineName::Machine(id.clone()), newer_than).await?;
        match &sighting.said {
            Said::There { fault_domain, .. } => Ok(*fault_domain),
            Said::Gone(answer) => Err(Failure::new(
                Kind::NotFound,
                format!(
                    "the fault domain of {id} is not known yet: a list shows it, but Azure answers: {answer}"
                ),
            )),
        }
    }

    /// How old what is known of a machine's addresses may be, in the order in which it is tried. Numbers of instances never
    /// recur: while a new one starts, what is known of its interfaces will do, and they are read again only if nothing is.
    /// Names of virtual machines do recur, and addresses may change later.
    fn ages<M: MachineDocument>(
        &self,
        node: &Node,
        document: &M,
        newer_than: LogicalTime,
    ) -> impl Iterator<Item = LogicalTime> + use<M> {
        let is_instance = document.interfaces().iter().any(|nic| nic.id.as_ref().is_some_and(is_of_instance));
        (is_instance && is_new(node)).then_some(self.observed.started).into_iter().chain([newer_than])
    }

    /// A machine as its node should describe it.
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
            // A list that was read while the machine was made does not show its interface, or not its addresses: a node
            // that is described by it would lose the addresses that its kubelet told.
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

    /// The interfaces by which a machine is described.
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

    /// The public addresses that interfaces name by id alone; `None` where no list shows one.
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
