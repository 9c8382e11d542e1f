//! The goals of a machine, while it is declared and once it is deleted.

use azure_types::ResourceId;
use capz_api::network::PublicIp;
use ownership::Ownership;
use serde_json::json;

use super::memory::{TAGS, applied_tags};
use super::scope::{MADE_ANNOTATION, MachineScope};
use super::{availability_set, inbound_nat_rule, names, network_interface, placement, virtual_machine};
use crate::cluster;
use crate::document::text;
use crate::extension::{Extension, extensions};
use crate::goal::{Goal, GoalError, OwnershipRule, Upkeep};
use crate::kind::describe;
use crate::machine_inputs::MachineInputs;
use crate::observed::{Observation, ObservedResources};
use crate::owner_tags::Borne;
use crate::plan::failure_cause;
use crate::role_assignment;
use crate::scope::ClusterScope;
use crate::service;
use crate::sku::capability;
use crate::terminal::{Reason, Terminal};

/// The goals of the machine. Goals that depend on values from Azure, such as the machine's own identity, are added once
/// these are known.
///
/// # Errors
/// Azure would refuse the machine, it is gone, or a resource is in its way.
pub fn goals(
    scope: &MachineScope<'_>,
    inputs: &MachineInputs,
    observed: &ObservedResources,
) -> Result<Vec<Goal>, GoalError> {
    let vm = scope.vm();
    if !matches!(observed.get(&vm), Observation::Present(held) if scope.is_foreign(held))
        && let Some(remains) = placement::remains(scope, observed)
    {
        return Ok(remains);
    }
    match observed.get(&vm) {
        Observation::Absent => {
            if let Some(id) = text(&scope.spec.provider_id) {
                let message = format!("VM with provider id {id:?} has been deleted");
                return Err(Terminal { reason: Reason::UpdateError, message }.into());
            }
            virtual_machine::check(scope, inputs)?;
        }
        Observation::Present(held) if scope.is_foreign(held) => {
            let words = scope.cluster.claimant().foreign("virtual machine", vm.name(), held);
            return Err(GoalError::NotNow(words));
        }
        Observation::Present(held) if !scope.has_provider_id() => {
            // It is not created again: its first cause is reported for as long as it exists.
            if let Some(cause) = failure_cause(held) {
                let message = format!("virtual machine {} failed to create. err: {cause}", vm.name());
                return Err(Terminal::create(message).into());
            }
        }
        Observation::Present(_) | Observation::Unknown => {}
    }
    let mut goals = Vec::new();
    if scope.public_ip().is_some() {
        let (name, cluster) = (names::public_ip(&scope.vm_name()), scope.cluster);
        let edge = cluster.extended_location();
        goals.push(cluster::public_ip_goal(cluster, &name, &PublicIp::default(), cluster.zones, edge));
    }
    goals.extend(inbound_nat_rule::goal(scope, observed)?);
    goals.extend(network_interface::goals(scope, inputs, observed)?);
    goals.extend(availability_set::goal(scope, inputs)?);
    goals.push(virtual_machine::goal(scope, inputs)?);
    let role = scope.spec.system_assigned_identity_role.as_ref();
    goals.extend(role_assignment::goal(&vm, scope.spec.identity.as_deref(), role, observed)?);
    goals.extend(extension_goals(scope, inputs));
    let applied = applied_tags(scope.annotations.get(TAGS));
    let borne = Borne::recorded(scope.annotations);
    for goal in &mut goals {
        goal.without_tags(&applied);
        // Other machines use the availability set, too, and it may be older.
        if *goal.service != service::AVAILABILITY_SET {
            goal.borne = borne;
        }
    }
    Ok(goals)
}

/// Why the machine in `spec.providerID` cannot be deleted, and what to do. A provider ID is no proof: any user can
/// write it.
pub fn unproven_end(scope: &MachineScope<'_>, observed: &ObservedResources) -> Option<String> {
    unproven_end_of(scope.cluster, &scope.vm(), scope.has_provider_id(), observed)
}

/// Why a resource in `spec.providerID` cannot be deleted, and what to do; `None` if it is proven to be the cluster's,
/// or another cluster's.
pub(crate) fn unproven_end_of(
    cluster: ClusterScope<'_>,
    id: &ResourceId,
    is_recorded: bool,
    observed: &ObservedResources,
) -> Option<String> {
    let Observation::Present(held) = observed.get(id) else { return None };
    if cluster.marked_only || !is_recorded {
        return None;
    }
    let Ownership::Unproven(lacks) = cluster.claimant().by_tags(held) else { return None };
    Some(format!(
        "{} is named by spec.providerID, but it is not proven to be this cluster's, and is left alone: {lacks}. Give it \
         that tag if it is to be deleted, or delete it by hand",
        describe(id)
    ))
}

/// The goals of the machine's deletion. The deletion does not wait for the machine's workload; the resources created
/// for it follow. Disks bear no tag of ours: they are ours if we created the machine, as the object records, or an
/// interface for it.
pub fn ends(scope: &MachineScope<'_>, observed: &ObservedResources) -> Vec<Goal> {
    let (interfaces, mut disks, public_ip) = (scope.interfaces(), scope.disks(), scope.public_ip());
    let (mut rule, set) = (inbound_nat_rule::id(scope), availability_set::id(scope));
    // Resources without tags follow the machine: another cluster's machine keeps its own.
    if matches!(observed.get(&scope.vm()), Observation::Present(held) if !scope.cluster.claimant().owns(held))
    {
        disks.clear();
        rule = None;
    }
    let marked_only = scope.cluster.marked_only;
    if marked_only {
        rule = None;
    }
    // Where another cluster has the same name, the object's record is no mark in Azure; the interface bears one.
    let made = !marked_only
        && scope.has_provider_id()
        && scope.annotations.get(MADE_ANNOTATION.0).is_some_and(|made| made == MADE_ANNOTATION.1);
    let disk = |id: ResourceId| {
        let goal = Goal::gone(id, &service::DISKS);
        match interfaces.first() {
            // The interface stays until the disks are deleted, because it proves their owner.
            Some(first) if !made => goal.owned(OwnershipRule::Inside(first.clone())).after([first.clone()]),
            _ => goal.owned(OwnershipRule::ByName("the virtual machine that the AzureMachine has made")),
        }
    };
    let before: Vec<ResourceId> = interfaces.iter().chain(&disks).chain(&set).cloned().collect();
    let mut goals = vec![Goal::gone(scope.vm(), &service::VIRTUAL_MACHINE).forced().after(before)];
    goals.extend(disks.into_iter().map(disk));
    goals.extend(set.map(|id| Goal {
        kept_while_used: Some("/properties/virtualMachines"),
        ..Goal::gone(id, &service::AVAILABILITY_SET)
    }));
    goals.extend(interfaces.into_iter().map(|id| {
        let before = rule.iter().chain(&public_ip).cloned();
        Goal::gone(id, &service::INTERFACES).after(before)
    }));
    goals.extend(
        rule.map(|id| Goal::gone(id, &service::INBOUND_NAT_RULES).owned(inbound_nat_rule::OWNERSHIP)),
    );
    goals.extend(public_ip.map(|id| Goal::gone(id, &service::PUBLIC_IPS)));
    goals
}

/// Extensions, each after the previous one: Azure installs one at a time.
fn extension_goals(scope: &MachineScope<'_>, inputs: &MachineInputs) -> Vec<Goal> {
    let spec = scope.spec;
    if spec.disable_extension_operations == Some(true) {
        return Vec::new();
    }
    let arm = inputs.size.capability(capability::ARCHITECTURE) == Some("Arm64");
    let declared = extensions(
        spec.vm_extensions.as_deref(),
        spec.disable_vm_bootstrap_extension,
        scope.os_type(),
        scope.cluster.spec.azure_environment.as_deref(),
        arm,
    );
    let mut goals: Vec<Goal> = Vec::new();
    for Extension { name, properties } in declared {
        let document = json!({ "location": scope.cluster.location(), "properties": properties });
        let before = goals.last().map(|goal| goal.id.clone());
        goals.push(
            Goal::new(scope.vm().child("extensions", &name), &service::EXTENSIONS, document)
                .owned(OwnershipRule::ByName("the virtual machine in which it lies"))
                .held_to(Upkeep::SingleTry)
                .after(before),
        );
    }
    goals
}
