//! Goals: the desired state of one resource.

use std::collections::BTreeMap;

use azure_types::ResourceId;
use capz_api::Tags;
use ownership::{Evidence, Rival};
use serde_json::Value;

use crate::claimant::Claimant;
use crate::compare::Withdrawn;
use crate::document::without_nulls;
use crate::kind::{Kind, describe};
use crate::owner_tags::Borne;
use crate::service::{self, Service};
use crate::terminal::Terminal;

/// The rule that decides whether an existing resource is ours. Foreign resources are read, and never written or
/// deleted.
#[derive(Debug, Clone, PartialEq)]
pub enum OwnershipRule {
    /// It bears the cluster's tag.
    Tagged,
    /// It bears the cluster's tag; while it is missing it is created only if the other resource is not foreign.
    TaggedWith(ResourceId),
    /// It bears the cluster's tag; while it is missing it is created only if one of these subnets is not foreign, or
    /// not created yet.
    TaggedFor(Vec<ResourceId>),
    /// It has no tags: it is ours if the resource that it lies in is. In a foreign one it is created if it is missing,
    /// and is foreign from then on.
    Inside(ResourceId),
    /// A resource with this ID is ours: its name is derived from what this text says, and it lies in a resource that is
    /// ours.
    ByName(&'static str),
    /// It has no tags: it is ours if the cluster recorded it before creating it, and if its metadata, which may hold an
    /// ID, does not name another cluster.
    Recorded,
    /// A peering of this network, which the cluster owns or uses. The network must not be another cluster's, and the
    /// peering must lie in it or lead to it; then it is ours if the cluster recorded it before creating it.
    Joins(ResourceId),
    /// It has no tags: it is ours if its metadata holds the cluster's ID.
    Marked,
    /// The object declares it by this member, and manages it also if it exists before: it is ours unless its tags name
    /// another owner.
    Declared(&'static str),
    /// A list of its group has shown this evidence that it is ours.
    Shown(Evidence),
    /// It is foreign, and only read.
    Foreign,
}

/// How long a document is enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upkeep {
    /// At every reconcile: differences are written.
    Always,
    /// At creation. Afterwards only its tags are enforced, unless its creation failed: then it is created again.
    Once,
    /// At creation. A failed creation is reported and not repeated.
    SingleTry,
    /// At creation; afterwards only these members, as far as Azure can change them by themselves. Other running
    /// changes, and their results, are ignored.
    Members(&'static [&'static str]),
}

/// Why the goals of an object cannot be derived.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GoalError {
    /// Not before the declaration changes.
    #[error(transparent)]
    Terminal(#[from] Terminal),
    /// Not in the present state.
    #[error("{0}")]
    NotNow(String),
}

/// The desired state of one resource.
#[derive(Clone, PartialEq)]
pub struct Goal {
    /// The resource.
    pub id: ResourceId,
    /// The service of the object's status that reports it.
    pub service: &'static Service,
    /// The version of Azure's API that its document is written in.
    pub api_version: &'static str,
    /// Additional headers of its writes.
    pub headers: BTreeMap<String, String>,
    /// The desired content of its document.
    pub document: Value,
    /// Whether it is desired. A resource that is ours and not desired is deleted.
    pub wanted: bool,
    /// The rule that decides whether it is ours.
    pub ownership: OwnershipRule,
    /// How long its document is enforced.
    pub upkeep: Upkeep,
    /// JSON pointers to values of its document that Azure never shows, and that are shown nowhere: they are not compared,
    /// and are part of every document that is written.
    pub secrets: Vec<String>,
    /// Whether these values have changed since they were last written.
    pub has_new_secrets: bool,
    /// Items that were applied before and are to be removed.
    pub withdrawn: Vec<Withdrawn>,
    /// Resources that must exist before, although no ID in the document refers to them.
    pub after: Vec<ResourceId>,
    /// A list in its document: unless it is empty the resource is in use, and is not deleted.
    pub kept_while_used: Option<&'static str>,
    /// Whether its deletion does not wait for its workload.
    pub forced: bool,
    /// The tags that proved ownership when it was last as desired.
    pub borne: Borne,
    /// Values from its creation that are not written again, although others can change them: a difference is reported.
    pub reported: Value,
}

impl Goal {
    /// A goal with this document, always enforced, ours by its tag. Its members that are null are absent.
    pub fn new(id: ResourceId, service: &'static Service, document: Value) -> Self {
        Self {
            api_version: Kind::of(&id).api_version,
            headers: BTreeMap::new(),
            id,
            service,
            document: without_nulls(document),
            wanted: true,
            ownership: OwnershipRule::Tagged,
            upkeep: Upkeep::Always,
            secrets: Vec::new(),
            has_new_secrets: false,
            withdrawn: Vec::new(),
            after: Vec::new(),
            kept_while_used: None,
            forced: false,
            borne: Borne::Nothing,
            reported: Value::Null,
        }
    }

    /// A resource that is deleted if it is ours.
    pub fn gone(id: ResourceId, service: &'static Service) -> Self {
        Self { wanted: false, ..Self::new(id, service, Value::Null) }
    }

    /// A foreign resource that must exist.
    pub fn foreign(id: ResourceId, service: &'static Service) -> Self {
        Self { ownership: OwnershipRule::Foreign, ..Self::new(id, service, Value::Null) }
    }

    /// Sets the rule of ownership.
    pub fn owned(self, ownership: OwnershipRule) -> Self {
        Self { ownership, ..self }
    }

    /// Uses the version of Azure's API with features in preview, if there is one.
    pub fn in_preview(mut self) -> Self {
        self.api_version = self.kind().preview_version.unwrap_or(self.api_version);
        self
    }

    /// Enforces the document only at creation.
    pub fn once(self) -> Self {
        Self { upkeep: Upkeep::Once, ..self }
    }

    /// Sets how long the document is enforced.
    pub fn held_to(self, upkeep: Upkeep) -> Self {
        Self { upkeep, ..self }
    }

    /// Deletes it without waiting for its workload.
    pub fn forced(self) -> Self {
        Self { forced: true, ..self }
    }

    /// Hides the values at these JSON pointers.
    pub fn hiding(self, secrets: Vec<String>) -> Self {
        Self { secrets, ..self }
    }

    /// Reports differences in these members of its document. A path starts at the root of the document.
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

    /// Makes it wait for these resources.
    pub fn after(mut self, others: impl IntoIterator<Item = ResourceId>) -> Self {
        self.after.extend(others);
        self
    }

    /// Turns it into a deletion, at the end of its object. Resources that its document refers to stay until it is
    /// deleted.
    pub fn ended(self) -> Self {
        Self { wanted: false, ..self }
    }

    /// Removes these tags, which were applied before, if they are no longer desired. A resource without tags has none.
    pub fn without_tags(&mut self, applied: &Tags) {
        let Some(wanted) = self.document["tags"].as_object() else { return };
        let is_wanted = |key: &str| wanted.keys().any(|known| known.eq_ignore_ascii_case(key));
        let gone = applied.iter().filter(|(key, _)| !is_wanted(key));
        self.withdrawn
            .extend(gone.map(|(key, value)| Withdrawn::Tag { key: key.clone(), value: value.clone() }));
    }

    /// Removes these items, which were applied before.
    pub fn without(mut self, withdrawn: impl IntoIterator<Item = Withdrawn>) -> Self {
        self.withdrawn.extend(withdrawn);
        self
    }

    /// The kind of the resource.
    pub fn kind(&self) -> &'static Kind {
        Kind::of(&self.id)
    }

    /// Why the resource, which another cluster owns, is not touched, and what to do.
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

    /// The name of the resource in messages: `load balancer my-cluster-public-lb`.
    pub fn name_for_people(&self) -> String {
        describe(&self.id)
    }
}

/// Documents hold bootstrap data and passwords: a goal in a log shows its resource, and not its document.
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
