//! The stand-in nodes' responses to Azure's health probes.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;

use azure_simulator::Azure;
use azure_simulator::packet::ProbeAnswers;
use azure_simulator::view::ServiceView;
use azure_types::ResourceId;
use futures::StreamExt as _;
use k8s::api::api::core::v1::Service;
use k8s::api::api::discovery::v1::EndpointSlice;
use kube::Client;
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Resource, ResourceExt as _};
use parking_lot::RwLock;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use stand_ins::answers::node_answers;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::instance::host_name;
use crate::machines::AzureMachines;
use crate::service_views::service_view;

/// Objects by namespace and name.
type Objects = Arc<RwLock<BTreeMap<(String, String), Value>>>;

/// Answers probes as kube-proxy on each node would, from the Services and EndpointSlices of the cluster.
#[derive(Clone)]
pub struct NodeAnswers {
    azure: Azure,
    machines: Arc<AzureMachines>,
    services: Objects,
    slices: Objects,
    revision: Arc<watch::Sender<u64>>,
}

impl fmt::Debug for NodeAnswers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeAnswers").finish_non_exhaustive()
    }
}

impl NodeAnswers {
    /// Follows the cluster's objects until `stop`.
    pub fn follow(azure: Azure, client: &Client, stop: &CancellationToken) -> Self {
        Self::follow_machines(Arc::new(AzureMachines::all(azure.clone())), azure, client, stop)
    }

    /// The same for these machines alone: other machines do not answer.
    pub(crate) fn follow_machines(
        machines: Arc<AzureMachines>,
        azure: Azure,
        client: &Client,
        stop: &CancellationToken,
    ) -> Self {
        let revision = Arc::new(watch::Sender::new(0));
        let (services, slices) = (Objects::default(), Objects::default());
        let this = Self { azure, machines, services, slices, revision };
        let services: Api<Service> = Api::all(client.clone());
        tokio::spawn(keep(services, this.services.clone(), this.revision.clone(), stop.clone()));
        let slices: Api<EndpointSlice> = Api::all(client.clone());
        tokio::spawn(keep(slices, this.slices.clone(), this.revision.clone(), stop.clone()));
        this
    }

    /// The Services of type LoadBalancer, by namespace and name.
    pub fn services(&self) -> Vec<ServiceView> {
        self.services.read().values().filter_map(service_view).collect()
    }

    /// Changes whenever a response may have changed.
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }
}

impl ProbeAnswers for NodeAnswers {
    fn answers(&self, instance: &ResourceId, _: IpAddr, _: &str, port: u16, path: Option<&str>) -> bool {
        let machine = self.azure.document(instance).filter(|machine| self.machines.has(machine));
        let Some(node) = machine.as_ref().and_then(host_name) else { return false };
        node_answers(self.services.read().values(), self.slices.read().values(), &node, port, path)
    }
}

/// Keeps a cache of all objects of a kind.
async fn keep<K>(api: Api<K>, objects: Objects, revision: Arc<watch::Sender<u64>>, stop: CancellationToken)
where
    K: Resource + Clone + fmt::Debug + DeserializeOwned + Serialize + Send + 'static,
{
    let mut events = pin!(watcher(api, watcher::Config::default()).default_backoff());
    let mut listed = BTreeMap::new();
    while let Some(Some(event)) = stop.run_until_cancelled(events.next()).await {
        match event {
            Ok(Event::Init) => listed.clear(),
            Ok(Event::InitApply(object)) => {
                listed.extend(entry(&object));
            }
            Ok(Event::InitDone) => *objects.write() = std::mem::take(&mut listed),
            Ok(Event::Apply(object)) => objects.write().extend(entry(&object)),
            Ok(Event::Delete(object)) => {
                objects.write().remove(&key(&object));
            }
            // The watcher backs off and lists again.
            Err(error) => tracing::debug!(%error, "a watch of the stand-in nodes failed"),
        }
        revision.send_modify(|revision| *revision += 1);
    }
}

fn key<K: Resource>(object: &K) -> (String, String) {
    (object.namespace().unwrap_or_default(), object.name_any())
}

fn entry<K: Resource + Serialize>(object: &K) -> Option<((String, String), Value)> {
    Some((key(object), serde_json::to_value(object).ok()?))
}
