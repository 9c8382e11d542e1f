//! From raw resources to goals.

use std::collections::BTreeSet;

use azure_types::ResourceId;
use capz_api::azure_aso_managed::{ResourceHandle, ResourceStatus};
use operator_resources::{Awaited, Document, Ids, Location, Lookup, Policy, Refusal, Resource};
use serde_json::Value;

use super::record::{Record, Recorded};
use crate::claimant::Claimant;
use crate::compare::{self, Change};
use crate::goal::{Goal, OwnershipRule};
use crate::kind::Kind;
use crate::observed::{Observation, ObservedResources};
use crate::plan::{self, Plan};
use crate::service;
use crate::terminal::Terminal;

/// The annotation by which a user gives an existing resource to the object that declares it.
pub(super) const ADOPT: &str = "sigs.k8s.io/cluster-api-provider-azure-adopt";
/// The member that declares raw resources.
const DECLARED_BY: &str = "spec.resources";

/// Why raw resources cannot be placed: this lasts until the object changes.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlaceError {
    /// An object cannot be read.
    #[error("spec.resources[{index}]: {refusal}")]
    Refused {
        /// Its index.
        index: usize,
        /// Why.
        refusal: Refusal,
    },
    /// Its version is not known.
    #[error(
        "spec.resources[{index}].apiVersion: version {version} of {kind} is not known to this release, which has {known}: use one of these"
    )]
    Version {
        /// Its index.
        index: usize,
        /// Azure's version.
        version: String,
        /// The kind.
        kind: &'static str,
        /// The known ones.
        known: String,
    },
}

impl From<PlaceError> for Terminal {
    fn from(error: PlaceError) -> Self {
        Self::configuration(error.to_string())
    }
}

/// What is known of where a raw resource is.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    /// Everything.
    Known {
        /// Its ID.
        id: ResourceId,
        /// Its document.
        document: Document,
        /// The version of Azure's API.
        api_version: &'static str,
    },
    /// These have to be known first.
    Awaits(Vec<Awaited>),
}

/// A raw resource.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    /// The object.
    pub resource: Resource,
    /// What is known of where it is.
    pub standing: Standing,
    /// Whether the user gives an existing resource to the object.
    pub is_adopted: bool,
    /// The Secrets that its document takes values from, with their versions.
    pub secrets: String,
}

impl Placed {
    /// Its ID, if it is known.
    pub fn id(&self) -> Option<&ResourceId> {
        match &self.standing {
            Standing::Known { id, .. } => Some(id),
            Standing::Awaits(_) => None,
        }
    }

    /// Whether it may be created and deleted: it is recorded before.
    pub fn is_managed(&self) -> bool {
        self.resource.policy == Policy::Manage
    }

    /// Whether a resource that exists before it is recorded may be written.
    pub fn may_exist(&self) -> bool {
        self.is_adopted || self.resource.policy != Policy::Manage
    }

    /// Why the resource with this ID is not taken, which exists already and which the object has not made.
    pub fn not_taken(&self, id: &ResourceId) -> String {
        format!(
            "{}: {id} exists already, and this object has not made it. To take it over, so that it is deleted with this object, give \
             the resource the annotation {ADOPT}: \"true\"; to write it and never delete it, \
             serviceoperator.azure.com/reconcile-policy: detach-on-delete; to only use it, skip",
            self.resource.object()
        )
    }

    /// Its entry in the record.
    pub fn recorded(&self) -> Recorded {
        Recorded {
            group: self.resource.kind.group.to_owned(),
            version: self.resource.version.clone(),
            kind: self.resource.kind.kind.to_owned(),
            name: self.resource.name.clone(),
            is_managed: self.is_managed(),
        }
    }
}

/// Reads and places objects of this namespace.
///
/// # Errors
/// One of them cannot be read.
pub fn place(
    objects: &[Value],
    namespace: &str,
    subscription: &str,
    others: &dyn Lookup,
) -> Result<Vec<Placed>, PlaceError> {
    let refused = |index: usize| move |refusal: Refusal| PlaceError::Refused { index, refusal };
    let mut resources = Vec::with_capacity(objects.len());
    for (index, object) in objects.iter().enumerate() {
        resources.push(Resource::parse(object, namespace).map_err(refused(index))?);
    }
    let mut ids = Ids::of(&resources, &|_| Some(subscription.to_owned()), others);
    if let Some(index) = resources.iter().position(|it| ids.refused.contains_key(&it.object()))
        && let Some(refusal) = ids.refused.remove(&resources[index].object())
    {
        return Err(PlaceError::Refused { index, refusal });
    }
    let lookup = ids.over(others);
    let mut placed = Vec::with_capacity(resources.len());
    for (index, resource) in resources.into_iter().enumerate() {
        let standing = match resource.id(subscription, &lookup).map_err(refused(index))? {
            Location::Awaiting(awaited) => Standing::Awaits(awaited),
            Location::At(id) => {
                let document = resource.document(&id, &lookup).map_err(refused(index))?;
                let api_version = known_version(&resource, index)?;
                match document.awaited.is_empty() {
                    true => Standing::Known { id, document, api_version },
                    false => Standing::Awaits(document.awaited),
                }
            }
        };
        let is_adopted = objects[index]["metadata"]["annotations"][ADOPT] == "true";
        let secrets = versions_of(&standing, others);
        placed.push(Placed { resource, standing, is_adopted, secrets });
    }
    Ok(placed)
}

fn versions_of(standing: &Standing, others: &dyn Lookup) -> String {
    let Standing::Known { document, .. } = standing else { return String::new() };
    let version = |name: &String| format!("{name}@{}", others.secret_version(name).unwrap_or_default());
    document.sources.iter().map(version).collect::<Vec<_>>().join(",")
}

fn known_version(resource: &Resource, index: usize) -> Result<&'static str, PlaceError> {
    let versions = resource.kind.versions;
    let known = versions.iter().find(|version| **version == resource.api_version);
    known.copied().ok_or_else(|| PlaceError::Version {
        index,
        version: resource.version.clone(),
        kind: resource.kind.kind,
        known: versions.join(", "),
    })
}

/// The goals of raw resources: those that are declared, and the deletion of those that are recorded and no longer
/// declared.
pub fn goals(placed: &[Placed], record: &Record) -> Vec<Goal> {
    let mut goals: Vec<Goal> = placed.iter().filter_map(|it| declared(it, record)).collect();
    let declared: BTreeSet<ResourceId> = goals.iter().map(|goal| goal.id.clone()).collect();
    // What waits for others may be one of the recorded ones.
    let waits = |recorded: &Recorded| {
        placed.iter().any(|it| {
            it.id().is_none() && it.resource.kind.kind == recorded.kind && it.resource.name == recorded.name
        })
    };
    let gone = record.0.iter().filter(|(id, recorded)| !declared.contains(*id) && !waits(recorded));
    goals.extend(gone.filter_map(|(id, recorded)| ended(id, recorded)));
    goals
}

fn declared(placed: &Placed, record: &Record) -> Option<Goal> {
    let Standing::Known { id, document, api_version } = &placed.standing else { return None };
    let goal = match placed.resource.policy {
        Policy::Skip => Goal::foreign(id.clone(), &service::RAW_RESOURCES),
        Policy::Manage | Policy::DetachOnDelete => {
            let ownership = match record.has(id) {
                true => OwnershipRule::Shown(Claimant::recorded()),
                false => OwnershipRule::Declared(DECLARED_BY),
            };
            Goal::new(id.clone(), &service::RAW_RESOURCES, document.value.clone())
                .owned(ownership)
                .hiding(not_shown(placed.resource.kind, document))
        }
    };
    Some(Goal { api_version, ..goal })
}

/// What Azure takes only at the creation of a resource, and what is declared otherwise since: a sentence for each resource.
pub fn fixed(placed: &[Placed], observed: &ObservedResources) -> Vec<String> {
    let of = |it: &Placed| {
        let goal = declared(it, &Record::default())?;
        let Observation::Present(held) = observed.get(&goal.id) else { return None };
        let changes = compare::fixed(goal.kind(), &plan::compared(&goal), held);
        let words: Vec<String> = changes.iter().map(Change::kept).collect();
        (!words.is_empty()).then(|| {
            format!(
                "{}: Azure takes these only at creation ({}): put the declaration back, or replace the resource",
                it.resource.object(),
                words.join("; ")
            )
        })
    };
    placed.iter().filter_map(of).collect()
}

/// JSON pointers to the members that Azure does not show, so that they are not compared: secrets, and members that it is
/// not known to have, which it may ignore.
fn not_shown(kind: &operator_resources::Kind, document: &Document) -> Vec<String> {
    let pointer = |path: &String| {
        let path = path.strip_prefix("spec.")?.replace('[', ".").replace(']', "");
        let first = path.split('.').next().unwrap_or_default();
        let place = if kind.envelope.contains(&first) { "" } else { "/properties" };
        Some(format!("{place}/{}", path.replace('.', "/")))
    };
    let unknown = document.unknown.iter().filter_map(pointer);
    unknown.chain(document.secrets.iter().cloned()).collect()
}

/// The deletion of a recorded resource; `None` if it stays. Another release may have recorded it, with a kind or a version
/// that this one does not know: then it is deleted with a version that it knows.
fn ended(id: &ResourceId, recorded: &Recorded) -> Option<Goal> {
    if !recorded.is_managed {
        return None;
    }
    let versions = operator_resources::find(&recorded.group, &recorded.kind)
        .map(|kind| kind.versions)
        .unwrap_or_default();
    let version = operator_resources::api_version(&recorded.version);
    let same = versions.iter().find(|known| version.as_deref() == Some(**known));
    let api_version = same.or(versions.last()).copied().unwrap_or(Kind::of(id).api_version);
    let goal =
        Goal::gone(id.clone(), &service::RAW_RESOURCES).owned(OwnershipRule::Shown(Claimant::recorded()));
    Some(Goal { api_version, ..goal })
}

/// The goals of the end of an object: all that it has recorded and that is to be deleted. A group that is deleted as a whole takes
/// what lies in it along.
pub fn ends(record: &Record, whole: &BTreeSet<ResourceId>) -> Vec<Goal> {
    let goes_along = |id: &ResourceId| whole.iter().any(|group| group != id && id.is_within(group));
    let going = record.0.iter().filter(|(id, _)| !goes_along(id));
    going.filter_map(|(id, recorded)| ended(id, recorded)).collect()
}

/// The state of each resource, for `status.resources`: those that are declared, and those that are being deleted.
pub fn statuses(placed: &[Placed], record: &Record, plan: &Plan) -> Vec<ResourceStatus> {
    let status = |recorded: Recorded, ready: bool| ResourceStatus {
        ready: Some(ready),
        resource: Some(ResourceHandle {
            group: Some(recorded.group),
            version: Some(recorded.version),
            kind: Some(recorded.kind),
            name: Some(recorded.name),
            ..ResourceHandle::default()
        }),
        ..ResourceStatus::default()
    };
    let is_there = |id: &ResourceId| plan.state_of(id).is_some_and(crate::State::is_there);
    let declared = placed.iter().map(|it| status(it.recorded(), it.id().is_some_and(is_there)));
    let goes = |id: &ResourceId| plan.items.iter().any(|(goal, _)| goal.id == *id && !goal.wanted);
    let going = record.0.iter().filter(|(id, _)| goes(id) && !is_there(id));
    declared.chain(going.map(|(_, recorded)| status(recorded.clone(), false))).collect()
}
