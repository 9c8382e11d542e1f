//! The resources in a resource group, and whether all of them are the cluster's, so that the group can be deleted as a
//! whole.

use std::collections::{BTreeMap, BTreeSet};

use azure_types::ResourceId;
use ownership::Evidence;
use serde_json::Value;

use crate::claimant::tag;
use crate::document::{id_of, list};
use crate::goal::{Goal, OwnershipRule};
use crate::kind::Kind;
use crate::observed::Reading;
use crate::scope::ClusterScope;
use crate::service::{self, Service};
use crate::tags;

/// Tags with which a cloud controller manager names the cluster of a resource.
const CLOUD_PROVIDER_TAGS: [&str; 2] = ["k8s-azure-cluster-name", "kubernetes-cluster-name"];
/// The API version of the list of all resources of a group.
const RESOURCES_VERSION: &str = "2021-04-01";
const BALANCERS: &str = "Microsoft.Network/loadBalancers";
/// Types whose documents refer to their owner, and the members that do. The list of a group does not show these.
const REFERRING: [(&str, &[&str]); 3] = [
    ("Microsoft.Compute/virtualMachines", &["/properties/virtualMachineScaleSet/id"]),
    (
        "Microsoft.Network/networkInterfaces",
        &["/properties/virtualMachine/id", "/properties/privateEndpoint/id"],
    ),
    (BALANCERS, &[]),
];

/// The request that lists all resources of a group.
pub fn resources_of(group: &ResourceId) -> Reading {
    Reading::List { group: group.clone(), resource_type: "resources", api_version: RESOURCES_VERSION }
}

/// The resources in resource groups, and their owners.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Inventory {
    ours: BTreeMap<ResourceId, Evidence>,
    others: BTreeSet<ResourceId>,
}

impl Inventory {
    /// Reads the lists of the groups: tags, and `managedBy` of each resource.
    pub fn of(scope: ClusterScope<'_>, listed: &[Value]) -> Self {
        let mut inventory = Self::default();
        let mut managed = BTreeMap::new();
        for document in listed {
            let Some(id) = id_of(&document["id"]) else { continue };
            if let Some(evidence) = by_tags(scope, document) {
                inventory.ours.insert(id, evidence);
                continue;
            }
            // With another cluster's ID on it the owner is certain.
            if tag(document, tags::ID).is_none()
                && let Some(by) = id_of(&document["managedBy"])
            {
                managed.insert(id.clone(), by);
            }
            inventory.others.insert(id);
        }
        inventory.follow(|id| managed.get(id).cloned().into_iter().collect());
        inventory
    }

    /// The lists with details of the resources whose owner is not known yet.
    pub fn unsettled(&self) -> BTreeMap<Reading, BTreeSet<ResourceId>> {
        let mut readings: BTreeMap<Reading, BTreeSet<ResourceId>> = BTreeMap::new();
        for id in &self.others {
            let kind = Kind::of(id);
            if let (Some(_), Some(group)) = (references_of(id), id.group_name()) {
                let reading = Reading::List {
                    group: ResourceId::group(id.subscription_id(), group),
                    resource_type: kind.resource_type,
                    api_version: kind.api_version,
                };
                readings.entry(reading).or_default().insert(id.clone());
            }
        }
        readings
    }

    /// Reads these lists.
    pub fn settle(&mut self, scope: ClusterScope<'_>, documents: &[Value]) {
        let known: BTreeMap<ResourceId, &Value> =
            documents.iter().filter_map(|document| Some((id_of(&document["id"])?, document))).collect();
        self.follow(|id| {
            let Some(document) = known.get(id) else { return Vec::new() };
            references_of(id)
                .into_iter()
                .flatten()
                .filter_map(|pointer| id_of(document.pointer(pointer)?))
                .collect()
        });
        let balancers: Vec<ResourceId> = self
            .others
            .iter()
            .filter(|id| {
                known.get(*id).is_some_and(|document| self.is_balancer_of_services(scope, id, document))
            })
            .cloned()
            .collect();
        for id in balancers {
            self.others.remove(&id);
            let evidence = Evidence::Name {
                name: id.name().to_owned(),
                rule: "the Cluster's name, with members of this cluster alone",
            };
            self.ours.insert(id, evidence);
        }
    }

    /// Whether a load balancer is that of the cluster's Services: its name is derived from the cluster's, and
    /// everything that it refers to is this cluster's.
    fn is_balancer_of_services(&self, scope: ClusterScope<'_>, id: &ResourceId, document: &Value) -> bool {
        let name = id.name().to_lowercase();
        let cluster = scope.cluster.to_lowercase();
        let network = scope.network();
        if !id.resource_type().eq_ignore_ascii_case(BALANCERS)
            || tag(document, tags::ID).is_some()
            || (name != cluster && name != format!("{cluster}-internal"))
        {
            return false;
        }
        let properties = &document["properties"];
        let mut references: Vec<Option<ResourceId>> = Vec::new();
        for frontend in list(&properties["frontendIPConfigurations"]) {
            for member in ["publicIPAddress", "subnet"] {
                references.extend(
                    frontend["properties"].get(member).filter(|it| !it.is_null()).map(|it| id_of(&it["id"])),
                );
            }
        }
        for pool in list(&properties["backendAddressPools"]) {
            let members = list(&pool["properties"]["backendIPConfigurations"]);
            references.extend(members.map(|member| id_of(&member["id"])));
            for address in list(&pool["properties"]["loadBalancerBackendAddresses"]) {
                let network = &address["properties"]["virtualNetwork"]["id"];
                references.extend((!network.is_null()).then(|| id_of(network)));
            }
        }
        !references.is_empty()
            && references
                .iter()
                .all(|id| id.as_ref().is_some_and(|id| id.is_within(&network) || self.holds(id)))
    }

    /// Whether a resource, or the one it lies in, is the cluster's.
    fn holds(&self, id: &ResourceId) -> bool {
        std::iter::successors(Some(id.clone()), ResourceId::parent).any(|id| self.ours.contains_key(&id))
    }

    /// Adds resources that lie in, or are tied to, those of the cluster, until there are no more.
    fn follow(&mut self, tied: impl Fn(&ResourceId) -> Vec<ResourceId>) {
        loop {
            let more: Vec<(ResourceId, Evidence)> = self
                .others
                .iter()
                .filter_map(|id| {
                    let within = id.parent().filter(|parent| self.holds(parent));
                    let within = within.map(|parent| Evidence::Within { resource: parent.to_string() });
                    let refers = || {
                        let other = tied(id).into_iter().find(|other| self.holds(other))?;
                        Some(Evidence::Refers { resource: other.to_string() })
                    };
                    Some((id.clone(), within.or_else(refers)?))
                })
                .collect();
            if more.is_empty() {
                return;
            }
            for (id, evidence) in more {
                self.others.remove(&id);
                self.ours.insert(id, evidence);
            }
        }
    }

    /// Resources that are not proven to be the cluster's.
    pub fn others(&self) -> impl Iterator<Item = &ResourceId> {
        self.others.iter()
    }

    /// The names for messages of the first resources that are not proven to be the cluster's; empty if there are none.
    pub fn others_for_people(&self) -> String {
        const SHOWN: usize = 5;
        // A resource inside another one of them is not named.
        let outer =
            self.others.iter().filter(|id| id.parent().is_none_or(|parent| !self.others.contains(&parent)));
        let names: Vec<String> = outer.map(|id| format!("{} {}", id.resource_type(), id.name())).collect();
        let more = names.len().saturating_sub(SHOWN);
        let shown = names.into_iter().take(SHOWN).collect::<Vec<_>>().join(", ");
        if more > 0 { format!("{shown} and {more} more") } else { shown }
    }

    /// Goals for deleting the cluster's resources one by one where the group stays.
    pub fn ends(&self) -> Vec<Goal> {
        let outermost =
            self.ours.iter().filter(|(id, _)| id.parent().is_none_or(|parent| !self.holds(&parent)));
        outermost
            .filter_map(|(id, evidence)| {
                let service = service_of(id)?;
                Some(Goal::gone(id.clone(), service).owned(OwnershipRule::Shown(evidence.clone())))
            })
            .collect()
    }
}

fn by_tags(scope: ClusterScope<'_>, document: &Value) -> Option<Evidence> {
    if let Some(proof) = scope.claimant().by_tags(document).proof() {
        return proof.evidence().last().cloned();
    }
    if tag(document, tags::ID).is_some() || scope.marked_only {
        return None;
    }
    CLOUD_PROVIDER_TAGS.iter().find_map(|key| {
        let value = tag(document, key).filter(|value| *value == scope.cluster)?;
        Some(Evidence::Tag { key: (*key).to_owned(), value: value.to_owned() })
    })
}

/// The members with which documents of this type refer to their owner; `None` for other types.
fn references_of(id: &ResourceId) -> Option<&'static [&'static str]> {
    let resource_type = id.resource_type();
    let row = REFERRING.iter().find(|(name, _)| name.eq_ignore_ascii_case(&resource_type));
    row.map(|(_, members)| *members)
}

/// The service for a resource of this type; `None` for types that are not deleted here.
fn service_of(id: &ResourceId) -> Option<&'static Service> {
    let kind = Kind::of(id);
    (!kind.resource_type.is_empty()).then_some(match kind.resource_type {
        "Microsoft.Network/loadBalancers" => &service::LOAD_BALANCERS,
        "Microsoft.Network/publicIPAddresses" => &service::PUBLIC_IPS,
        _ => &service::GROUP,
    })
}
