//! What is known of Azure, each list read once for all who ask.

mod kept;
mod machines;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use arm::{ApiVersion, Class, Listing};
use azure_types::{
    AvailabilitySet, LoadBalancer, NetworkInterface, PrivateLinkService, PublicIpAddress, ResourceId,
    RouteTable, ScaleSet, ScaleSetInstance, SecurityGroup, Subnet, VirtualMachine, Word,
};
use cloud::LogicalTime;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use planner::Cluster;
use planner::backend_pool::PoolMembership;
use tokio::time::{Instant, sleep};

use crate::azure::Azure;
use crate::failure::{Failure, Kind};
use crate::resource_cache::{Fetch, ResourceCache};
use crate::turns::Turns;

pub(crate) use kept::InstanceInterface;
use kept::Recurring;
pub(crate) use machines::{Said, Sighting};

const NETWORK: &str = "Microsoft.Network";
const COMPUTE: &str = "Microsoft.Compute";
/// The class of reads that a writer plans by. One request answers all who wait for it, and a deletion may be
/// among them, so it goes before what only refreshes the knowledge of machines.
const PLANNED_BY: Class = Class::Delete;
/// The time between two looks at a resource on which somebody's operation runs. Azure takes some ten seconds for
/// a load balancer; twenty reads a minute for a program that was killed in the middle are few.
const SETTLE_INTERVAL: Duration = Duration::from_secs(3);
/// How long it is looked at. Azure ends every operation on a load balancer or a security group long before; after
/// that the Services that wait are told, and come again after their back-off.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// Collections by resource group or by resource, made when first asked for.
type ById<T> = Mutex<HashMap<ResourceId, Arc<ResourceCache<T>>>>;

/// What is known of Azure.
pub(crate) struct Observed {
    azure: Azure,
    /// When this process began to look: older knowledge there is none.
    pub(crate) started: LogicalTime,
    load_balancers: ResourceCache<LoadBalancer>,
    /// Whether load balancers or the interfaces in their pools are written.
    turns: Turns,
    security_group: Option<ResourceCache<SecurityGroup>>,
    route_table: Option<ResourceCache<RouteTable>>,
    public_ips: ById<PublicIpAddress>,
    /// Those of the subscription, by id.
    all_public_ips: ResourceCache<PublicIpAddress>,
    scale_sets: ById<ScaleSet>,
    instances: ById<ScaleSetInstance>,
    interfaces: ById<InstanceInterface>,
    instance_public_ips: ById<PublicIpAddress>,
    flexible_views: ById<VirtualMachine>,
    sightings: ById<Sighting>,
    /// What documents have in common.
    recurring: Arc<Recurring>,
    machine_public_ips: ById<PublicIpAddress>,
    machine_interfaces: ById<NetworkInterface>,
    virtual_machines: ById<VirtualMachine>,
    availability_sets: ById<AvailabilitySet>,
    subnets: ById<Subnet>,
    private_links: ById<PrivateLinkService>,
    /// Those of the subscription, by id.
    all_private_links: ResourceCache<PrivateLinkService>,
    /// Whether instances are listed without their views, by configuration.
    without_views: bool,
}

/// Whether an operation runs on the resource or not, and how the last one ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// No operation runs; the last one succeeded.
    Succeeded,
    /// No operation runs; the last one failed.
    Failed,
    /// An operation runs.
    Running,
}

impl State {
    /// Reads a provisioning state; a document without one is settled.
    pub(crate) fn of(word: Option<&Word>) -> Self {
        match word {
            None => Self::Succeeded,
            Some(word) if word.is("Succeeded") => Self::Succeeded,
            Some(word) if word.is("Failed") || word.is("Canceled") => Self::Failed,
            Some(_) => Self::Running,
        }
    }
}

fn fetch<T, F>(read: F) -> Fetch<T>
where
    F: Fn() -> BoxFuture<'static, Result<Vec<T>, Failure>> + Send + Sync + 'static,
{
    Box::new(read)
}

fn named(name: Option<&String>, id: Option<&ResourceId>) -> String {
    name.cloned().or_else(|| id.map(|id| id.name().to_owned())).unwrap_or_default()
}

/// An id as a name, where names recur.
fn by_id(id: Option<&ResourceId>) -> String {
    id.map(|id| id.as_str().to_owned()).unwrap_or_default()
}

/// What is listed by resource group.
trait OfGroup: serde::de::DeserializeOwned + Send + Sync + 'static {
    const NAMESPACE: &'static str;
    const KIND: &'static str;
    const VERSION: ApiVersion;

    fn name(&self) -> String;
}

macro_rules! of_group {
    ($($document:ty: $namespace:ident, $kind:literal, $version:ident;)*) => {$(
        impl OfGroup for $document {
            const NAMESPACE: &'static str = $namespace;
            const KIND: &'static str = $kind;
            const VERSION: ApiVersion = ApiVersion::$version;

            fn name(&self) -> String {
                named(self.name.as_ref(), self.id.as_ref())
            }
        }
    )*};
}

of_group! {
    AvailabilitySet: COMPUTE, "availabilitySets", COMPUTE;
    LoadBalancer: NETWORK, "loadBalancers", NETWORK;
    NetworkInterface: NETWORK, "networkInterfaces", NETWORK;
    PrivateLinkService: NETWORK, "privateLinkServices", NETWORK;
    PublicIpAddress: NETWORK, "publicIPAddresses", NETWORK;
    ScaleSet: COMPUTE, "virtualMachineScaleSets", COMPUTE;
    VirtualMachine: COMPUTE, "virtualMachines", COMPUTE;
}

/// The resources of a type in a group; a group that does not exist holds none.
fn group_cache<T: OfGroup>(azure: &Azure, group: &ResourceId) -> ResourceCache<T> {
    let listing = Listing::of(group, T::NAMESPACE, T::KIND);
    ResourceCache::new(
        T::name,
        list(azure.clone(), listing, T::VERSION, Vec::new(), PLANNED_BY, Failure::is_not_found),
    )
}

/// The resources of a type in a whole subscription. Names recur from group to group; ids do not.
fn subscription_cache<T: OfGroup>(
    azure: &Azure,
    subscription: &ResourceId,
    id_of: fn(&T) -> String,
    is_empty: fn(&Failure) -> bool,
) -> ResourceCache<T> {
    let listing = Listing::of(subscription, T::NAMESPACE, T::KIND);
    ResourceCache::new(id_of, list(azure.clone(), listing, T::VERSION, Vec::new(), PLANNED_BY, is_empty))
}

impl Observed {
    /// Nothing known yet.
    pub(crate) fn new(azure: Azure, cluster: &Cluster) -> Self {
        let group = cluster.network_group(cluster.config.load_balancer_resource_group());
        let recurring: Arc<Recurring> = Arc::default();
        let load_balancers = {
            let (listing, recurring) =
                (Listing::of(&group, LoadBalancer::NAMESPACE, LoadBalancer::KIND), Arc::clone(&recurring));
            let keep = move |document| recurring.load_balancer(document);
            let version = LoadBalancer::VERSION;
            let is_empty = Failure::is_not_found;
            let fetch = list_kept(azure.clone(), listing, version, Vec::new(), PLANNED_BY, is_empty, keep);
            ResourceCache::new(LoadBalancer::name, fetch)
        };
        let security_group = cluster.security_group_id().map(|id| {
            ResourceCache::new(
                |document: &SecurityGroup| named(document.name.as_ref(), document.id.as_ref()),
                one(azure.clone(), id),
            )
        });
        let route_table = cluster.route_table_id().map(|id| {
            ResourceCache::new(
                |document: &RouteTable| named(document.name.as_ref(), document.id.as_ref()),
                one(azure.clone(), id),
            )
        });
        let subscription = ResourceId::subscription(cluster.config.network_subscription_id());
        let all_public_ips = subscription_cache(
            &azure,
            &subscription,
            |document: &PublicIpAddress| by_id(document.id.as_ref()),
            |failure| failure.kind == Kind::PermissionDenied,
        );
        let all_private_links = subscription_cache(
            &azure,
            &subscription,
            |document: &PrivateLinkService| by_id(document.id.as_ref()),
            Failure::is_not_found,
        );
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
            sightings: Mutex::default(),
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

    /// Whose turn it is to be written: a load balancer's or that of the interfaces in its pools.
    pub(crate) fn turns(&self) -> &Turns {
        &self.turns
    }

    /// The load balancers of their resource group.
    pub(crate) fn load_balancers(&self) -> &ResourceCache<LoadBalancer> {
        &self.load_balancers
    }

    /// Takes over a load balancer as a write of ours left it.
    pub(crate) fn store_load_balancer(&self, document: LoadBalancer) -> Arc<LoadBalancer> {
        self.load_balancers.store(self.recurring.load_balancer(document))
    }

    /// The one security group; `None` where none is configured.
    pub(crate) fn security_group(&self) -> Option<&ResourceCache<SecurityGroup>> {
        self.security_group.as_ref()
    }

    /// The one route table; `None` where none is configured.
    pub(crate) fn route_table(&self) -> Option<&ResourceCache<RouteTable>> {
        self.route_table.as_ref()
    }

    /// The public IPs of a resource group.
    pub(crate) fn public_ips(&self, group: &ResourceId) -> Arc<ResourceCache<PublicIpAddress>> {
        cache_of(&self.public_ips, group, || group_cache(&self.azure, group))
    }

    /// The public IPs of the whole subscription; none where it may not be read, because only the groups that are
    /// needed every day have to be.
    pub(crate) async fn public_ips_of_subscription(
        &self,
        newer_than: LogicalTime,
    ) -> Result<Vec<Arc<PublicIpAddress>>, Failure> {
        self.all_public_ips.list(newer_than).await
    }

    /// The public IPs that are known, however old that knowledge is.
    pub(crate) fn cached_public_ips(&self) -> Vec<Arc<PublicIpAddress>> {
        self.public_ips.lock().values().flat_map(|known| known.all_cached()).collect()
    }

    /// Public IPs may have changed because a load balancer did. Which there are in other groups has not.
    pub(crate) fn invalidate_public_ips(&self) {
        for known in self.public_ips.lock().values() {
            known.invalidate();
        }
    }

    /// Another program wrote what this one knows: nothing that was read before counts any more.
    pub(crate) fn invalidate_all(&self) {
        fn invalidate<T: Send + Sync + 'static>(known: &ById<T>) {
            known.lock().values().for_each(|known| known.invalidate());
        }
        self.load_balancers.invalidate();
        if let Some(known) = &self.security_group {
            known.invalidate();
        }
        if let Some(known) = &self.route_table {
            known.invalidate();
        }
        invalidate(&self.public_ips);
        self.all_public_ips.invalidate();
        invalidate(&self.scale_sets);
        invalidate(&self.instances);
        invalidate(&self.interfaces);
        invalidate(&self.instance_public_ips);
        invalidate(&self.flexible_views);
        invalidate(&self.sightings);
        invalidate(&self.machine_public_ips);
        self.invalidate_machine_interfaces();
        invalidate(&self.virtual_machines);
        invalidate(&self.availability_sets);
        invalidate(&self.subnets);
        invalidate(&self.private_links);
        self.all_private_links.invalidate();
    }

    /// The memberships of a batch, without those in the pools of load balancers that are gone by now: nobody joins
    /// them.
    pub(crate) fn of_present_pools(&self, batch: &[(String, PoolMembership)]) -> Vec<PoolMembership> {
        let is_there = |pool: &ResourceId| {
            pool.parent().is_some_and(|id| self.load_balancers.cached(id.name()).is_some())
        };
        let memberships = batch.iter().map(|(_, membership)| membership);
        memberships.filter(|one| !one.member || is_there(&one.pool)).cloned().collect()
    }

    /// The private link services of a resource group.
    pub(crate) fn private_links(&self, group: &ResourceId) -> Arc<ResourceCache<PrivateLinkService>> {
        cache_of(&self.private_links, group, || group_cache(&self.azure, group))
    }

    /// The private link services of the whole subscription: they tell in which groups there are any.
    pub(crate) fn private_links_of_subscription(&self) -> &ResourceCache<PrivateLinkService> {
        &self.all_private_links
    }

    /// The resource groups whose private link services are known, or were heard of.
    pub(crate) fn private_link_groups(&self) -> Vec<ResourceId> {
        self.private_links.lock().keys().cloned().collect()
    }

    /// Forgets the resource groups whose private link services are of no interest.
    pub(crate) fn forget_private_link_groups(
        &self,
        is_of_interest: impl Fn(&ResourceId, &ResourceCache<PrivateLinkService>) -> bool,
    ) {
        self.private_links.lock().retain(|group, known| is_of_interest(group, known));
    }

    /// Forgets the public IPs of all resource groups but these.
    pub(crate) fn keep_public_ip_groups(&self, groups: &BTreeSet<ResourceId>) {
        self.public_ips.lock().retain(|group, _| groups.contains(group));
    }

    /// Forgets what was known of scale sets that are not there any more, unless it is being asked for.
    pub(crate) fn keep_scale_sets(&self, is_there: impl Fn(&ResourceId) -> bool) {
        fn keep<T>(known: &ById<T>, is_there: impl Fn(&ResourceId) -> bool) {
            known.lock().retain(|id, known| is_there(id) || Arc::strong_count(known) > 1);
        }
        keep(&self.instances, &is_there);
        keep(&self.interfaces, &is_there);
        keep(&self.instance_public_ips, &is_there);
        keep(&self.flexible_views, &is_there);
    }

    /// Private link services are not as they were.
    pub(crate) fn invalidate_private_links(&self) {
        self.private_links.lock().values().for_each(|known| known.invalidate());
    }

    /// Takes over the answer to a write of a subnet.
    pub(crate) fn store_subnet(&self, id: &ResourceId, document: Subnet) {
        drop(self.subnet_cache(id).store(document));
    }

    /// A subnet is not as it was.
    pub(crate) fn invalidate_subnet(&self, id: &ResourceId) {
        self.subnet_cache(id).invalidate();
    }

    fn subnet_cache(&self, id: &ResourceId) -> Arc<ResourceCache<Subnet>> {
        cache_of(&self.subnets, id, || {
            ResourceCache::new(
                |document: &Subnet| named(document.name.as_ref(), document.id.as_ref()),
                one(self.azure.clone(), id.clone()),
            )
        })
    }

    /// A subnet.
    pub(crate) async fn subnet(
        &self,
        id: &ResourceId,
        newer_than: LogicalTime,
    ) -> Result<Option<Arc<Subnet>>, Failure> {
        self.subnet_cache(id).get(id.name(), newer_than).await
    }

    /// Reads one load balancer.
    pub(crate) async fn read_load_balancer(
        &self,
        id: &ResourceId,
    ) -> Result<Option<Arc<LoadBalancer>>, Failure> {
        let asked = LogicalTime::now();
        let fresh = self.azure.get::<LoadBalancer>(id, ApiVersion::NETWORK, PLANNED_BY).await?;
        let fresh = fresh.map(|document| self.recurring.load_balancer(document));
        Ok(self.load_balancers.store_reading(id.name(), fresh, asked))
    }

    /// A load balancer on which no operation runs, as read after `newer_than`.
    pub(crate) async fn settled_load_balancer(
        &self,
        id: &ResourceId,
        newer_than: LogicalTime,
    ) -> Result<Option<Arc<LoadBalancer>>, Failure> {
        let mut document = self.load_balancers.get(id.name(), newer_than).await?;
        let begin = Instant::now();
        while begin.elapsed() < SETTLE_TIMEOUT {
            let running = document.as_deref().is_some_and(|document| {
                let state = document.properties.as_ref().and_then(|p| p.provisioning_state.as_ref());
                State::of(state) == State::Running
            });
            if !running {
                return Ok(document);
            }
            sleep(SETTLE_INTERVAL).await;
            document = self.read_load_balancer(id).await?;
        }
        Err(still_running(id))
    }

    /// The security group with no operation running on it, as read after `newer_than`; `None` where there is none.
    pub(crate) async fn settled_security_group(
        &self,
        id: &ResourceId,
        newer_than: LogicalTime,
    ) -> Result<Option<Arc<SecurityGroup>>, Failure> {
        let Some(known) = &self.security_group else { return Ok(None) };
        let mut document = known.get(id.name(), newer_than).await?;
        let begin = Instant::now();
        while begin.elapsed() < SETTLE_TIMEOUT {
            let properties = document.as_ref().and_then(|document| document.properties.as_ref());
            if State::of(properties.and_then(|p| p.provisioning_state.as_ref())) != State::Running {
                return Ok(document);
            }
            sleep(SETTLE_INTERVAL).await;
            let asked = LogicalTime::now();
            let fresh = self.azure.get::<SecurityGroup>(id, ApiVersion::NETWORK, PLANNED_BY).await?;
            document = known.store_reading(id.name(), fresh, asked);
        }
        Err(still_running(id))
    }

    /// The route table with no operation running on it, as read after `newer_than`; `None` where there is none.
    pub(crate) async fn settled_route_table(
        &self,
        id: &ResourceId,
        newer_than: LogicalTime,
    ) -> Result<Option<Arc<RouteTable>>, Failure> {
        let Some(known) = &self.route_table else { return Ok(None) };
        let mut document = known.get(id.name(), newer_than).await?;
        let begin = Instant::now();
        while begin.elapsed() < SETTLE_TIMEOUT {
            let properties = document.as_ref().and_then(|document| document.properties.as_ref());
            if State::of(properties.and_then(|p| p.provisioning_state.as_ref())) != State::Running {
                return Ok(document);
            }
            sleep(SETTLE_INTERVAL).await;
            let asked = LogicalTime::now();
            let fresh = self.azure.get::<RouteTable>(id, ApiVersion::NETWORK, PLANNED_BY).await?;
            document = known.store_reading(id.name(), fresh, asked);
        }
        Err(still_running(id))
    }
}

fn still_running(id: &ResourceId) -> Failure {
    Failure::new(
        Kind::Unavailable,
        format!("{id}: another operation has been running on it for a quarter of an hour"),
    )
}

fn cache_of<T>(
    all: &ById<T>,
    id: &ResourceId,
    new: impl FnOnce() -> ResourceCache<T>,
) -> Arc<ResourceCache<T>> {
    let mut all = all.lock();
    if let Some(known) = all.get(id) {
        return Arc::clone(known);
    }
    let known = Arc::new(new());
    all.insert(id.clone(), Arc::clone(&known));
    known
}

/// Reads a list; a failure for which `is_empty` holds says that nothing is there, as a resource group that does not
/// exist holds nothing.
fn list<T>(
    azure: Azure,
    listing: Listing,
    version: ApiVersion,
    query: Vec<(&'static str, String)>,
    class: Class,
    is_empty: fn(&Failure) -> bool,
) -> Fetch<T>
where
    T: serde::de::DeserializeOwned + Send + Sync + 'static,
{
    list_kept(azure, listing, version, query, class, is_empty, |document: T| document)
}

/// The same; of each document no more is kept than `keep` makes of it.
fn list_kept<T, K>(
    azure: Azure,
    listing: Listing,
    version: ApiVersion,
    query: Vec<(&'static str, String)>,
    class: Class,
    is_empty: fn(&Failure) -> bool,
    keep: impl Fn(T) -> K + Clone + Send + Sync + 'static,
) -> Fetch<K>
where
    T: serde::de::DeserializeOwned + Send + Sync + 'static,
    K: Send + Sync + 'static,
{
    fetch(move || {
        let (azure, listing, query, keep) = (azure.clone(), listing.clone(), query.clone(), keep.clone());
        Box::pin(async move {
            let query: Vec<(&str, &str)> = query.iter().map(|(key, value)| (*key, value.as_str())).collect();
            match azure.list(&listing, version, &query, class, keep).await {
                Err(failure) if is_empty(&failure) => Ok(Vec::new()),
                other => other,
            }
        })
    })
}

/// Reads one network resource as a list of one or none.
fn one<T>(azure: Azure, id: ResourceId) -> Fetch<T>
where
    T: serde::de::DeserializeOwned + Send + Sync + 'static,
{
    fetch(move || {
        let (azure, id) = (azure.clone(), id.clone());
        Box::pin(
            async move { Ok(azure.get(&id, ApiVersion::NETWORK, PLANNED_BY).await?.into_iter().collect()) },
        )
    })
}

#[cfg(test)]
mod tests {
    use arm::{CallRecord, Client, Cloud, Credential, Transport};
    use planner::instance::{InstanceName, MachineName};

    use super::*;

    /// What a deletion may wait for goes before what only refreshes the knowledge of machines, and the
    /// proof that a machine is lost goes before all.
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
        let scale_set = group.resource(COMPUTE, "virtualMachineScaleSets", "pool");
        observed.load_balancers().list(since).await.unwrap();
        observed.security_group().unwrap().list(since).await.unwrap();
        observed.public_ips(&group).list(since).await.unwrap();
        observed.scale_sets(&group).list(since).await.unwrap();
        observed.instances(&scale_set).list(since).await.unwrap();
        observed.interfaces(&scale_set).list(since).await.unwrap();
        let lost = InstanceName { scale_set: scale_set.clone(), instance_id: "0".to_owned() };
        observed.sighting(&MachineName::Instance(lost), since).await.unwrap();
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
        // C5: what was known of a scale set goes with it.
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
