//! The observed state of Azure. Concurrent readers of a list share one read.

mod compact;
mod list_request;
mod machine_reading;
mod machines;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use arm::Progress;
use azure_types::{
    AvailabilitySet, LoadBalancer, NetworkInterface, PrivateLinkService, PublicIpAddress, ResourceId,
    RouteTable, ScaleSet, ScaleSetInstance, SecurityGroup, Subnet, VirtualMachine,
};
use cloud::LogicalTime;
use freshness::{Polls, SharedReadings};
use parking_lot::Mutex;
use planner::Cluster;
use planner::backend_pool::PoolMembership;
use tokio::time::{Instant, sleep};

use crate::azure::Azure;
use crate::failure::{Failure, Kind};
use crate::resource_list::ResourceList;
use crate::turns::Turns;

pub(crate) use compact::InstanceInterface;
use compact::Recurring;
use list_request::{ListRequest, PLANNED_BY, ResourceType as _, WrittenType, group_list, single};
pub(crate) use machine_reading::{MachineAnswer, MachineReading};

/// How long the operation of another client may run on a resource that is to be written. Azure ends every operation on a
/// load balancer or a security group long before; then the waiting Services fail and are retried with backoff.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// How long Azure's answer for a single machine is kept after its last use: nodes' addresses are compared more often.
const MACHINE_READING_KEPT: Duration = Duration::from_secs(60 * 60);

/// Lists by resource group or by resource, created on first use.
type ById<T> = Mutex<HashMap<ResourceId, Arc<ResourceList<T>>>>;

/// The observed state of Azure.
pub(crate) struct Observed {
    azure: Azure,
    /// When this process started: there are no older reads.
    pub(crate) started: LogicalTime,
    load_balancers: ResourceList<LoadBalancer>,
    /// Locks between writes of load balancers and writes of the interfaces in their pools.
    turns: Turns,
    security_group: Option<ResourceList<SecurityGroup>>,
    route_table: Option<ResourceList<RouteTable>>,
    public_ips: ById<PublicIpAddress>,
    /// The public IPs of the subscription, by id, with their tags alone; empty if it may not be read, because the program
    /// only requires access to the groups of daily use.
    pub(crate) all_public_ips: ResourceList<PublicIpAddress>,
    scale_sets: ById<ScaleSet>,
    instances: ById<ScaleSetInstance>,
    interfaces: ById<InstanceInterface>,
    instance_public_ips: ById<PublicIpAddress>,
    flexible_views: ById<VirtualMachine>,
    machine_readings: SharedReadings<ResourceId, Arc<MachineReading>, Failure>,
    /// Strings that documents share.
    recurring: Arc<Recurring>,
    machine_public_ips: ById<PublicIpAddress>,
    machine_interfaces: ById<NetworkInterface>,
    virtual_machines: ById<VirtualMachine>,
    availability_sets: ById<AvailabilitySet>,
    subnets: ById<Subnet>,
    private_links: ById<PrivateLinkService>,
    /// The private link services of the subscription, by id, which show the groups that contain any.
    pub(crate) all_private_links: ResourceList<PrivateLinkService>,
    /// Whether instances are listed without instance views, by configuration.
    without_views: bool,
}

/// An id as the cache key, for resources whose names are not unique.
fn by_id(id: Option<&ResourceId>) -> String {
    id.map(|id| id.as_str().to_owned()).unwrap_or_default()
}

impl Observed {
    /// An empty state.
    pub(crate) fn new(azure: Azure, cluster: &Cluster) -> Self {
        let group = cluster.network_group(cluster.config.load_balancer_resource_group());
        let recurring: Arc<Recurring> = Arc::default();
        let load_balancers = {
            let recurring = Arc::clone(&recurring);
            let keep = move |document| recurring.load_balancer(document);
            let request = ListRequest::within::<LoadBalancer>(&group);
            ResourceList::new(LoadBalancer::name, request.fetch(&azure, keep))
        };
        let security_group = cluster.security_group_id().map(|id| single(&azure, id));
        let route_table = cluster.route_table_id().map(|id| single(&azure, id));
        // Names are only unique within a group.
        let subscription = ResourceId::subscription(cluster.config.network_subscription_id());
        let all_public_ips = ListRequest {
            is_empty: |failure| failure.kind == Kind::PermissionDenied,
            ..ListRequest::within::<PublicIpAddress>(&subscription)
        };
        let all_public_ips = ResourceList::new(
            |one: &PublicIpAddress| by_id(one.id.as_ref()),
            all_public_ips.fetch(&azure, compact::tagged),
        );
        let all_private_links = ListRequest::within::<PrivateLinkService>(&subscription)
            .list(&azure, |one: &PrivateLinkService| by_id(one.id.as_ref()));
        Self {
            azure,
            started: LogicalTime::now(),
            load_balancers,
            turns: Turns::default(),
            security_group,
            route_table,
            public_ips: Mutex::default(),
            all_public_ips,
            scale_sets: Mutex::default(),
            instances: Mutex::default(),
            interfaces: Mutex::default(),
            instance_public_ips: Mutex::default(),
            flexible_views: Mutex::default(),
            machine_readings: SharedReadings::kept_for(MACHINE_READING_KEPT),
            recurring,
            machine_public_ips: Mutex::default(),
            machine_interfaces: Mutex::default(),
            virtual_machines: Mutex::default(),
            availability_sets: Mutex::default(),
            subnets: Mutex::default(),
            private_links: Mutex::default(),
            all_private_links,
            without_views: cluster.config.list_vmss_virtual_machines_without_instance_view,
        }
    }

    /// The locks between writes of load balancers and writes of the interfaces in their pools.
    pub(crate) fn turns(&self) -> &Turns {
        &self.turns
    }

    /// The load balancers of their resource group.
    pub(crate) fn load_balancers(&self) -> &ResourceList<LoadBalancer> {
        &self.load_balancers
    }

    /// Stores a load balancer as our own write left it.
    pub(crate) fn store_load_balancer(&self, document: LoadBalancer) -> Arc<LoadBalancer> {
        self.load_balancers.store(self.recurring.load_balancer(document))
    }

    /// The security group; `None` if none is configured.
    pub(crate) fn security_group(&self) -> Option<&ResourceList<SecurityGroup>> {
        self.security_group.as_ref()
    }

    /// The route table; `None` if none is configured.
    pub(crate) fn route_table(&self) -> Option<&ResourceList<RouteTable>> {
        self.route_table.as_ref()
    }

    /// The public IPs of a resource group.
    pub(crate) fn public_ips(&self, group: &ResourceId) -> Arc<ResourceList<PublicIpAddress>> {
        list_of(&self.public_ips, group, || group_list(&self.azure, group))
    }

    /// The cached public IPs, however old.
    pub(crate) fn cached_public_ips(&self) -> Vec<Arc<PublicIpAddress>> {
        self.public_ips.lock().values().flat_map(|known| known.all_cached()).collect()
    }

    /// Marks public IPs as outdated because a load balancer changed. The sets of public IPs in other groups have not
    /// changed.
    pub(crate) fn invalidate_public_ips(&self) {
        invalidate(&self.public_ips);
    }

    /// Marks everything as outdated because another program has written.
    pub(crate) fn invalidate_all(&self) {
        self.load_balancers.invalidate();
        self.security_group.as_ref().inspect(|list| list.invalidate());
        self.route_table.as_ref().inspect(|list| list.invalidate());
        invalidate(&self.public_ips);
        self.all_public_ips.invalidate();
        invalidate(&self.scale_sets);
        invalidate(&self.instances);
        invalidate(&self.interfaces);
        invalidate(&self.instance_public_ips);
        invalidate(&self.flexible_views);
        self.machine_readings.invalidate();
        invalidate(&self.machine_public_ips);
        self.invalidate_machine_interfaces();
        invalidate(&self.virtual_machines);
        invalidate(&self.availability_sets);
        invalidate(&self.subnets);
        invalidate(&self.private_links);
        self.all_private_links.invalidate();
    }

    /// The memberships of a batch, without those in pools of deleted load balancers: no machine joins them.
    pub(crate) fn of_present_pools(&self, batch: &[(String, PoolMembership)]) -> Vec<PoolMembership> {
        let is_there = |pool: &ResourceId| {
            pool.parent().is_some_and(|id| self.load_balancers.cached(id.name()).is_some())
        };
        let memberships = batch.iter().map(|(_, membership)| membership);
        memberships.filter(|one| !one.member || is_there(&one.pool)).cloned().collect()
    }

    /// The private link services of a resource group.
    pub(crate) fn private_links(&self, group: &ResourceId) -> Arc<ResourceList<PrivateLinkService>> {
        list_of(&self.private_links, group, || group_list(&self.azure, group))
    }

    /// The resource groups whose private link services are cached or were mentioned.
    pub(crate) fn private_link_groups(&self) -> Vec<ResourceId> {
        self.private_links.lock().keys().cloned().collect()
    }

    /// Drops the resource groups whose private link services are irrelevant.
    pub(crate) fn forget_private_link_groups(
        &self,
        is_of_interest: impl Fn(&ResourceId, &ResourceList<PrivateLinkService>) -> bool,
    ) {
        self.private_links.lock().retain(|group, known| is_of_interest(group, known));
    }

    /// Drops the public IPs of all resource groups but these.
    pub(crate) fn keep_public_ip_groups(&self, groups: &BTreeSet<ResourceId>) {
        self.public_ips.lock().retain(|group, _| groups.contains(group));
    }

    /// Drops the caches of deleted scale sets, except those in use.
    pub(crate) fn keep_scale_sets(&self, is_there: impl Fn(&ResourceId) -> bool) {
        fn keep<T>(known: &ById<T>, is_there: impl Fn(&ResourceId) -> bool) {
            known.lock().retain(|id, known| is_there(id) || Arc::strong_count(known) > 1);
        }
        keep(&self.instances, &is_there);
        keep(&self.interfaces, &is_there);
        keep(&self.instance_public_ips, &is_there);
        keep(&self.flexible_views, &is_there);
    }

    /// Marks private link services as outdated.
    pub(crate) fn invalidate_private_links(&self) {
        invalidate(&self.private_links);
    }

    /// A subnet, as a list of one.
    pub(crate) fn subnet_list(&self, id: &ResourceId) -> Arc<ResourceList<Subnet>> {
        list_of(&self.subnets, id, || single(&self.azure, id.clone()))
    }

    /// Reads a subnet.
    pub(crate) async fn subnet(
        &self,
        id: &ResourceId,
        newer_than: LogicalTime,
    ) -> Result<Option<Arc<Subnet>>, Failure> {
        self.subnet_list(id).get(id.name(), newer_than).await
    }

    /// The load balancer with no operation running on it, as read after `newer_than`.
    pub(crate) async fn settled_load_balancer(
        &self,
        id: &ResourceId,
        newer_than: LogicalTime,
    ) -> Result<Option<Arc<LoadBalancer>>, Failure> {
        let keep = |document| self.recurring.load_balancer(document);
        self.settled(&self.load_balancers, id, newer_than, keep).await
    }

    /// The security group with no operation running on it, as read after `newer_than`; `None` if it does not exist.
    pub(crate) async fn settled_security_group(
        &self,
        id: &ResourceId,
        newer_than: LogicalTime,
    ) -> Result<Option<Arc<SecurityGroup>>, Failure> {
        let Some(list) = &self.security_group else { return Ok(None) };
        self.settled(list, id, newer_than, |document| document).await
    }

    /// The route table with no operation running on it, as read after `newer_than`; `None` if it does not exist.
    pub(crate) async fn settled_route_table(
        &self,
        id: &ResourceId,
        newer_than: LogicalTime,
    ) -> Result<Option<Arc<RouteTable>>, Failure> {
        let Some(list) = &self.route_table else { return Ok(None) };
        self.settled(list, id, newer_than, |document| document).await
    }

    /// A resource with no operation running on it: it is read again as long as one runs. Another client began that, or
    /// this program before a restart, so that its duration is unknown.
    async fn settled<T: WrittenType>(
        &self,
        list: &ResourceList<T>,
        id: &ResourceId,
        newer_than: LogicalTime,
        keep: impl Fn(T) -> T,
    ) -> Result<Option<Arc<T>>, Failure> {
        let mut document = list.get(id.name(), newer_than).await?;
        let (begin, mut polls) = (Instant::now(), Polls::unknown());
        while begin.elapsed() < SETTLE_TIMEOUT {
            let state = document.as_deref().and_then(T::provisioning_state);
            if Progress::of_document(state) != Progress::Running {
                return Ok(document);
            }
            sleep(polls.missed(begin.elapsed())).await;
            let asked = LogicalTime::now();
            let fresh = self.azure.get(id, T::VERSION, PLANNED_BY).await?;
            document = list.store_reading(id.name(), fresh.map(&keep), asked);
        }
        let message = format!("{id}: another operation has been running on it for a quarter of an hour");
        Err(Failure::new(Kind::Unavailable, message))
    }
}

fn invalidate<T: Send + Sync + 'static>(lists: &ById<T>) {
    lists.lock().values().for_each(|list| list.invalidate());
}

fn list_of<T>(all: &ById<T>, id: &ResourceId, new: impl FnOnce() -> ResourceList<T>) -> Arc<ResourceList<T>> {
    let mut all = all.lock();
    if let Some(known) = all.get(id) {
        return Arc::clone(known);
    }
    let known = Arc::new(new());
    all.insert(id.clone(), Arc::clone(&known));
    known
}

#[cfg(test)]
mod tests {
    use arm::{CallRecord, Class, Client, Cloud, Credential, Transport};
    use planner::instance::{InstanceName, MachineName};

    use super::*;

    /// Reads that a deletion may wait for go before reads that only refresh machines, and the proof that a machine is
    /// gone goes first.
    #[tokio::test(start_paused = true)]
    async fn reads_that_a_deletion_waits_for_queue_as_deletions() {
        let cluster = Cluster {
            config: cloud_config::CloudConfig::parse("{resourceGroup: rg, securityGroupName: nsg}").unwrap(),
            name: "kube".to_owned(),
            region_zones: Vec::new(),
        };
        let classes: Arc<Mutex<Vec<(String, Class)>>> = Arc::default();
        let seen = Arc::clone(&classes);
        let empty = axum::Router::new().fallback(|| async { r#"{"value":[]}"# });
        let cloud = Cloud::built_in(&cloud_config::PUBLIC).unwrap();
        let client = Client::builder(cloud, Transport::in_process(empty), Credential::fixed("token"))
            .observer(Arc::new(move |call: &CallRecord<'_>| {
                let kind = call.resource_type.rsplit('/').next().unwrap_or_default();
                seen.lock().push((kind.to_owned(), call.class));
            }))
            .build();
        let observed = Observed::new(Azure::new(client), &cluster);
        let (since, group) = (observed.started, cluster.network_group("rg"));
        let scale_set = group.resource("Microsoft.Compute", "virtualMachineScaleSets", "pool");
        observed.load_balancers().list(since).await.unwrap();
        observed.security_group().unwrap().list(since).await.unwrap();
        observed.public_ips(&group).list(since).await.unwrap();
        observed.scale_sets(&group).list(since).await.unwrap();
        observed.instances(&scale_set).list(since).await.unwrap();
        observed.interfaces(&scale_set).list(since).await.unwrap();
        let lost = InstanceName { scale_set: scale_set.clone(), instance_id: "0".to_owned() };
        observed.read_machine(&MachineName::Instance(lost), since).await.unwrap();
        let expected = [
            ("loadBalancers", Class::Delete),
            ("networkSecurityGroups", Class::Delete),
            ("publicIPAddresses", Class::Delete),
            ("virtualMachineScaleSets", Class::Delete),
            ("virtualMachines", Class::Refresh),
            ("networkInterfaces", Class::Refresh),
            ("virtualMachines", Class::Repair),
        ];
        assert_eq!(*classes.lock(), expected.map(|(kind, class)| (kind.to_owned(), class)));
        // C5: the caches of a scale set are dropped with it.
        observed.keep_scale_sets(|id| *id == scale_set);
        assert_eq!((observed.instances.lock().len(), observed.interfaces.lock().len()), (1, 1));
        let asking = observed.instances(&scale_set);
        observed.keep_scale_sets(|_| false);
        assert_eq!((observed.instances.lock().len(), observed.interfaces.lock().len()), (1, 0));
        drop(asking);
        observed.keep_scale_sets(|_| false);
        assert_eq!(observed.instances.lock().len(), 0);
    }
}
