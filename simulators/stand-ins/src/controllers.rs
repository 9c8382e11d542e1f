//! Runs the controllers of workloads, the scheduler and the kubelets' handling of pods on one shared cache of the
//! cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::{StreamExt as _, stream};
use k8s::api::api::core::v1::Event;
use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::runtime::{WatchStreamExt as _, watcher};
use serde::Deserialize as _;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::api_error::has_code;
use crate::objects::{Action, Key, Kind, Objects, Round};
use crate::{
    Running, WallClock, daemon_set, deployment, disruption, job, pod, protection, replica_set, scheduler,
    service_endpoints, stateful_set,
};

/// Changes within this time are handled in one round.
const BATCH_INTERVAL: Duration = Duration::from_millis(100);
/// Time until a failed action is retried.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Reads all objects and adds the actions that are due to the round.
type Controller = fn(&mut Round<'_>);

/// Controllers that run together, and the parts of objects that they read.
struct Crew {
    /// The controllers of each round, in this order.
    controllers: &'static [Controller],
    kinds: &'static [Kind],
    /// The part of an object that is cached; `None` if nothing of it matters.
    view: fn(Kind, Value) -> Option<Value>,
}

const ALL: Crew = Crew { controllers: &CONTROLLERS, kinds: &Kind::WATCHED, view: |_, object| Some(object) };

const VOLUMES: Crew =
    Crew { controllers: &[protection::keep_all], kinds: &protection::KINDS, view: protection::view };

const CONTROLLERS: [Controller; 10] = [
    deployment::keep_all,
    replica_set::keep_all,
    stateful_set::keep_all,
    daemon_set::keep_all,
    job::keep_all,
    scheduler::place_all,
    pod::run_all,
    disruption::keep_all,
    service_endpoints::keep_all,
    protection::keep_all,
];

/// Reconciles Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs and their pods, PodDisruptionBudgets and
/// Endpoints; schedules pods and runs them.
///
/// A pod gets a ready node whose taints it tolerates and whose labels it selects. It runs at once and is ready while
/// its node is; a Job's pod ends well after a second. A deleted pod ends at once, and a pod whose node is gone is
/// deleted. Deleted claims and volumes go once they are not in use. Pods are not restarted, not limited by resources,
/// and not evicted by taints. Kinds that the API does not serve at the start are ignored.
pub struct Controllers;

impl Controllers {
    /// Runs until `shutdown`.
    pub fn spawn(client: kube::Client, clock: WallClock, shutdown: CancellationToken) -> Running {
        Self::spawn_crew(&ALL, client, clock, shutdown)
    }

    /// Removes the finalizers of deleted PersistentVolumeClaims and PersistentVolumes that are not in use, until
    /// `shutdown`. Runs no other controller.
    pub fn spawn_for_volumes(client: kube::Client, clock: WallClock, shutdown: CancellationToken) -> Running {
        Self::spawn_crew(&VOLUMES, client, clock, shutdown)
    }

    fn spawn_crew(
        crew: &'static Crew,
        client: kube::Client,
        clock: WallClock,
        shutdown: CancellationToken,
    ) -> Running {
        let runner = Runner::new(crew, client, clock);
        Running::until(shutdown, runner.run())
    }
}

/// The actions of all controllers for these objects.
#[cfg(test)]
pub(crate) fn decide<'a>(objects: &'a Objects, now: jiff::Timestamp) -> Round<'a> {
    decide_with(&CONTROLLERS, objects, now)
}

fn decide_with<'a>(controllers: &[Controller], objects: &'a Objects, now: jiff::Timestamp) -> Round<'a> {
    let mut round = Round::new(objects, now);
    controllers.iter().for_each(|controller| controller(&mut round));
    round
}

struct Runner {
    crew: &'static Crew,
    client: kube::Client,
    clock: WallClock,
    objects: Objects,
    /// The kinds whose initial list is complete.
    listed: BTreeSet<Kind>,
    /// The served version of the group `policy`.
    policy: &'static str,
    /// The last action written to each object, and the resource version that it produced.
    written: BTreeMap<(Kind, Key), (Action, Option<String>)>,
}

impl Runner {
    fn new(crew: &'static Crew, client: kube::Client, clock: WallClock) -> Self {
        Self {
            crew,
            client,
            clock,
            objects: Objects::default(),
            listed: BTreeSet::new(),
            policy: "v1",
            written: BTreeMap::new(),
        }
    }

    async fn run(mut self) {
        let served = loop {
            match self.served().await {
                Ok(served) => break served,
                Err(error) => tracing::debug!(%error, "cannot discover the kinds that the API serves"),
            }
            sleep(RETRY_INTERVAL).await;
        };
        let watches: Vec<_> = served
            .iter()
            .map(|&kind| {
                watcher(self.api(kind, ""), watcher::Config::default())
                    .default_backoff()
                    .map(move |event| (kind, event))
                    .boxed()
            })
            .collect();
        let mut events = stream::select_all(watches);
        let mut failed = false;
        let mut pause = Duration::MAX;
        loop {
            if failed {
                pause = pause.min(RETRY_INTERVAL);
            }
            match timeout(pause, events.next()).await {
                Ok(Some((kind, event))) => self.take(kind, event),
                Ok(None) => return,
                Err(_) => {}
            }
            while let Ok(Some((kind, event))) = timeout(BATCH_INTERVAL, events.next()).await {
                self.take(kind, event);
            }
            (failed, pause) = (false, Duration::MAX);
            if self.listed.len() == served.len() {
                (failed, pause) = self.act().await;
            }
        }
    }

    /// The kinds that the API has.
    async fn served(&mut self) -> Result<Vec<Kind>, kube::Error> {
        let mut plurals = BTreeSet::new();
        for version in ["v1", "apps/v1", "batch/v1", "policy/v1beta1", "policy/v1"] {
            let resources = match version {
                "v1" => self.client.list_core_api_resources(version).await,
                _ => self.client.list_api_group_resources(version).await,
            };
            match resources {
                Ok(list) => {
                    // Servers before 1.21 serve PodDisruptionBudgets only as a beta.
                    if let Some(version) = version.strip_prefix("policy/") {
                        self.policy = if version == "v1" { "v1" } else { "v1beta1" };
                    }
                    plurals.extend(list.resources.into_iter().map(|resource| resource.name));
                }
                Err(error) if has_code(&error, 404) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.crew.kinds.iter().copied().filter(|kind| plurals.contains(kind.names().2)).collect())
    }

    fn api(&self, kind: Kind, namespace: &str) -> Api<DynamicObject> {
        let (group, name, plural) = kind.names();
        let version = if group == "policy" { self.policy } else { "v1" };
        let kind = GroupVersionKind::gvk(group, version, name);
        let resource = ApiResource::from_gvk_with_plural(&kind, plural);
        match namespace {
            "" => Api::all_with(self.client.clone(), &resource),
            namespace => Api::namespaced_with(self.client.clone(), namespace, &resource),
        }
    }

    fn take(&mut self, kind: Kind, event: Result<watcher::Event<DynamicObject>, watcher::Error>) {
        use watcher::Event::{Apply, Delete, Init, InitApply, InitDone};
        match event {
            Ok(Init) => {
                self.objects.clear(kind);
                self.listed.remove(&kind);
            }
            Ok(InitDone) => {
                self.listed.insert(kind);
            }
            Ok(Apply(object) | InitApply(object)) => self.keep(kind, &object),
            Ok(Delete(object)) => {
                let metadata = object.metadata;
                let key = (metadata.namespace.unwrap_or_default(), metadata.name.unwrap_or_default());
                self.forget(kind, &key);
            }
            // The watcher backs off and goes on.
            Err(error) => tracing::debug!(?kind, %error, "a watch of the stand-ins failed"),
        }
    }

    fn keep(&mut self, kind: Kind, object: &DynamicObject) {
        // What came as JSON can be written as JSON.
        if let Ok(object) = serde_json::to_value(object)
            && let Some(object) = (self.crew.view)(kind, object)
        {
            self.objects.insert(kind, object);
        }
    }

    fn forget(&mut self, kind: Kind, key: &Key) {
        self.objects.remove(kind, key);
        self.written.remove(&(kind, key.clone()));
    }

    /// Performs the actions that are due. Returns whether any of them failed, and how long it is until something
    /// changes by itself. The result of a write is cached at once, so that no action is repeated before the watch
    /// reports it.
    async fn act(&mut self) -> (bool, Duration) {
        let mut failed = false;
        let now = (self.clock)();
        let round = decide_with(self.crew.controllers, &self.objects, now);
        let pause = round.wake.map_or(Duration::MAX, |wake| {
            Duration::try_from(wake.duration_since(now)).unwrap_or_default().max(BATCH_INTERVAL)
        });
        for action in round.actions {
            match self.perform(action.clone()).await {
                Ok(()) => {}
                // The watch reports the current state, and the next round decides again.
                Err(error) if has_code(&error, 404) || has_code(&error, 409) => {}
                Err(error) => {
                    tracing::debug!(?action, %error, "a stand-in failed; the next round tries again");
                    failed = true;
                }
            }
        }
        (failed, pause)
    }

    async fn perform(&mut self, action: Action) -> Result<(), kube::Error> {
        match &action {
            Action::Create(kind, document) => {
                let namespace = document["metadata"]["namespace"].as_str().unwrap_or_default();
                let object = DynamicObject::deserialize(document).map_err(kube::Error::SerdeError)?;
                let made = self.api(*kind, namespace).create(&PostParams::default(), &object).await?;
                self.keep(*kind, &made);
            }
            Action::Patch(kind, key, patch) => self.patch(*kind, key, patch, &action, false).await?,
            Action::PatchStatus(kind, key, status) => {
                self.patch(*kind, key, &json!({"status": status}), &action, true).await?;
            }
            Action::Delete(kind, key) => {
                let deleted = self.api(*kind, &key.0).delete(&key.1, &DeleteParams::default()).await?;
                match deleted.left() {
                    Some(object) => self.keep(*kind, &object),
                    None => self.forget(*kind, key),
                }
            }
            Action::Finish(key) => {
                let now = DeleteParams::default().grace_period(0);
                self.api(Kind::Pod, &key.0).delete(&key.1, &now).await?;
                self.forget(Kind::Pod, key);
            }
            Action::Bind(key, node) => self.bind(key, node).await?,
            Action::Record(event) => self.record(event).await?,
        }
        Ok(())
    }

    async fn record(&self, event: &Value) -> Result<(), kube::Error> {
        let namespace = event["metadata"]["namespace"].as_str().unwrap_or_default();
        let resource = ApiResource::erase::<Event>(&());
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &resource);
        let event = DynamicObject::deserialize(event).map_err(kube::Error::SerdeError)?;
        api.create(&PostParams::default(), &event).await.map(drop)
    }

    async fn patch(
        &mut self,
        kind: Kind,
        key: &Key,
        patch: &Value,
        action: &Action,
        status: bool,
    ) -> Result<(), kube::Error> {
        let place = (kind, key.clone());
        let version =
            self.objects.get(kind, key).and_then(|object| object["metadata"]["resourceVersion"].as_str());
        // A field that an old server drops is not written again and again.
        let vain = |(last, came): &(Action, Option<String>)| last == action && came.as_deref() == version;
        if self.written.get(&place).is_some_and(vain) {
            return Ok(());
        }
        let (api, parameters, patch) = (self.api(kind, &key.0), PatchParams::default(), Patch::Merge(patch));
        let changed = match status {
            true => api.patch_status(&key.1, &parameters, &patch).await?,
            false => api.patch(&key.1, &parameters, &patch).await?,
        };
        self.written.insert(place, (action.clone(), changed.metadata.resource_version.clone()));
        self.keep(kind, &changed);
        Ok(())
    }

    async fn bind(&mut self, key: &Key, node: &str) -> Result<(), kube::Error> {
        let binding = json!({"apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": key.1, "namespace": key.0},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node}});
        let api = self.api(Kind::Pod, &key.0);
        let _: Value = api.create_subresource("binding", &key.1, &PostParams::default(), &binding).await?;
        // The response does not contain the pod.
        if let Some(mut pod) = self.objects.get(Kind::Pod, key).cloned() {
            pod["spec"]["nodeName"] = node.into();
            self.objects.insert(Kind::Pod, pod);
        }
        Ok(())
    }
}
