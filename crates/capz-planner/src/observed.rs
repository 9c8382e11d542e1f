//! The observed state. Unknown is not absent: a resource that was not read, or could not be read, is neither present
//! nor absent.

use std::collections::{BTreeMap, BTreeSet};

use azure_types::ResourceId;
use serde_json::Value;

use crate::document::{id_of, list};
use crate::goal::{Goal, OwnershipRule};
use crate::kind::{Kind, ReadBy};

/// The observed state of one resource.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Observation<'a> {
    /// It exists, with this document.
    Present(&'a Value),
    /// Azure answered that it does not exist.
    Absent,
    /// Its state is unknown.
    Unknown,
}

/// One request that answers for several goals.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reading {
    /// All resources of a type in a group, or below a resource.
    List {
        /// The group, or the resource.
        group: ResourceId,
        /// The type, such as `Microsoft.Network/publicIPAddresses`.
        resource_type: &'static str,
        /// The version of Azure's API.
        api_version: &'static str,
    },
    /// One resource.
    Get {
        /// The resource.
        id: ResourceId,
        /// The version of Azure's API.
        api_version: &'static str,
    },
}

/// The observed state of the requested resources.
#[derive(Clone, Default)]
pub struct ObservedResources {
    /// The document of each; `None` if Azure answered that it does not exist.
    documents: BTreeMap<ResourceId, Option<Value>>,
}

impl ObservedResources {
    /// Records what a list shows of these resources. Of a list of a thousand machines only the requested ones are kept;
    /// the others stay unknown, and are read when they are requested.
    pub fn take_list(&mut self, asked: &BTreeSet<ResourceId>, documents: &[Value]) {
        for id in asked {
            self.documents.insert(id.clone(), None);
        }
        for document in documents {
            if let Some(id) = id_of(&document["id"])
                && asked.contains(&id)
            {
                self.documents.insert(id, Some(document.clone()));
            }
        }
    }

    /// Records the current document of a resource; `None` if Azure answered that it does not exist.
    pub fn take(&mut self, id: &ResourceId, document: Option<Value>) {
        if document.is_none() {
            // Resources in it are gone with it. Embedded children are looked up in its document.
            self.documents.retain(|other, _| {
                !(other.is_within(id) && matches!(Kind::of(other).read_by, ReadBy::Parent(_)))
            });
            let within = self.documents.iter_mut().filter(|(other, _)| other.is_within(id));
            within.for_each(|(_, held)| *held = None);
        }
        self.documents.insert(id.clone(), document);
    }

    /// Records the current document of a resource, and keeps what is known of the resources in it.
    pub(crate) fn put(&mut self, id: &ResourceId, document: Value) {
        self.documents.insert(id.clone(), Some(document));
    }

    /// The requests for everything that goals need and that is unknown, with the resources that each answers for: one
    /// list for each type and group in place of many single reads.
    pub fn missing<'a>(
        &self,
        goals: impl IntoIterator<Item = &'a Goal>,
    ) -> BTreeMap<Reading, BTreeSet<ResourceId>> {
        let goals: Vec<&Goal> = goals.into_iter().collect();
        let mut missing: BTreeMap<Reading, BTreeSet<ResourceId>> = BTreeMap::new();
        for goal in &goals {
            let others = match &goal.ownership {
                OwnershipRule::TaggedWith(other)
                | OwnershipRule::Inside(other)
                | OwnershipRule::Joins(other) => std::slice::from_ref(other),
                OwnershipRule::TaggedFor(users) => users.as_slice(),
                _ => &[],
            };
            for id in std::iter::once(&goal.id).chain(others) {
                let shown_by = told_by(id);
                let own = goals.iter().find(|goal| goal.id == shown_by);
                let api_version = own.map_or(Kind::of(&shown_by).api_version, |goal| goal.api_version);
                if self.get(&shown_by) == Observation::Unknown {
                    missing.entry(reading(&shown_by, api_version)).or_default().insert(shown_by);
                }
            }
        }
        missing
    }

    /// Forgets a resource that is about to change.
    pub fn forget(&mut self, id: &ResourceId) {
        self.documents.remove(id);
    }

    /// The observed state of this resource.
    pub fn get(&self, id: &ResourceId) -> Observation<'_> {
        match self.documents.get(id) {
            Some(Some(document)) => return Observation::Present(document),
            Some(None) => return Observation::Absent,
            None => {}
        }
        // A resource in an absent one is absent.
        let mut above = std::iter::successors(id.parent(), ResourceId::parent);
        if above.any(|parent| self.documents.get(&parent).is_some_and(Option::is_none)) {
            return Observation::Absent;
        }
        let kind = Kind::of(id);
        let (ReadBy::Parent(member), Some(parent)) = (kind.read_by, id.parent()) else {
            return Observation::Unknown;
        };
        let document = match self.get(&parent) {
            Observation::Present(document) => document,
            absent_or_unknown => return absent_or_unknown,
        };
        let is_it =
            |child: &&Value| child["name"].as_str().is_some_and(|name| name.eq_ignore_ascii_case(id.name()));
        list(&document["properties"][member]).find(is_it).map_or(Observation::Absent, Observation::Present)
    }
}

impl std::fmt::Debug for ObservedResources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.documents.keys()).finish()
    }
}

fn group_of(id: &ResourceId) -> Option<ResourceId> {
    Some(ResourceId::group(id.subscription_id(), id.group_name()?))
}

/// The resource whose document shows this one.
fn told_by(id: &ResourceId) -> ResourceId {
    match (Kind::of(id).read_by, id.parent()) {
        (ReadBy::Parent(_), Some(parent)) => told_by(&parent),
        _ => id.clone(),
    }
}

/// The request that shows a resource.
fn reading(id: &ResourceId, api_version: &'static str) -> Reading {
    let kind = Kind::of(id);
    let list = match kind.read_by {
        ReadBy::GroupList => group_of(id),
        ReadBy::ParentList => id.parent(),
        ReadBy::Parent(_) | ReadBy::Id => None,
    };
    match list {
        Some(group) => Reading::List { group, resource_type: kind.resource_type, api_version },
        None => Reading::Get { id: id.clone(), api_version },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::service;

    fn address(name: &str) -> ResourceId {
        ResourceId::parse(&format!(
            "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/publicIPAddresses/{name}"
        ))
        .unwrap()
    }

    fn goal(name: &str) -> Goal {
        Goal::new(address(name), &service::PUBLIC_IPS, json!({}))
    }

    /// A list does not show the resources that were not requested when it was read.
    #[test]
    fn a_resource_that_is_asked_about_later_is_unknown_until_it_is_read() {
        let mut observed = ObservedResources::default();
        let listed = [json!({ "id": address("a").to_string() }), json!({ "id": address("c").to_string() })];
        for (_, asked) in observed.missing(&[goal("a"), goal("b")]) {
            observed.take_list(&asked, &listed);
        }
        assert!(matches!(observed.get(&address("a")), Observation::Present(_)));
        assert_eq!(observed.get(&address("b")), Observation::Absent);
        assert_eq!(observed.get(&address("c")), Observation::Unknown);
        // A write is newer than a list that is read later for another resource.
        observed.take(&address("b"), Some(json!({ "written": true })));
        let missing = observed.missing(&[goal("a"), goal("b"), goal("c")]);
        assert_eq!(missing.values().collect::<Vec<_>>(), [&BTreeSet::from([address("c")])]);
        for asked in missing.values() {
            observed.take_list(asked, &listed);
        }
        assert!(matches!(observed.get(&address("c")), Observation::Present(_)));
        assert!(matches!(observed.get(&address("b")), Observation::Present(_)));
        assert!(observed.missing(&[goal("a"), goal("b"), goal("c")]).is_empty());
    }

    /// The resource that proves the owner of another one is read, too.
    #[test]
    fn what_ownership_hangs_on_is_asked_about() {
        let goal = goal("a").owned(OwnershipRule::TaggedWith(address("other")));
        let missing = ObservedResources::default().missing(&[goal]);
        assert_eq!(missing.values().collect::<Vec<_>>(), [&BTreeSet::from([address("a"), address("other")])]);
    }

    #[test]
    fn what_was_in_a_group_is_gone_with_it() {
        let group = ResourceId::group("s", "g");
        let mut observed = ObservedResources::default();
        observed.take(&address("a"), Some(json!({})));
        observed.take(&group, None);
        assert_eq!(observed.get(&address("a")), Observation::Absent);
        assert_eq!(observed.get(&address("b")), Observation::Absent);
        // In a new group, resources that were not requested before are unknown.
        observed.take(&group, Some(json!({})));
        assert_eq!(observed.get(&address("a")), Observation::Absent);
        assert_eq!(observed.get(&address("b")), Observation::Unknown);
    }
}
