//! Uniform scale sets: membership in pools, written on the model and on instances.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use azure_types::{
    InterfaceConfiguration, InterfaceConfigurations, ResourceId, ScaleSet, ScaleSetInstance,
    ScaleSetInstanceProperties, ScaleSetIpConfiguration, ScaleSetMachineProfile, ScaleSetProperties,
    SubResource, Word,
};
use k8s::Node;

use crate::backend_pool::is_eligible;
pub use crate::backend_pool::{PoolMembership, eligible_nodes};
use crate::cluster::{Cluster, Family};
use crate::instance::{self, ProviderId};
use crate::plan::{Action, Document, Purpose, Step};

/// The image of Windows Server 2019, whose machines cannot have IPv6 members.
const WINDOWS_2019_IMAGE: &str = "windows-2019-containerd";
/// The version of Windows Server 2019.
const WINDOWS_2019_VERSION: &str = "17763.";

/// Whether the machines of a scale set are standalone ones, whose interfaces are resources of their own.
pub fn is_flexible(scale_set: &ScaleSet) -> bool {
    let mode = scale_set.properties.as_ref().and_then(|p| p.orchestration_mode.as_ref());
    mode.is_some_and(|mode| mode.is("Flexible"))
}

/// Whether this is a uniform scale set that nobody is deleting.
fn is_usable(scale_set: &ScaleSet) -> bool {
    let Some(properties) = &scale_set.properties else { return false };
    let deleting = properties.provisioning_state.as_ref().is_some_and(|state| state.is("Deleting"));
    !is_flexible(scale_set) && !deleting
}

fn is_windows_2019(scale_set: &ScaleSet) -> bool {
    let profile = scale_set.properties.as_ref().and_then(|p| p.virtual_machine_profile.as_ref());
    let image = profile.and_then(|p| p.storage_profile.as_ref()).and_then(|p| p.image_reference.as_ref());
    let Some(id) = image.and_then(|image| image.id.as_deref()) else { return false };
    let segments: Vec<&str> = id.rsplit('/').take(3).collect();
    matches!(segments.as_slice(), [version, _, image]
        if image.eq_ignore_ascii_case(WINDOWS_2019_IMAGE) && version.starts_with(WINDOWS_2019_VERSION))
}

/// The interface that pool membership is written on: the only one or the primary one.
fn primary_interface(interfaces: &mut [InterfaceConfiguration]) -> Option<&mut InterfaceConfiguration> {
    if let [_] = interfaces {
        return interfaces.first_mut();
    }
    interfaces
        .iter_mut()
        .find(|interface| interface.properties.as_ref().is_some_and(|p| p.primary == Some(true)))
}

fn is_ipv6(configuration: &ScaleSetIpConfiguration) -> bool {
    let properties = configuration.properties.as_ref();
    properties.and_then(|p| p.private_ip_address_version.as_ref()).is_some_and(|version| version.is("IPv6"))
}

/// The address that is a member of a family's pools: for IPv4 the only or the primary one, for IPv6 the
/// first of that family.
fn address_of(
    interface: &mut InterfaceConfiguration,
    family: Family,
) -> Option<&mut ScaleSetIpConfiguration> {
    let addresses = interface.properties.as_mut()?.ip_configurations.as_mut()?;
    match family {
        Family::V6 => addresses.iter_mut().find(|address| is_ipv6(address)),
        Family::V4 if addresses.len() == 1 => addresses.first_mut(),
        Family::V4 => addresses
            .iter_mut()
            .find(|address| address.properties.as_ref().is_some_and(|p| p.primary == Some(true))),
    }
}

/// The name of the load balancer of a pool, such that the two of one cluster count as one.
fn balancer_of(pool: &ResourceId) -> String {
    let name = pool.parent().map(|parent| parent.name().to_ascii_lowercase()).unwrap_or_default();
    name.strip_suffix("-internal").map(str::to_owned).unwrap_or(name)
}

/// Where a machine stands with regard to a pool.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It is a member.
    Member,
    /// It is not, and nothing keeps it from being one.
    Free,
    /// It has no address of the pool's family.
    NoAddress,
    /// It is a member of the pools of another load balancer, of this name.
    Elsewhere(String),
}

/// Where a machine stands with regard to a pool.
pub(crate) fn place_of(machine: &ScaleSetInstance, membership: &PoolMembership) -> Place {
    let interfaces = machine.properties.as_ref().and_then(|p| p.network_profile_configuration.clone());
    let mut list = interfaces.and_then(|i| i.network_interface_configurations).unwrap_or_default();
    let address = primary_interface(&mut list).and_then(|interface| address_of(interface, membership.family));
    let Some(address) = address else { return Place::NoAddress };
    let properties = address.properties.as_ref();
    let pools = properties.and_then(|p| p.load_balancer_backend_address_pools.as_deref()).unwrap_or_default();
    if pools.iter().any(|pool| pool.id.as_ref() == Some(&membership.pool)) {
        return Place::Member;
    }
    let balancer = balancer_of(&membership.pool);
    let other = pools.iter().filter_map(|pool| pool.id.as_ref()).find(|id| balancer_of(id) != balancer);
    let name = other.and_then(|id| id.parent()).map(|parent| parent.name().to_owned());
    name.map_or(Place::Free, Place::Elsewhere)
}

/// What a machine should do about a pool.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wish {
    Join,
    Leave,
}

/// Brings the memberships of one machine (or model) to what is wanted; says what changed.
fn change(
    interfaces: &mut InterfaceConfigurations,
    memberships: &[PoolMembership],
    wish: impl Fn(&PoolMembership) -> Option<Wish>,
) -> Vec<String> {
    let mut changes = Vec::new();
    let Some(list) = interfaces.network_interface_configurations.as_mut() else { return changes };
    let Some(interface) = primary_interface(list) else { return changes };
    for membership in memberships {
        let Some(wish) = wish(membership) else { continue };
        let Some(address) = address_of(interface, membership.family) else { continue };
        let properties = address.properties.get_or_insert_default();
        let pools = properties.load_balancer_backend_address_pools.get_or_insert_default();
        let is_member = |pool: &SubResource| pool.id.as_ref() == Some(&membership.pool);
        let balancer = balancer_of(&membership.pool);
        let told = format!(
            "backend pool {} of load balancer {}",
            membership.pool.name(),
            membership.pool.parent().as_ref().map(ResourceId::name).unwrap_or_default()
        );
        match wish {
            Wish::Join if pools.iter().any(is_member) => {}
            // A machine serves one pair of load balancers: whoever came first keeps it.
            Wish::Join
                if pools.iter().filter_map(|p| p.id.as_ref()).any(|id| balancer_of(id) != balancer) => {}
            Wish::Join => {
                pools.push(SubResource::to(membership.pool.clone()));
                changes.push(format!("joins {told}"));
            }
            Wish::Leave => {
                let before = pools.len();
                pools.retain(|pool| !is_member(pool));
                if pools.len() < before {
                    changes.push(format!("leaves {told}"));
                }
            }
        }
    }
    changes
}

/// Which nodes are machines of one scale set.
struct Machines<'a> {
    by_instance: HashMap<&'a str, &'a Node>,
    by_name: HashMap<String, &'a Node>,
}

/// All nodes by the machine that they are.
struct NodesByMachine<'a> {
    /// (scale set, instance id) of nodes with a provider id.
    identified: Vec<(ResourceId, String, &'a Node)>,
    /// Nodes that are not initialised yet, by lower-case name.
    unnamed: HashMap<String, &'a Node>,
}

impl<'a> NodesByMachine<'a> {
    fn new(nodes: &'a [Arc<Node>]) -> Self {
        let mut found = Self { identified: Vec::new(), unnamed: HashMap::new() };
        for node in nodes {
            if node.spec.provider_id.is_empty() {
                found.unnamed.insert(node.name().to_ascii_lowercase(), node.as_ref());
            } else if let ProviderId::Instance(machine) = instance::parse_provider_id(&node.spec.provider_id)
            {
                found.identified.push((machine.scale_set, machine.instance_id, node.as_ref()));
            }
        }
        found
    }

    fn of(&self, scale_set: &ResourceId) -> Machines<'_> {
        Machines {
            by_instance: self
                .identified
                .iter()
                .filter(|(id, ..)| id == scale_set)
                .map(|(_, instance, node)| (instance.as_str(), *node))
                .collect(),
            by_name: self.unnamed.clone(),
        }
    }
}

impl Machines<'_> {
    fn node(&self, instance: &ScaleSetInstance) -> Option<&Node> {
        let id = instance.instance_id.as_deref().or_else(|| instance.id.as_ref().map(ResourceId::name))?;
        if let Some(node) = self.by_instance.get(id) {
            return Some(node);
        }
        let computer = instance.properties.as_ref()?.os_profile.as_ref()?.computer_name.as_deref()?;
        self.by_name.get(&computer.to_ascii_lowercase()).copied()
    }
}

/// Whether any eligible node is a machine of this scale set.
fn has_eligible_node(cluster: &Cluster, scale_set: &ScaleSet, nodes: &[Arc<Node>]) -> bool {
    nodes.iter().filter(|node| is_eligible(cluster, node)).any(|node| {
        match instance::parse_provider_id(&node.spec.provider_id) {
            ProviderId::Instance(machine) => Some(&machine.scale_set) == scale_set.id.as_ref(),
            ProviderId::Machine(_) => false,
            ProviderId::Other => {
                node.spec.provider_id.is_empty()
                    && instance::instance_id_of_node_name(node.name(), scale_set).is_some()
            }
        }
    })
}

/// Plans a scale set's model, so that new machines join at once (or no machine refers to a pool that is
/// about to go). `nodes` are all nodes. `None` where nothing differs or the set is not to be touched:
/// flexible, being deleted, in another resource group, on another load balancer.
pub fn plan_model(
    cluster: &Cluster,
    observed: &ScaleSet,
    memberships: &[PoolMembership],
    nodes: &[Arc<Node>],
) -> Option<Step> {
    let id = observed.id.as_ref()?;
    let group = id.group_name()?;
    if !is_usable(observed) || !group.eq_ignore_ascii_case(&cluster.config.resource_group) {
        return None;
    }
    let profile = observed.properties.as_ref()?.virtual_machine_profile.as_ref()?;
    let mut interfaces = profile.network_profile.clone()?;
    let joins = has_eligible_node(cluster, observed, nodes);
    let windows_2019 = is_windows_2019(observed);
    let changes = change(&mut interfaces, memberships, |membership| match membership {
        PoolMembership { member: false, .. } => Some(Wish::Leave),
        PoolMembership { family: Family::V6, .. } if windows_2019 => None,
        _ => joins.then_some(Wish::Join),
    });
    if changes.is_empty() {
        return None;
    }
    let document = ScaleSet {
        location: observed.location.clone(),
        extended_location: observed.extended_location.clone(),
        etag: observed.etag.clone(),
        properties: Some(ScaleSetProperties {
            virtual_machine_profile: Some(ScaleSetMachineProfile {
                network_profile: Some(interfaces),
                ..Default::default()
            }),
            ..Default::default()
        }),
        ..Default::default()
    };
    Some(Step {
        action: Action::Update,
        target: id.clone(),
        if_match: observed.etag.clone(),
        document: Some(Document::ScaleSet(Box::new(document))),
        changes: changes.into_iter().map(|change| format!("new instances: {change}")).collect(),
        purpose: Purpose::Change,
        on_behalf_of: Vec::new(),
    })
}

/// Plans the instances of a scale set: each at most once, all pools together. `nodes` are all nodes of
/// the cluster, whether eligible or not.
///
/// * A machine whose node is eligible joins, unless it serves another load balancer or is not running.
/// * A machine whose node is not eligible leaves, unless no node of the cluster is eligible: a pool is not
///   emptied by exclusions.
/// * A machine without a node stays as it is: it may be about to register.
/// * Where a pool is about to go, all machines leave, those that do not run included: their references
///   would keep Azure from deleting the load balancer.
pub fn plan_instances(
    cluster: &Cluster,
    scale_set: &ScaleSet,
    observed: &[ScaleSetInstance],
    memberships: &[PoolMembership],
    nodes: &[Arc<Node>],
) -> Vec<Step> {
    let Some(id) = scale_set.id.as_ref().filter(|_| is_usable(scale_set)) else { return Vec::new() };
    let by_machine = NodesByMachine::new(nodes);
    let machines = by_machine.of(id);
    let eligible: HashSet<&str> =
        nodes.iter().filter(|node| is_eligible(cluster, node)).map(|node| node.name()).collect();
    let windows_2019 = is_windows_2019(scale_set);
    let mut steps = Vec::new();
    let mut seen = BTreeSet::new();
    for machine in observed {
        let Some(target) = machine.id.as_ref().filter(|id| seen.insert((*id).clone())) else { continue };
        let Some(properties) = &machine.properties else { continue };
        let Some(mut interfaces) = properties.network_profile_configuration.clone() else { continue };
        let state = properties.provisioning_state.as_ref();
        if state.is_some_and(|state| state.is("Deleting") || state.is("Unknown")) {
            continue;
        }
        let active = !instance::is_inactive(cluster, machine);
        let node = machines.node(machine);
        let changes = change(&mut interfaces, memberships, |membership| {
            if !membership.member {
                return Some(Wish::Leave);
            }
            let node = node.filter(|_| active)?;
            if !eligible.contains(node.name()) {
                return (!eligible.is_empty()).then_some(Wish::Leave);
            }
            (membership.family == Family::V4 || !windows_2019).then_some(Wish::Join)
        });
        if changes.is_empty() {
            continue;
        }
        let document = ScaleSetInstance {
            location: machine.location.clone(),
            etag: machine.etag.clone(),
            properties: Some(ScaleSetInstanceProperties {
                hardware_profile: properties.hardware_profile.clone(),
                network_profile_configuration: Some(interfaces),
                ..Default::default()
            }),
            ..Default::default()
        };
        steps.push(Step {
            action: Action::Update,
            target: target.clone(),
            if_match: machine.etag.clone(),
            document: Some(Document::ScaleSetInstance(Box::new(document))),
            changes: changes
                .into_iter()
                .map(|change| match node {
                    Some(node) => format!("node {} {change}", node.name()),
                    None => change,
                })
                .collect(),
            purpose: Purpose::Change,
            on_behalf_of: Vec::new(),
        });
    }
    steps.sort_by(|a, b| a.target.cmp(&b.target));
    steps
}

/// How many instances of a scale set may be written at the same time.
pub fn write_parallelism(cluster: &Cluster, scale_set: &ScaleSet) -> usize {
    let coordinated = scale_set.tags.iter().flatten().any(|(key, _)| key == "aks-managed-coordination");
    if coordinated { cluster.config.put_vmss_vm_batch_size.max(1) as usize } else { 1 }
}

/// Whether a word of a document is one of these, in any case.
pub(crate) fn is_one_of(word: &Word, values: &[&str]) -> bool {
    values.iter().any(|value| word.is(value))
}
