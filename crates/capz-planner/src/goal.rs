//! Goals: what is wanted of one resource.

use azure_types::ResourceId;
use capz_api::Tags;
use ownership::{Evidence, Rival};
use serde_json::Value;

use crate::claimant::Claimant;
use crate::kind::Kind;
use crate::owner_tags::Borne;
use crate::service::{self, Service};
use crate::terminal::Terminal;

/// The rule by which a resource that exists is ours. What is not ours is read, and never written nor deleted.
#[derive(Debug, Clone, PartialEq)]
pub enum OwnershipRule {
    /// It carries the cluster's tag.
    Tagged,
    /// It carries the cluster's tag; and while it is missing it is made only if that other one is not somebody else's.
    TaggedWith(ResourceId),
    /// It carries the cluster's tag; and while it is missing it is made only if one of these subnets is not
    /// foreign, or is still to be made.
    TaggedFor(Vec<ResourceId>),
    /// It has no tags: it is ours if that other one is, in which it lies. In somebody else's it is made where it is missing,
    /// and theirs from then on.
    Inside(ResourceId),
    /// What has this id is ours: its name is made of what this text says, and it lies in what is ours.
    ByName(&'static str),
    /// It has no tags: it is ours if the cluster recorded it before it made it, and if it does not say itself that it is another
    /// cluster's. Its metadata may hold an id.
    Recorded,
    /// One half of a peering of this network, which is the cluster's, or which the cluster uses. The network must not be another
    /// cluster's, and the half must lie in it or lead to it; then it is ours if the cluster recorded it before it made it.
    Joins(ResourceId),
    /// It has no tags: it is ours if its metadata holds the cluster's id.
    Marked,
    /// A list of its group has shown that it is ours, by this fact.
    Shown(Evidence),
    /// It is somebody else's, and only read.
    Foreign,
}

/// How long a document is held to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upkeep {
    /// Whenever it is looked at: what differs is written.
    Always,
    /// When it is made. Afterwards its tags are kept up, and all else is left as it is, unless Azure failed to make it: then it
    /// is made again.
    Once,
    /// When it is made. Where Azure fails to make it, that stays so and is told.
    SingleTry,
    /// When it is made; afterwards in these members alone, as far as Azure can change them by themselves. Other changes under
    /// way, and what became of them, are not looked at.
    Members(&'static [&'static str]),
}

/// What was applied by us before and is wanted no longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Withdrawn {
    /// An item of a list, by its name. The list is named by its path, such as `properties/securityRules`.
    Item {
        /// The list.
        list: &'static str,
        /// The item.
        name: String,
    },
    /// A tag, which goes while it is as it was applied.
    Tag {
        /// Its key.
        key: String,
        /// Its value.
        value: String,
    },
}

/// Why it cannot be said what an object wants.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GoalError {
    /// It will not work until what is declared changes.
    #[error(transparent)]
    Terminal(#[from] Terminal),
    /// It does not work as things are now.
    #[error("{0}")]
    NotNow(String),
}

/// What is wanted of one resource.
#[derive(Clone, PartialEq)]
pub struct Goal {
    /// The resource.
    pub id: ResourceId,
    /// Which part of the object's status tells of it.
    pub service: &'static Service,
    /// What its document must hold.
    pub document: Value,
    /// Whether it is wanted. What is not wanted, and ours, goes.
    pub wanted: bool,
    /// Whether it is ours.
    pub ownership: OwnershipRule,
    /// How long its document is held to.
    pub upkeep: Upkeep,
    /// What was applied before and is to go.
    pub withdrawn: Vec<Withdrawn>,
    /// Resources that must be there before, although no id in the document says so.
    pub after: Vec<ResourceId>,
    /// A list in its document: while there is something in it, somebody uses the resource, and it is not deleted.
    pub kept_while_used: Option<&'static str>,
    /// Whether it is deleted without waiting for what runs on it.
    pub forced: bool,
    /// The tags that proved it to be the cluster's when it was last as wanted.
    pub borne: Borne,
    /// What it was made with and is not written again, although others can change it: a difference is reported.
    pub reported: Value,
}

impl Goal {
    /// A goal with this document, held to always, ours by its tag.
    pub fn new(id: ResourceId, service: &'static Service, document: Value) -> Self {
        Self {
            id,
            service,
            document,
            wanted: true,
            ownership: OwnershipRule::Tagged,
            upkeep: Upkeep::Always,
            withdrawn: Vec::new(),
            after: Vec::new(),
            kept_while_used: None,
            forced: false,
            borne: Borne::Nothing,
            reported: Value::Null,
        }
    }

    /// A resource that is to go, if it is ours.
    pub fn gone(id: ResourceId, service: &'static Service) -> Self {
        Self { wanted: false, ..Self::new(id, service, Value::Null) }
    }

    /// A resource of somebody else's that must be there.
    pub fn foreign(id: ResourceId, service: &'static Service) -> Self {
        Self { ownership: OwnershipRule::Foreign, ..Self::new(id, service, Value::Null) }
    }

    /// The same, with another rule of ownership.
    pub fn owned(self, ownership: OwnershipRule) -> Self {
        Self { ownership, ..self }
    }

    /// The same, held to only when it is made.
    pub fn once(self) -> Self {
        Self { upkeep: Upkeep::Once, ..self }
    }

    /// The same, held to like this.
    pub fn held_to(self, upkeep: Upkeep) -> Self {
        Self { upkeep, ..self }
    }

    /// The same, deleted without waiting for what runs on it.
    pub fn forced(self) -> Self {
        Self { forced: true, ..self }
    }

    /// The same, and where these members of its document differ, that is reported. A path names members from the top.
    pub fn reporting(mut self, members: &[&str]) -> Self {
        for path in members {
            let Some(value) = self.document.pointer(path).filter(|value| !value.is_null()).cloned() else {
                continue;
            };
            let mut place = &mut self.reported;
            for name in path.split('/').skip(1) {
                place = &mut place[name];
            }
            *place = value;
        }
        self
    }

    /// The same, after these.
    pub fn after(mut self, others: impl IntoIterator<Item = ResourceId>) -> Self {
        self.after.extend(others);
        self
    }

    /// The same, but it is to go, as all of an object goes in the end. What its document speaks of stays until it is gone.
    pub fn ended(self) -> Self {
        Self { wanted: false, ..self }
    }

    /// Takes these tags away, which were applied before, where they are wanted no longer. A resource without tags has none.
    pub fn without_tags(&mut self, applied: &Tags) {
        let Some(wanted) = self.document["tags"].as_object() else { return };
        let is_wanted = |key: &str| wanted.keys().any(|known| known.eq_ignore_ascii_case(key));
        let gone = applied.iter().filter(|(key, _)| !is_wanted(key));
        self.withdrawn
            .extend(gone.map(|(key, value)| Withdrawn::Tag { key: key.clone(), value: value.clone() }));
    }

    /// The same, without what was applied before.
    pub fn without(mut self, withdrawn: impl IntoIterator<Item = Withdrawn>) -> Self {
        self.withdrawn.extend(withdrawn);
        self
    }

    /// The kind of the resource.
    pub fn kind(&self) -> &'static Kind {
        Kind::of(&self.id)
    }

    /// Why the resource is not touched, which another cluster owns, and what to do.
    pub fn disputed(&self, claimant: Claimant<'_>, rival: &Rival) -> String {
        let name = self.name_for_people();
        if *self.service == service::DNS_RECORD {
            return format!(
                "{name} belongs to {rival}, and is left alone: name another zone (spec.networkSpec.privateDNSZoneName). If that \
                 cluster does not exist any more, delete the record"
            );
        }
        if *self.service == service::PEERINGS {
            return format!(
                "{name} belongs to {rival}, and is left alone: give this cluster's network another name \
                 (spec.networkSpec.vnet.name). If that network does not exist any more, delete the peering"
            );
        }
        claimant.disputed(&name, rival)
    }

    /// The resource as people call it: `load balancer my-cluster-public-lb`.
    pub fn name_for_people(&self) -> String {
        crate::plan_text::describe(&self.id)
    }
}

/// Documents hold bootstrap data and passwords: a goal in a log says what it is about, and not what it holds.
impl std::fmt::Debug for Goal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Goal")
            .field("id", &self.id)
            .field("wanted", &self.wanted)
            .field("ownership", &self.ownership)
            .field("upkeep", &self.upkeep)
            .finish_non_exhaustive()
    }
}
