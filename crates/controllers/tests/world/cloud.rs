//! A cloud that records its calls and answers as configured.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloud::{
    ClusterState, Deletion, Drifted, Ensured, Existence, Instance, LoadBalancers, LogicalTime, Looked,
    Machines, Notice, Presence, ServiceError, UpdateError,
};
use k8s::{Node, NodeAddress, ObjectKey, Service};
use kubernetes_simulator::Kubernetes;
use parking_lot::Mutex;
use tokio::time::Instant;

/// A call, with its subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    /// Service name and UID.
    Ensure(String, String),
    PrepareDeletion(String),
    Delete(String, String),
    /// The node names at that time.
    UpdateNodes(Vec<String>),
    Presence(String),
    Describe(String),
    /// The names of the draining nodes at that time.
    UpdateDraining(Vec<String>),
    /// The names of Services, each with the nodes of its endpoints at that time.
    UpdateLocalPools(Vec<(String, Vec<String>)>),
    Forget,
    /// The holder of the resource lease when writing ends.
    Stop {
        lease_holder: String,
    },
}

#[derive(Default)]
struct Inner {
    calls: Vec<(Duration, Call)>,
    /// Load balancers by the Service's UID.
    load_balancers: BTreeMap<String, Vec<IpAddr>>,
    addresses: BTreeMap<String, Vec<IpAddr>>,
    failures: BTreeMap<String, VecDeque<ServiceError>>,
    refused: BTreeMap<String, String>,
    notices: BTreeMap<String, Vec<Notice>>,
    delete_failures: VecDeque<ServiceError>,
    update_failures: VecDeque<UpdateError>,
    /// When it was compared because of the interval.
    looks: Vec<Duration>,
    /// The result of the next comparison.
    looked: Looked,
    /// The next changes that are found.
    drifted: Vec<Drifted>,
    /// Whether draining nodes are reported to load balancers.
    drains: bool,
    draining_failures: VecDeque<ServiceError>,
    /// How long changes of endpoints are collected.
    local_pool_interval: Option<Duration>,
    /// By the Service's name.
    local_pool_failures: BTreeMap<String, VecDeque<ServiceError>>,
    /// Names of Services that have no pool of their own in the cloud.
    without_pool: Vec<String>,
    /// Names of Services that have to be ensured again if nodes change.
    following: Vec<String>,
    instances: BTreeMap<String, Existence<Instance>>,
    presences: BTreeMap<String, Existence<Presence>>,
    /// When all machines were last listed, as in a cloud that serves many requests from one list.
    listed: Option<LogicalTime>,
    /// The machines in that list.
    shown: BTreeMap<String, Existence<Instance>>,
    lists: Vec<Duration>,
    write_takes: Duration,
    running: usize,
    most_running: usize,
    ensured_without_finalizer: Vec<String>,
}

#[derive(Clone)]
pub struct TestCloud {
    state: ClusterState,
    kubernetes: Kubernetes,
    start: Instant,
    inner: Arc<Mutex<Inner>>,
}

pub fn retry(message: &str, after: Option<u64>) -> ServiceError {
    ServiceError::Retry { message: message.into(), after: after.map(Duration::from_secs), notices: vec![] }
}

pub fn machine(name: &str, zone: &str, ips: &[&str]) -> Instance {
    let mut addresses: Vec<_> =
        ips.iter().map(|ip| NodeAddress { kind: "InternalIP".into(), address: (*ip).into() }).collect();
    addresses.push(NodeAddress { kind: "Hostname".into(), address: name.into() });
    Instance {
        provider_id: format!("azure:///subscriptions/s/resourceGroups/rg/{name}"),
        instance_type: "Standard_D2s_v5".into(),
        zone: zone.into(),
        region: "westus2".into(),
        addresses,
        ..Instance::default()
    }
}

impl TestCloud {
    pub fn new(kubernetes: Kubernetes) -> Self {
        Self { state: ClusterState::default(), kubernetes, start: Instant::now(), inner: Arc::default() }
    }

    /// The same cloud for a restarted process: resources stay, caches are empty.
    pub fn restarted(&self) -> Self {
        Self { state: ClusterState::default(), ..self.clone() }
    }

    fn called(&self, call: Call) {
        self.inner.lock().calls.push((self.start.elapsed(), call));
    }

    pub fn calls(&self) -> Vec<Call> {
        self.inner.lock().calls.iter().map(|(_, call)| call.clone()).collect()
    }

    /// Seconds at which calls of a kind were made.
    pub fn times(&self, fits: impl Fn(&Call) -> bool) -> Vec<u64> {
        self.inner.lock().calls.iter().filter(|(_, c)| fits(c)).map(|(at, _)| at.as_secs()).collect()
    }

    /// The seconds at which it was compared because of the interval.
    pub fn looks(&self) -> Vec<u64> {
        self.inner.lock().looks.iter().map(Duration::as_secs).collect()
    }

    /// The next comparison requests another one after so many seconds.
    pub fn look_again_after(&self, seconds: u64) {
        self.inner.lock().looked.next = Some(Duration::from_secs(seconds));
    }

    /// Adds a change that is found.
    pub fn drift(&self, drifted: Drifted) {
        self.inner.lock().drifted.push(drifted);
    }

    pub fn ensures(&self, name: &str) -> usize {
        self.calls().iter().filter(|call| matches!(call, Call::Ensure(n, _) if n == name)).count()
    }

    pub fn deletes(&self) -> usize {
        self.calls().iter().filter(|call| matches!(call, Call::Delete(..))).count()
    }

    pub fn updates(&self) -> Vec<Vec<String>> {
        (self.calls().into_iter())
            .filter_map(|call| match call {
                Call::UpdateNodes(nodes) => Some(nodes),
                _ => None,
            })
            .collect()
    }

    /// Enables reports of draining nodes to load balancers.
    pub fn drain_nodes(&self) {
        self.inner.lock().drains = true;
    }

    pub fn fail_draining(&self, failures: impl IntoIterator<Item = ServiceError>) {
        self.inner.lock().draining_failures.extend(failures);
    }

    /// The draining nodes in each call.
    pub fn drained(&self) -> Vec<Vec<String>> {
        (self.calls().into_iter())
            .filter_map(|call| match call {
                Call::UpdateDraining(nodes) => Some(nodes),
                _ => None,
            })
            .collect()
    }

    /// Enables pools of their own for Services with traffic policy Local.
    pub fn follow_endpoints(&self, interval: Duration) {
        self.inner.lock().local_pool_interval = Some(interval);
    }

    pub fn fail_local_pools(&self, name: &str, failures: impl IntoIterator<Item = ServiceError>) {
        self.inner.lock().local_pool_failures.entry(name.into()).or_default().extend(failures);
    }

    pub fn lose_local_pool(&self, name: &str) {
        self.inner.lock().without_pool.push(name.into());
    }

    /// The calls for pools of Services, each with the nodes of its endpoints at that time.
    pub fn local_pools(&self) -> Vec<Vec<(String, Vec<String>)>> {
        (self.calls().into_iter())
            .filter_map(|call| match call {
                Call::UpdateLocalPools(pools) => Some(pools),
                _ => None,
            })
            .collect()
    }

    pub fn load_balancers(&self) -> usize {
        self.inner.lock().load_balancers.len()
    }

    pub fn most_running(&self) -> usize {
        self.inner.lock().most_running
    }

    pub fn ensured_without_finalizer(&self) -> Vec<String> {
        self.inner.lock().ensured_without_finalizer.clone()
    }

    pub fn writes_take(&self, duration: Duration) {
        self.inner.lock().write_takes = duration;
    }

    /// Sets the addresses that a Service gets.
    pub fn address(&self, name: &str, addresses: &[&str]) {
        let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
        self.inner.lock().addresses.insert(name.into(), addresses);
    }

    pub fn fail(&self, name: &str, failures: impl IntoIterator<Item = ServiceError>) {
        self.inner.lock().failures.entry(name.into()).or_default().extend(failures);
    }

    pub fn refuse(&self, name: &str, message: &str) {
        self.inner.lock().refused.insert(name.into(), message.into());
    }

    pub fn notify(&self, name: &str, notice: Notice) {
        self.inner.lock().notices.entry(name.into()).or_default().push(notice);
    }

    pub fn fail_deletes(&self, failures: impl IntoIterator<Item = ServiceError>) {
        self.inner.lock().delete_failures.extend(failures);
    }

    pub fn fail_updates(&self, failures: impl IntoIterator<Item = impl Into<UpdateError>>) {
        self.inner.lock().update_failures.extend(failures.into_iter().map(Into::into));
    }

    /// From now on the Service's resources contain the nodes' addresses.
    pub fn follow_nodes(&self, name: &str) {
        self.inner.lock().following.push(name.into());
    }

    pub fn set_instance(&self, name: &str, instance: Existence<Instance>) {
        self.inner.lock().instances.insert(name.into(), instance);
    }

    pub fn set_presence(&self, name: &str, presence: Existence<Presence>) {
        self.inner.lock().presences.insert(name.into(), presence);
    }

    fn list(&self, newer_than: LogicalTime) {
        let mut inner = self.inner.lock();
        if inner.listed.is_none_or(|listed| listed <= newer_than) {
            inner.listed = Some(LogicalTime::now());
            inner.shown = inner.instances.clone();
            inner.lists.push(self.start.elapsed());
        }
    }

    /// Seconds at which machines were listed.
    pub fn lists(&self) -> Vec<u64> {
        self.inner.lock().lists.iter().map(Duration::as_secs).collect()
    }

    /// This cloud as a parameter of the controllers.
    pub fn ports(&self) -> controllers::Cloud {
        controllers::Cloud::of(self.clone(), self.state.clone())
    }

    fn begin(&self) -> Duration {
        let mut inner = self.inner.lock();
        inner.running += 1;
        inner.most_running = inner.most_running.max(inner.running);
        inner.write_takes
    }
}

struct TestDeletion {
    cloud: TestCloud,
    service: Arc<Service>,
}

#[async_trait]
impl Deletion for TestDeletion {
    async fn run(self: Box<Self>) -> Result<Vec<Notice>, ServiceError> {
        let Self { cloud, service } = *self;
        cloud.called(Call::Delete(service.key().name.to_string(), service.uid().to_owned()));
        let takes = cloud.begin();
        tokio::time::sleep(takes).await;
        let mut inner = cloud.inner.lock();
        inner.running -= 1;
        if let Some(failure) = inner.delete_failures.pop_front() {
            return Err(failure);
        }
        inner.load_balancers.remove(service.uid());
        Ok(vec![])
    }
}

#[async_trait]
impl LoadBalancers for TestCloud {
    async fn ensure(
        &self,
        service: &Arc<Service>,
        _newer_than: LogicalTime,
    ) -> Result<Ensured, ServiceError> {
        let (key, uid) = (service.key(), service.uid().to_owned());
        let name = key.name.to_string();
        self.called(Call::Ensure(name.clone(), uid.clone()));
        let stored = self.kubernetes.get("Service", &key.namespace, &name);
        let finalizers =
            stored.map(|object| object["metadata"]["finalizers"].to_string()).unwrap_or_default();
        if !finalizers.contains(k8s::names::LOAD_BALANCER_FINALIZER) {
            self.inner.lock().ensured_without_finalizer.push(name.clone());
        }
        let takes = self.begin();
        tokio::time::sleep(takes).await;
        let mut inner = self.inner.lock();
        inner.running -= 1;
        if let Some(failure) = inner.failures.get_mut(&name).and_then(VecDeque::pop_front) {
            return Err(failure);
        }
        if let Some(message) = inner.refused.get(&name) {
            return Err(ServiceError::Refused { message: message.clone(), notices: vec![] });
        }
        let next = inner.load_balancers.len() + 1;
        let addresses = inner
            .addresses
            .get(&name)
            .cloned()
            .unwrap_or_else(|| vec![format!("20.0.{}.{}", next / 250, next % 250).parse().unwrap()]);
        let addresses = inner.load_balancers.entry(uid).or_insert(addresses).clone();
        let notices = inner.notices.get(&name).cloned().unwrap_or_default();
        Ok(Ensured { addresses, notices })
    }

    async fn prepare_deletion(
        &self,
        service: &Arc<Service>,
        _newer_than: LogicalTime,
    ) -> Result<Option<Box<dyn Deletion>>, ServiceError> {
        self.called(Call::PrepareDeletion(service.key().name.to_string()));
        let exists = self.inner.lock().load_balancers.contains_key(service.uid());
        let deletion = TestDeletion { cloud: self.clone(), service: Arc::clone(service) };
        Ok(exists.then(|| Box::new(deletion) as Box<dyn Deletion>))
    }

    fn seen_on_load_balancers(&self) -> BTreeSet<ObjectKey> {
        let inner = self.inner.lock();
        let services = self.state.services();
        let there = services.iter().filter(|service| inner.load_balancers.contains_key(service.uid()));
        there.map(|service| service.key()).collect()
    }

    async fn look_again(&self) -> Looked {
        let mut inner = self.inner.lock();
        inner.looks.push(self.start.elapsed());
        std::mem::take(&mut inner.looked)
    }

    async fn drifted(&self) -> Vec<Drifted> {
        loop {
            let drifted = std::mem::take(&mut self.inner.lock().drifted);
            if !drifted.is_empty() {
                return drifted;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    async fn update_nodes(&self, _newer_than: LogicalTime) -> Result<(), UpdateError> {
        let nodes = self.state.nodes().iter().map(|node| node.name().to_owned()).collect();
        self.called(Call::UpdateNodes(nodes));
        let takes = self.begin();
        tokio::time::sleep(takes).await;
        let mut inner = self.inner.lock();
        inner.running -= 1;
        inner.update_failures.pop_front().map_or(Ok(()), Err)
    }

    fn follows_nodes(&self, service: &Arc<Service>) -> bool {
        self.inner.lock().following.iter().any(|name| **name == *service.key().name)
    }

    fn waits_for_machines(&self) -> bool {
        false
    }

    async fn update_waiting_machines(&self, _newer_than: LogicalTime) -> Result<(), ServiceError> {
        Ok(())
    }

    fn drains_nodes(&self) -> bool {
        self.inner.lock().drains
    }

    async fn update_draining_nodes(&self) -> Result<BTreeMap<String, bool>, ServiceError> {
        let nodes = self.state.nodes();
        let draining = nodes.iter().filter(|node| node.is_draining()).map(|node| node.name().to_owned());
        self.called(Call::UpdateDraining(draining.collect()));
        let takes = self.begin();
        tokio::time::sleep(takes).await;
        let mut inner = self.inner.lock();
        inner.running -= 1;
        if let Some(failure) = inner.draining_failures.pop_front() {
            return Err(failure);
        }
        Ok(nodes.iter().map(|node| (node.name().to_owned(), node.is_draining())).collect())
    }

    fn local_pool_interval(&self) -> Option<Duration> {
        self.inner.lock().local_pool_interval
    }

    async fn update_local_pools(
        &self,
        services: &[ObjectKey],
    ) -> BTreeMap<ObjectKey, Result<(), ServiceError>> {
        let nodes = |key: &ObjectKey| self.state.endpoint_nodes(key).into_iter().collect();
        self.called(Call::UpdateLocalPools(
            services.iter().map(|key| (key.name.to_string(), nodes(key))).collect(),
        ));
        let mut inner = self.inner.lock();
        let here: Vec<ObjectKey> = services
            .iter()
            .filter(|key| !inner.without_pool.iter().any(|name| **name == *key.name))
            .cloned()
            .collect();
        let mut answer = |key: ObjectKey| {
            let failure = inner.local_pool_failures.get_mut(&*key.name).and_then(VecDeque::pop_front);
            (key, failure.map_or(Ok(()), Err))
        };
        here.into_iter().map(&mut answer).collect()
    }

    fn forget_observed(&self) {
        self.called(Call::Forget);
    }

    fn stop(&self) {
        let lease = self.kubernetes.get("Lease", "kube-system", "aks-managed-resource-locker");
        let holder = lease.map(|lease| lease["spec"]["holderIdentity"].as_str().unwrap().to_owned());
        self.called(Call::Stop { lease_holder: holder.unwrap_or_default() });
    }
}

#[async_trait]
impl Machines for TestCloud {
    async fn presence(&self, node: &Node, newer_than: LogicalTime) -> Existence<Presence> {
        self.called(Call::Presence(node.name().to_owned()));
        self.list(newer_than);
        let unknown = || Existence::Unknown("not configured in the test's cloud".into());
        self.inner.lock().presences.get(node.name()).cloned().unwrap_or_else(unknown)
    }

    async fn describe(&self, node: &Node, newer_than: LogicalTime) -> Existence<Instance> {
        self.called(Call::Describe(node.name().to_owned()));
        self.list(newer_than);
        let unknown = || Existence::Unknown("not configured in the test's cloud".into());
        self.inner.lock().shown.get(node.name()).cloned().unwrap_or_else(unknown)
    }
}
