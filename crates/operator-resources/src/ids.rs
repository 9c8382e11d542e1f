//! The IDs of objects that lie in one another.

use std::collections::BTreeMap;

use azure_types::ResourceId;

use crate::error::Refusal;
use crate::id::Location;
use crate::lookup::Lookup;
use crate::reference::{ObjectName, Reference};
use crate::resource::Resource;

/// The IDs of a set of objects.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ids {
    /// The IDs that are known.
    pub known: BTreeMap<ObjectName, ResourceId>,
    /// The objects that cannot have one. Those in neither map wait for an object outside the set, or for their
    /// subscription.
    pub refused: BTreeMap<ObjectName, Refusal>,
}

impl Ids {
    /// Finds the IDs of objects, in any order: an owner may be one of them, or be known to `lookup`. `subscription` is
    /// that of an object's credential, if it is known yet.
    pub fn of(
        resources: &[Resource],
        subscription: &dyn Fn(&Resource) -> Option<String>,
        lookup: &dyn Lookup,
    ) -> Self {
        let mut ids = Self::default();
        let mut open: BTreeMap<ObjectName, &Resource> = BTreeMap::new();
        for resource in resources {
            let object = resource.object();
            if open.insert(object.clone(), resource).is_some() {
                let (first, second) = (object.to_string(), object.to_string());
                ids.refused.insert(object, Refusal::Twice { first, second });
            }
        }
        open.retain(|object, _| !ids.refused.contains_key(object));
        // Each round finds those whose owners were found in the one before.
        loop {
            let mut found = Vec::new();
            for (object, resource) in &open {
                let Some(subscription) = subscription(resource) else { continue };
                match resource.id(&subscription, &ids.over(lookup)) {
                    Ok(Location::At(id)) => found.push((object.clone(), Ok(id))),
                    Ok(Location::Awaiting(_)) => {}
                    Err(refusal) => found.push((object.clone(), Err(refusal))),
                }
            }
            if found.is_empty() {
                break;
            }
            for (object, result) in found {
                open.remove(&object);
                match result {
                    Ok(id) => ids.add(object, id),
                    Err(refusal) => _ = ids.refused.insert(object, refusal),
                }
            }
        }
        ids.refuse_circles(&open);
        ids
    }

    /// Two objects must not stand for one resource: the second one is refused.
    fn add(&mut self, object: ObjectName, id: ResourceId) {
        match self.known.iter().find(|(_, known)| **known == id) {
            Some((first, _)) => {
                let (first, second) = (first.to_string(), object.to_string());
                self.refused.insert(object, Refusal::Twice { first, second });
            }
            None => _ = self.known.insert(object, id),
        }
    }

    /// Refuses what lies in itself.
    fn refuse_circles(&mut self, open: &BTreeMap<ObjectName, &Resource>) {
        for (object, resource) in open {
            let mut owner = &resource.owner;
            for _ in 0..open.len() {
                let Some(Reference::Object(next)) = owner else { break };
                if next == object {
                    let circle =
                        Refusal::Circle { path: "spec.owner".to_owned(), object: object.to_string() };
                    self.refused.insert(object.clone(), circle);
                    break;
                }
                let Some(next) = open.get(next) else { break };
                owner = &next.owner;
            }
        }
    }

    /// These IDs, and what is known besides.
    pub fn over<'a>(&'a self, others: &'a dyn Lookup) -> impl Lookup + 'a {
        Over { ids: self, others }
    }
}

struct Over<'a> {
    ids: &'a Ids,
    others: &'a dyn Lookup,
}

impl Lookup for Over<'_> {
    fn id(&self, object: &ObjectName) -> Option<String> {
        self.ids.known.get(object).map(ToString::to_string).or_else(|| self.others.id(object))
    }

    fn secret(&self, name: &str, key: &str) -> Option<String> {
        self.others.secret(name, key)
    }

    fn whole_secret(&self, name: &str) -> Option<Vec<(String, String)>> {
        self.others.whole_secret(name)
    }

    fn secret_version(&self, name: &str) -> Option<String> {
        self.others.secret_version(name)
    }

    fn config_map(&self, name: &str, key: &str) -> Option<String> {
        self.others.config_map(name, key)
    }
}
