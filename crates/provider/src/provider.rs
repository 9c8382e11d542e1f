//! The provider: one handle for reading and changing Azure.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arm::Clock;
use azure_types::{LoadBalancer, ResourceId};
use cloud::{ClusterState, LogicalTime, ServiceError, UpdateError};
use futures::future::join_all;
use ipnet::IpNet;
use k8s::{ObjectKey, Service};
use parking_lot::Mutex;
use planner::admin_state;
use planner::backend_pool::PoolMembership;
use planner::load_balancer::{Places, pool_in, services_on};
use planner::local_pool;
use planner::placement::NodePlaces;
use planner::sequence::Sequence;
use planner::{
    Balancer, Cluster, ClusterPlan, Family, Flavor, ParsedServices, ServiceIntent, ServiceRemoval,
    backend_pool,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::azure::Azure;
use crate::drift::Drift;
use crate::failure::{Failure, Kind, service_error};
use crate::intent_owner::IntentOwner;
use crate::load_balancer::{LoadBalancerRequest, SharedLoadBalancer};
use crate::member_writes::{MemberWrites, Unfinished};
use crate::membership::{Membership, NODES_UNKNOWN};
use crate::observed::Observed;
use crate::private_link::PrivateLinks;
use crate::public_ip::PublicIps;
use crate::route_table::{SharedRouteTable, no_route_table};
use crate::security_group::{RecentlyProgrammed, SharedSecurityGroup};
use writer::{Pace, Writer};

/// The pace of all writers. A batch waits a few seconds for Services that are about to join it, whose public IPs are being
/// written; a single Service never waits.
const PACE: Pace = Pace { linger: Duration::from_secs(5), busy: Duration::from_secs(2) };
/// Maximum number of parallel writes and deletions of public IPs.
const MAX_PARALLEL_PUBLIC_IPS: usize = 64;

/// What a provider is started with.
#[derive(Debug, Clone)]
pub struct Options {
    /// All ranges that nodes' pod ranges are taken from: a route to another destination does not belong to this
    /// cluster.
    pub cluster_ranges: Vec<IpNet>,
    /// The wall clock, for the age of Nodes.
    pub clock: Clock,
    /// Stops all work at once when cancelled; the next leader continues what was cut short.
    pub stop: CancellationToken,
}

impl Default for Options {
    fn default() -> Self {
        Self { cluster_ranges: Vec::new(), clock: Clock::system(), stop: CancellationToken::new() }
    }
}

/// Reads and changes Azure on behalf of one cluster. Cheap to clone; the work ends with the last clone (or with
/// [`Options::stop`]).
#[derive(Clone)]
pub struct Provider(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) state: ClusterState,
    pub(crate) clock: Clock,
    pub(crate) observed: Arc<Observed>,
    pub(crate) public_ips: Arc<PublicIps>,
    pub(crate) private_links: Arc<PrivateLinks>,
    pub(crate) membership: Arc<Membership>,
    pub(crate) recently: Arc<RecentlyProgrammed>,
    /// Parsed Services, for planning.
    pub(crate) parsed: Arc<Mutex<ParsedServices>>,
    /// Differences between what Services have and what they want.
    pub(crate) drift: Arc<Drift>,
    azure: Azure,
    pub(crate) stop: CancellationToken,
    load_balancers: Mutex<HashMap<Balancer, Writer<SharedLoadBalancer>>>,
    security_group: OnceLock<Writer<SharedSecurityGroup>>,
    route_table: OnceLock<Writer<SharedRouteTable>>,
    /// All ranges that nodes' pod ranges are taken from.
    pub(crate) cluster_ranges: Vec<IpNet>,
    /// The load balancer on which each Service has, or was promised, a place.
    pub(crate) places: Mutex<Places>,
    /// The writes of the members of load balancers that share the nodes, if there are several.
    pub(crate) member_writes: Arc<MemberWrites>,
    /// Problems of mask size tags that were already logged.
    pub(crate) mask_problems: Mutex<BTreeSet<String>>,
    /// The latest report of where the security group is not in force.
    pub(crate) out_of_force: Mutex<Option<String>>,
    /// The latest event for which each Service was ensured.
    answered: Mutex<HashMap<ObjectKey, LogicalTime>>,
    /// When the observed state was last dropped because another program may have written.
    forgotten: Mutex<LogicalTime>,
    _guard: DropGuard,
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Provider({})", self.0.cluster.name)
    }
}

impl Inner {
    pub(crate) fn load_balancer(&self, balancer: &Balancer) -> Writer<SharedLoadBalancer> {
        let mut writers = self.load_balancers.lock();
        if let Some(writer) = writers.get(balancer) {
            return writer.clone();
        }
        let resource = SharedLoadBalancer {
            cluster: Arc::clone(&self.cluster),
            balancer: balancer.clone(),
            azure: self.azure.clone(),
            observed: Arc::clone(&self.observed),
            public_ips: Arc::clone(&self.public_ips),
            private_links: Arc::clone(&self.private_links),
            membership: Arc::clone(&self.membership),
            state: self.state.clone(),
            member_writes: Arc::clone(&self.member_writes),
            drift: Arc::clone(&self.drift),
            emptied: Mutex::default(),
            was_up: Mutex::default(),
        };
        let writer = Writer::start(resource, PACE, self.stop.clone());
        writers.insert(balancer.clone(), writer.clone());
        writer
    }

    pub(crate) fn security_group(&self) -> Result<Writer<SharedSecurityGroup>, Failure> {
        let Some(id) = self.cluster.security_group_id() else {
            return Err(Failure::new(
                Kind::FailedPrecondition,
                "no security group is configured: set securityGroupName in the cloud configuration",
            ));
        };
        let start = || {
            let resource = SharedSecurityGroup {
                id,
                cluster: Arc::clone(&self.cluster),
                azure: self.azure.clone(),
                observed: Arc::clone(&self.observed),
                state: self.state.clone(),
                recently: Arc::clone(&self.recently),
                parsed: Arc::clone(&self.parsed),
                drift: Arc::clone(&self.drift),
                nodes: Mutex::default(),
            };
            Writer::start(resource, PACE, self.stop.clone())
        };
        Ok(self.security_group.get_or_init(start).clone())
    }

    pub(crate) fn route_table(&self) -> Result<Writer<SharedRouteTable>, Failure> {
        let id = self.cluster.route_table_id().ok_or_else(no_route_table)?;
        let start = || {
            let resource = SharedRouteTable {
                id,
                cluster: Arc::clone(&self.cluster),
                cluster_ranges: self.cluster_ranges.clone(),
                azure: self.azure.clone(),
                observed: Arc::clone(&self.observed),
            };
            Writer::start(resource, PACE, self.stop.clone())
        };
        Ok(self.route_table.get_or_init(start).clone())
    }

    /// How new the data for a Service must be: newer than the event, or newer than now if that event was answered
    /// before. A repeated request wants the current state.
    pub(crate) fn required_freshness(&self, key: &ObjectKey, event: LogicalTime) -> LogicalTime {
        let event = event.max(self.observed.started);
        let last = self.answered.lock().get(key).copied();
        if last.is_some_and(|last| last >= event) { LogicalTime::now() } else { event }
    }

    /// Records that a Service is ensured or deleted because of an event.
    pub(crate) fn record_event(&self, key: &ObjectKey, event: LogicalTime) {
        self.answered.lock().insert(key.clone(), event.max(self.observed.started));
    }

    /// Drops the observed state because another program may have written: later reads are fresh (LB-041).
    pub(crate) fn forget_observed(&self) {
        *self.forgotten.lock() = LogicalTime::now();
        self.observed.invalidate_all();
    }

    /// Whether what was read after `time` still counts: the observed state was not dropped since.
    pub(crate) fn has_observed_since(&self, time: LogicalTime) -> bool {
        *self.forgotten.lock() < time
    }

    pub(crate) fn azure(&self) -> &Azure {
        &self.azure
    }

    /// The writers of load balancers used so far.
    pub(crate) fn load_balancer_writers(&self) -> Vec<(Balancer, Writer<SharedLoadBalancer>)> {
        let writers = self.load_balancers.lock();
        let mut all: Vec<_> =
            writers.iter().map(|(balancer, writer)| (balancer.clone(), writer.clone())).collect();
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        all
    }

    /// The writer of the security group, if used so far.
    pub(crate) fn security_group_writer(&self) -> Option<Writer<SharedSecurityGroup>> {
        self.security_group.get().cloned()
    }

    /// Drops what is remembered of a Service once nothing of it is left in Azure: its last answered event, and the
    /// groups that only it named.
    pub(crate) fn forget(&self, service: &Service) {
        let key = service.key();
        self.answered.lock().remove(&key);
        self.places.lock().release(&key);
        let own = self.cluster.network_group(&self.cluster.config.resource_group);
        let groups_of = |service: &Service| ServiceRemoval::of(&self.cluster, service).public_ip_groups;
        if groups_of(service).iter().any(|group| *group != own) {
            let others = self.state.services();
            let others = others.iter().filter(|other| other.key() != key && other.is_to_be_served());
            let mut groups: BTreeSet<ResourceId> = others.flat_map(|other| groups_of(other)).collect();
            groups.insert(own);
            self.observed.keep_public_ip_groups(&groups);
        }
    }

    /// The cluster's load balancers: those on which Services may have a place. Load balancers of SKU Basic that are
    /// named after scale sets or availability sets are found in the cache.
    async fn balancers(&self) -> Result<Vec<Balancer>, Failure> {
        let mut all = self.cluster.balancers();
        if self.cluster.config.uses_basic_load_balancer() {
            let primary = self.cluster.placement(Flavor::External);
            // One list contains all of them.
            self.observed.load_balancers().get(&primary.name, self.observed.started).await?;
            let own = self.cluster.own_load_balancers(self.observed.load_balancers().all_cached(), &[]);
            all.extend(own.into_iter().map(|(balancer, _)| balancer));
            all.sort();
            all.dedup();
        }
        Ok(all)
    }

    /// Brings the pools of all load balancers in line with the nodes, and closes the security group for addresses of
    /// nodes that left: a refused Service keeps its rules, and is not reconciled when nodes change (LB-464).
    pub(crate) async fn update_nodes(&self, newer_than: LogicalTime) -> Result<(), Unfinished> {
        let filled = self.fill_pools(newer_than).await;
        let closed = self.close_what_nothing_has(IntentOwner::Nodes, newer_than).await;
        filled?;
        // The load balancers match the nodes: no Service is informed.
        closed.map_err(|failure| Unfinished { failure, of: Some(BTreeMap::new()) })
    }

    async fn fill_pools(&self, newer_than: LogicalTime) -> Result<(), Unfinished> {
        if self.cluster.has_several_load_balancers() {
            return self.share_all_nodes(newer_than).await;
        }
        let mut pools = Vec::new();
        let mut writes = Vec::new();
        let by_address = self.cluster.has_pools_of_addresses();
        let sets = self.nodes_of_sets(newer_than).await?;
        for balancer in self.balancers().await? {
            let known = self.observed.load_balancers().get(&balancer.name, newer_than).await?;
            let serves = self.serves_any(&balancer);
            if known.is_none() && !serves {
                continue;
            }
            if by_address {
                self.require_nodes()?;
            }
            if !by_address && !serves {
                // Only its pools are known to be ours.
                pools.extend(self.pools_to_fill(
                    &balancer,
                    sets.as_ref(),
                    known.as_deref(),
                    known.as_deref(),
                ));
                continue;
            }
            let writer = self.load_balancer(&balancer);
            writes.push(async move {
                let done =
                    writer.submit(IntentOwner::Nodes, LoadBalancerRequest::Members, newer_than, None).await;
                (balancer, known, done)
            });
        }
        let mut failed = BTreeMap::new();
        for (balancer, before, done) in join_all(writes).await {
            match done {
                Ok(done) => {
                    let now = done.observed.load_balancer.as_deref();
                    pools.extend(self.pools_to_fill(&balancer, sets.as_ref(), before.as_deref(), now));
                }
                Err(failure) => {
                    // Nodes still join the pools that exist.
                    let now = before.as_deref();
                    pools.extend(self.pools_to_fill(&balancer, sets.as_ref(), now, now));
                    failed.insert(balancer, failure);
                }
            }
        }
        self.membership.join(&pools, newer_than).await?;
        Unfinished::of_each(failed).map_or(Ok(()), Err)?;
        Ok(self.mark_joined().await?)
    }

    fn pools_to_fill(
        &self,
        balancer: &Balancer,
        sets: Option<&NodePlaces>,
        before: Option<&LoadBalancer>,
        now: Option<&LoadBalancer>,
    ) -> Vec<PoolMembership> {
        let pools = |now| backend_pool::pools_to_fill(&self.cluster, balancer, sets, before, now);
        now.map(pools).unwrap_or_default()
    }

    /// Whether a load balancer serves any Service, as far as this process knows.
    fn serves_any(&self, balancer: &Balancer) -> bool {
        let writer = self.load_balancers.lock().get(balancer).cloned();
        writer.is_some_and(|writer| writer.has_accepted_intents())
    }

    /// The Services that had parts on a load balancer when the load balancers were last read or written.
    pub(crate) fn seen_on_load_balancers(&self) -> BTreeSet<ObjectKey> {
        let services = self.state.services();
        let all = self.observed.load_balancers().all_cached();
        let all = self.cluster.own_load_balancers(all, &services);
        all.iter().flat_map(|(_, document)| services_on(document, &services)).collect()
    }

    /// The error for load balancers that do not match the nodes.
    pub(crate) fn update_error(&self, unfinished: Unfinished) -> UpdateError {
        let services = unfinished.of.map(|failed| {
            let all = self.state.services();
            let mut concerned = BTreeMap::new();
            for (balancer, failure) in failed {
                let document = self.observed.load_balancers().cached(&balancer.name);
                let here = document.map(|document| services_on(&document, &all)).unwrap_or_default();
                concerned.extend(here.into_iter().map(|key| (key, failure.message.clone())));
            }
            concerned
        });
        UpdateError { error: service_error(unfinished.failure), services }
    }

    /// Sets the admin state of interfaces that have just joined a pool. They take connections there even if their node
    /// drains: Azure accepts no state before they are members (10.2).
    pub(crate) async fn mark_joined(&self) -> Result<(), Failure> {
        let is_open = self.cluster.config.enable_load_balancer_admin_state
            && !self.cluster.has_pools_of_addresses()
            && self.state.nodes().iter().any(|node| node.is_draining());
        if is_open { self.update_draining(LogicalTime::now()).await.map(drop) } else { Ok(()) }
    }

    /// Stops new connections to draining nodes. Returns the nodes in pools, each with whether none of its entries takes
    /// new connections. Cached versions are sufficient: after a lost race the load balancer is read again.
    pub(crate) async fn update_draining(
        &self,
        newer_than: LogicalTime,
    ) -> Result<BTreeMap<String, bool>, Failure> {
        if !self.cluster.config.enable_load_balancer_admin_state {
            return Ok(BTreeMap::new());
        }
        let mut writes = Vec::new();
        for balancer in self.cluster.balancers() {
            if self.observed.load_balancers().get(&balancer.name, newer_than).await?.is_some() {
                let writer = self.load_balancer(&balancer);
                writes.push(async move {
                    writer.submit(IntentOwner::Draining, LoadBalancerRequest::Members, newer_than, None).await
                });
            }
        }
        // A load balancer that cannot be written does not keep the others from being written.
        let done = join_all(writes).await.into_iter().collect::<Result<Vec<_>, Failure>>()?;
        let documents = done.iter().filter_map(|done| done.observed.load_balancer.as_deref());
        let interfaces = self.observed.cached_machine_interfaces();
        Ok(admin_state::nodes_in_pools(documents, &self.state.nodes(), &interfaces))
    }

    /// If pools contain addresses, nothing is written to them before all nodes are known.
    pub(crate) fn require_nodes(&self) -> Result<(), Failure> {
        if self.cluster.has_pools_of_addresses() && !self.state.nodes_synced() {
            return Err(Failure::new(Kind::Unavailable, NODES_UNKNOWN));
        }
        Ok(())
    }

    /// If Services have pools of their own, none is written before all endpoints are known.
    pub(crate) fn require_endpoints(&self) -> Result<(), Failure> {
        if self.cluster.has_local_pools() && !self.state.endpoints_synced() {
            return Err(Failure::new(
                Kind::Unavailable,
                "the EndpointSlices of the cluster are not known yet",
            ));
        }
        Ok(())
    }

    /// Brings the pools of these Services in line with their endpoints, on whichever load balancers they are. Returns
    /// the outcome of each Service with a pool. Cached versions are sufficient: after a lost race the load balancer is
    /// read again.
    pub(crate) async fn update_local_pools(
        &self,
        services: &[ObjectKey],
    ) -> BTreeMap<ObjectKey, Result<(), Failure>> {
        let seen = self.observed.started;
        let known = self.require_nodes().and_then(|()| self.require_endpoints());
        let mut writes = Vec::new();
        for balancer in self.cluster.balancers() {
            let document = match &known {
                Ok(()) => self.observed.load_balancers().get(&balancer.name, seen).await,
                Err(failure) => Err(failure.clone()),
            };
            let document = match document {
                Ok(document) => document,
                Err(failure) => {
                    return services.iter().map(|key| (key.clone(), Err(failure.clone()))).collect();
                }
            };
            let writer = self.load_balancer(&balancer);
            // A write of this load balancer, with the endpoints as they were, may be in flight: this write comes after
            // it. Without one and without a document there is no load balancer.
            writes.push(async move {
                let done =
                    writer.submit(IntentOwner::Endpoints, LoadBalancerRequest::Members, seen, None).await;
                let now = done.as_ref().ok().and_then(|done| done.observed.load_balancer.clone());
                let here = now.or(document).map(|document| services_with_pools(services, &document));
                (here.unwrap_or_default(), done.map(drop))
            });
        }
        let mut answers = BTreeMap::new();
        for (here, answer) in join_all(writes).await {
            for key in here {
                let all = answers.entry(key).or_insert(Ok(()));
                if answer.is_err() {
                    all.clone_from(&answer);
                }
            }
        }
        answers
    }

    /// Reads the public IPs of these groups for a preview; `own` is the cluster's group.
    async fn read_public_ips(
        &self,
        own: &ResourceId,
        groups: &BTreeSet<ResourceId>,
        newer_than: LogicalTime,
        observed: &mut planner::ClusterObservation,
    ) -> Result<(), Failure> {
        for group in groups {
            match self.observed.public_ips(group).list(newer_than).await {
                Ok(all) => observed.public_ips.extend(all.iter().cloned()),
                // An unreadable group that a Service names is an error of that Service only.
                Err(failure) if group != own => {
                    drop(observed.unreadable_groups.insert(group.clone(), failure.message))
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    async fn observe(&self) -> Result<planner::ClusterObservation, Failure> {
        let newer_than = LogicalTime::now();
        let services = self.state.services();
        let mut observed = planner::ClusterObservation::default();
        let load_balancers = self.observed.load_balancers().list(newer_than).await?;
        observed.load_balancers = load_balancers.to_vec();
        let own = self.cluster.network_group(&self.cluster.config.resource_group);
        let mut groups = BTreeSet::from([own.clone()]);
        let mut sequences = Vec::new();
        let balancers = self.cluster.own_load_balancers(load_balancers, &services);
        let mut subnets = BTreeSet::new();
        let mut links = BTreeSet::new();
        for service in services.iter() {
            let mut sequence = Sequence::remove(Arc::new(ServiceRemoval::of(&self.cluster, service)));
            sequence.see_frontends(&self.cluster, &balancers);
            groups.extend(sequence.owner().public_ip_groups.iter().cloned());
            sequences.push(sequence);
            let Ok(intent) = ServiceIntent::from_service(&self.cluster, service) else { continue };
            if intent.flavor.is_internal() {
                subnets.insert(self.cluster.subnet_id(intent.subnet_name(&self.cluster)));
            }
            if let Some(link) = &intent.private_link {
                links.insert(self.cluster.network_group(&link.group));
                subnets.insert(self.cluster.subnet_id(&link.subnet));
            }
        }
        self.read_public_ips(&own, &groups, newer_than, &mut observed).await?;
        let mut more = BTreeSet::new();
        for sequence in &mut sequences {
            let known = &observed.public_ips;
            if self.look_elsewhere(sequence, known, newer_than).await? {
                more.extend(sequence.owner().public_ip_groups.difference(&groups).cloned());
            }
        }
        self.read_public_ips(&own, &more, newer_than, &mut observed).await?;
        self.private_links.of_services(&sequences, &links, newer_than, &mut observed).await?;
        for id in subnets {
            let subnet = self.observed.subnet(&id, newer_than).await?;
            observed.subnets.extend(subnet);
        }
        if let (Some(known), Some(id)) = (self.observed.security_group(), self.cluster.security_group_id()) {
            observed.security_group = known.get(id.name(), newer_than).await?.map(|group| (*group).clone());
        }
        observed.machines = self.membership.machines(newer_than).await?;
        if self.cluster.config.uses_basic_load_balancer() {
            observed.machines.virtual_machines = self.membership.virtual_machines(newer_than).await?;
        }
        if self.cluster.has_several_load_balancers() {
            observed.machines.virtual_machines = self.membership.virtual_machines(newer_than).await?;
            let labels = |name: String| {
                let labels = self.state.namespace_labels(&name)?;
                Some((name, (*labels).clone()))
            };
            observed.namespaces = self.state.namespaces().into_iter().filter_map(labels).collect();
        }
        if self.cluster.has_local_pools() && self.state.endpoints_synced() {
            let keys = services.iter().map(|service| service.key());
            let endpoints = keys.map(|key| (key.clone(), self.state.endpoint_nodes(&key)));
            observed.endpoints = Some(endpoints.collect());
        }
        Ok(observed)
    }
}

/// The Services among `services` that have a pool of their own on a load balancer.
fn services_with_pools(services: &[ObjectKey], document: &LoadBalancer) -> Vec<ObjectKey> {
    let has_pool = |key: &&ObjectKey| {
        Family::BOTH.iter().any(|family| pool_in(document, &local_pool::name(key, *family)).is_some())
    };
    services.iter().filter(has_pool).cloned().collect()
}

impl Provider {
    /// A provider without observed state. It sends nothing and starts no task before the first call.
    pub fn new(cluster: Cluster, client: arm::Client, state: ClusterState, options: Options) -> Self {
        let cluster = Arc::new(cluster);
        let azure = Azure::new(client);
        let stop = options.stop.child_token();
        let observed = Arc::new(Observed::new(azure.clone(), &cluster));
        let public_ips = Arc::new(PublicIps::new(
            Arc::clone(&cluster),
            azure.clone(),
            Arc::clone(&observed),
            MAX_PARALLEL_PUBLIC_IPS,
            PACE.busy,
        ));
        let private_links =
            Arc::new(PrivateLinks::new(Arc::clone(&cluster), azure.clone(), Arc::clone(&observed)));
        let membership = Arc::new(Membership::new(
            Arc::clone(&cluster),
            azure.clone(),
            Arc::clone(&observed),
            state.clone(),
            PACE,
            stop.clone(),
        ));
        Self(Arc::new(Inner {
            cluster,
            state,
            clock: options.clock,
            observed,
            public_ips,
            private_links,
            membership,
            recently: Arc::default(),
            parsed: Arc::default(),
            drift: Arc::default(),
            azure,
            _guard: stop.clone().drop_guard(),
            stop,
            load_balancers: Mutex::default(),
            security_group: OnceLock::new(),
            route_table: OnceLock::new(),
            cluster_ranges: options.cluster_ranges,
            places: Mutex::default(),
            member_writes: Arc::default(),
            mask_problems: Mutex::default(),
            out_of_force: Mutex::default(),
            answered: Mutex::default(),
            forgotten: Mutex::new(LogicalTime::BEGINNING),
        }))
    }

    /// The Services and Nodes that the provider works with.
    pub fn state(&self) -> &ClusterState {
        &self.0.state
    }

    /// The existing Services for which the provider remembers something beside the observed state: an answered event,
    /// or a promised place.
    pub fn remembered(&self) -> BTreeSet<ObjectKey> {
        let answered = self.0.answered.lock();
        answered.keys().cloned().chain(self.0.places.lock().promised()).collect()
    }

    /// What would be written to Azure for the current Services and Nodes. Writes nothing.
    ///
    /// # Errors
    ///
    /// If Azure could not be read.
    pub async fn dry_run(&self) -> Result<ClusterPlan, ServiceError> {
        let observed = self.observe().await?;
        let state = &self.0.state;
        Ok(planner::plan_cluster(&self.0.cluster, &state.services(), &state.nodes(), &observed))
    }

    /// Reads the observed state that a plan for the cluster needs.
    ///
    /// # Errors
    ///
    /// If Azure could not be read.
    pub async fn observe(&self) -> Result<planner::ClusterObservation, ServiceError> {
        self.0.observe().await.map_err(service_error)
    }
}
