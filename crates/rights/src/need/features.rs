//! The features that a configuration has.

use std::collections::BTreeMap;

use planner::ServiceIntent;

use super::scopes::{is_virtual_machine, with_uid};
use super::subject::Subject;
use crate::Feature;

/// The features with their reasons, and notes about what cannot be determined.
pub(super) fn features(subject: &Subject<'_>) -> (BTreeMap<Feature, String>, Vec<String>) {
    let Subject { cluster, run, .. } = *subject;
    let config = &cluster.config;
    let (mut found, mut notes) = (BTreeMap::new(), Vec::new());
    let mut add = |feature: Feature, holds: bool, reason: String| {
        if holds {
            found.entry(feature).or_insert(reason);
        }
    };
    let condition = |feature: Feature| feature.condition().to_owned();
    for (feature, holds) in [
        (Feature::Base, true),
        (Feature::Election, run.election.is_some()),
        (Feature::ConfigurationSecret, run.secret.is_some()),
        (Feature::Services, run.services),
        (Feature::Nodes, run.nodes),
        (Feature::NodeLifecycle, run.node_lifecycle),
        (Feature::NodeIp, run.services && cluster.has_pools_of_addresses()),
        (
            Feature::Migration,
            run.services
                && cluster.has_pools_of_addresses()
                && config.enable_migrate_to_ip_based_backend_pool_api,
        ),
        (Feature::LocalPools, run.services && cluster.has_local_pools()),
        (Feature::NamespaceSelectors, run.services && config.follows_namespace_labels()),
        (Feature::AdminState, run.services && config.enable_load_balancer_admin_state),
        (Feature::PodRanges, run.pod_ranges),
        (Feature::PodRangesByTags, run.pod_ranges && run.pod_ranges_by_tags),
        (Feature::Metrics, run.metrics),
    ] {
        add(feature, holds, condition(feature));
    }
    if run.routes {
        match cluster.route_table_id() {
            Some(table) => add(
                Feature::Routes,
                true,
                format!("--configure-cloud-routes and routeTableName: {}", table.name()),
            ),
            None => notes.push("no routes: routeTableName is not set in azure.json".to_owned()),
        }
    }
    let machines = machines(subject);
    match &machines {
        Machines::Seen(Some(node)) => add(Feature::VirtualMachines, true, format!("node {node}")),
        Machines::Seen(None) => {}
        Machines::Assumed(why) => {
            add(Feature::VirtualMachines, true, (*why).to_owned());
            notes.push(
                "no Node with a provider ID is known: virtual machines are assumed beside scale sets, all in resourceGroup. Pass Nodes by -f or \
                 a cluster by --kubeconfig"
                    .to_owned(),
            );
        }
        Machines::Excluded => {}
    }
    if run.services {
        for service in subject.services.iter().filter(|service| service.wants_load_balancer()) {
            match ServiceIntent::from_service(cluster, &with_uid(service)) {
                Ok(intent) => {
                    add(Feature::PrivateLink, intent.private_link.is_some(), format!("Service {}", intent.key));
                    let has_prefix = intent.public_ip_prefixes().next().is_some();
                    add(Feature::PublicIpPrefixes, has_prefix, format!("Service {}", intent.key));
                }
                Err(refusal) => notes.push(format!(
                    "Service {} is refused, so that its private link service and its prefixes are not in the list: {refusal}",
                    service.key()
                )),
            }
        }
    }
    for feature in subject.more {
        add(*feature, true, "--with".to_owned());
    }
    if config.uses_network_tenant() {
        notes.push(
            "networkResourceTenantID: the rights on network resources are those of the identity in that tenant".to_owned(),
        );
    }
    (found, notes)
}

/// Whether nodes are virtual machines.
enum Machines {
    /// The name of a node that is one, if any.
    Seen(Option<String>),
    /// No node is known.
    Assumed(&'static str),
    /// azure.json excludes them.
    Excluded,
}

fn machines(subject: &Subject<'_>) -> Machines {
    let config = &subject.cluster.config;
    if subject.nodes.iter().any(|node| !node.spec.provider_id.is_empty()) {
        let node = subject.nodes.iter().find(|node| is_virtual_machine(node));
        return Machines::Seen(node.map(|node| node.name().to_owned()));
    }
    if config.disable_availability_set_nodes && !config.enable_vmss_flex_nodes {
        return Machines::Excluded;
    }
    Machines::Assumed("assumed, because no Node with a provider ID is known")
}
