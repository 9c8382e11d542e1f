//! The configuration that was applied before, as annotations of the AzureCluster record it: without it, withdrawn items
//! could not be distinguished from those that other writers added.

use std::collections::{BTreeMap, BTreeSet};

use azure_types::ResourceId;
use capz_api::Tags;
use serde_json::{Value, json};

use crate::document::{id_of, list};
use crate::goal::{Goal, OwnershipRule};
use crate::observed::{Observation, ObservedResources};
use crate::owner_tags::{Borne, OWNER_TAGS};
use crate::scope::ClusterScope;
use crate::service::{self, Service};

/// Rules of security groups: `{"<group>": {"<rule>": "<description>"}}`.
pub const SECURITY_RULES: &str = "sigs.k8s.io/cluster-api-provider-azure-last-applied-security-rules";
/// Additional tags of all resources, in the annotation that the established provider uses for those of resource groups:
/// `{"<key>": "<value>"}`.
pub const TAGS: &str = "sigs.k8s.io/cluster-api-provider-azure-last-applied-tags-rg";
pub use crate::claimant::RESOURCES;

/// Services whose resources are deleted as soon as they are no longer declared: no remaining resource refers to them,
/// and as long as they exist they let traffic through, or block a subnet. All others may be in use by machines and by
/// others, and are deleted with the cluster.
const AT_ONCE: [&Service; 7] = [
    &service::SUBNETS,
    &service::NAT_GATEWAYS,
    &service::PRIVATE_ENDPOINTS,
    &service::PEERINGS,
    &service::DNS_LINKS,
    &service::FLEET_MEMBER,
    &service::CLUSTER_EXTENSIONS,
];

/// The configuration that was applied before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory {
    /// Rules by security group, with their descriptions.
    pub rules: BTreeMap<String, BTreeMap<String, String>>,
    /// Additional tags of all resources.
    pub tags: Tags,
    /// Resources by the name of their service. Ownership is checked when they are read.
    pub resources: BTreeMap<String, BTreeSet<ResourceId>>,
    /// The tags that proved ownership when the resources were last as desired.
    pub borne: BTreeMap<ResourceId, Borne>,
}

impl Memory {
    /// Reads annotations. An annotation that cannot be read counts as empty: its resources stay in Azure.
    pub fn of(annotations: &BTreeMap<String, String>) -> Self {
        let read = |key: &str| -> Value {
            annotations.get(key).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
        };
        let members = |value: &Value| -> Vec<(String, Value)> {
            let members = value.as_object().into_iter().flatten();
            members.map(|(key, value)| (key.clone(), value.clone())).collect()
        };
        let texts = |value: &Value| -> BTreeMap<String, String> {
            let text = |value: Value| value.as_str().unwrap_or_default().to_owned();
            members(value).into_iter().map(|(key, value)| (key, text(value))).collect()
        };
        let ids = |value: &Value| -> BTreeSet<ResourceId> { list(value).filter_map(id_of).collect() };
        let borne = |(id, word): (String, String)| Some((ResourceId::parse(&id).ok()?, Borne::read(&word)));
        let rules = members(&read(SECURITY_RULES));
        let resources = members(&read(RESOURCES));
        Self {
            rules: rules.into_iter().map(|(group, rules)| (group, texts(&rules))).collect(),
            tags: texts(&read(TAGS)),
            resources: resources.into_iter().map(|(service, listed)| (service, ids(&listed))).collect(),
            borne: texts(&read(OWNER_TAGS)).into_iter().filter_map(borne).collect(),
        }
    }

    /// Adds the owner tags of resources that are as desired. `declared` are the goals of the declaration.
    #[must_use]
    pub(crate) fn bearing(
        self,
        scope: ClusterScope<'_>,
        declared: &[Goal],
        observed: &ObservedResources,
    ) -> Self {
        let bears = |goal: &Goal| {
            let Observation::Present(held) = observed.get(&goal.id) else { return None };
            Some((goal.id.clone(), Borne::of(scope.claimant(), held))).filter(|(_, it)| *it != Borne::Nothing)
        };
        // Resources without tags are proven otherwise.
        let tagged = declared.iter().filter(|goal| goal.document["tags"].is_object());
        Self { borne: tagged.filter_map(bears).collect(), ..self }
    }

    /// Sets the recorded owner tags on goals.
    pub(crate) fn remind(&self, goals: &mut [Goal]) {
        for goal in goals {
            goal.borne = self.borne.get(&goal.id).copied().unwrap_or_default();
        }
    }

    /// The memory once everything declared is applied; `declared` are the goals of the declaration.
    pub(crate) fn after(scope: ClusterScope<'_>, declared: &[Goal]) -> Self {
        let rules = scope
            .subnets()
            .iter()
            .filter_map(|subnet| subnet.security_group.as_ref())
            .map(|group| {
                let rules = group.security_rules.iter().flatten();
                let rules = rules
                    .map(|rule| {
                        let text = |text: &Option<String>| text.clone().unwrap_or_default();
                        (text(&rule.name), text(&rule.description))
                    })
                    .collect();
                (group.name.clone().unwrap_or_default(), rules)
            })
            // Groups without rules are left out, as by the established provider: nothing in them is to be withdrawn.
            .filter(|(_, rules): &(String, BTreeMap<String, String>)| !rules.is_empty())
            .collect();
        let mut resources: BTreeMap<String, BTreeSet<ResourceId>> = BTreeMap::new();
        for goal in declared {
            resources.entry(goal.service.name.to_owned()).or_default().insert(goal.id.clone());
        }
        let tags = scope.spec.additional_tags.clone().unwrap_or_default();
        Self { rules, tags, resources, borne: BTreeMap::new() }
    }

    /// The union of two memories.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        let mut all = self.clone();
        for (group, rules) in &other.rules {
            all.rules.entry(group.clone()).or_default().extend(rules.clone());
        }
        all.tags.extend(other.tags.clone());
        for (service, ids) in &other.resources {
            all.resources.entry(service.clone()).or_default().extend(ids.iter().cloned());
        }
        for (id, borne) in &other.borne {
            all.borne.entry(id.clone()).or_insert(*borne);
        }
        all
    }

    /// Whether it contains this resource.
    pub fn has(&self, id: &ResourceId) -> bool {
        self.resources.values().any(|ids| ids.contains(id))
    }

    /// The memory without these resources.
    #[must_use]
    pub fn without(mut self, strangers: &BTreeSet<ResourceId>) -> Self {
        self.resources.values_mut().for_each(|ids| ids.retain(|id| !strangers.contains(id)));
        self
    }

    /// The part that is deleted only with the cluster, although it may no longer be declared.
    #[must_use]
    pub fn until_the_end(&self) -> Self {
        let goes_at_once = |name: &str| AT_ONCE.iter().any(|service| service.name == name);
        let resources = self.resources.iter().filter(|(service, _)| !goes_at_once(service));
        Self {
            resources: resources.map(|(service, ids)| (service.clone(), ids.clone())).collect(),
            borne: self.borne.clone(),
            ..Self::default()
        }
    }

    /// Goals for deleting resources that were applied before and are no longer declared: either those that are deleted
    /// at once, or all.
    pub(crate) fn gone(&self, scope: ClusterScope<'_>, declared: &[Goal], all: bool) -> Vec<Goal> {
        let services: BTreeMap<&str, &'static Service> = service::CLUSTER
            .iter()
            .chain(&service::MANAGED_CONTROL_PLANE)
            .filter(|service| all || AT_ONCE.contains(service))
            .map(|service| (service.name, *service))
            .collect();
        let remembered = services.into_values().flat_map(|service| {
            self.resources.get(service.name).into_iter().flatten().map(move |id| gone(scope, id, service))
        });
        remembered.filter(|goal| declared.iter().all(|known| known.id != goal.id)).collect()
    }

    /// The memory as annotations.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        let ids = |ids: &BTreeSet<ResourceId>| ids.iter().map(|id| json!(id.as_str())).collect::<Value>();
        let resources: Value =
            self.resources.iter().map(|(service, listed)| (service.clone(), ids(listed))).collect();
        let words = self.borne.iter().filter_map(|(id, borne)| Some((id.to_string(), borne.word()?.into())));
        let borne = Value::Object(words.collect());
        [
            (SECURITY_RULES, json!(self.rules)),
            (TAGS, json!(self.tags)),
            (RESOURCES, resources),
            (OWNER_TAGS, borne),
        ]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.to_string()))
        .collect()
    }
}

/// The member by which an AzureManagedControlPlane declares its managed cluster.
pub(crate) const DECLARED_BY: &str = "metadata.name of the AzureManagedControlPlane";

/// The goal for deleting a recorded resource. Subnets, peerings and records have no tags.
fn gone(scope: ClusterScope<'_>, id: &ResourceId, service: &'static Service) -> Goal {
    let goal = Goal::gone(id.clone(), service);
    match id.parent() {
        Some(network) if *service == service::SUBNETS => goal.owned(OwnershipRule::Inside(network)),
        _ if *service == service::PEERINGS => goal.owned(OwnershipRule::Joins(scope.network())),
        Some(cluster) if *service == service::CLUSTER_EXTENSIONS => {
            goal.owned(OwnershipRule::Inside(cluster))
        }
        _ if *service == service::MANAGED_CLUSTER => goal.owned(OwnershipRule::Declared(DECLARED_BY)),
        _ if [&service::DNS_RECORD, &service::FLEET_MEMBER].contains(&service) => {
            goal.owned(OwnershipRule::Recorded)
        }
        _ => goal,
    }
}
