//! The observed state of machines: lists of many machines, and Azure's answers for single ones.

use std::sync::Arc;

use arm::{ApiVersion, Class};
use azure_types::{
    AvailabilitySet, NetworkInterface, PublicIpAddress, ResourceId, ScaleSet, ScaleSetInstance,
    VirtualMachine,
};
use cloud::LogicalTime;
use planner::instance::{self, MachineDocument, MachineName};
use serde::de::DeserializeOwned;

use super::compact::{self, InstanceInterface};
use super::list_request::{ListRequest, ResourceType as _, group_list, named};
use super::{Observed, ResourceList, by_id, list_of};
use crate::azure::Azure;
use crate::failure::Failure;

/// Compute's text, with status 400, for an instance that was deleted a moment ago; later it answers 404.
const NO_SUCH_INSTANCE: &str = "not an active Virtual Machine Scale Set VM instanceId";
/// The query for a machine's power state and fault domain.
const VIEW: (&str, &str) = ("$expand", "instanceView");

/// Azure's answer for a machine that was requested by itself.
#[derive(Debug)]
pub(crate) struct MachineReading {
    /// When it was requested.
    pub(crate) read: LogicalTime,
    pub(crate) answer: MachineAnswer,
}

/// Whether the machine exists.
#[derive(Debug)]
pub(crate) enum MachineAnswer {
    /// It exists. Instances of uniform scale sets are requested without view, so that their power state is unknown.
    Exists { shut_down: bool, fault_domain: Option<i32> },
    /// It does not exist, or is being deleted; with Azure's words.
    Gone(String),
}

/// Requests one machine.
async fn read_machine<T: MachineDocument + DeserializeOwned>(
    azure: &Azure,
    id: &ResourceId,
    query: &[(&str, &str)],
) -> Result<Arc<MachineReading>, Failure> {
    let read = LogicalTime::now();
    let result: Result<T, Failure> = azure.get_required(id, ApiVersion::COMPUTE, query, Class::Repair).await;
    let answer = match result {
        Ok(document) if instance::is_being_deleted(&document) => {
            MachineAnswer::Gone("Azure is deleting it".to_owned())
        }
        Ok(document) => MachineAnswer::Exists {
            shut_down: instance::is_shut_down(&document),
            fault_domain: document.view().and_then(|view| view.platform_fault_domain),
        },
        Err(failure) if failure.is_not_found() || failure.message.contains(NO_SUCH_INSTANCE) => {
            MachineAnswer::Gone(failure.message)
        }
        Err(failure) => return Err(failure),
    };
    Ok(Arc::new(MachineReading { read, answer }))
}

impl Observed {
    /// The scale sets of a resource group.
    pub(crate) fn scale_sets(&self, group: &ResourceId) -> Arc<ResourceList<ScaleSet>> {
        list_of(&self.scale_sets, group, || group_list(&self.azure, group))
    }

    /// The instances of a scale set, by instance id. A missing scale set is a failure that says so.
    pub(crate) fn instances(&self, scale_set: &ResourceId) -> Arc<ResourceList<ScaleSetInstance>> {
        list_of(&self.instances, scale_set, || {
            let request = ListRequest {
                query: if self.without_views { Vec::new() } else { vec![owned(VIEW)] },
                ..ListRequest::below(scale_set, "virtualMachines", ApiVersion::COMPUTE)
            };
            let recurring = Arc::clone(&self.recurring);
            ResourceList::new(
                |document: &ScaleSetInstance| named(document.instance_id.as_ref(), document.id.as_ref()),
                request.fetch(&self.azure, move |machine| compact::instance(machine, &recurring)),
            )
        })
    }

    /// An instance reduced to what the list of its scale set keeps.
    pub(crate) fn keep_instance(&self, machine: ScaleSetInstance) -> ScaleSetInstance {
        compact::instance(machine, &self.recurring)
    }

    /// The machines of a flexible scale set by name, with only their views: Azure returns nothing else with views.
    pub(crate) fn flexible_views(&self, scale_set: &ResourceId) -> Arc<ResourceList<VirtualMachine>> {
        list_of(&self.flexible_views, scale_set, || {
            let group =
                ResourceId::group(scale_set.subscription_id(), scale_set.group_name().unwrap_or_default());
            let filter = format!("'virtualMachineScaleSet/id' eq '{scale_set}'");
            let request = ListRequest {
                query: vec![("$filter", filter), owned(VIEW)],
                class: Class::Refresh,
                ..ListRequest::within::<VirtualMachine>(&group)
            };
            ResourceList::new(VirtualMachine::name, request.fetch(&self.azure, compact::virtual_machine))
        })
    }

    /// Azure's answer for a machine that was requested by itself after `newer_than`. Concurrent callers, and later ones
    /// that accept older data, share one request.
    pub(crate) async fn read_machine(
        &self,
        machine: &MachineName,
        newer_than: LogicalTime,
    ) -> Result<Arc<MachineReading>, Failure> {
        let (azure, id) = (&self.azure, &machine.id());
        let ask = async || match machine {
            MachineName::Instance(_) => read_machine::<ScaleSetInstance>(azure, id, &[]).await,
            MachineName::Machine(_) => read_machine::<VirtualMachine>(azure, id, &[VIEW]).await,
        };
        self.machine_readings.get(id.clone(), |asked| asked.order > newer_than, ask).await
    }

    /// The network interfaces of a scale set's instances. They describe nodes that are new or may have new addresses:
    /// older reads seldom contain a newer machine, and never new addresses.
    pub(crate) fn interfaces(&self, scale_set: &ResourceId) -> Arc<ResourceList<InstanceInterface>> {
        let mut is_new = false;
        let known = list_of(&self.interfaces, scale_set, || {
            is_new = true;
            let request = ListRequest::below(scale_set, "networkInterfaces", ApiVersion::SCALE_SET_NETWORK);
            let keep = |document: NetworkInterface| InstanceInterface::of(&document);
            ResourceList::new(InstanceInterface::name, request.fetch(&self.azure, keep))
        });
        if is_new {
            known.forget_when_unused();
        }
        known
    }

    /// The public addresses of a scale set's instances, by id. They are resources of the scale set, and lists of the
    /// resource group do not contain them.
    pub(crate) fn instance_public_ips(&self, scale_set: &ResourceId) -> Arc<ResourceList<PublicIpAddress>> {
        list_of(&self.instance_public_ips, scale_set, || {
            ListRequest::below(scale_set, "publicIPAddresses", ApiVersion::SCALE_SET_NETWORK)
                .list(&self.azure, |document: &PublicIpAddress| by_id(document.id.as_ref()))
        })
    }

    /// The public IPs that include those of virtual machines. Groups without public IPs of Services have a separate
    /// cache: only machines use it.
    pub(crate) fn machine_public_ips(&self, group: &ResourceId) -> Arc<ResourceList<PublicIpAddress>> {
        if let Some(known) = self.public_ips.lock().get(group) {
            return Arc::clone(known);
        }
        list_of(&self.machine_public_ips, group, || group_list(&self.azure, group))
    }

    /// The network interfaces of a resource group: those of its virtual machines, not of instances.
    pub(crate) fn machine_interfaces(&self, group: &ResourceId) -> Arc<ResourceList<NetworkInterface>> {
        list_of(&self.machine_interfaces, group, || group_list(&self.azure, group))
    }

    /// The cached network interfaces of virtual machines, however old.
    pub(crate) fn cached_machine_interfaces(&self) -> Vec<Arc<NetworkInterface>> {
        self.machine_interfaces.lock().values().flat_map(|known| known.all_cached()).collect()
    }

    /// Marks the interfaces as outdated because a load balancer is new: another client may have deleted the previous
    /// one, and with it the interfaces' references to its pools.
    pub(crate) fn invalidate_machine_interfaces(&self) {
        for known in self.machine_interfaces.lock().values() {
            known.invalidate();
        }
    }

    /// The availability sets of a resource group.
    pub(crate) fn availability_sets(&self, group: &ResourceId) -> Arc<ResourceList<AvailabilitySet>> {
        list_of(&self.availability_sets, group, || group_list(&self.azure, group))
    }

    /// The virtual machines of a resource group.
    pub(crate) fn virtual_machines(&self, group: &ResourceId) -> Arc<ResourceList<VirtualMachine>> {
        list_of(&self.virtual_machines, group, || {
            let request = ListRequest::within::<VirtualMachine>(group);
            ResourceList::new(VirtualMachine::name, request.fetch(&self.azure, compact::virtual_machine))
        })
    }
}

fn owned((key, value): (&'static str, &str)) -> (&'static str, String) {
    (key, value.to_owned())
}
