//! Load balancers that a Service may be placed on: their documents, and what keeps a Service from moving.

use azure_types::{LoadBalancer, ResourceId};
use cloud_config::MultipleStandardLoadBalancerConfiguration as Entry;

use super::observed::Seen;
use crate::model::balancer::without_suffix;
use crate::model::{Balancer, Cluster, Flavor};
use crate::outcome::{Refusal, Stop};
use crate::resources::load_balancer::{ListedLoadBalancer, frontend};
use crate::resources::public_ip;
use crate::service::ServiceIntent;

/// Whether a load balancer of either flavor belongs to an entry.
pub(crate) fn is_entry_of(entry: &Entry, balancer: &Balancer) -> bool {
    let name = &balancer.name;
    let external = match balancer.flavor {
        Flavor::External => name.as_str(),
        Flavor::Internal => without_suffix(name),
    };
    external.eq_ignore_ascii_case(&entry.name)
}

pub(super) fn document_of<'a>(seen: &Seen<'a>, balancer: &Balancer) -> Option<&'a ListedLoadBalancer> {
    seen.load_balancers.iter().find(|(one, _)| one == balancer).map(|(_, document)| document)
}

pub(super) fn rules_in(document: Option<&LoadBalancer>) -> usize {
    let properties = document.and_then(|document| document.properties.as_ref());
    properties.and_then(|properties| properties.load_balancing_rules.as_ref()).map_or(0, Vec::len)
}

pub(super) fn is_load_balancer(id: &ResourceId) -> bool {
    id.resource_type().eq_ignore_ascii_case("Microsoft.Network/loadBalancers")
}

/// Refuses a move that would leave a frontend behind, because others refer to it: its address would be on both load
/// balancers (LB-239). Nothing is changed then.
pub(super) fn check_move(
    cluster: &Cluster,
    intent: &ServiceIntent,
    seen: &Seen<'_>,
    to: &Balancer,
) -> Result<(), Stop> {
    let owner = intent.removal();
    let claimed = public_ip::claimed(cluster, owner, seen.public_ips);
    for (balancer, document) in seen.load_balancers {
        let is_one = cluster.is_configured(balancer) || cluster.config.uses_basic_load_balancer();
        if balancer == to || balancer.flavor != to.flavor || !is_one {
            continue;
        }
        let Some(properties) = &document.properties else { continue };
        for owned in frontend::frontends_of(cluster, balancer, document, owner, &claimed) {
            let reference = frontend::foreign_reference(properties, &owned.id, |rule| owner.owns_rule(rule));
            if let Some(reference) = reference {
                return Err(Refusal::CannotMove {
                    from: balancer.name.clone(),
                    to: to.name.clone(),
                    frontend: owned.name,
                    reference,
                }
                .into());
            }
        }
    }
    Ok(())
}
