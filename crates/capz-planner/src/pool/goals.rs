//! The goals of a pool: its scale set, and the role of its identity.

use capz_api::azure_machine_pool::AzureMachinePoolSpec;
use capz_api::machine::default_interfaces;
use capz_api::network::roles;

use super::instance::Instance;
use super::scale_set;
use super::scope::PoolScope;
use crate::goal::{Goal, GoalError};
use crate::machine;
use crate::machine_inputs::MachineInputs;
use crate::observed::ObservedResources;
use crate::role_assignment;
use crate::scope::ClusterScope;
use crate::service;

/// Completes the network interfaces of a pool's machines, and the subnet of the first one.
///
/// # Errors
/// The subnet is not named, and there is not exactly one candidate.
pub fn complete(spec: &mut AzureMachinePoolSpec, cluster: ClusterScope<'_>) -> Result<(), String> {
    let template = spec.template.get_or_insert_default();
    default_interfaces(
        &mut template.network_interfaces,
        &mut template.subnet_name,
        &mut template.accelerated_networking,
    );
    machine::complete_first(template.network_interfaces.as_deref_mut(), cluster, roles::NODE)
}

/// The goals of the pool. `instances` are all instances of the scale set; without them no decision that depends on them
/// is made.
///
/// # Errors
/// Azure would refuse the scale set.
pub fn goals(
    scope: &PoolScope<'_>,
    inputs: &MachineInputs,
    observed: &ObservedResources,
    instances: Option<&[Instance]>,
) -> Result<Vec<Goal>, GoalError> {
    let mut goals = vec![scale_set::goal(scope, inputs, observed, instances)?];
    let role = scope.spec.system_assigned_identity_role.as_ref();
    let id = scope.scale_set();
    goals.extend(role_assignment::goal(&id, scope.spec.identity.as_deref(), role, observed)?);
    Ok(goals)
}

/// Why the scale set in `spec.providerID` cannot be deleted, and what to do. A provider ID is no proof: any user can
/// write it.
pub fn unproven_end(scope: &PoolScope<'_>, observed: &ObservedResources) -> Option<String> {
    let set = scope.scale_set();
    machine::unproven_end_of(scope.cluster, &set, scope.has_provider_id(), observed)
}

/// The goals of the pool's deletion. Its instances are deleted with it.
pub fn ends(scope: &PoolScope<'_>) -> Vec<Goal> {
    vec![Goal::gone(scope.scale_set(), &service::SCALE_SET)]
}
