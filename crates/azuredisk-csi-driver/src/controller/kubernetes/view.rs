//! The watches, and what is asked of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use azure_types::ResourceId;
use clock::Clock;
use controllers::watch::{Selector, watch, with_answer_timeout};
use controllers::{Recorder, recorder};
use k8s::{Node, PersistentVolume, VolumeAttachment};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use parking_lot::RwLock;
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use volume_planner::id::DiskId;

use super::attachment_name::attachment_name;
pub(crate) use super::objects::NodeFacts;
use super::objects::Objects;
use crate::annotations;

/// How long the API server may take to answer about one object.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// The source of events.
const COMPONENT: &str = "azuredisk-csi-driver";

/// What Kubernetes says. Clones share it.
#[derive(Clone, Default)]
pub struct KubernetesView(Option<Arc<Inner>>);

struct Inner {
    client: Client,
    driver: String,
    objects: RwLock<Objects>,
    events: Recorder,
    /// Wakes those who wait until all is known.
    changed: Notify,
}

impl Inner {
    fn take(&self, event: impl FnOnce(&mut Objects)) {
        let mut objects = self.objects.write();
        event(&mut objects);
        if objects.is_complete() {
            self.changed.notify_waiters();
        }
    }
}

impl KubernetesView {
    /// Knows nothing: there is no connection to Kubernetes.
    pub fn none() -> Self {
        Self::default()
    }

    /// Whether there is a connection to Kubernetes.
    pub(crate) fn is_connected(&self) -> bool {
        self.0.is_some()
    }

    /// Watches nodes, volumes and attachments until `stop`.
    pub fn watch(client: &Client, driver: &str, stop: &CancellationToken) -> Self {
        let client = with_answer_timeout(client);
        let (events, writer) =
            recorder(client.clone(), Clock::system(), "", COMPONENT, Arc::new(controllers::NoObserver));
        tokio::spawn(writer.run(stop.clone()));
        let inner = Arc::new(Inner {
            client: client.clone(),
            driver: driver.to_owned(),
            objects: RwLock::default(),
            events,
            changed: Notify::new(),
        });
        let on_nodes = Arc::clone(&inner);
        let nodes = watch::<Node>(
            Api::all(client.clone()),
            Selector::default(),
            "Node",
            stop.clone(),
            move |event| on_nodes.take(|objects| objects.take_node(event, &on_nodes.driver)),
        );
        let on_volumes = Arc::clone(&inner);
        let volumes = watch::<PersistentVolume>(
            Api::all(client.clone()),
            Selector::default(),
            "PersistentVolume",
            stop.clone(),
            move |event| on_volumes.take(|objects| objects.take_volume(event, &on_volumes.driver)),
        );
        let on_attachments = Arc::clone(&inner);
        let attachments = watch::<VolumeAttachment>(
            Api::all(client),
            Selector::default(),
            "VolumeAttachment",
            stop.clone(),
            move |event| {
                on_attachments.take(|objects| objects.take_attachment(event, &on_attachments.driver))
            },
        );
        tokio::spawn(async move {
            tokio::join!(nodes, volumes, attachments);
        });
        Self(Some(inner))
    }

    /// Waits until nodes, volumes and attachments are known. Without a connection to Kubernetes there is nothing to wait for.
    ///
    /// # Errors
    /// They are not known in time: which LUNs are in use is unknown, so nothing may be attached.
    pub(crate) async fn until_complete(&self) -> Result<(), Status> {
        let Some(inner) = &self.0 else { return Ok(()) };
        let complete = async {
            loop {
                let changed = inner.changed.notified();
                if inner.objects.read().is_complete() {
                    return;
                }
                changed.await;
            }
        };
        let unknown = |_| {
            Status::unavailable("the API server has not yet listed nodes, volumes and attachments; retry")
        };
        timeout(ANSWER_TIMEOUT, complete).await.map_err(unknown)
    }

    /// Ends when something may have changed since the call. Without a connection to Kubernetes nothing changes.
    pub(crate) fn changed(&self) -> impl Future<Output = ()> + '_ {
        let notified = self.0.as_ref().map(|inner| inner.changed.notified());
        async move {
            match notified {
                Some(notified) => notified.await,
                None => std::future::pending().await,
            }
        }
    }

    /// The nodes whose annotation is not the number of data disks of their machine's size, each with the number.
    pub(crate) fn nodes_without(&self, number_of: impl Fn(&str) -> Option<u32>) -> Vec<(String, u32)> {
        self.0.as_ref().map(|inner| inner.objects.read().nodes_without(number_of)).unwrap_or_default()
    }

    /// Publishes to a node how many data disks its machine takes. One that has gone meanwhile needs no number.
    ///
    /// # Errors
    /// The API server did not take it.
    pub(crate) async fn publish_max_data_disks(&self, node: &str, number: u32) -> Result<(), kube::Error> {
        let Some(inner) = &self.0 else { return Ok(()) };
        let annotations = json!({ annotations::max_data_disks(&inner.driver): number.to_string() });
        let patch = Patch::Merge(json!({ "metadata": { "annotations": annotations } }));
        let nodes = Api::<Node>::all(inner.client.clone());
        match nodes.patch_metadata(node, &PatchParams::default(), &patch).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            other => other.map(drop),
        }
    }

    pub(crate) fn node(&self, name: &str) -> Option<NodeFacts> {
        self.0.as_ref()?.objects.read().node(name)
    }

    /// The machines of all nodes, if nodes may have gone since this count, and the new count.
    pub(crate) fn machines_since(&self, departures: u64) -> Option<(BTreeSet<ResourceId>, u64)> {
        let objects = self.0.as_ref()?.objects.read();
        let now = objects.departures_of_nodes();
        (objects.is_complete() && now != departures).then(|| (objects.machines(), now))
    }

    /// The names of the nodes on these machines, as far as they are known.
    pub(crate) fn nodes_on(&self, machines: &BTreeSet<ResourceId>) -> BTreeMap<ResourceId, String> {
        self.0.as_ref().map(|inner| inner.objects.read().nodes_on(machines)).unwrap_or_default()
    }

    /// The LUNs of a node that attachments name, each with its disk.
    pub(crate) fn luns_of(&self, node: &str) -> BTreeMap<u32, DiskId> {
        self.0.as_ref().map(|inner| inner.objects.read().luns_of(node)).unwrap_or_default()
    }

    /// The disks of the driver's volumes; absent if they are not known.
    pub(crate) fn disks(&self) -> Option<BTreeSet<DiskId>> {
        self.0.as_ref()?.objects.read().disks()
    }

    /// Whether the owner of a disk's volume permits that it is detached by force. A disk without a volume has no owner who forbids it.
    pub(crate) fn permits_force(&self, disk: &DiskId) -> bool {
        self.0.as_ref().is_none_or(|inner| inner.objects.read().permits_force(disk))
    }

    /// Writes a warning about the volume of a disk: an event, if Kubernetes has the volume.
    pub(crate) fn warn_of(&self, disk: &DiskId, reason: &'static str, message: &str) {
        let Some(inner) = &self.0 else { return };
        if let Some(volume) = inner.objects.read().volume_of(disk) {
            inner.events.warning(volume, reason, message);
        }
    }

    /// Whether Kubernetes wants the volume on the node: its API is asked now, because a watch may be behind. Absent if it does
    /// not answer.
    pub(crate) async fn has_attachment(&self, volume: &str, node: &str) -> Option<bool> {
        let inner = self.0.as_ref()?;
        let api = Api::<VolumeAttachment>::all(inner.client.clone());
        let name = attachment_name(volume, &inner.driver, node);
        match timeout(ANSWER_TIMEOUT, api.get_opt(&name)).await {
            Ok(Ok(found)) => Some(found.is_some()),
            Ok(Err(error)) => {
                tracing::warn!(volume_attachment = name, %error, "cannot find out whether a volume is wanted on a node");
                None
            }
            Err(_) => None,
        }
    }
}
