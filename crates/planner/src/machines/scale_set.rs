//! Scale sets: membership in pools, written to the model, and to the instances of uniform scale sets.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::sync::Arc;

use azure_types::{
    InterfaceConfigurations, ResourceId, ScaleSet, ScaleSetInstance, ScaleSetInstanceProperties,
    ScaleSetMachineProfile, ScaleSetProperties, VirtualMachine, Word,
};
use k8s::Node;
use machine::{self as instance, ProviderId};

use super::backend_pool::{PoolMembership, is_eligible};
use super::holder::{Wish, changed};
use super::nodes::{NodesByMachine, machine_id};
use crate::model::{Cluster, Family};
use crate::outcome::{Action, Document, Member, Purpose, Step, proof};

/// The image of Windows Server 2019, whose machines do not support IPv6 members.
const WINDOWS_2019_IMAGE: &str = "windows-2019-containerd";

/// The version of Windows Server 2019.
const WINDOWS_2019_VERSION: &str = "17763.";

/// The API version of the network interfaces that flexible sets create, as the Compute API requires.
const FLEXIBLE_NETWORK_API_VERSION: &str = "2020-11-01";

/// Whether the machines of a scale set are virtual machines, whose interfaces are resources of their own.
pub fn is_flexible(scale_set: &ScaleSet) -> bool {
    let mode = scale_set.properties.as_ref().and_then(|p| p.orchestration_mode.as_ref());
    mode.is_some_and(|mode| mode.is("Flexible"))
}

/// Whether the scale set is not being deleted.
fn is_usable(scale_set: &ScaleSet) -> bool {
    let Some(properties) = &scale_set.properties else { return false };
    !properties.provisioning_state.as_ref().is_some_and(|state| state.is("Deleting"))
}

fn is_windows_2019(scale_set: &ScaleSet) -> bool {
    let profile = scale_set.properties.as_ref().and_then(|p| p.virtual_machine_profile.as_ref());
    let image = profile.and_then(|p| p.storage_profile.as_ref()).and_then(|p| p.image_reference.as_ref());
    let Some(id) = image.and_then(|image| image.id.as_deref()) else { return false };
    let segments: Vec<&str> = id.rsplit('/').take(3).collect();
    matches!(segments.as_slice(), [version, _, image]
        if image.eq_ignore_ascii_case(WINDOWS_2019_IMAGE) && version.starts_with(WINDOWS_2019_VERSION))
}

/// Whether any eligible node is a machine of this scale set. Machines of a flexible set name their set themselves.
fn has_eligible_node(
    cluster: &Cluster,
    scale_set: &ScaleSet,
    virtual_machines: &[Arc<VirtualMachine>],
    nodes: &[Arc<Node>],
    membership: &PoolMembership,
) -> bool {
    let is_member = |machine: &VirtualMachine| {
        let set = machine.properties.as_ref().and_then(|p| p.virtual_machine_scale_set.as_ref());
        set.is_some_and(|set| set.id.is_some() && set.id == scale_set.id)
    };
    let members = virtual_machines.iter().filter(|machine| is_member(machine));
    let members: HashSet<&ResourceId> = members.filter_map(|machine| machine.id.as_ref()).collect();
    nodes.iter().filter(|node| membership.is_for(node) && is_eligible(cluster, node)).any(|node| {
        match instance::parse_provider_id(&node.spec.provider_id) {
            ProviderId::Instance(machine) => Some(&machine.scale_set) == scale_set.id.as_ref(),
            ProviderId::Machine(id) => members.contains(&id),
            ProviderId::Unreadable | ProviderId::Other => false,
        }
    })
}

/// Whether the scale set has machines, nodes have names that it assigns, and all of these nodes are machines of other
/// sets: two sets have the same computer name prefix. A set without machines adds none to a pool, and may be a pool of
/// the cluster that has been scaled down.
fn has_namesakes_alone(scale_set: &ScaleSet, nodes: &[Arc<Node>]) -> bool {
    if scale_set.sku.as_ref().is_some_and(|sku| sku.capacity == Some(0)) {
        return false;
    }
    let mut has_namesake = false;
    for node in nodes {
        let Some(machine) = machine_id(node) else { continue };
        if machine.parent().as_ref() == scale_set.id.as_ref() {
            return false;
        }
        has_namesake |= instance::instance_id_of_node_name(node.name(), scale_set).is_some();
    }
    has_namesake
}

/// Plans a scale set's model, so that new machines join at once (or no machine refers to a pool that is about to be
/// deleted). `nodes` are all nodes; `virtual_machines` are only needed for flexible sets. `None` if nothing differs or
/// the set may not be written: it is being deleted, in another resource group, on another load balancer, or flexible
/// while the load balancer is a basic one (LB-204).
pub fn plan_model(
    cluster: &Cluster,
    observed: &ScaleSet,
    virtual_machines: &[Arc<VirtualMachine>],
    memberships: &[PoolMembership],
    nodes: &[Arc<Node>],
) -> Option<Step> {
    let id = observed.id.as_ref()?;
    let group = id.group_name()?;
    if !is_usable(observed) || !group.eq_ignore_ascii_case(&cluster.config.resource_group) {
        return None;
    }
    let profile = observed.properties.as_ref()?.virtual_machine_profile.as_ref()?;
    let interfaces = profile.network_profile.as_ref()?;
    let may_join = !is_flexible(observed) || cluster.config.uses_standard_load_balancer();
    let joins = |membership: &PoolMembership| {
        may_join && has_eligible_node(cluster, observed, virtual_machines, nodes, membership)
    };
    let windows_2019 = is_windows_2019(observed);
    let has_namesakes = OnceCell::new();
    let leaves = |membership: &PoolMembership| {
        let is_filled = || nodes.iter().any(|node| membership.is_for(node) && is_eligible(cluster, node));
        !is_flexible(observed)
            && *has_namesakes.get_or_init(|| has_namesakes_alone(observed, nodes))
            && is_filled()
    };
    let (mut interfaces, changes) = changed(
        interfaces,
        memberships,
        || Member::NewInstances,
        |membership| match membership {
            PoolMembership { member: false, .. } => Some(Wish::Leave),
            PoolMembership { family: Family::V6, .. } if windows_2019 => None,
            _ if joins(membership) => Some(Wish::Join),
            _ => leaves(membership).then_some(Wish::Leave),
        },
    )?;
    if is_flexible(observed) {
        interfaces.network_api_version.get_or_insert_with(|| Word::from(FLEXIBLE_NETWORK_API_VERSION));
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
        ownership: proof::memberships(cluster, &changes),
        changes,
        purpose: Purpose::Change,
        on_behalf_of: Vec::new(),
    })
}

/// Plans the instances of a uniform scale set: at most one write for each, for all pools together. `nodes` are all
/// nodes of the cluster, whether eligible or not.
///
/// * A machine whose node is eligible joins, unless it serves another load balancer or is not running.
/// * A machine whose node is not eligible leaves, unless no node of the cluster is eligible: a pool is not emptied by
///   exclusions.
/// * A machine without a node is left unchanged: it may be about to register. A node without a provider ID does not
///   count yet.
/// * A machine with the name of a node which is another machine leaves.
/// * If a pool is about to be deleted, all machines leave, including the ones that are not running: their references
///   would keep Azure from deleting the load balancer.
pub fn plan_instances(
    cluster: &Cluster,
    scale_set: &ScaleSet,
    observed: &[Arc<ScaleSetInstance>],
    memberships: &[PoolMembership],
    nodes: &[Arc<Node>],
) -> Vec<Step> {
    instances_of(&NodesByMachine::new(cluster, nodes), scale_set, observed, memberships)
}

/// The configuration of a machine's interfaces, before and after.
type Rewrite<'a> = (&'a Arc<InterfaceConfigurations>, Arc<InterfaceConfigurations>);

pub(crate) fn instances_of(
    nodes: &NodesByMachine<'_>,
    scale_set: &ScaleSet,
    observed: &[Arc<ScaleSetInstance>],
    memberships: &[PoolMembership],
) -> Vec<Step> {
    let cluster = nodes.cluster;
    let Some(id) = scale_set.id.as_ref().filter(|_| is_usable(scale_set)) else { return Vec::new() };
    let windows_2019 = is_windows_2019(scale_set);
    let has_nodes = nodes.pools_with_nodes(memberships);
    let mut steps = Vec::new();
    let mut seen = HashSet::new();
    let mut latest: Option<Rewrite<'_>> = None;
    for machine in observed {
        let Some(target) = machine.id.as_ref().filter(|id| seen.insert(*id)) else { continue };
        let Some(properties) = &machine.properties else { continue };
        let Some(interfaces) = &properties.network_profile_configuration else { continue };
        let state = properties.provisioning_state.as_ref();
        if state.is_some_and(|state| state.is("Deleting") || state.is("Unknown")) {
            continue;
        }
        let active = !instance::is_inactive(&**machine, cluster.lists_machines_without_views());
        let node = nodes.of_instance(id, machine);
        let member = || node.map_or(Member::Instance, |node| Member::Node(node.name().to_owned()));
        let changed = changed(&**interfaces, memberships, member, |membership| {
            if !membership.member {
                return Some(Wish::Leave);
            }
            if node.is_none() && active && has_nodes.contains(&membership.pool) && nodes.is_namesake(machine)
            {
                return Some(Wish::Leave);
            }
            let wish = nodes.wish(node.filter(|_| active)?, membership, &has_nodes)?;
            let may_join = membership.family == Family::V4 || !windows_2019;
            (wish == Wish::Leave || may_join).then_some(wish)
        });
        let Some((after, changes)) = changed else { continue };
        // Machines that share their old configuration share the new one, if it is the same.
        let same = latest.filter(|(before, latest)| Arc::ptr_eq(before, interfaces) && **latest == after);
        let (before, interfaces) = same.unwrap_or_else(|| (interfaces, Arc::new(after)));
        latest = Some((before, Arc::clone(&interfaces)));
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
            ownership: proof::memberships(cluster, &changes),
            changes,
            purpose: Purpose::Change,
            on_behalf_of: Vec::new(),
        });
    }
    steps.sort_by(|a, b| a.target.cmp(&b.target));
    steps
}

/// The number of instances of a scale set that may be written at the same time.
pub fn write_parallelism(cluster: &Cluster, scale_set: &ScaleSet) -> usize {
    let coordinated = scale_set.tags.iter().flatten().any(|(key, _)| key == "aks-managed-coordination");
    if coordinated { cluster.config.put_vmss_vm_batch_size.max(1) as usize } else { 1 }
}
