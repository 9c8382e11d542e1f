//! What Azure was seen to hold. Unknown is not absent: what nobody has looked at, or could not be read, is neither there nor
//! gone.

use std::collections::{BTreeMap, BTreeSet};

use azure_types::ResourceId;
use serde_json::Value;

use crate::goal::{Goal, Ownership};
use crate::kind::{Kind, ReadBy};

/// One look at one resource.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Seen<'a> {
    /// It is this.
    Present(&'a Value),
    /// Azure says that it does not exist.
    Absent,
    /// Nobody knows.
    Unknown,
}

/// One request that answers for some goals.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reading {
    /// All resources of a type in a group.
    List {
        /// The group.
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

/// What Azure was seen to hold.
#[derive(Clone, Default)]
pub struct Observed {
    documents: BTreeMap<ResourceId, Option<Value>>,
    /// Groups whose resources of a type are known, all of them.
    listed: BTreeSet<(ResourceId, &'static str)>,
}

impl Observed {
    /// Takes in what a list of a group showed.
    pub fn take_list(&mut self, group: &ResourceId, resource_type: &'static str, documents: Vec<Value>) {
        self.documents
            .retain(|id, _| !(id.resource_type().eq_ignore_ascii_case(resource_type) && id.is_within(group)));
        for document in documents {
            if let Some(id) = document["id"].as_str().and_then(|id| ResourceId::parse(id).ok()) {
                self.documents.insert(id, Some(document));
            }
        }
        self.listed.insert((group.clone(), resource_type));
    }

    /// Takes in what one resource is now; `None`: Azure says that it does not exist.
    pub fn take(&mut self, id: &ResourceId, document: Option<Value>) {
        if document.is_none() {
            self.documents.retain(|other, _| !other.is_within(id));
        }
        self.documents.insert(id.clone(), document);
    }

    /// Whether this request was made, and answered.
    pub fn knows(&self, reading: &Reading) -> bool {
        match reading {
            Reading::List { group, resource_type, .. } => {
                self.listed.contains(&(group.clone(), *resource_type))
            }
            Reading::Get { id, .. } => self.documents.contains_key(id),
        }
    }

    /// Forgets what was seen of a resource: it is about to change.
    pub fn forget(&mut self, id: &ResourceId) {
        self.documents.remove(id);
        if let Some(group) = group_of(id) {
            self.listed.remove(&(group, Kind::of(id).resource_type));
        }
    }

    /// What was seen of this resource.
    pub fn see(&self, id: &ResourceId) -> Seen<'_> {
        match self.documents.get(id) {
            Some(Some(document)) => return Seen::Present(document),
            Some(None) => return Seen::Absent,
            None => {}
        }
        // Nothing is in what does not exist.
        let mut above = id.parent();
        while let Some(parent) = above {
            if self.documents.get(&parent).is_some_and(Option::is_none) {
                return Seen::Absent;
            }
            above = parent.parent();
        }
        let kind = Kind::of(id);
        match kind.read_by {
            ReadBy::GroupList => {
                let known =
                    group_of(id).is_some_and(|group| self.listed.contains(&(group, kind.resource_type)));
                if known { Seen::Absent } else { Seen::Unknown }
            }
            ReadBy::Parent(member) => {
                let Some(parent) = id.parent() else { return Seen::Unknown };
                match self.see(&parent) {
                    Seen::Present(document) => document["properties"][member]
                        .as_array()
                        .into_iter()
                        .flatten()
                        .find(|child| {
                            child["name"].as_str().is_some_and(|name| name.eq_ignore_ascii_case(id.name()))
                        })
                        .map_or(Seen::Absent, Seen::Present),
                    Seen::Absent => Seen::Absent,
                    Seen::Unknown => Seen::Unknown,
                }
            }
            ReadBy::Id => Seen::Unknown,
        }
    }

    /// Documents of a type in a group, as far as they were listed.
    pub fn of_type<'a>(
        &'a self,
        group: &'a ResourceId,
        resource_type: &'a str,
    ) -> impl Iterator<Item = (&'a ResourceId, &'a Value)> {
        self.documents
            .iter()
            .filter(move |(id, _)| {
                id.is_within(group) && id.resource_type().eq_ignore_ascii_case(resource_type)
            })
            .filter_map(|(id, document)| document.as_ref().map(|document| (id, document)))
    }
}

impl std::fmt::Debug for Observed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.documents.keys()).finish()
    }
}

fn group_of(id: &ResourceId) -> Option<ResourceId> {
    Some(ResourceId::group(id.subscription_id(), id.group_name()?))
}

/// The requests that tell all that goals need to know: one list a type and group in the place of many single reads.
pub fn readings<'a>(goals: impl IntoIterator<Item = &'a Goal>) -> BTreeSet<Reading> {
    let mut readings = BTreeSet::new();
    for goal in goals {
        read(&goal.id, &mut readings);
        if let Ownership::TaggedWith(other) | Ownership::Inside(other) = &goal.ownership {
            read(other, &mut readings);
        }
    }
    readings
}

fn read(id: &ResourceId, readings: &mut BTreeSet<Reading>) {
    let kind = Kind::of(id);
    match (kind.read_by, id.parent()) {
        (ReadBy::Parent(_), Some(parent)) => read(&parent, readings),
        (ReadBy::GroupList, _) if group_of(id).is_some() => {
            if let Some(group) = group_of(id) {
                let (resource_type, api_version) = (kind.resource_type, kind.api_version);
                readings.insert(Reading::List { group, resource_type, api_version });
            }
        }
        _ => {
            readings.insert(Reading::Get { id: id.clone(), api_version: kind.api_version });
        }
    }
}
