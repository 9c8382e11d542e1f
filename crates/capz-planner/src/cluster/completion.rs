//! Defaults of an AzureCluster that a controller sets before the cluster's resources are created, because admission
//! does not know them.

use capz_api::azure_cluster::AzureClusterSpec;
use capz_api::network::{COMPLETED_RULES, SecurityRule, roles};

use super::dns_name::api_server_name;
use super::load_balancer::pool_name;

/// The rules of a control plane's security group unless the user declares rules for the same ports.
const DEFAULT_RULES: [(&str, &str, i32); 2] =
    [(COMPLETED_RULES[0], "Allow SSH", 2200), (COMPLETED_RULES[1], "Allow K8s API Server", 2201)];

/// Sets the name of the backend pool, the public name of the API server, and the default rules of the control plane's
/// security group.
pub fn complete(spec: &mut AzureClusterSpec, cluster: &str, subscription: &str, port: i32, suffix: &str) {
    if spec.control_plane_enabled == Some(false) {
        return;
    }
    let location = spec.location.clone().unwrap_or_default();
    let group = spec.resource_group.clone().unwrap_or_default();
    let Some(network) = spec.network_spec.as_mut() else { return };
    if let Some(balancer) = network.api_server_lb.as_mut() {
        let pool = pool_name(balancer);
        balancer.backend_pool.get_or_insert_default().name.get_or_insert(pool);
        if !balancer.is_internal()
            && let Some(ip) =
                balancer.frontend_ips.iter_mut().flatten().find_map(|frontend| frontend.public_ip.as_mut())
            && ip.dns_name.as_deref().unwrap_or_default().is_empty()
        {
            let name = ip.name.clone().unwrap_or_default();
            ip.dns_name = Some(api_server_name(cluster, subscription, &group, &name, &location, suffix));
        }
    }
    let subnets = network.subnets.iter_mut().flatten();
    let (own, shared): (Vec<_>, Vec<_>) = subnets
        .filter(|subnet| matches!(subnet.role.as_deref(), Some(roles::CONTROL_PLANE | roles::CLUSTER)))
        .partition(|subnet| subnet.role.as_deref() == Some(roles::CONTROL_PLANE));
    let Some(subnet) = own.into_iter().chain(shared).next() else { return };
    let rules = subnet.security_group.get_or_insert_default().security_rules.get_or_insert_default();
    for ((name, description, priority), port) in
        DEFAULT_RULES.into_iter().zip(["22".to_owned(), port.to_string()])
    {
        if rules.iter().any(|rule| rule.destination_ports.as_deref() == Some(&port)) {
            continue;
        }
        let text = |text: &str| Some(text.to_owned());
        rules.push(SecurityRule {
            name: text(name),
            description: text(description),
            priority: Some(priority),
            protocol: text("Tcp"),
            direction: text("Inbound"),
            action: text("Allow"),
            source: text("*"),
            source_ports: text("*"),
            destination: text("*"),
            destination_ports: Some(port),
            ..SecurityRule::default()
        });
    }
}
