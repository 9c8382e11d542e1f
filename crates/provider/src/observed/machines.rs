//! The observed state of machines: lists of many machines, and Azure's answers for single ones.

use std::sync::Arc;

use arm::{ApiVersion, Class, Listing};
use azure_types::{
    AvailabilitySet, NetworkInterface, PublicIpAddress, ResourceId, ScaleSet, ScaleSetInstance,
    VirtualMachine,
};
use cloud::LogicalTime;
use planner::instance::{self, MachineDocument, MachineName};
use serde::de::DeserializeOwned;

use super::kept::{self, InstanceInterface};
use super::sighting::{Said, Sighting};
use super::{
    COMPUTE, Observed, OfGroup as _, PLANNED_BY, by_id, cache_of, fetch, group_cache, list, list_kept, named,
};
use crate::azure::Azure;
use crate::failure::{Failure, Kind};
use crate::resource_cache::ResourceCache;

/// Compute's text, with status 400, for an instance that was deleted a moment ago; later it answers 404.
const NO_SUCH_INSTANCE: &str = "not an active Virtual Machine Scale Set VM instanceId";
/// The query for a machine's power state and fault domain.
const VIEW: (&str, &str) = ("$expand", "instanceView");
/// Maximum number of machines whose single answers are kept. They are some hundred bytes each.
const MAX_SIGHTINGS: usize = 8192;

/// Requests one machine.
async fn see<T: MachineDocument + DeserializeOwned>(
    azure: &Azure,
    id: &ResourceId,
    query: &[(&str, &str)],
) -> Result<Sighting, Failure> {
    let read = LogicalTime::now();
    let result: Result<T, Failure> = azure.get_required(id, ApiVersion::COMPUTE, query, Class::Repair).await;
    let said = match result {
        Ok(document) if instance::is_being_deleted(&document) => {
            Said::Gone("Azure is deleting it".to_owned())
        }
        Ok(document) => Said::There {
            shut_down: instance::is_shut_down(&document),
            fault_domain: document.view().and_then(|view| view.platform_fault_domain),
        },
        Err(failure) if failure.is_not_found() || failure.message.contains(NO_SUCH_INSTANCE) => {
            Said::Gone(failure.message)
        }
        Err(failure) => return Err(failure),
    };
    Ok(Sighting { read, said })
}

impl Observed {
    /// The scale sets of a resource group.
    pub(crate) fn scale_sets(&self, group: &ResourceId) -> Arc<ResourceCache<ScaleSet>> {
        cache_of(&self.scale_sets, group, || group_cache(&self.azure, group))
    }

    /// The instances of a scale set, by instance id. A missing scale set is a failure that says so.
    pub(crate) fn instances(&self, scale_set: &ResourceId) -> Arc<ResourceCache<ScaleSetInstance>> {
        cache_of(&self.instances, scale_set, || {
            let listing = Listing::children(scale_set, "virtualMachines");
            let query = if self.without_views { Vec::new() } else { vec![owned(VIEW)] };
            let recurring = Arc::clone(&self.recurring);
            let keep = move |machine| kept::instance(machine, &recurring);
            let (azure, version) = (self.azure.clone(), ApiVersion::COMPUTE);
            ResourceCache::new(
                |document: &ScaleSetInstance| named(document.instance_id.as_ref(), document.id.as_ref()),
                list_kept(azure, listing, version, query, Class::Refresh, |_| false, keep),
            )
        })
    }

    /// An instance reduced to what the list of its scale set keeps.
    pub(crate) fn keep_instance(&self, machine: ScaleSetInstance) -> ScaleSetInstance {
        kept::instance(machine, &self.recurring)
    }

    /// The machines of a flexible scale set by name, with only their views: Azure returns nothing else with views.
    pub(crate) fn flexible_views(&self, scale_set: &ResourceId) -> Arc<ResourceCache<VirtualMachine>> {
        cache_of(&self.flexible_views, scale_set, || {
            let group =
                ResourceId::group(scale_set.subscription_id(), scale_set.group_name().unwrap_or_default());
            let listing = Listing::of(&group, COMPUTE, "virtualMachines");
            let filter = format!("'virtualMachineScaleSet/id' eq '{scale_set}'");
            let query = vec![("$filter", filter), owned(VIEW)];
            let version = ApiVersion::COMPUTE;
            ResourceCache::new(
                |document: &VirtualMachine| named(document.name.as_ref(), document.id.as_ref()),
                list_kept(
                    self.azure.clone(),
                    listing,
                    version,
                    query,
                    Class::Refresh,
                    Failure::is_not_found,
                    kept::virtual_machine,
                ),
            )
        })
    }

    /// Azure's answer for a machine that was requested by itself after `newer_than`. Concurrent callers, and later ones
    /// that accept older data, share one request; a failed request is not cached.
    pub(crate) async fn sighting(
        &self,
        machine: &MachineName,
        newer_than: LogicalTime,
    ) -> Result<Arc<Sighting>, Failure> {
        let id = machine.id();
        {
            let mut all = self.sightings.lock();
            if all.len() >= MAX_SIGHTINGS && !all.contains_key(&id) {
                all.retain(|_, one| Arc::strong_count(one) > 1);
            }
        }
        let is_instance = matches!(machine, MachineName::Instance(_));
        let known = cache_of(&self.sightings, &id, || {
            let (azure, id) = (self.azure.clone(), id.clone());
            let read = move || -> futures::future::BoxFuture<'static, Result<Vec<Sighting>, Failure>> {
                let (azure, id) = (azure.clone(), id.clone());
                Box::pin(async move {
                    let seen = match is_instance {
                        true => see::<ScaleSetInstance>(&azure, &id, &[]).await,
                        false => see::<VirtualMachine>(&azure, &id, &[VIEW]).await,
                    };
                    Ok(vec![seen?])
                })
            };
            ResourceCache::new(|_: &Sighting| String::new(), fetch(read))
        });
        let seen = known.get("", newer_than).await?;
        seen.ok_or_else(|| Failure::new(Kind::Unknown, format!("nothing is known of {id}")))
    }

    /// The network interfaces of a scale set's instances. They describe nodes that are new or may have new addresses:
    /// older reads seldom contain a newer machine, and never new addresses.
    pub(crate) fn interfaces(&self, scale_set: &ResourceId) -> Arc<ResourceCache<InstanceInterface>> {
        let mut is_new = false;
        let known = cache_of(&self.interfaces, scale_set, || {
            is_new = true;
            let listing = Listing::children(scale_set, "networkInterfaces");
            let (azure, version) = (self.azure.clone(), ApiVersion::SCALE_SET_NETWORK);
            let keep = |document: NetworkInterface| InstanceInterface::of(&document);
            let fetch = list_kept(azure, listing, version, Vec::new(), Class::Refresh, |_| false, keep);
            ResourceCache::new(InstanceInterface::name, fetch)
        });
        if is_new {
            known.forget_when_unused();
        }
        known
    }

    /// The public addresses of a scale set's instances, by id. They are resources of the scale set, and lists of the
    /// resource group do not contain them.
    pub(crate) fn instance_public_ips(&self, scale_set: &ResourceId) -> Arc<ResourceCache<PublicIpAddress>> {
        cache_of(&self.instance_public_ips, scale_set, || {
            let listing = Listing::children(scale_set, "publicIPAddresses");
            let id = |document: &PublicIpAddress| by_id(document.id.as_ref());
            let version = ApiVersion::SCALE_SET_NETWORK;
            let fetch = list(self.azure.clone(), listing, version, Vec::new(), Class::Refresh, |_| false);
            ResourceCache::new(id, fetch)
        })
    }

    /// The public IPs that include those of virtual machines. Groups without public IPs of Services have a separate
    /// cache: only machines use it.
    pub(crate) fn machine_public_ips(&self, group: &ResourceId) -> Arc<ResourceCache<PublicIpAddress>> {
        if let Some(known) = self.public_ips.lock().get(group) {
            return Arc::clone(known);
        }
        cache_of(&self.machine_public_ips, group, || group_cache(&self.azure, group))
    }

    /// The network interfaces of a resource group: those of its virtual machines, not of instances.
    pub(crate) fn machine_interfaces(&self, group: &ResourceId) -> Arc<ResourceCache<NetworkInterface>> {
        cache_of(&self.machine_interfaces, group, || group_cache(&self.azure, group))
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
    pub(crate) fn availability_sets(&self, group: &ResourceId) -> Arc<ResourceCache<AvailabilitySet>> {
        cache_of(&self.availability_sets, group, || group_cache(&self.azure, group))
    }

    /// The virtual machines of a resource group.
    pub(crate) fn virtual_machines(&self, group: &ResourceId) -> Arc<ResourceCache<VirtualMachine>> {
        cache_of(&self.virtual_machines, group, || {
            let listing = Listing::of(group, VirtualMachine::NAMESPACE, VirtualMachine::KIND);
            let (azure, version, is_empty) =
                (self.azure.clone(), VirtualMachine::VERSION, Failure::is_not_found);
            let keep = kept::virtual_machine;
            let fetch = list_kept(azure, listing, version, Vec::new(), PLANNED_BY, is_empty, keep);
            ResourceCache::new(VirtualMachine::name, fetch)
        })
    }
}

fn owned((key, value): (&'static str, &str)) -> (&'static str, String) {
    (key, value.to_owned())
}
