//! Plans the private link service of a Service's frontend.

use std::sync::Arc;

use ::ownership::{Evidence, Proof};
use azure_types::{PrivateLinkService, ResourceId, Subnet, Word};
use k8s::ObjectKey;

use super::document::{self, Wanted, at, name_of, offered};
use super::ownership::{self, Ownership, is_unmanaged};
use crate::model::{Cluster, zone};
use crate::outcome::{
    Action, Change, Document, PrivateLinkRefusal, Purpose, Refusal, Step, Unfinished, proof,
};
use crate::resources::load_balancer::OwnedFrontend;
use crate::service::{PrivateLinkIntent, ServiceIntent};

/// The value with which the network policies of a subnet admit private link services.
const NO_POLICIES: &str = "Disabled";

/// Whether a private link service concerns a cluster: the cluster created it, or it offers a frontend of a load
/// balancer in the cluster's group.
pub fn concerns(cluster: &Cluster, link: &PrivateLinkService) -> bool {
    let group = cluster.network_group(cluster.config.load_balancer_resource_group());
    let is_in_group = |frontend: &ResourceId| {
        let load_balancer = frontend.parent();
        load_balancer.and_then(|load_balancer| load_balancer.parent()).as_ref() == Some(&group)
    };
    !is_unmanaged(cluster, link) || offered(link).any(is_in_group)
}

/// The refusal of Services that name a group which cannot be read.
pub fn unreadable(group: &ResourceId, problem: &str) -> PrivateLinkRefusal {
    PrivateLinkRefusal::GroupUnreadable { group: group.name().to_owned(), problem: problem.to_owned() }
}

/// Whether an unmanaged private link service offers a frontend of this load balancer, which stays then.
pub fn keeps_frontend(cluster: &Cluster, link: &PrivateLinkService, load_balancer: &ResourceId) -> bool {
    is_unmanaged(cluster, link)
        && offered(link).any(|frontend| frontend.parent().as_ref() == Some(load_balancer))
}

/// Brings the private link service of a Service's frontend to what the Service wants. `observed` are the existing
/// private link services, and `subnet` is the one that the Service names for it, if that exists. After the steps are
/// taken it is planned again: then nothing is left to do, or only what had to wait for them.
///
/// # Errors
///
/// If the Service cannot have the private link service that it asks for.
pub fn plan(
    cluster: &Cluster,
    intent: &ServiceIntent,
    frontend: &OwnedFrontend,
    observed: &[Arc<PrivateLinkService>],
    subnet: Option<&Subnet>,
) -> Result<Vec<Step>, Refusal> {
    let existing = at(observed, &frontend.id);
    let ownership = existing.map(|link| (link, Ownership::of(cluster, &intent.key, link)));
    let Some(wanted) = &intent.private_link else {
        return Ok(match ownership {
            Some((link, Ownership::Ours)) => removal(cluster, link),
            _ => Vec::new(),
        });
    };
    let link = match ownership {
        None => None,
        Some((link, Ownership::Ours)) => Some(link),
        Some((link, Ownership::Shared(owner))) => {
            return match &wanted.own_setting {
                None => Ok(Vec::new()),
                Some(key) => Err(PrivateLinkRefusal::OwnedByOther {
                    frontend: frontend.name.clone(),
                    private_link: name_of(link).to_owned(),
                    owner: owner.to_owned(),
                    key: key.clone(),
                }
                .into()),
            };
        }
        Some((link, Ownership::Unmanaged)) => {
            return Err(PrivateLinkRefusal::Unmanaged {
                frontend: frontend.name.clone(),
                private_link: link.id.as_ref().map(ToString::to_string).unwrap_or_default(),
                tag: ownership::CLUSTER_TAG,
            }
            .into());
        }
    };
    if let (Some(link), Some(name)) = (link, &wanted.name)
        && !name_of(link).eq_ignore_ascii_case(name)
    {
        let existing = name_of(link).to_owned();
        return Err(PrivateLinkRefusal::NameFixed { existing, wanted: name.clone() }.into());
    }
    if link.is_none() {
        check_name(cluster, wanted, frontend, observed)?;
    }
    let subnet = subnet.ok_or_else(|| PrivateLinkRefusal::SubnetNotFound {
        network: cluster.config.vnet_name.clone(),
        subnet: wanted.subnet.clone(),
        service: intent.key.clone(),
    })?;
    let own =
        Wanted { cluster, service: &intent.key, intent: wanted, subnet: &cluster.subnet_id(&wanted.subnet) };
    let link_step = match link {
        Some(link) => update(&own, link),
        None => Some(create(&own, frontend)),
    };
    Ok(link_step
        .into_iter()
        .flat_map(|link| [open(cluster, subnet, &intent.key), Some(link)])
        .flatten()
        .collect())
}

/// The name of a new private link service.
fn new_name(intent: &PrivateLinkIntent, frontend: &OwnedFrontend) -> String {
    intent.name.clone().unwrap_or_else(|| format!("pls-{}", frontend.name))
}

/// Refuses a name that is taken by another private link service of the group (LB-446), which offers another frontend,
/// or none.
fn check_name(
    cluster: &Cluster,
    wanted: &PrivateLinkIntent,
    frontend: &OwnedFrontend,
    observed: &[Arc<PrivateLinkService>],
) -> Result<(), Refusal> {
    let name = new_name(wanted, frontend);
    let id = cluster.private_link_id(&wanted.group, &name);
    if observed.iter().any(|link| link.id.as_ref() == Some(&id)) {
        return Err(PrivateLinkRefusal::NameTaken { name, group: wanted.group.clone() }.into());
    }
    Ok(())
}

fn create(wanted: &Wanted<'_>, frontend: &OwnedFrontend) -> Step {
    let name = new_name(wanted.intent, frontend);
    let mut link = PrivateLinkService {
        name: Some(name.clone()),
        location: Some(wanted.cluster.config.location.clone()),
        extended_location: zone::edge(wanted.cluster),
        ..PrivateLinkService::default()
    };
    document::offer(&mut link, &frontend.id);
    // A new private link service gets all requested members.
    let _ = wanted.apply(&mut link);
    let changes = vec![Change::PrivateLinkAdded {
        name: name.clone(),
        service: wanted.service.clone(),
        frontend: frontend.name.clone(),
    }];
    Step {
        action: Action::Create,
        target: wanted.cluster.private_link_id(&wanted.intent.group, &name),
        if_match: None,
        document: Some(Document::PrivateLink(Box::new(link))),
        changes,
        purpose: Purpose::Change,
        on_behalf_of: vec![wanted.service.clone()],
        ownership: Vec::new(),
    }
}

fn update(wanted: &Wanted<'_>, observed: &PrivateLinkService) -> Option<Step> {
    let mut link = observed.clone();
    let mut changes = wanted.apply(&mut link);
    let state = observed.properties.as_ref().and_then(|p| p.provisioning_state.as_ref());
    let repairs = changes.is_empty() && state.is_some_and(|state| state.is("Failed"));
    if repairs {
        changes.push(Change::Repaired(Unfinished::Operation));
    }
    if changes.is_empty() {
        return None;
    }
    Some(Step {
        action: Action::Update,
        target: observed.id.clone()?,
        if_match: observed.etag.clone(),
        document: Some(Document::PrivateLink(Box::new(link))),
        changes,
        purpose: if repairs { Purpose::Repair } else { Purpose::Change },
        on_behalf_of: vec![wanted.service.clone()],
        ownership: vec![ownership::proof(wanted.cluster, observed)],
    })
}

/// Whether a subnet admits private link services.
pub fn is_open(subnet: &Subnet) -> bool {
    let policies = subnet.properties.as_ref().and_then(|p| p.private_link_service_network_policies.as_ref());
    policies.is_some_and(|word| word.is(NO_POLICIES))
}

/// The step that opens a subnet to private link services, if it is not open yet.
fn open(cluster: &Cluster, subnet: &Subnet, service: &ObjectKey) -> Option<Step> {
    if is_open(subnet) {
        return None;
    }
    let declared = Evidence::Declared { key: "azure-pls-ip-configuration-subnet or subnetName".to_owned() };
    let mut document = subnet.clone();
    let properties = document.properties.get_or_insert_default();
    properties.private_link_service_network_policies = Some(Word::from(NO_POLICIES));
    Some(Step {
        action: Action::Update,
        target: subnet.id.clone()?,
        if_match: subnet.etag.clone(),
        document: Some(Document::Subnet(Box::new(document))),
        changes: vec![Change::SubnetOpened],
        purpose: Purpose::Change,
        on_behalf_of: vec![service.clone()],
        ownership: vec![Proof::new(proof::service(cluster, service), declared)],
    })
}

/// Removes the cluster's private link services from frontends that are to be removed. Unmanaged ones stay, and so do
/// the frontends that they offer. Planned again after the steps are taken, until nothing is left to do: connections are
/// removed first.
pub fn plan_removal(
    cluster: &Cluster,
    frontends: &[ResourceId],
    observed: &[Arc<PrivateLinkService>],
) -> Vec<Step> {
    let links = frontends.iter().filter_map(|frontend| at(observed, frontend));
    links.filter(|link| !is_unmanaged(cluster, link)).flat_map(|link| removal(cluster, link)).collect()
}

/// Whether an unmanaged private link service offers one of these frontends.
pub fn has_unmanaged(
    cluster: &Cluster,
    frontends: &[ResourceId],
    observed: &[Arc<PrivateLinkService>],
) -> bool {
    let mut links = frontends.iter().filter_map(|frontend| at(observed, frontend));
    links.any(|link| is_unmanaged(cluster, link))
}

/// The steps that remove the connections; without any, the step that removes the private link service itself.
fn removal(cluster: &Cluster, link: &PrivateLinkService) -> Vec<Step> {
    let Some(id) = &link.id else { return Vec::new() };
    let owners = || ownership::owner_key(link).into_iter().collect();
    let step = |target: ResourceId, if_match: Option<String>, change: Change| Step {
        action: Action::Delete,
        target,
        if_match,
        document: None,
        changes: vec![change],
        purpose: Purpose::Change,
        on_behalf_of: owners(),
        ownership: vec![ownership::proof(cluster, link)],
    };
    let connections = link.properties.iter().flat_map(|p| p.private_endpoint_connections.iter().flatten());
    let connections: Vec<Step> = connections
        .filter_map(|connection| connection.id.clone())
        .map(|connection| {
            let change = Change::ConnectionRemoved { name: name_of(link).to_owned() };
            step(connection, None, change)
        })
        .collect();
    if !connections.is_empty() {
        return connections;
    }
    vec![step(id.clone(), link.etag.clone(), Change::PrivateLinkRemoved { name: name_of(link).to_owned() })]
}
