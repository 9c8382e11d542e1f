//! Where the configured security group is in force: at the subnets and network interfaces that use it. Elsewhere its
//! rules allow nothing.

use std::sync::Arc;

use azure_types::{NetworkInterface, ResourceId, SecurityGroup, SubResource};
use k8s::{Node, Notice, ObjectKey};

use crate::machines::backend_pool::is_eligible;
use crate::machines::interface::primary_interface;
use crate::machines::nodes::{interfaces_by_machine, machine_id};
use crate::model::Cluster;
use crate::model::words::name_some;

/// Describes the nodes at which the written rules have no effect, with the remedy; `None` if the rules have an effect
/// everywhere, as far as known. `interfaces` are the known interfaces of virtual machines; unknown ones are not judged.
pub fn problem(
    cluster: &Cluster,
    group: &SecurityGroup,
    nodes: &[Arc<Node>],
    interfaces: &[Arc<NetworkInterface>],
) -> Option<String> {
    let own = cluster.security_group_id()?;
    let name = own.name();
    let properties = group.properties.as_ref()?;
    let subnets: Vec<&ResourceId> = properties.subnets.iter().flatten().filter_map(id_of).collect();
    let has_interfaces = properties.network_interfaces.as_ref().is_some_and(|all| !all.is_empty());
    let remedy = format!(
        "assign {name} to subnet {}, or set securityGroupName and securityGroupResourceGroup in the cloud configuration to \
         the group that is in force there",
        cluster.config.subnet_name
    );
    if subnets.is_empty() && !has_interfaces {
        return Some(format!(
            "security group {name} is in force nowhere, because no subnet and no network interface has it. Its rules let \
             no traffic in: {remedy}"
        ));
    }
    let is_out = |interface: &NetworkInterface| is_guarded(interface, &own, &subnets) == Some(false);
    // The usual case, and this runs for each Service, with thousands of nodes.
    if !interfaces.iter().any(|interface| is_out(interface)) {
        return None;
    }
    let by_machine = interfaces_by_machine(interfaces);
    let is_left_out = |node: &&Arc<Node>| {
        let known = machine_id(node).and_then(|id| by_machine.get(&id));
        let interface = known.and_then(|interfaces| primary_interface(interfaces).ok());
        interface.is_some_and(is_out) && is_eligible(cluster, node)
    };
    let mut left_out: Vec<&str> = nodes.iter().filter(is_left_out).map(|node| node.name()).collect();
    left_out.sort_unstable();
    (!left_out.is_empty()).then(|| {
        format!(
            "security group {name} is not in force at nodes {}, because neither their network interfaces nor their \
             subnets have it. Its rules let no traffic in there: {remedy}",
            name_some(&left_out)
        )
    })
}

/// The notice for the owner of a Service whose security rules have no effect.
pub fn notice(service: &ObjectKey, problem: &str) -> Notice {
    Notice {
        service: service.clone(),
        warning: true,
        reason: "SecurityGroupNotInForce",
        message: problem.to_owned(),
    }
}

fn id_of(reference: &SubResource) -> Option<&ResourceId> {
    reference.id.as_ref()
}

/// Whether the group guards an interface, directly or through its subnet; absent if the subnet is unknown.
fn is_guarded(interface: &NetworkInterface, group: &ResourceId, subnets: &[&ResourceId]) -> Option<bool> {
    let properties = interface.properties.as_ref()?;
    if properties.network_security_group.as_ref().and_then(id_of) == Some(group) {
        return Some(true);
    }
    let configurations = properties.ip_configurations.iter().flatten();
    let mut own = configurations.filter_map(|one| one.properties.as_ref()?.subnet.as_ref()?.id.as_ref());
    let first = own.next()?;
    Some(subnets.contains(&first) || own.any(|subnet| subnets.contains(&subnet)))
}
