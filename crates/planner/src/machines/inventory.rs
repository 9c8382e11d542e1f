//! The machines of a cluster, of every kind, and their nodes.

use std::collections::HashMap;
use std::sync::Arc;

use azure_types::{NetworkInterface, ResourceId, ScaleSet, ScaleSetInstance, VirtualMachine};
use k8s::Node;

use super::backend_pool::PoolMembership;
use super::nodes::NodesByMachine;
use super::{interface, scale_set};
use crate::model::Cluster;
use crate::outcome::{Document, Step};

/// The machines that Azure reports, of every kind.
///
/// An instance of a uniform scale set is a member of pools by its own document and its set's model. Every other machine
/// (standalone, of an availability set, of a flexible scale set) is a member by its network interface.
#[derive(Debug, Clone, Default)]
pub struct Machines {
    /// The scale sets, each with its instances; flexible ones have none.
    pub scale_sets: Vec<(Arc<ScaleSet>, Vec<Arc<ScaleSetInstance>>)>,
    /// The network interfaces in the resource groups of virtual machines that are nodes.
    pub interfaces: Vec<Arc<NetworkInterface>>,
    /// The virtual machines of flexible scale sets and others, which name their set.
    pub virtual_machines: Vec<Arc<VirtualMachine>>,
}

impl Machines {
    /// Plans the membership of all machines in these pools: models, then instances, then interfaces. `nodes` are all
    /// nodes.
    pub fn plan(&self, cluster: &Cluster, memberships: &[PoolMembership], nodes: &[Arc<Node>]) -> Vec<Step> {
        let mut steps = Vec::new();
        let by_machine = NodesByMachine::new(cluster, nodes);
        for (set, instances) in &self.scale_sets {
            let virtual_machines = &self.virtual_machines;
            steps.extend(scale_set::plan_model(cluster, set, virtual_machines, memberships, nodes));
            steps.extend(scale_set::instances_of(&by_machine, set, instances, memberships));
        }
        steps.extend(interface::interfaces_of(&by_machine, &self.interfaces, memberships));
        steps
    }

    /// Applies steps that write machines' documents; versions stay unchanged.
    pub(crate) fn apply(&mut self, steps: &[Step]) {
        let written = steps.iter().filter_map(|step| Some((&step.target, step.document.as_ref()?)));
        let written: HashMap<&ResourceId, &Document> = written.collect();
        let of = |id: &Option<ResourceId>| id.as_ref().and_then(|id| written.get(id)).copied();
        for (set, instances) in &mut self.scale_sets {
            if let Some(Document::ScaleSet(part)) = of(&set.id) {
                let profile = part.properties.as_ref().and_then(|p| p.virtual_machine_profile.clone());
                let properties = Arc::make_mut(set).properties.as_mut();
                let own = properties.and_then(|p| p.virtual_machine_profile.as_mut());
                if let (Some(own), Some(profile)) = (own, profile) {
                    own.network_profile = profile.network_profile;
                }
            }
            for instance in instances {
                if let Some(Document::ScaleSetInstance(part)) = of(&instance.id) {
                    let profile =
                        part.properties.as_ref().and_then(|p| p.network_profile_configuration.clone());
                    if let Some(properties) = Arc::make_mut(instance).properties.as_mut() {
                        properties.network_profile_configuration = profile;
                    }
                }
            }
        }
        for interface in &mut self.interfaces {
            if let Some(Document::NetworkInterface(document)) = of(&interface.id) {
                *interface = Arc::new(NetworkInterface::clone(document));
            }
        }
    }
}
