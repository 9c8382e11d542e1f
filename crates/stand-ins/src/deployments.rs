//! Deployments, their ReplicaSets and their pods: a stand-in for two of kube-controller-manager's controllers, the
//! scheduler, and what kubelets do with a pod, together.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s::api::api::apps::v1::{Deployment, ReplicaSet};
use k8s::api::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::WallClock;
use crate::heartbeat::{is, seconds};
use crate::pods::{Action, Kind, Objects, next_actions};

/// Changes within this time are looked at together.
const BATCH_INTERVAL: Duration = Duration::from_millis(100);
/// How long a failure is left alone.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Keeps ReplicaSets and pods for every Deployment.
///
/// A Deployment gets a ReplicaSet for each of its pod templates. Pods of a new template come before those of the
/// old one go; with the strategy `Recreate` the old ones go first. A pod gets a ready node whose taints it
/// tolerates and whose labels it selects, runs at once, and is ready while its node is. A pod whose node is gone
/// goes, too. Pods are not evicted, restarted or limited by resources.
pub struct Deployments {
    task: JoinHandle<()>,
}

impl fmt::Debug for Deployments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deployments").finish_non_exhaustive()
    }
}

impl Deployments {
    /// Runs until `shutdown`.
    pub fn spawn(client: kube::Client, clock: WallClock, shutdown: CancellationToken) -> Deployments {
        let controller = Controller { client, clock, objects: Objects::default(), listed: Vec::new() };
        Deployments {
            task: tokio::spawn(async move {
                shutdown.run_until_cancelled(controller.run()).await;
            }),
        }
    }

    /// Waits until it has ended, after the shutdown that was given to [`Deployments::spawn`].
    pub async fn stopped(self) {
        // The task does not panic, and nobody aborts it.
        let _ = self.task.await;
    }
}

struct Controller {
    client: kube::Client,
    clock: WallClock,
    objects: Objects,
    /// The kinds that are all known.
    listed: Vec<Kind>,
}

impl Controller {
    async fn run(mut self) {
        let watches = Kind::ALL.map(|kind| {
            watcher(self.api(kind, ""), watcher::Config::default())
                .default_backoff()
                .map_ok(move |event| (kind, event))
                .filter_map(async |event| event.ok())
                .boxed()
        });
        let mut events = stream::select_all(watches);
        let mut failed = false;
        loop {
            let pause = if failed { RETRY_INTERVAL } else { Duration::MAX };
            match timeout(pause, events.next()).await {
                Ok(Some((kind, event))) => self.take(kind, event),
                Ok(None) => return,
                Err(_) => {}
            }
            while let Ok(Some((kind, event))) = timeout(BATCH_INTERVAL, events.next()).await {
                self.take(kind, event);
            }
            failed = Kind::ALL.iter().all(|kind| self.listed.contains(kind)) && !self.act().await;
        }
    }

    fn api(&self, kind: Kind, namespace: &str) -> Api<DynamicObject> {
        let resource = match kind {
            Kind::Deployment => ApiResource::erase::<Deployment>(&()),
            Kind::ReplicaSet => ApiResource::erase::<ReplicaSet>(&()),
            Kind::Pod => ApiResource::erase::<Pod>(&()),
            Kind::Node => ApiResource::erase::<Node>(&()),
        };
        match namespace {
            "" => Api::all_with(self.client.clone(), &resource),
            namespace => Api::namespaced_with(self.client.clone(), namespace, &resource),
        }
    }

    fn take(&mut self, kind: Kind, event: watcher::Event<DynamicObject>) {
        use watcher::Event::{Apply, Delete, Init, InitApply, InitDone};
        match event {
            Init => {
                self.objects.clear(kind);
                self.listed.retain(|listed| *listed != kind);
            }
            InitDone => self.listed.push(kind),
            Apply(object) | InitApply(object) => self.keep(kind, &object),
            Delete(object) => {
                let metadata = object.metadata;
                self.objects.remove(
                    kind,
                    &(metadata.namespace.unwrap_or_default(), metadata.name.unwrap_or_default()),
                );
            }
        }
    }

    fn keep(&mut self, kind: Kind, object: &DynamicObject) {
        // What came as JSON can be written as JSON.
        if let Ok(object) = serde_json::to_value(object) {
            self.objects.insert(kind, object);
        }
    }

    /// Does what is next; whether all of it succeeded. What is written is known at once, so that nothing is done
    /// twice before the watch tells of it.
    async fn act(&mut self) -> bool {
        let mut succeeded = true;
        for action in next_actions(&self.objects, &seconds((self.clock)())) {
            match self.perform(&action).await {
                Ok(()) => {}
                // The watch will tell, and then it is decided anew.
                Err(error) if is(&error, 404) || is(&error, 409) => {}
                Err(error) => {
                    tracing::debug!(?action, %error, "keeping pods failed; the next round tries again");
                    succeeded = false;
                }
            }
        }
        succeeded
    }

    async fn perform(&mut self, action: &Action) -> Result<(), kube::Error> {
        match action {
            Action::Create(kind, document) => {
                let namespace = document["metadata"]["namespace"].as_str().unwrap_or_default();
                let object = read(document)?;
                let made = self.api(*kind, namespace).create(&PostParams::default(), &object).await?;
                self.keep(*kind, &made);
            }
            Action::Patch(kind, (namespace, name), patch) => {
                let (api, parameters) = (self.api(*kind, namespace), PatchParams::default());
                let changed = api.patch(name, &parameters, &Patch::Merge(patch)).await?;
                self.keep(*kind, &changed);
            }
            Action::PatchStatus(kind, (namespace, name), status) => {
                let (api, parameters) = (self.api(*kind, namespace), PatchParams::default());
                let patch = Patch::Merge(BTreeMap::from([("status", status)]));
                let changed = api.patch_status(name, &parameters, &patch).await?;
                self.keep(*kind, &changed);
            }
            Action::Delete(kind, key) => {
                // Nobody else is there to confirm that a pod has ended.
                self.api(*kind, &key.0).delete(&key.1, &DeleteParams::default().grace_period(0)).await?;
                self.objects.remove(*kind, key);
            }
        }
        Ok(())
    }
}

fn read(document: &Value) -> Result<DynamicObject, kube::Error> {
    serde_json::from_value(document.clone()).map_err(kube::Error::SerdeError)
}
