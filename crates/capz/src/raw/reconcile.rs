//! What the reconciles of all kinds with raw resources share: from `spec.resources` to Azure and to `status.resources`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arm::Class;
use azure_types::ResourceId;
use capz_api::Future;
use capz_api::azure_aso_managed::RawResource;
use capz_planner::cluster::resources_of;
use capz_planner::condition;
use capz_planner::operator::kept_with_policies;
use capz_planner::raw::{
    Applied, OWNED_KINDS, Placed, Record, Standing, ends, fixed, goals, keep, place, statuses,
};
use capz_planner::service::RAW;
use capz_planner::{Action, Claimant, Goal, Observation, ObservedResources, Plan, Terminal};
use kube::Api;
use kube::api::Patch;
use operator_resources::{Awaited, Policy};
use serde_json::{Value, json};

use crate::azure::clients::AzureAccess;
use crate::azure::failure::Failure;
use crate::azure::reach::Subject;
use crate::azure::reads;
use crate::context::azure_context::AzureContext;
use crate::context::identity::IdentityError;
use crate::context::manager::Manager;
use crate::context::reconcile::Reconcile;
use crate::context::records::{MANAGED_CLUSTERS, recorded_around};
use crate::kubernetes::core::{self, Cluster};
use crate::kubernetes::kinds::{self, NO_ENTRIES, Object};
use crate::kubernetes::patch::{PatchError, params};
use crate::kubernetes::queue::Outcome;
use crate::kubernetes::status::ReportedStatus as _;
use crate::kubernetes::store::{Changes, Key};
use crate::raw::kinds::{RESOURCES_READY, RawKind, RawStatus as _};
use crate::raw::lookup::KnownObjects;

/// What a reconcile knows of its cluster, and Azure with the rights of the resources' credential.
pub(crate) struct RawContext {
    cluster: Arc<Cluster>,
    pub access: AzureAccess,
    namespace: String,
    kept: BTreeSet<ResourceId>,
}

impl AzureContext for RawContext {
    fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    fn access(&self) -> &AzureAccess {
        &self.access
    }

    fn rival(&self) -> Option<&str> {
        None
    }

    fn claimant<'a>(&'a self, kind: &'static str, name: &'a str) -> Claimant<'a> {
        Claimant {
            kind,
            namespace: &self.namespace,
            name,
            cluster: self.cluster.metadata.name.as_deref().unwrap_or_default(),
            id: None,
            marked_only: false,
            kept: &self.kept,
        }
    }
}

/// The result of reconciling the resources of an object.
pub(crate) struct Reached {
    /// The resources.
    pub placed: Vec<Placed>,
    /// What Azure shows.
    pub observed: ObservedResources,
    /// Azure, with the rights of the credential.
    pub context: RawContext,
    /// What the resources refer to and does not exist yet.
    pub awaited: Vec<Awaited>,
}

impl Reached {
    /// The document in Azure of the first resource of a kind.
    pub fn document(&self, kind: &str) -> Option<&Value> {
        let resource = self.placed.iter().find(|it| it.resource.kind.kind == kind)?;
        match self.observed.get(resource.id()?) {
            Observation::Present(held) => Some(held),
            Observation::Absent | Observation::Unknown => None,
        }
    }
}

/// Why the resources of an object are not reached yet.
pub(crate) enum NotReached {
    /// A failure.
    Failure(Failure),
    /// New resources have been recorded: they are made in the next reconcile.
    Recorded,
}

impl From<Failure> for NotReached {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

/// The resources of an object as they are to be, given what Azure shows.
pub(crate) type Mutate<'m> = dyn Fn(&Held<'_>) -> Result<Vec<Value>, Terminal> + Send + Sync + 'm;

/// What Azure shows of the first resource of a kind.
pub(crate) type Held<'h> = dyn Fn(&str) -> Observation<'h> + 'h;

impl<K: RawKind> Reconcile<'_, K, Arc<Cluster>> {
    /// The record of the object.
    fn record(&self) -> Record {
        Record::of(self.edited.object.metadata.annotations.as_ref().unwrap_or(&NO_ENTRIES))
    }

    /// Reconciles until the resources are as declared.
    pub async fn pursue(&mut self, mutate: &Mutate<'_>) -> Result<Reached, NotReached> {
        let namespace = self.key.namespace.clone();
        let nothing = |_: &str| Observation::Unknown;
        let objects = mutate(&nothing).map_err(Failure::Terminal)?;
        let (access, subscription) = self.access(&objects).await?;
        let context = self.context(access);
        let mut known = self.known();
        let kept =
            kept_with_policies(self.edited.object.metadata.annotations.as_ref().unwrap_or(&NO_ENTRIES));
        let placed = loop {
            let mut placed = place(&objects, &namespace, &subscription, &known).map_err(terminal)?;
            keep(&mut placed, &kept);
            if !self.read_awaited(&mut known, &awaited(&placed)).await? {
                break placed;
            }
        };
        self.check_rivals(&placed)?;
        let strangers = self.strangers(&context, &placed).await?;
        if let Some(words) = strangers {
            return Err(Failure::Refused(words).into());
        }
        if self.save_record(&placed).await? {
            return Err(NotReached::Recorded);
        }
        // Another object may have recorded one of them at the same moment.
        self.check_rivals(&placed)?;
        self.report_unknown(&placed);
        let applied = self.applied();
        let (operations, reach) = (self.edited.operations(), self.reach(&context));
        let mut subject = RawSubject {
            context: &context,
            record: self.record(),
            mutate,
            known,
            subscription,
            placed,
            fixed: Vec::new(),
            applied,
            deleting: false,
            whole: BTreeSet::new(),
            kept,
            reconcile: self,
        };
        let (observed, _) = reach.run(&mut subject, &operations).await?;
        let RawSubject { placed, applied, .. } = subject;
        let awaited = awaited(&placed);
        self.edited
            .object
            .metadata
            .annotations
            .get_or_insert_default()
            .extend([applied.renewed(&placed).annotation()]);
        // What has gone is recorded no longer.
        let record = Record(
            placed
                .iter()
                .filter_map(|it| Some((it.id()?.clone(), it.recorded())))
                .chain(waiting(&self.record(), &placed))
                .collect(),
        );
        self.write_record(&record);
        Ok(Reached { placed, observed, context, awaited })
    }

    /// Azure, with the credential of the resources.
    async fn access(&self, objects: &[Value]) -> Result<(AzureAccess, String), Failure> {
        const CREDENTIAL: &str = "serviceoperator.azure.com/credential-from";
        let named =
            |object: &Value| object["metadata"]["annotations"][CREDENTIAL].as_str().map(str::to_owned);
        let mut names: Vec<Option<String>> = objects.iter().map(named).collect();
        names.dedup();
        if names.len() > 1 {
            return Err(Failure::Terminal(Terminal::configuration(format!(
                "the resources name several credentials in the annotation {CREDENTIAL}: name one for all resources of an object"
            ))));
        }
        let credential = names.into_iter().next().flatten();
        self.access_with(credential.as_deref()).await
    }

    async fn access_with(&self, credential: Option<&str>) -> Result<(AzureAccess, String), Failure> {
        let access = self.manager.raw_access(&self.key.namespace, credential).await;
        access.map_err(|error| match error {
            IdentityError::Missing(words) => Failure::Refused(words),
            other => {
                Failure::Later { after: self.manager.settings.timeouts.requeue, words: other.to_string() }
            }
        })
    }

    fn context(&self, access: AzureAccess) -> RawContext {
        RawContext {
            cluster: Arc::clone(&self.own),
            access,
            namespace: self.key.namespace.clone(),
            kept: BTreeSet::new(),
        }
    }

    /// Writes the differences, and wakes the cluster's other objects if they may have waited for them.
    pub async fn save_and_wake(&mut self) -> Result<(), PatchError> {
        let shown = |manager: &Manager, key: &Key| {
            let object = K::store(&manager.stores).get(key)?;
            let status = object.status.as_ref()?;
            Some((status.is_ready(), status.resources().clone()))
        };
        let before = shown(self.manager, self.key);
        self.save().await?;
        if shown(self.manager, self.key) != before {
            self.manager.wake_raw_of(&Key::of(&self.own.metadata), K::NAME);
        }
        Ok(())
    }

    /// What is known of other objects in the namespace.
    fn known(&self) -> KnownObjects {
        let stores = &self.manager.stores;
        let namespace = self.key.namespace.clone();
        let name = core::cluster_name(&self.edited.object.metadata).unwrap_or_default().to_owned();
        let cluster = Key { namespace, name };
        let uid = self.edited.object.metadata.uid.as_deref().unwrap_or_default();
        let mut known = KnownObjects::default();
        let record = self.record();
        known.add_declared(&stores.raw_clusters, &cluster);
        known.add_declared(&stores.raw_control_planes, &cluster);
        known.add_declared(&stores.raw_pools, &cluster);
        known.add_ready(&stores.raw_clusters, &cluster, uid, &record);
        known.add_ready(&stores.raw_control_planes, &cluster, uid, &record);
        known.add_ready(&stores.raw_pools, &cluster, uid, &record);
        known
    }

    async fn read_awaited(&self, known: &mut KnownObjects, awaited: &[Awaited]) -> Result<bool, Failure> {
        let read = self.manager.read_awaited(known, &self.key.namespace, awaited).await;
        read.map_err(|error| Failure::Later {
            after: self.manager.settings.timeouts.requeue,
            words: format!("what the resources refer to cannot be read: {}", controllers::answer(&error)),
        })
    }

    /// Checks that no other object has recorded one of the resources: who recorded it first has created it.
    fn check_rivals(&self, placed: &[Placed]) -> Result<(), Failure> {
        let record = self.record();
        // Also what is to stay when the object goes is written, and has one writer.
        for it in placed.iter().filter(|it| it.resource.policy != Policy::Skip) {
            let Some(id) = it.id() else { continue };
            if let Some(name) = self.rival(id, &record) {
                let object = it.resource.object();
                return Err(Failure::Refused(format!(
                    "{object}: {id} belongs to {name}, which has recorded it first: give the resource another azureName, or another owner"
                )));
            }
        }
        Ok(())
    }

    /// Another object that owns a resource; `None` if this one does.
    fn rival(&self, id: &ResourceId, record: &Record) -> Option<String> {
        self.manager.rival_by_record(id, &self.edited.object.metadata, record.has(id))
    }

    /// What was declared when the resources were last as declared.
    fn applied(&self) -> Applied {
        Applied::of(self.edited.object.metadata.annotations.as_ref().unwrap_or(&NO_ENTRIES))
    }

    /// Reports members that Azure is not known to have: most are misspelt.
    fn report_unknown(&self, placed: &[Placed]) {
        for it in placed {
            let Standing::Known { document, .. } = &it.standing else { continue };
            if !document.unknown.is_empty() {
                let words = format!(
                    "{}: Azure is not known to have {}: it refuses or ignores what it does not know",
                    it.resource.object(),
                    document.unknown.join(", ")
                );
                self.manager.recorder.warning(self.about(), "UnknownMember", words);
            }
        }
    }

    /// Why a resource that exists already, and that this object has not recorded, is not taken.
    async fn strangers(&self, context: &RawContext, placed: &[Placed]) -> Result<Option<String>, Failure> {
        let record = self.record();
        for it in placed.iter().filter(|it| !it.may_exist()) {
            let Standing::Known { id, api_version, .. } = &it.standing else { continue };
            if record.has(id) || self.lies_in_own(id) {
                continue;
            }
            let found = reads::get(&context.access.client, id, api_version, Class::Refresh).await;
            let found = found.map_err(|error| Failure::of(&error, self.manager.settings.timeouts.requeue))?;
            if found.is_some() {
                return Ok(Some(it.not_taken(id)));
            }
        }
        Ok(None)
    }

    /// Whether a resource lies in one that an object of the same Cluster has created, such as a node pool with which the
    /// managed cluster was created. What lies in a resource group may be anyone's.
    fn lies_in_own(&self, id: &ResourceId) -> bool {
        let stores = &self.manager.stores;
        let cluster = Key::of(&self.own.metadata);
        let around = [
            recorded_around(&stores.raw_clusters, id, &cluster),
            recorded_around(&stores.raw_control_planes, id, &cluster),
        ];
        around.contains(&true)
    }

    /// Records new resources. Returns whether there were any kinds that were not in use before.
    async fn save_record(&mut self, placed: &[Placed]) -> Result<bool, Failure> {
        let mut record = self.record();
        record.0.extend(placed.iter().filter_map(|it| Some((it.id()?.clone(), it.recorded()))));
        let annotations = self.edited.object.metadata.annotations.get_or_insert_default();
        let before = annotations.get(OWNED_KINDS).cloned().unwrap_or_default();
        let kinds: BTreeSet<&str> = before.split(';').collect();
        let after = record.kinds();
        let has_new_kinds = after.split(';').any(|kind| !kind.is_empty() && !kinds.contains(kind));
        self.write_record(&record);
        self.edited.hold(K::FINALIZER);
        if has_new_kinds {
            let plan = Plan::default();
            let status = self.edited.status();
            *status.resources_mut() = Some(statuses(placed, &record, &plan));
            *status.ready_mut() = Some(false);
        }
        self.save_progress().await?;
        Ok(has_new_kinds)
    }

    fn write_record(&mut self, record: &Record) {
        self.edited.object.metadata.annotations.get_or_insert_default().extend(record.annotations());
    }

    /// Deletes everything that the object has recorded.
    async fn delete_resources(&mut self) -> Result<Vec<String>, Failure> {
        let annotations = self.edited.object.metadata.annotations.as_ref().unwrap_or(&NO_ENTRIES);
        self.delete_these(Record::with_inherited(annotations)).await
    }

    /// Deletes what is recorded here.
    async fn delete_these(&mut self, mut record: Record) -> Result<Vec<String>, Failure> {
        // An older object has recorded it, too: it is that object's.
        let lost: Vec<ResourceId> =
            record.0.keys().filter(|id| self.rival(id, &record).is_some()).cloned().collect();
        record.0.retain(|id, _| !lost.contains(id));
        if !record.0.values().any(|recorded| recorded.is_managed) {
            return Ok(Vec::new());
        }
        let named = |resource: &RawResource| {
            let annotations = resource.0.get("metadata")?.get("annotations")?;
            annotations["serviceoperator.azure.com/credential-from"].as_str().map(str::to_owned)
        };
        let credential = self.edited.object.spec.resources().iter().find_map(named);
        let (access, subscription) = self.access_with(credential.as_deref()).await?;
        let context = self.context(access);
        let (whole, left) = self.groups(&context, &record).await?;
        let record = Record(record.0.into_iter().filter(|(id, _)| !left.contains_key(id)).collect());
        let (operations, reach) = (self.edited.operations(), self.reach(&context));
        let nothing = |_: &Held<'_>| Ok(Vec::new());
        let mut subject = RawSubject {
            context: &context,
            record,
            mutate: &nothing,
            known: KnownObjects::default(),
            subscription,
            placed: Vec::new(),
            fixed: Vec::new(),
            applied: Applied::default(),
            deleting: true,
            whole,
            kept: BTreeMap::new(),
            reconcile: self,
        };
        let (_, plan) = reach.run(&mut subject, &operations).await?;
        Ok(left.into_values().chain(plan.in_use()).collect())
    }

    /// The recorded groups that are deleted as a whole, and the words on those that stay, because not everything in them
    /// is proven to be the object's.
    async fn groups(
        &self,
        context: &RawContext,
        record: &Record,
    ) -> Result<(BTreeSet<ResourceId>, BTreeMap<ResourceId, String>), Failure> {
        let reach = self.reach(context);
        let (mut whole, mut left) = (BTreeSet::new(), BTreeMap::new());
        let groups =
            record.0.iter().filter(|(_, recorded)| recorded.is_managed && recorded.kind == "ResourceGroup");
        for (group, _) in groups {
            let listed = reach.list(&resources_of(group)).await?;
            let ids = listed.iter().filter_map(|document| ResourceId::parse(document["id"].as_str()?).ok());
            let is_ours = |id: &ResourceId| {
                record
                    .0
                    .iter()
                    .any(|(own, recorded)| own != group && recorded.is_managed && id.is_within(own))
            };
            let others: Vec<String> = ids.filter(|id| !is_ours(id)).map(|id| id.to_string()).collect();
            if others.is_empty() {
                whole.insert(group.clone());
            } else {
                left.insert(
                    group.clone(),
                    format!(
                        "resource group {} stays, for these are not proven to be this object's, and stay in it: {}. Delete them, and then \
                         the group, by hand if they are of no use",
                        group.name(),
                        others.join(", ")
                    ),
                );
            }
        }
        Ok((whole, left))
    }

    /// Ends the object: deletes its resources, or leaves them to the deletion of its cluster.
    pub async fn delete(mut self) -> Result<Outcome, PatchError> {
        if !self.begin_deletion("Deleting").await? {
            return Ok(Outcome::Gone);
        }
        let deleted = self.delete_resources().await;
        self.end(deleted).await
    }

    async fn end(self, deleted: Result<Vec<String>, Failure>) -> Result<Outcome, PatchError> {
        match deleted {
            Ok(left) => {
                if !left.is_empty() {
                    self.manager.recorder.warning(self.about(), "ResourcesLeft", left.join(". "));
                }
                self.manager.wake_raw_of(&Key::of(&self.own.metadata), K::NAME);
                self.end_deletion().await
            }
            Err(failure) => self.failed(&failure).await,
        }
    }

    /// Ends the object with its Cluster. Azure deletes what lies in the managed cluster with that. The rest may be in use
    /// until then, and Cluster API deletes the other objects only after this one: so one of those inherits it.
    pub async fn end_with_cluster(mut self) -> Result<Outcome, PatchError> {
        let record = self.record();
        let left =
            record.0.into_iter().filter(|(id, recorded)| recorded.is_managed && !goes_with_cluster(id));
        let left = Record(left.collect());
        if left.0.is_empty() || !self.edited.is_held(K::FINALIZER) {
            return self.end_deletion().await;
        }
        let (cluster, stores) = (&self.own, &self.manager.stores);
        let beside = |reference: &core::Reference| self.key.beside(&reference.name);
        let infrastructure = stores.raw_clusters.get(&beside(&cluster.spec.infrastructure_ref));
        let control_plane = stores.raw_control_planes.get(&beside(&cluster.spec.control_plane_ref));
        let bequeathed = match (infrastructure.as_deref(), control_plane.as_deref()) {
            (Some(heir), _) if inherits(heir) => Some(self.bequeath(&left, heir).await),
            (_, Some(heir)) if inherits(heir) => Some(self.bequeath(&left, heir).await),
            _ => None,
        };
        match bequeathed {
            Some(Ok(())) => self.end_deletion().await,
            Some(Err(error)) if error.is_conflict() || error.is_not_found() => Ok(Outcome::Retry),
            Some(Err(error)) => Err(error),
            None => {
                let deleted = self.delete_these(left).await;
                self.end(deleted).await
            }
        }
    }

    async fn bequeath<H: RawKind>(&self, left: &Record, heir: &Object<H>) -> Result<(), PatchError> {
        let metadata = &heir.metadata;
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        let api: Api<Object<H>> =
            Api::namespaced_with(self.manager.client.clone(), namespace, &kinds::resource(H::NAME));
        let (name, text) = left.bequeathed_to(metadata.annotations.as_ref().unwrap_or(&NO_ENTRIES));
        let patch = json!({ "metadata": { "resourceVersion": metadata.resource_version, "annotations": { name: text } } });
        let name = metadata.name.as_deref().unwrap_or_default();
        let heir = api.patch(name, &params(), &Patch::Merge(&patch)).await?;
        H::store(&self.manager.stores).put(heir);
        Ok(())
    }

    /// Reports why the object is not as declared.
    pub async fn failed(mut self, failure: &Failure) -> Result<Outcome, PatchError> {
        let outcome = self.report_failure(failure, RESOURCES_READY);
        if matches!(failure, Failure::Terminal(_)) {
            *self.edited.status().ready_mut() = Some(false);
        }
        self.save().await?;
        Ok(outcome.unwrap_or(Outcome::Idle))
    }

    /// The outcome while the resources are not reached yet.
    pub async fn not_reached(self, why: NotReached) -> Result<Outcome, PatchError> {
        match why {
            NotReached::Recorded => Ok(Outcome::After(std::time::Duration::ZERO)),
            NotReached::Failure(failure) => self.failed(&failure).await,
        }
    }

    /// Reports what the resources wait for; the change of another raw object wakes this one.
    pub async fn waits(mut self, awaited: &[Awaited]) -> Result<Outcome, PatchError> {
        let names: Vec<String> = awaited.iter().map(ToString::to_string).collect();
        let words = format!("waiting for {}", names.join(", "));
        self.set([condition::fails(RESOURCES_READY, "Waiting", condition::Severity::Info, words)]);
        *self.edited.status().ready_mut() = Some(false);
        self.save_and_wake().await?;
        let is_watched = awaited.iter().all(|what| matches!(what, Awaited::Object(_)));
        Ok(if is_watched { Outcome::Idle } else { Outcome::After(self.manager.settings.timeouts.requeue) })
    }
}

fn terminal(error: capz_planner::raw::PlaceError) -> Failure {
    Failure::Terminal(error.into())
}

fn awaited(placed: &[Placed]) -> Vec<Awaited> {
    let all = placed.iter().filter_map(|it| match &it.standing {
        Standing::Awaits(awaited) => Some(awaited.clone()),
        Standing::Known { .. } => None,
    });
    all.flatten().collect()
}

/// The recorded resources whose declarations wait for others.
fn waiting(record: &Record, placed: &[Placed]) -> Vec<(ResourceId, capz_planner::raw::Recorded)> {
    let waits = |recorded: &capz_planner::raw::Recorded| {
        placed.iter().any(|it| {
            it.id().is_none() && it.resource.kind.kind == recorded.kind && it.resource.name == recorded.name
        })
    };
    record.0.iter().filter(|(_, recorded)| waits(recorded)).map(|(id, it)| (id.clone(), it.clone())).collect()
}

/// Whether a resource lies in a managed cluster, with which it goes or stays.
fn goes_with_cluster(id: &ResourceId) -> bool {
    let mut around = std::iter::successors(id.parent(), ResourceId::parent);
    around.any(|around| around.resource_type().eq_ignore_ascii_case(MANAGED_CLUSTERS))
}

/// Whether an object deletes its resources at some later time.
fn inherits<K: RawKind>(heir: &Object<K>) -> bool {
    let metadata = &heir.metadata;
    let is_held = metadata.finalizers.iter().flatten().any(|finalizer| finalizer == K::FINALIZER);
    metadata.deletion_timestamp.is_none() && is_held
}

struct RawSubject<'s, 'a, K: RawKind> {
    reconcile: &'s mut Reconcile<'a, K, Arc<Cluster>>,
    context: &'s RawContext,
    record: Record,
    mutate: &'s Mutate<'s>,
    known: KnownObjects,
    subscription: String,
    placed: Vec<Placed>,
    /// What is declared, and Azure takes only at creation.
    fixed: Vec<String>,
    applied: Applied,
    deleting: bool,
    whole: BTreeSet<ResourceId>,
    kept: BTreeMap<ResourceId, String>,
}

impl<K: RawKind> Subject for RawSubject<'_, '_, K> {
    fn goals(&mut self, observed: &ObservedResources) -> Result<Vec<Goal>, Failure> {
        if self.deleting {
            return Ok(ends(&self.record, &self.whole));
        }
        let held = |kind: &str| {
            let resource = self.placed.iter().find(|it| it.resource.kind.kind == kind);
            resource.and_then(Placed::id).map_or(Observation::Unknown, |id| observed.get(id))
        };
        let objects = (self.mutate)(&held).map_err(Failure::Terminal)?;
        let namespace = &self.reconcile.key.namespace;
        self.placed = place(&objects, namespace, &self.subscription, &self.known).map_err(terminal)?;
        keep(&mut self.placed, &self.kept);
        self.fixed = fixed(&self.placed, observed);
        let mut goals = goals(&self.placed, &self.record);
        self.applied.complete(&mut goals, &self.placed);
        Ok(goals)
    }

    async fn report(&mut self, plan: &Plan, operations: Vec<Future>) -> Result<(), Failure> {
        for step in plan.steps().filter(|step| step.action == Action::Update) {
            // Once: Azure may keep what is declared no longer.
            self.applied.forget(&step.target);
        }
        let statuses = statuses(&self.placed, &self.record, plan);
        let status = self.reconcile.edited.status();
        if statuses.iter().any(|it| it.ready != Some(true)) {
            *status.ready_mut() = Some(false);
        }
        *status.resources_mut() = Some(statuses);
        self.reconcile.set(match plan.is_reached() && !self.fixed.is_empty() {
            true => vec![condition::fails(
                RESOURCES_READY,
                "OnlyAtCreation",
                condition::Severity::Warning,
                self.fixed.join(". "),
            )],
            false => condition::project(&RAW, plan),
        });
        self.reconcile.edited.set_operations(operations);
        let saved = self.reconcile.save_and_wake().await;
        saved.map_err(|error| Failure::of_write(&error, self.reconcile.manager.settings.timeouts.requeue))
    }

    fn has_changed(&self) -> bool {
        self.reconcile.has_changed(self.context, self.deleting)
    }

    fn changes(&self) -> Changes {
        self.reconcile.changes(self.context)
    }
}

impl Manager {
    /// The Cluster that owns an object with raw resources, by its label or its owner.
    pub(crate) fn cluster_of_raw<K: RawKind>(&self, object: &Object<K>, owner: &str) -> Option<Arc<Cluster>> {
        let name = core::cluster_name(&object.metadata).unwrap_or(owner);
        self.dependency(object, &self.stores.clusters, name)
    }
}
