//! Where a cluster needs its actions.

use std::collections::BTreeSet;

use azure_types::ResourceId;
use cloud_config::VmType;
use k8s::{Node, Service};
use planner::{ServiceIntent, ServiceRemoval};

use super::subject::Subject;
use crate::azure::Place;

/// The UID of Services that the API server has not stored yet: names in Azure depend on it, rights do not.
const EXAMPLE_UID: &str = "00000000-0000-4000-8000-000000000000";

/// The Service with a UID.
pub(super) fn with_uid(service: &Service) -> Service {
    let mut service = service.clone();
    service.metadata.uid.get_or_insert_with(|| EXAMPLE_UID.to_owned());
    service
}

/// The machine of a node, by its provider ID.
fn machine(node: &Node) -> Option<ResourceId> {
    ResourceId::parse(node.spec.provider_id.strip_prefix("azure://")?).ok()
}

/// Whether a node's machine is a virtual machine, not an instance of a scale set.
pub(super) fn is_virtual_machine(node: &Node) -> bool {
    machine(node)
        .is_some_and(|id| id.resource_type().eq_ignore_ascii_case("Microsoft.Compute/virtualMachines"))
}

/// The scopes of all places.
pub(super) struct Scopes<'a> {
    cluster: &'a planner::Cluster,
    public_ips: BTreeSet<ResourceId>,
    private_links: BTreeSet<ResourceId>,
    prefixes: BTreeSet<ResourceId>,
    scale_sets: BTreeSet<ResourceId>,
    virtual_machines: BTreeSet<ResourceId>,
}

impl<'a> Scopes<'a> {
    pub(super) fn of(subject: &Subject<'a>, notes: &mut Vec<String>) -> Self {
        let cluster = subject.cluster;
        let config = &cluster.config;
        // Nodes without a provider ID are looked up by name in the cluster's group.
        let group = ResourceId::group(&config.subscription_id, &config.resource_group);
        let mut scopes = Self {
            cluster,
            public_ips: [cluster.network_group(&config.resource_group)].into(),
            private_links: [cluster.network_group(config.private_link_service_resource_group())].into(),
            prefixes: BTreeSet::new(),
            scale_sets: [group.clone()].into(),
            virtual_machines: [group].into(),
        };
        for service in subject.services.iter().filter(|service| service.wants_load_balancer()) {
            let service = with_uid(service);
            let owner = ServiceRemoval::of(cluster, &service);
            scopes.public_ips.extend(owner.public_ip_groups);
            let Ok(intent) = ServiceIntent::from_service(cluster, &service) else { continue };
            scopes.prefixes.extend(intent.public_ip_prefixes().cloned());
            if intent.private_link.is_some() {
                scopes.private_links.extend(owner.private_link_groups);
            }
        }
        // The provider ID of an instance of a flexible set does not show the set.
        let may_be_flexible = config.enable_vmss_flex_nodes || config.vm_type == VmType::VmssFlex;
        for node in subject.nodes {
            match machine(node) {
                Some(id) => {
                    let group = id.group_name().unwrap_or_default().to_lowercase();
                    let group = ResourceId::group(id.subscription_id(), &group);
                    if !is_virtual_machine(node) {
                        scopes.scale_sets.insert(group);
                        continue;
                    }
                    if may_be_flexible {
                        scopes.scale_sets.insert(group.clone());
                    }
                    scopes.virtual_machines.insert(group);
                }
                None if node.spec.provider_id.is_empty() => {}
                None => {
                    notes.push(format!("node {} is not on Azure: {}", node.name(), node.spec.provider_id))
                }
            }
        }
        scopes
    }

    /// The scopes of a place; none if azure.json does not configure it.
    pub(super) fn of_place(&self, place: Place) -> Vec<ResourceId> {
        let (cluster, config) = (self.cluster, &self.cluster.config);
        let group_of =
            |resource: Option<ResourceId>| resource.and_then(|id| id.parent()).into_iter().collect();
        match place {
            Place::Subscription => vec![ResourceId::subscription(config.network_subscription_id())],
            Place::LoadBalancers => vec![cluster.network_group(config.load_balancer_resource_group())],
            Place::PublicIps => self.public_ips.iter().cloned().collect(),
            Place::Prefixes => self.prefixes.iter().cloned().collect(),
            Place::SecurityGroup => group_of(cluster.security_group_id()),
            Place::VirtualNetwork => vec![cluster.network_group(config.vnet_resource_group())],
            Place::PrivateLinks => self.private_links.iter().cloned().collect(),
            Place::ScaleSets => self.scale_sets.iter().cloned().collect(),
            Place::VirtualMachines => self.virtual_machines.iter().cloned().collect(),
            Place::RouteTable => group_of(cluster.route_table_id()),
            // Of other programs.
            Place::Registry
            | Place::Clusters
            | Place::MachineSubscription
            | Place::Disks
            | Place::EncryptionSets
            | Place::DiskAccesses
            | Place::Accounts
            | Place::ShareNetworks
            | Place::DnsZones => Vec::new(),
        }
    }
}
