//! Defaults of a machine's spec that come from its cluster.

use capz_api::azure_machine::AzureMachineSpec;
use capz_api::machine::{NetworkInterface, default_interfaces};
use capz_api::network::roles;

use crate::scope::ClusterScope;

/// Completes the network interfaces of a machine, and the subnet of the first one.
///
/// # Errors
/// The subnet is not named, and there is not exactly one candidate.
pub fn complete(spec: &mut AzureMachineSpec, cluster: ClusterScope<'_>, role: &str) -> Result<(), String> {
    default_interfaces(&mut spec.network_interfaces, &mut spec.subnet_name, &mut spec.accelerated_networking);
    complete_first(spec.network_interfaces.as_deref_mut(), cluster, role)
}

/// Names the subnet of the first of these interfaces.
///
/// # Errors
/// It is not named, and there is not exactly one candidate.
pub(crate) fn complete_first(
    interfaces: Option<&mut [NetworkInterface]>,
    cluster: ClusterScope<'_>,
    role: &str,
) -> Result<(), String> {
    let Some(first) = interfaces.and_then(|interfaces| interfaces.first_mut()) else { return Ok(()) };
    if first.subnet_name.as_deref().unwrap_or_default().is_empty() {
        first.subnet_name = Some(subnet_for(cluster, role)?);
    }
    Ok(())
}

/// The only subnet with this role, otherwise the one for all roles.
fn subnet_for(cluster: ClusterScope<'_>, role: &str) -> Result<String, String> {
    let named = |role: &str| -> Vec<&str> {
        let subnets = cluster.subnets().iter().filter(|subnet| subnet.role.as_deref() == Some(role));
        subnets.filter_map(|subnet| subnet.name.as_deref()).filter(|name| !name.is_empty()).collect()
    };
    match (named(role).as_slice(), named(roles::CLUSTER).last()) {
        ([only], _) => Ok((*only).to_owned()),
        ([], Some(shared)) => Ok((*shared).to_owned()),
        (several, _) => Err(format!(
            "a subnet name must be specified when no subnets are specified or more than 1 subnet of the same role exist: \
             set networkInterfaces[0].subnetName; subnets with the role {role}: {several:?}"
        )),
    }
}
