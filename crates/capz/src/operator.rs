//! Takes the objects of Azure Service Operator out of the way that the established provider has made for clusters: what is done
//! with which one says `capz_planner::operator`. They are read and written in the version in which they are stored, so that it is the same
//! whether the operator runs beside this program or is gone.
//!
//! One look serves all clusters. Where the operator was never installed, it costs a few requests in each sync period.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use capz_planner::operator::{
    Converter, Definition, KEPT, KINDS, OperatorKind, OperatorObject, Step, keeping,
};
use futures::future::join_all;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, Preconditions, PropagationPolicy};
use kube::{Api, Client};
use tokio::time::Instant;

use crate::operator_objects::{OperatorObjects, definitions, resource};
use crate::patch::FIELD_MANAGER;

/// How long a failed look is shared: clusters that waited for it do not look one after the other.
const SHARED_FAILURE: Duration = Duration::from_secs(5);
/// How often objects are looked at and brought a step further at a time. Three steps each are needed; others may write in between.
const ROUNDS: usize = 8;

/// How old a look may be where nothing but time has caused it.
const FRESH_ENOUGH: Duration = Duration::from_secs(60);
/// When objects are looked at again that are being deleted.
pub(crate) const GOING: Duration = Duration::from_secs(2);

/// As long ago as a look may be where nothing but time has caused it.
pub(crate) fn lately() -> Instant {
    let now = Instant::now();
    now.checked_sub(FRESH_ENOUGH).unwrap_or(now)
}

/// Why the operator's objects are not out of the way.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum OperatorError {
    /// The API server did not do what it was asked.
    #[error("cannot {what}: {answer}{remedy}")]
    Refused {
        /// What was asked.
        what: String,
        /// Its answer.
        answer: String,
        /// What to do, if that is known.
        remedy: String,
    },
    /// They are deleted, and still there.
    #[error("waiting for these objects of Azure Service Operator to go: {0}")]
    Left(String),
}

impl OperatorError {
    /// Whether it is only a matter of time.
    pub fn is_waiting(&self) -> bool {
        matches!(self, Self::Left(_))
    }

    fn refused(what: String, error: &kube::Error) -> Self {
        let remedy = match error {
            kube::Error::Api(status) if status.is_forbidden() => {
                "; give capz-manager the rights of deploy/capz/parts/40-rights.yaml"
            }
            _ => "",
        };
        Self::Refused { what, answer: controllers::answer(error), remedy: remedy.to_owned() }
    }
}

/// What was seen of the operator's objects.
#[derive(Debug, Clone, Default)]
struct Seen {
    /// The kinds that are defined.
    defined: Vec<(&'static OperatorKind, Definition)>,
    /// Objects by the UID of the AzureCluster that they belong to.
    objects: HashMap<String, Vec<OperatorObject>>,
}

struct Look {
    at: Instant,
    found: Result<Arc<Seen>, OperatorError>,
}

impl Look {
    /// Whether it answers who wants nothing that is older than that.
    fn serves(&self, not_before: Instant, sync_period: Duration) -> bool {
        match &self.found {
            Ok(seen) if seen.defined.is_empty() => self.at.elapsed() < sync_period,
            Ok(_) => self.at >= not_before,
            Err(_) => self.at >= not_before && self.at.elapsed() < SHARED_FAILURE,
        }
    }
}

/// The objects of Azure Service Operator in this management cluster.
pub(crate) struct Operator {
    client: Client,
    objects: OperatorObjects,
    sync_period: Duration,
    look: tokio::sync::Mutex<Option<Look>>,
}

impl Operator {
    /// Those in this namespace, or in all. The kinds are looked for anew after each `sync_period`.
    pub fn new(client: Client, namespace: Option<String>, sync_period: Duration) -> Self {
        let objects = OperatorObjects::new(client.clone(), namespace);
        Self { client, objects, sync_period, look: tokio::sync::Mutex::default() }
    }

    /// Whether none of the objects of this AzureCluster lets the operator do anything in Azure, as was seen at that time or later.
    ///
    /// # Errors
    /// They cannot be read.
    pub async fn is_harmless(&self, owner: &str, not_before: Instant) -> Result<bool, OperatorError> {
        let seen = self.seen(not_before).await?;
        Ok(seen.objects.get(owner).into_iter().flatten().all(OperatorObject::is_harmless))
    }

    /// Makes the objects of this AzureCluster harmless, and gives them as they were seen then or later: the operator does nothing in
    /// Azure, whatever becomes of them.
    ///
    /// # Errors
    /// One of them is not harmless yet.
    pub async fn make_harmless(
        &self,
        owner: &str,
        not_before: Instant,
    ) -> Result<Vec<OperatorObject>, OperatorError> {
        self.bring(owner, not_before, |objects| objects.iter().all(OperatorObject::is_harmless)).await
    }

    /// Removes the objects of this AzureCluster; those that are harmful become harmless before.
    ///
    /// # Errors
    /// One of them is still there.
    pub async fn remove(&self, owner: &str) -> Result<(), OperatorError> {
        self.bring(owner, lately(), <[_]>::is_empty).await.map(drop)
    }

    /// Brings the objects of this AzureCluster on until that holds of them.
    async fn bring(
        &self,
        owner: &str,
        mut not_before: Instant,
        is_done: fn(&[OperatorObject]) -> bool,
    ) -> Result<Vec<OperatorObject>, OperatorError> {
        let (mut objects, mut unknown) = (Vec::new(), None);
        for _ in 0..ROUNDS {
            let seen = self.seen(not_before).await?;
            objects = seen.objects.get(owner).cloned().unwrap_or_default();
            if is_done(&objects) {
                return Ok(objects);
            }
            // Nothing goes while one of them could still do harm: what belongs to it would go, too.
            let may_go = objects.iter().all(OperatorObject::is_harmless);
            if may_go {
                unknown = self.do_without_converters(&seen.defined, &objects).await?;
            }
            let mut steps = Vec::new();
            for object in &objects {
                if let Some(step) = object.next(!may_go) {
                    steps.push(self.take(&seen, object, step));
                }
            }
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
        // What they are waited for with is not shown by this look.
        *self.look.lock().await = None;
        let mut names = Vec::new();
        for object in &objects {
            names.push(format!("{} {}/{}", object.kind.kind, object.namespace, object.name));
        }
        Err(OperatorError::Left(names.join(", ")))
    }

    /// Takes one step with one object. Where it has changed or gone since it was read, the next look shows it.
    async fn take(&self, seen: &Seen, object: &OperatorObject, step: Step) -> Result<(), OperatorError> {
        let Some((kind, definition)) = seen.defined.iter().find(|(kind, _)| *kind == object.kind) else {
            return Ok(());
        };
        let api: Api<DynamicObject> = Api::namespaced_with(
            self.client.clone(),
            &object.namespace,
            &resource(kind, &definition.storage),
        );
        let name = &object.name;
        let (verb, answer) = match step {
            Step::Skip(patch) | Step::Release(patch) => {
                let params =
                    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
                ("patch", api.patch(name, &params, &Patch::Merge(&patch)).await.map(|_| ()))
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

    /// What there is, as was seen at that time or later.
    async fn seen(&self, not_before: Instant) -> Result<Arc<Seen>, OperatorError> {
        let mut look = self.look.lock().await;
        if let Some(look) = look.as_ref().filter(|look| look.serves(not_before, self.sync_period)) {
            return look.found.clone();
        }
        let at = Instant::now();
        let found = self.look().await.map(Arc::new);
        *look = Some(Look { at, found: found.clone() });
        found
    }

    async fn look(&self) -> Result<Seen, OperatorError> {
        let mut seen = Seen::default();
        let (mut definitions, mut lists) = (Vec::new(), Vec::new());
        for kind in &KINDS {
            definitions.push(self.definition(kind));
        }
        for found in join_all(definitions).await {
            seen.defined.extend(found?);
        }
        for (kind, definition) in &seen.defined {
            lists.push(self.read(kind, definition));
        }
        for found in join_all(lists).await {
            for object in found? {
                seen.objects.entry(object.owner.clone()).or_default().push(object);
            }
        }
        Ok(seen)
    }

    async fn definition(
        &self,
        kind: &'static OperatorKind,
    ) -> Result<Option<(&'static OperatorKind, Definition)>, OperatorError> {
        let found = self.objects.definition(kind).await;
        let found = found.map_err(|error| {
            OperatorError::refused(format!("read definition {}", kind.definition()), &error)
        })?;
        Ok(found.map(|definition| (kind, definition)))
    }

    /// The objects of a kind that AzureClusters own. Where they cannot be read because what converts them is gone, they are read without
    /// it.
    async fn read(
        &self,
        kind: &'static OperatorKind,
        definition: &Definition,
    ) -> Result<Vec<OperatorObject>, OperatorError> {
        let error = match self.objects.list(kind, &definition.storage).await {
            Ok(found) => return Ok(found.of_clusters),
            Err(error) => error,
        };
        match &error {
            // The definition went just now.
            kube::Error::Api(status) if status.is_not_found() => return Ok(Vec::new()),
            kube::Error::Api(status) if status.is_forbidden() => {}
            _ => match self.objects.is_gone(&definition.converter).await {
                Ok(true) => {
                    self.do_without_converter(kind).await?;
                    let again = self.objects.list(kind, &definition.storage).await;
                    return match again {
                        Ok(found) => Ok(found.of_clusters),
                        Err(error) => Err(Self::not_listed(kind, definition, &error)),
                    };
                }
                Err(kube::Error::Api(status)) if status.is_forbidden() => {
                    return Err(Self::not_known(&definition.converter, &kube::Error::Api(status)));
                }
                Ok(false) | Err(_) => {}
            },
        }
        Err(Self::not_listed(kind, definition, &error))
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

    /// Where what converts objects of these kinds is gone, they are shown as they are stored from now on. Otherwise the garbage collector,
    /// which looks at another version, could not let them go. Gives why that is not known of some that are not converted.
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
                // While the operator runs, this right is not missed.
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
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let done = definitions(&self.client).patch(&name, &params, &patch).await;
        done.map(|_| ()).map_err(|error| OperatorError::refused(format!("patch definition {name}"), &error))
    }
}

/// The annotation of an AzureCluster with what is kept, if these objects add to it.
pub(crate) fn kept_besides(
    annotations: &BTreeMap<String, String>,
    objects: &[OperatorObject],
) -> Option<(String, String)> {
    keeping(annotations, objects).map(|text| (KEPT.to_owned(), text))
}
