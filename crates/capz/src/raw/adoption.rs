//! Adopts managed clusters and node pools of Azure Service Operator that users offer: makes the objects that stand for them,
//! which then take over the operator's.
//!
//! The operator's object is made harmless before anything else. So whatever happens afterwards, and in whatever order the
//! objects go, the operator deletes nothing in Azure. `capz_planner::raw` decides what an object becomes.

use std::sync::Arc;
use std::time::Duration;

use capz_planner::operator::OperatorKind;
use capz_planner::raw::{
    Adoptable, Adoption, around, group_kind, handed_over, is_current, lists, refers, unknown_version,
};
use controllers::Reference;
use k8s::api::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{DynamicObject, PostParams};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::context::manager::{Ended, Manager};
use crate::kubernetes::core;
use crate::kubernetes::kinds::{self, Object};
use crate::kubernetes::operator::OperatorError;
use crate::kubernetes::patch::params;
use crate::kubernetes::queue::{Outcome, WorkQueue};
use crate::kubernetes::store::Key;
use crate::raw::kinds::RawKind;

/// The interval between two searches for offered objects.
const LOOK: Duration = Duration::from_secs(60);
/// The version of the operator's kinds in references of events.
const EVENTS_API: &str = "containerservice.azure.com/v1api20240901";

/// Why an object is not adopted yet.
enum NotAdopted {
    /// Something is missing, or in the way.
    Because(String),
    /// The operator's objects cannot be read or written.
    Operator(OperatorError),
    /// One of ours cannot.
    Kubernetes(String, Box<kube::Error>),
    /// Another writer was faster.
    Changed,
}

impl From<OperatorError> for NotAdopted {
    fn from(error: OperatorError) -> Self {
        Self::Operator(error)
    }
}

/// An object that is being adopted.
struct Offer<'a> {
    what: Adoptable,
    kind: &'static OperatorKind,
    key: &'a Key,
    object: Value,
}

impl Manager {
    /// Looks for offered objects until `stop`.
    pub(crate) async fn look_for_offers(&self, stop: &CancellationToken) {
        if !self.settings.gates.aso_api || !self.settings.gates.machine_pool {
            return;
        }
        let looking = async {
            // What adopts an object may not have been listed yet.
            self.listed.managed.wait().await;
            loop {
                let wait = match self.operator.offered().await {
                    Ok(Some(offers)) => {
                        offers.into_iter().for_each(|(what, key)| self.offers(what).wake(key));
                        LOOK
                    }
                    // The operator's kinds are looked for as seldom as for clusters that are taken over.
                    Ok(None) => self.settings.sync_period,
                    Err(error) => {
                        tracing::warn!(%error, "objects that are offered for adoption are not known");
                        self.settings.sync_period
                    }
                };
                tokio::time::sleep(wait.max(LOOK)).await;
            }
        };
        stop.run_until_cancelled(looking).await;
    }

    fn offers(&self, what: Adoptable) -> &Arc<WorkQueue> {
        match what {
            Adoptable::Cluster => &self.managed.offered_clusters,
            Adoptable::Pool => &self.managed.offered_pools,
        }
    }

    /// Adopts a ManagedCluster of the operator's.
    pub(crate) async fn reconcile_offered_cluster(
        self: Arc<Self>,
        key: Key,
        _not_before: Instant,
    ) -> Result<Outcome, Ended> {
        Ok(self.reconcile_offer(Adoptable::Cluster, &key).await)
    }

    /// Adopts a ManagedClustersAgentPool of the operator's.
    pub(crate) async fn reconcile_offered_pool(
        self: Arc<Self>,
        key: Key,
        _not_before: Instant,
    ) -> Result<Outcome, Ended> {
        Ok(self.reconcile_offer(Adoptable::Pool, &key).await)
    }

    async fn reconcile_offer(&self, what: Adoptable, key: &Key) -> Outcome {
        let Some(kind) = what.kind() else { return Outcome::Gone };
        let object = match self.operator.object(kind, key).await {
            Ok(Some(object)) => object,
            Ok(None) => return Outcome::Gone,
            Err(error) => {
                tracing::warn!(object = %key, %error, "an offered object cannot be read");
                return Outcome::Retry;
            }
        };
        let metadata: ObjectMeta = serde_json::from_value(object["metadata"].clone()).unwrap_or_default();
        if !what.is_offered(&object["metadata"]) || !self.settings.takes(metadata.labels.as_ref()) {
            return Outcome::Gone;
        }
        let about = Reference::of(EVENTS_API, kind.kind, &metadata);
        let offer = Offer { what, kind, key, object };
        let adopted = match what {
            Adoptable::Cluster => self.adopt_cluster(&offer).await,
            Adoptable::Pool => self.adopt_pool(&offer).await,
        };
        let words = match adopted {
            Ok(()) => {
                let words = format!("belongs to {} {key} from now on", what.owner());
                self.recorder.normal(about, "Adopted", words);
                return Outcome::Gone;
            }
            Err(NotAdopted::Changed) => return Outcome::Retry,
            Err(NotAdopted::Because(words)) => words,
            Err(NotAdopted::Operator(error)) => error.to_string(),
            Err(NotAdopted::Kubernetes(what, error)) => {
                format!("cannot {what}: {}", controllers::answer(&error))
            }
        };
        self.recorder.warning(about, "NotAdopted", words);
        Outcome::Retry
    }

    async fn adopt_cluster(&self, offer: &Offer<'_>) -> Result<(), NotAdopted> {
        let (key, object) = (offer.key, &offer.object);
        let known = self.stores.raw_control_planes.get(key);
        offer.check(known.as_deref())?;
        let group_kind = group_kind().ok_or(NotAdopted::Changed)?;
        let group = around(object).map(|name| key.beside(name)).ok_or_else(|| {
            NotAdopted::Because(
                "spec.owner.name names no ResourceGroup of the operator's: name the one in which the cluster lies"
                    .to_owned(),
            )
        })?;
        let held = self.operator.object(group_kind, &group).await?.ok_or_else(|| {
            NotAdopted::Because(format!("ResourceGroup {group} of the operator's does not exist: create it"))
        })?;
        check_version(&held)?;
        let labels = self.settings.filter_labels();
        let adoption =
            Adoption { core_version: &self.core_version, version: kinds::VERSION, labels: &labels };
        let [cluster, infrastructure, control_plane] = adoption.cluster(object, &held);
        self.check_existing(&cluster).await?;
        self.silence(offer.kind, key, object).await?;
        // An existing AzureASOManagedCluster may have another group.
        let existing = self.stores.raw_clusters.get(key);
        if existing.is_none_or(|it| lists(it.spec.resources(), group_kind, &group.name)) {
            self.silence(group_kind, &group, &held).await?;
        }
        self.ensure(&cluster).await?;
        self.ensure(&infrastructure).await?;
        let owner = self.ensure(&control_plane).await?;
        self.give(offer, &owner).await?;
        self.managed.raw_control_planes.wake(key.clone());
        Ok(())
    }

    async fn adopt_pool(&self, offer: &Offer<'_>) -> Result<(), NotAdopted> {
        let (key, object) = (offer.key, &offer.object);
        let known = self.stores.raw_pools.get(key);
        offer.check(known.as_deref())?;
        let around = around(object).ok_or_else(|| {
            NotAdopted::Because("spec.owner.name names no ManagedCluster of the operator's".to_owned())
        })?;
        let clusters = Adoptable::Cluster.kind().ok_or(NotAdopted::Changed)?;
        let owner = self.stores.raw_control_planes.get(&key.beside(around)).filter(|it| {
            it.metadata.deletion_timestamp.is_none() && lists(it.spec.resources(), clusters, around)
        });
        let owner = owner.ok_or_else(|| {
            NotAdopted::Because(format!(
                "ManagedCluster {around} does not belong to an AzureASOManagedControlPlane of its name: adopt it first"
            ))
        })?;
        let cluster = core::cluster_name(&owner.metadata).ok_or_else(|| {
            NotAdopted::Because(format!(
                "AzureASOManagedControlPlane {around} has no label {}: it gets one from its Cluster",
                core::CLUSTER_NAME
            ))
        })?;
        let labels = self.settings.filter_labels();
        let adoption =
            Adoption { core_version: &self.core_version, version: kinds::VERSION, labels: &labels };
        let [machine_pool, pool] = adoption.pool(object, cluster);
        self.check_existing(&machine_pool).await?;
        self.silence(offer.kind, key, object).await?;
        self.ensure(&machine_pool).await?;
        let owner = self.ensure(&pool).await?;
        self.give(offer, &owner).await?;
        self.managed.raw_pools.wake(key.clone());
        Ok(())
    }

    /// Makes an object of the operator's harmless.
    async fn silence(&self, kind: &OperatorKind, key: &Key, object: &Value) -> Result<(), NotAdopted> {
        self.hand_over(kind, key, object, None).await
    }

    /// Gives an adopted object to its owner, which takes it over.
    async fn give(&self, offer: &Offer<'_>, owner: &Value) -> Result<(), NotAdopted> {
        let object = self.operator.object(offer.kind, offer.key).await?.ok_or(NotAdopted::Changed)?;
        let reference = json!({
            "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"], "controller": true,
        });
        self.hand_over(offer.kind, offer.key, &object, Some(&reference)).await?;
        // The owner's next reconcile lists the operator's objects anew.
        self.operator.forget().await;
        Ok(())
    }

    async fn hand_over(
        &self,
        kind: &OperatorKind,
        key: &Key,
        object: &Value,
        owner: Option<&Value>,
    ) -> Result<(), NotAdopted> {
        let patch = handed_over(object, owner).map_err(|other| {
            NotAdopted::Because(format!(
                "{} {key} is controlled by {other}, which may undo changes",
                kind.kind
            ))
        })?;
        match patch {
            None => Ok(()),
            Some(patch) if self.operator.change(kind, key, &patch).await? => Ok(()),
            Some(_) => Err(NotAdopted::Changed),
        }
    }

    /// Checks that an existing object of the core's belongs to what adoption makes.
    async fn check_existing(&self, wanted: &Value) -> Result<(), NotAdopted> {
        match self.existing(wanted).await? {
            Some(existing) if !refers(&existing, wanted) => Err(NotAdopted::Because(format!(
                "{} exists already, and refers to other objects",
                Named::of(wanted)
            ))),
            Some(existing) if !existing["metadata"]["deletionTimestamp"].is_null() => {
                Err(NotAdopted::Because(format!("{} is being deleted", Named::of(wanted))))
            }
            Some(_) | None => Ok(()),
        }
    }

    async fn existing(&self, wanted: &Value) -> Result<Option<Value>, NotAdopted> {
        let Named { kind, key } = Named::of(wanted);
        let found = self.api_of(kind, &key).get_opt(&key.name).await;
        let found =
            found.map_err(|error| NotAdopted::Kubernetes(format!("read {kind} {key}"), Box::new(error)))?;
        Ok(found.and_then(|found| serde_json::to_value(found).ok()))
    }

    /// Creates an object; an existing one is left alone. Returns the object.
    async fn ensure(&self, wanted: &Value) -> Result<Value, NotAdopted> {
        if let Some(existing) = self.existing(wanted).await? {
            return Ok(existing);
        }
        let Named { kind, key } = Named::of(wanted);
        let failed = |error| NotAdopted::Kubernetes(format!("create {kind} {key}"), Box::new(error));
        let object: DynamicObject =
            serde_json::from_value(wanted.clone()).map_err(|error| failed(kube::Error::SerdeError(error)))?;
        let params = PostParams { field_manager: params().field_manager, ..PostParams::default() };
        match self.api_of(kind, &key).create(&params, &object).await {
            Ok(made) => serde_json::to_value(made).map_err(|error| failed(kube::Error::SerdeError(error))),
            Err(kube::Error::Api(status)) if status.is_already_exists() => Err(NotAdopted::Changed),
            Err(error) => Err(failed(error)),
        }
    }

    fn api_of(&self, kind: &str, key: &Key) -> Api<DynamicObject> {
        let resource = match kind {
            "Cluster" | "MachinePool" => core::resource(&self.core_version, kind),
            _ => kinds::resource(kind),
        };
        Api::namespaced_with(self.client.clone(), &key.namespace, &resource)
    }
}

impl Offer<'_> {
    /// Checks that nothing is in the way of adopting it: its owner of that name does not exist, or lists it already; and
    /// before the owner exists, the operator has brought Azure to what the object declares, so that nothing is written.
    fn check<K: RawKind>(&self, owner: Option<&Object<K>>) -> Result<(), NotAdopted> {
        let (kind, key, owner_kind) = (self.kind.kind, self.key, self.what.owner());
        let words = match owner {
            Some(owner) if owner.metadata.deletion_timestamp.is_some() => {
                format!("{owner_kind} {key} is being deleted")
            }
            Some(owner) if !lists(owner.spec.resources(), self.kind, &key.name) => format!(
                "{owner_kind} {key} exists already, and its spec.resources do not list {kind} {}: add it, or remove the annotation",
                key.name
            ),
            None if !is_current(&self.object) => format!(
                "waiting until the operator reports that {kind} {key} is ready as it is declared now: its condition Ready is not \
                 True, or is older than its spec"
            ),
            Some(_) | None => return check_version(&self.object),
        };
        Err(NotAdopted::Because(words))
    }
}

fn check_version(object: &Value) -> Result<(), NotAdopted> {
    match unknown_version(object) {
        None => Ok(()),
        Some(version) => Err(NotAdopted::Because(format!(
            "{} is stored as {version}, a version that this release does not know",
            Named::of(object)
        ))),
    }
}

/// The kind and key of an object.
struct Named<'a> {
    kind: &'a str,
    key: Key,
}

impl<'a> Named<'a> {
    fn of(object: &'a Value) -> Self {
        let text = |member: &str| object["metadata"][member].as_str().unwrap_or_default().to_owned();
        let key = Key { namespace: text("namespace"), name: text("name") };
        Self { kind: object["kind"].as_str().unwrap_or_default(), key }
    }
}

impl std::fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.kind, self.key)
    }
}
