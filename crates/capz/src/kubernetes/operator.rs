//! Neutralizes and removes the objects of Azure Service Operator that the established provider has created for
//! clusters; `capz_planner::operator` decides the steps. They are read and written in their storage version, so that it
//! makes no difference whether the operator still runs.
//!
//! One observation serves all clusters. If the operator was never installed, it costs a few requests in each sync
//! period.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use capz_planner::operator::{
    Converter, Definition, OperatorKind, OperatorObject, OperatorOwner, Step, kinds,
};
use capz_planner::raw::OWNED_KINDS;
use futures::future::join_all;
use kube::api::{DeleteParams, DynamicObject, Patch, Preconditions, PropagationPolicy};
use kube::{Api, Client};
use tokio::time::Instant;

use crate::kubernetes::kinds::{Object, ObjectKind};
use crate::kubernetes::operator_objects::{OperatorObjects, definitions, resource};
use crate::kubernetes::patch::params;

/// How long a failed observation is shared: clusters that waited for it do not repeat it one after the other.
const SHARED_FAILURE: Duration = Duration::from_secs(5);
/// The maximum number of observations and steps in one call. Each object needs three steps; others may write in
/// between.
const ROUNDS: usize = 8;

/// The maximum age of an observation if no event requires a newer one.
const FRESH_ENOUGH: Duration = Duration::from_secs(60);
/// The interval of observations while objects are being deleted.
pub(crate) const GOING: Duration = Duration::from_secs(2);

/// The earliest time of an acceptable observation if no event requires a newer one.
pub(crate) fn lately() -> Instant {
    let now = Instant::now();
    now.checked_sub(FRESH_ENOUGH).unwrap_or(now)
}

/// The owner of objects of the operator that an object of ours may be.
pub(crate) fn owner_of<K: ObjectKind>(object: &Object<K>) -> OperatorOwner {
    let annotations = object.metadata.annotations.as_ref();
    OperatorOwner {
        kind: K::NAME,
        uid: object.metadata.uid.clone().unwrap_or_default(),
        owned_kinds: annotations.and_then(|all| all.get(OWNED_KINDS)).cloned().unwrap_or_default(),
    }
}

/// Why the operator's objects are not neutralized or removed.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum OperatorError {
    /// The API server refused a request.
    #[error("cannot {what}: {answer}{remedy}")]
    Refused {
        /// The request.
        what: String,
        /// The server's answer.
        answer: String,
        /// What to do, if known.
        remedy: String,
    },
    /// Objects are being deleted, and still exist.
    #[error("waiting for these objects of Azure Service Operator to go: {0}")]
    Left(String),
}

impl OperatorError {
    /// Whether waiting is enough.
    pub fn is_waiting(&self) -> bool {
        matches!(self, Self::Left(_))
    }

    pub(super) fn refused(what: String, error: &kube::Error) -> Self {
        let remedy = match error {
            kube::Error::Api(status) if status.is_forbidden() => {
                "; give capz-manager the rights of deploy/capz/parts/40-rights.yaml"
            }
            _ => "",
        };
        Self::Refused { what, answer: controllers::answer(error), remedy: remedy.to_owned() }
    }
}

/// A kind whose objects could not be listed.
#[derive(Debug, Clone)]
struct Unlisted {
    kind: &'static OperatorKind,
    definition: Definition,
    error: OperatorError,
    is_forbidden: bool,
}

/// The observed objects of the operator.
#[derive(Debug, Clone, Default)]
struct ObservedObjects {
    /// The names of the definitions that were looked for.
    wanted: BTreeSet<String>,
    /// The kinds that are defined.
    defined: Vec<(&'static OperatorKind, Definition)>,
    /// The defined kinds whose objects are unknown.
    unlisted: Vec<Unlisted>,
    /// Objects by the UID of their owner.
    objects: HashMap<String, Vec<OperatorObject>>,
}

impl ObservedObjects {
    /// The kinds that this owner may have, and whose objects are unknown.
    fn unlisted_of(&self, owner: &OperatorOwner) -> impl Iterator<Item = &Unlisted> {
        self.unlisted.iter().filter(|it| owner.may_own(it.kind))
    }
}

struct OperatorObservation {
    at: Instant,
    answer: Result<Arc<ObservedObjects>, OperatorError>,
}

impl OperatorObservation {
    /// Whether this observation is valid for a caller that accepts none older than `not_before`.
    fn serves(&self, owner: &OperatorOwner, not_before: Instant, sync_period: Duration) -> bool {
        match &self.answer {
            Ok(observed) if !owner.definitions().is_subset(&observed.wanted) => false,
            Ok(observed) if observed.defined.is_empty() => self.at.elapsed() < sync_period,
            Ok(observed) if observed.unlisted_of(owner).next().is_none() => self.at >= not_before,
            Ok(_) | Err(_) => self.at >= not_before && self.at.elapsed() < SHARED_FAILURE,
        }
    }
}

/// The last observation, and the definitions by their names, with the resource versions in which they were read.
///
/// Only the kinds are observed that the established provider creates for the owners here: it has the right to list
/// these, and its role may lack all others.
#[derive(Default)]
struct OperatorMemory {
    wanted: BTreeSet<String>,
    latest: Option<OperatorObservation>,
    definitions: BTreeMap<String, (String, Definition)>,
}

/// The objects of Azure Service Operator in this management cluster.
pub(crate) struct Operator {
    client: Client,
    objects: OperatorObjects,
    sync_period: Duration,
    memory: tokio::sync::Mutex<OperatorMemory>,
}

impl Operator {
    /// The objects in this namespace, or in all namespaces. The kinds are discovered again after each `sync_period`.
    pub fn new(client: Client, namespace: Option<String>, sync_period: Duration) -> Self {
        let objects = OperatorObjects::new(client.clone(), namespace);
        Self { client, objects, sync_period, memory: tokio::sync::Mutex::default() }
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn objects(&self) -> &OperatorObjects {
        &self.objects
    }

    /// Forgets the last observation: the objects have changed.
    pub async fn forget(&self) {
        self.memory.lock().await.latest = None;
    }

    /// The definition of one kind, which is read as a whole only once it has changed.
    pub(super) async fn known_definition(
        &self,
        kind: &OperatorKind,
    ) -> Result<Option<Definition>, OperatorError> {
        let name = kind.definition();
        let found = definitions(&self.client).get_metadata_opt(&name).await;
        let found =
            found.map_err(|error| OperatorError::refused(format!("read definition {name}"), &error))?;
        let Some(version) = found.map(|found| found.metadata.resource_version.unwrap_or_default()) else {
            return Ok(None);
        };
        if let Some((_, known)) =
            self.memory.lock().await.definitions.get(&name).filter(|(known, _)| *known == version)
        {
            return Ok(Some(known.clone()));
        }
        let definition = self.definition(kind).await?;
        if let Some(definition) = &definition {
            self.memory.lock().await.definitions.insert(name, (version, definition.clone()));
        }
        Ok(definition)
    }

    /// Whether all objects of this owner are harmless, as observed at `not_before` or later: the operator does nothing
    /// in Azure for them.
    ///
    /// # Errors
    /// The objects cannot be read.
    pub async fn is_harmless(
        &self,
        owner: &OperatorOwner,
        not_before: Instant,
    ) -> Result<bool, OperatorError> {
        let observed = self.observed(owner, not_before).await?;
        if let Some(unlisted) = observed.unlisted_of(owner).next() {
            return Err(unlisted.error.clone());
        }
        Ok(observed.objects.get(&owner.uid).into_iter().flatten().all(OperatorObject::is_harmless))
    }

    /// Makes the objects of this owner harmless, and returns them as observed at `not_before` or later: the
    /// operator then does nothing in Azure, whatever happens to the objects. The established provider would restore them.
    ///
    /// # Errors
    /// One of them is not harmless yet.
    pub async fn make_harmless(
        &self,
        owner: &OperatorOwner,
        not_before: Instant,
    ) -> Result<Vec<OperatorObject>, OperatorError> {
        self.bring(owner, not_before, |objects| objects.iter().all(OperatorObject::is_restorable)).await
    }

    /// Removes the objects of this owner, after all of them are harmless.
    ///
    /// # Errors
    /// One of them still exists.
    pub async fn remove(&self, owner: &OperatorOwner) -> Result<(), OperatorError> {
        self.bring(owner, lately(), <[_]>::is_empty).await.map(drop)
    }

    /// Takes steps with the objects of this owner until `is_done` holds for them.
    async fn bring(
        &self,
        owner: &OperatorOwner,
        mut not_before: Instant,
        is_done: fn(&[OperatorObject]) -> bool,
    ) -> Result<Vec<OperatorObject>, OperatorError> {
        let (mut objects, mut unknown) = (Vec::new(), None);
        for _ in 0..ROUNDS {
            let observed = self.observed(owner, not_before).await?;
            if self.convert_without(&observed, owner).await? {
                not_before = Instant::now();
                continue;
            }
            objects = observed.objects.get(&owner.uid).cloned().unwrap_or_default();
            if is_done(&objects) {
                return Ok(objects);
            }
            // No object is deleted while another one is harmful: the operator would also delete its dependants.
            let may_go = objects.iter().all(OperatorObject::is_restorable);
            if may_go {
                unknown = self.do_without_converters(&observed.defined, &objects).await?;
            }
            let steps: Vec<_> = objects
                .iter()
                .filter_map(|object| Some(self.take(&observed, object, object.next(!may_go)?)))
                .collect();
            if steps.is_empty() {
                break;
            }
            for done in join_all(steps).await {
                done?;
            }
            not_before = Instant::now();
        }
        if let Some(unknown) = unknown {
            return Err(unknown);
        }
        // The current observation does not show the change that the caller waits for.
        self.forget().await;
        let name = |it: &OperatorObject| format!("{} {}/{}", it.kind.kind, it.namespace, it.name);
        Err(OperatorError::Left(objects.iter().map(name).collect::<Vec<_>>().join(", ")))
    }

    /// Takes one step with one object. If the object was changed or deleted since it was read, the next observation
    /// shows it.
    async fn take(
        &self,
        observed: &ObservedObjects,
        object: &OperatorObject,
        step: Step,
    ) -> Result<(), OperatorError> {
        let Some((kind, definition)) = observed.defined.iter().find(|(kind, _)| *kind == object.kind) else {
            return Ok(());
        };
        let api: Api<DynamicObject> = Api::namespaced_with(
            self.client.clone(),
            &object.namespace,
            &resource(kind, &definition.storage),
        );
        let name = &object.name;
        let (verb, answer) = match step {
            Step::Skip(patch) | Step::Yield(patch) | Step::Release(patch) => {
                ("patch", api.patch(name, &params(), &Patch::Merge(&patch)).await.map(|_| ()))
            }
            Step::Delete => {
                let preconditions = Preconditions {
                    uid: Some(object.uid.clone()),
                    resource_version: Some(object.resource_version.clone()),
                };
                let params = DeleteParams {
                    propagation_policy: Some(PropagationPolicy::Orphan),
                    preconditions: Some(preconditions),
                    ..DeleteParams::default()
                };
                ("delete", api.delete(name, &params).await.map(|_| ()))
            }
        };
        match answer {
            Err(kube::Error::Api(status)) if status.is_conflict() || status.is_not_found() => Ok(()),
            Err(error) => {
                let what = format!("{verb} {} {}/{name}", kind.definition(), object.namespace);
                Err(OperatorError::refused(what, &error))
            }
            Ok(()) => Ok(()),
        }
    }

    /// Returns the objects as observed at `not_before` or later.
    async fn observed(
        &self,
        owner: &OperatorOwner,
        not_before: Instant,
    ) -> Result<Arc<ObservedObjects>, OperatorError> {
        let mut memory = self.memory.lock().await;
        let latest = memory.latest.as_ref();
        if let Some(latest) = latest.filter(|latest| latest.serves(owner, not_before, self.sync_period)) {
            return latest.answer.clone();
        }
        let at = Instant::now();
        memory.wanted.extend(owner.definitions());
        let wanted = memory.wanted.clone();
        let answer = self.observe(wanted, &mut memory.definitions).await.map(Arc::new);
        memory.latest = Some(OperatorObservation { at, answer: answer.clone() });
        answer
    }

    async fn observe(
        &self,
        wanted: BTreeSet<String>,
        definitions: &mut BTreeMap<String, (String, Definition)>,
    ) -> Result<ObservedObjects, OperatorError> {
        let mut observed = ObservedObjects { wanted, ..ObservedObjects::default() };
        let versions = self.objects.defined().await;
        let versions =
            versions.map_err(|error| OperatorError::refused("list definitions".to_owned(), &error))?;
        definitions.retain(|name, (version, _)| versions.get(name) == Some(version));
        let reads = kinds().iter().filter_map(|kind| {
            let name = kind.definition();
            let version = versions.get(&name).filter(|_| observed.wanted.contains(&name))?.clone();
            let known = definitions.get(&name).map(|(_, definition)| definition.clone());
            Some(async move {
                let found = match known {
                    Some(known) => Some(known),
                    None => self.definition(kind).await?,
                };
                Ok(found.map(|definition| (kind, version, definition)))
            })
        });
        let reads: Vec<_> = reads.collect();
        for found in join_all(reads).await {
            if let Some((kind, version, definition)) = found? {
                definitions.insert(kind.definition(), (version, definition.clone()));
                observed.defined.push((kind, definition));
            }
        }
        let lists = observed.defined.iter().map(|(kind, definition)| async move {
            (*kind, definition, self.objects.list(kind, &definition.storage).await)
        });
        for (kind, definition, found) in join_all(lists).await {
            match found {
                Ok(found) => {
                    for object in found.of_clusters {
                        observed.objects.entry(object.owner.clone()).or_default().push(object);
                    }
                }
                // The definition was deleted just now.
                Err(kube::Error::Api(status)) if status.is_not_found() => {}
                Err(error) => observed.unlisted.push(Unlisted {
                    kind,
                    definition: definition.clone(),
                    error: Self::not_listed(kind, definition, &error),
                    is_forbidden: matches!(&error, kube::Error::Api(status) if status.is_forbidden()),
                }),
            }
        }
        Ok(observed)
    }

    async fn definition(&self, kind: &OperatorKind) -> Result<Option<Definition>, OperatorError> {
        let definition = self.objects.definition(kind).await;
        definition
            .map_err(|error| OperatorError::refused(format!("read definition {}", kind.definition()), &error))
    }

    /// Turns off the conversion of kinds that this owner may have and that cannot be listed because their conversion
    /// webhook no longer exists. Returns whether there were any.
    async fn convert_without(
        &self,
        observed: &ObservedObjects,
        owner: &OperatorOwner,
    ) -> Result<bool, OperatorError> {
        let mut is_changed = false;
        for Unlisted { kind, definition, error, is_forbidden } in observed.unlisted_of(owner) {
            if *is_forbidden {
                return Err(error.clone());
            }
            match self.objects.is_gone(&definition.converter).await {
                Ok(true) => {
                    self.do_without_converter(kind).await?;
                    is_changed = true;
                }
                Err(kube::Error::Api(status)) if status.is_forbidden() => {
                    return Err(Self::not_known(&definition.converter, &kube::Error::Api(status)));
                }
                Ok(false) | Err(_) => return Err(error.clone()),
            }
        }
        Ok(is_changed)
    }

    fn not_listed(kind: &OperatorKind, definition: &Definition, error: &kube::Error) -> OperatorError {
        let mut refused = OperatorError::refused(format!("list {}", kind.definition()), error);
        if let (OperatorError::Refused { answer, remedy, .. }, Converter::Service { namespace, name }) =
            (&mut refused, &definition.converter)
            && answer.contains("conversion webhook")
        {
            *remedy = format!(
                "; start the Deployment of Azure Service Operator behind Service {namespace}/{name} again, or delete that Service: then \
                 these objects are read without it"
            );
        }
        refused
    }

    /// Turns off the conversion of kinds with these objects if its Service no longer exists: they are then served as
    /// they are stored. Otherwise the garbage collector, which reads another version, could not delete them. Returns
    /// the error if it is unknown whether the Service exists, and objects of a kind are not converted.
    async fn do_without_converters(
        &self,
        defined: &[(&'static OperatorKind, Definition)],
        objects: &[OperatorObject],
    ) -> Result<Option<OperatorError>, OperatorError> {
        let mut unknown = None;
        for (kind, definition) in defined {
            let Some(object) = objects.iter().find(|object| object.kind == *kind) else { continue };
            match self.objects.is_gone(&definition.converter).await {
                Ok(true) => self.do_without_converter(kind).await?,
                Ok(false) => {}
                // This right is not needed while the operator converts the objects.
                Err(error) => {
                    if self.objects.is_not_converted(kind, definition, &object.namespace).await {
                        unknown = Some(Self::not_known(&definition.converter, &error));
                    }
                }
            }
        }
        Ok(unknown)
    }

    fn not_known(converter: &Converter, error: &kube::Error) -> OperatorError {
        let what = match converter {
            Converter::Service { namespace, name } => {
                format!("see whether Service {namespace}/{name}, which does not convert objects, is there")
            }
            Converter::Nothing | Converter::Elsewhere => "see what converts objects".to_owned(),
        };
        OperatorError::refused(what, error)
    }

    async fn do_without_converter(&self, kind: &OperatorKind) -> Result<(), OperatorError> {
        let name = kind.definition();
        tracing::info!(definition = %name, "The Service that converts objects is gone: they are shown as they are stored");
        let patch = Patch::Merge(Definition::without_converter());
        let done = definitions(&self.client).patch(&name, &params(), &patch).await;
        done.map(|_| ()).map_err(|error| OperatorError::refused(format!("patch definition {name}"), &error))
    }
}
