//! Private link services: read where there may be one, and written for one Service at a time.
//!
//! The right to read them is only needed if a Service asks for one: a group whose list is denied counts as empty, and
//! Azure itself keeps a frontend that a private link service uses.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use arm::{ApiVersion, Repeats, Verdict};
use azure_types::{PrivateLinkService, ResourceId, Subnet};
use cloud::{LogicalTime, Notice};
use parking_lot::Mutex;
use planner::sequence::Sequence;
use planner::{Action, Cluster, Document, Step, change, private_link};
use tokio::time::Instant;
use tracing::{debug, warn};

use crate::azure::Azure;
use crate::failure::{self, Failure, Kind};
use crate::fingerprint;
use crate::observed::Observed;
use crate::resource_list::ResourceList;

/// How long a denied list is not requested again, unless an event requires newer data: a role takes some minutes to
/// take effect, and hundreds of Services without private link services would request the list each time.
const DENIED_INTERVAL: Duration = Duration::from_secs(10 * 60);
/// Azure's error code for deleting a frontend that a private link service uses.
const FRONTEND_IN_USE: &str = "LoadBalancerFrontendIPConfigurationInUseByPrivateLinkService";

/// The private link services of the cluster.
pub(crate) struct PrivateLinks {
    cluster: Arc<Cluster>,
    azure: Azure,
    observed: Arc<Observed>,
    /// The latest writes, to detect those that have no effect.
    repeats: Mutex<HashMap<ResourceId, Repeats>>,
    /// The groups, and the subscription, whose lists are denied.
    denied: Mutex<HashMap<ResourceId, Denied>>,
    /// The groups that Azure named in errors.
    learned: Mutex<BTreeSet<ResourceId>>,
}

/// The private link services that could be read.
#[derive(Default)]
struct Links {
    found: Vec<Arc<PrivateLinkService>>,
    /// The resource groups whose lists are denied, and Azure's error.
    denied: BTreeMap<ResourceId, Failure>,
}

/// A denied list.
#[derive(Clone)]
struct Denied {
    asked: LogicalTime,
    at: Instant,
    failure: Failure,
}

impl PrivateLinks {
    pub(crate) fn new(cluster: Arc<Cluster>, azure: Azure, observed: Arc<Observed>) -> Self {
        Self {
            cluster,
            azure,
            observed,
            repeats: Mutex::default(),
            denied: Mutex::default(),
            learned: Mutex::default(),
        }
    }

    /// Reads a list; the inner error is Azure's denial. A list that was denied after `newer_than` is not requested
    /// again for a while.
    async fn read(
        &self,
        scope: &ResourceId,
        cache: &ResourceList<PrivateLinkService>,
        newer_than: LogicalTime,
    ) -> Result<Result<Vec<Arc<PrivateLinkService>>, Failure>, Failure> {
        let denied = self.denied.lock().get(scope).cloned();
        if let Some(denied) = denied
            && denied.asked > newer_than
            && denied.at.elapsed() < DENIED_INTERVAL
        {
            return Ok(Err(denied.failure));
        }
        let asked = LogicalTime::now();
        match cache.list(newer_than).await {
            Ok(all) => {
                self.denied.lock().remove(scope);
                Ok(Ok(all))
            }
            // Some clouds do not support the type and refuse the request.
            Err(failure)
                if matches!(
                    failure.kind,
                    Kind::PermissionDenied | Kind::FailedPrecondition | Kind::InvalidArgument
                ) =>
            {
                let denied = Denied { asked, at: Instant::now(), failure: failure.clone() };
                self.denied.lock().insert(scope.clone(), denied);
                Ok(Err(failure))
            }
            Err(failure) => Err(failure),
        }
    }

    /// The private link services of some groups, each read by itself. A group that cannot be read now is a failure only
    /// if it is one of `named`: any other group belongs to other Services, and its cached state stays.
    async fn list(
        &self,
        groups: &BTreeSet<ResourceId>,
        named: &BTreeSet<ResourceId>,
        newer_than: LogicalTime,
    ) -> Result<Links, Failure> {
        let mut links = Links::default();
        for group in groups {
            let known = self.observed.private_links(group);
            match self.read(group, &known, newer_than).await {
                Ok(Ok(all)) => links.found.extend(all),
                Ok(Err(failure)) => drop(links.denied.insert(group.clone(), failure)),
                Err(failure) if !named.contains(group) => {
                    debug!(resource_group = %group, error = %failure.message, "private link services cannot be read now");
                    links.found.extend(known.all_cached());
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(links)
    }

    /// The groups that may contain private link services of the cluster. If the subscription may be read, one list
    /// gives them: later changes of this process are known, and if Azure keeps a frontend for another one, its error
    /// names it ([`Self::learn_groups`]). Otherwise they are the groups that Services name.
    async fn groups(&self, named: &BTreeSet<ResourceId>) -> Result<BTreeSet<ResourceId>, Failure> {
        // A group that a Service named is dropped when the Service is gone and has left nothing there.
        self.observed.forget_private_link_groups(|group, known| {
            let concerns = |link: &Arc<PrivateLinkService>| private_link::concerns(&self.cluster, link);
            let is_unread = || !known.was_listed() && self.learned.lock().contains(group);
            named.contains(group) || known.all_cached().iter().any(concerns) || is_unread()
        });
        let mut groups: BTreeSet<ResourceId> = self.observed.private_link_groups().into_iter().collect();
        self.denied.lock().retain(|scope, _| scope.group_name().is_none() || groups.contains(scope));
        let subscription = ResourceId::subscription(self.cluster.config.network_subscription_id());
        let all = &self.observed.all_private_links;
        match self.read(&subscription, all, self.observed.started).await? {
            Ok(all) => {
                let matter = all.iter().filter(|link| private_link::concerns(&self.cluster, link));
                groups.extend(matter.filter_map(|link| link.id.as_ref()?.parent()));
            }
            Err(_) => groups.extend(named.iter().cloned()),
        }
        Ok(groups)
    }

    /// The foreign private link services that keep frontends of a load balancer, from the cache, however old.
    pub(crate) fn keeping(&self, load_balancer: &ResourceId) -> Vec<Arc<PrivateLinkService>> {
        let groups = self.observed.private_link_groups();
        let all = groups.iter().flat_map(|group| self.observed.private_links(group).all_cached());
        let keeping = all.filter(|link| private_link::keeps_frontend(&self.cluster, link, load_balancer));
        keeping.collect()
    }

    /// Reads again the foreign private link services that keep frontends of a load balancer: their deletion causes no
    /// event.
    pub(crate) async fn look_at_foreign(
        &self,
        load_balancer: &ResourceId,
        newer_than: LogicalTime,
    ) -> Result<(), Failure> {
        let keeping = self.keeping(load_balancer);
        let groups: BTreeSet<ResourceId> =
            keeping.iter().filter_map(|link| link.id.as_ref()?.parent()).collect();
        // If the read fails, the cached state stays.
        self.list(&groups, &BTreeSet::new(), newer_than).await.map(drop)
    }

    /// The private link services among which a Service's own is; `None` if the Service leaves. `is_served` returns
    /// whether the Service has a frontend.
    pub(crate) async fn concerning(
        &self,
        sequence: &Sequence,
        is_served: impl FnOnce() -> bool,
        newer_than: LogicalTime,
        notices: &mut Vec<Notice>,
    ) -> Result<Option<Vec<Arc<PrivateLinkService>>>, Failure> {
        let Some(intent) = sequence.intent() else { return Ok(None) };
        let named = &sequence.owner().private_link_groups;
        if let Some(link) = &intent.private_link {
            let mut groups = self.groups(named).await?;
            groups.extend(named.iter().cloned());
            let mut links = self.list(&groups, named, newer_than).await?;
            return match links.denied.remove(&self.cluster.network_group(&link.group)) {
                Some(failure) => Err(failure),
                None => Ok(Some(links.found)),
            };
        }
        if !is_served() {
            return Ok(Some(Vec::new()));
        }
        // It may have asked for one before this process started. Later changes are known.
        let links = self.list(&self.groups(named).await?, named, self.observed.started).await?;
        let own = self.cluster.network_group(self.cluster.config.private_link_service_resource_group());
        // A Service without private link service does not need the right to read the cluster's own group.
        let denied = links.denied.iter().filter(|(group, _)| named.contains(*group) && **group != own);
        for (group, failure) in denied {
            let message = failure::short(private_link::unreadable(group, &failure.message).to_string());
            let service = sequence.key().clone();
            let notice = Notice { service, warning: true, reason: "ListPrivateLinkServices", message };
            if !notices.contains(&notice) {
                notices.push(notice);
            }
        }
        Ok(Some(links.found))
    }

    /// The subnet of the private link service that a Service asks for.
    pub(crate) async fn subnet(
        &self,
        sequence: &Sequence,
        newer_than: LogicalTime,
    ) -> Result<Option<Arc<Subnet>>, Failure> {
        let link = sequence.intent().and_then(|intent| intent.private_link.as_ref());
        match link {
            Some(link) => self.observed.subnet(&self.cluster.subnet_id(&link.subnet), newer_than).await,
            None => Ok(None),
        }
    }

    /// The same subnet before a write: each new frontend in it has created a new version of it.
    pub(crate) async fn subnet_now(
        &self,
        sequence: &Sequence,
        known: Option<Arc<Subnet>>,
    ) -> Result<Option<Arc<Subnet>>, Failure> {
        match known {
            Some(subnet) if private_link::is_open(&subnet) => Ok(Some(subnet)),
            _ => self.subnet(sequence, LogicalTime::now()).await,
        }
    }

    /// All private link services that concern the cluster, for a preview. `asked` are the groups that Services name.
    pub(crate) async fn of_services(
        &self,
        sequences: &[Sequence],
        asked: &BTreeSet<ResourceId>,
        newer_than: LogicalTime,
        observed: &mut planner::ClusterObservation,
    ) -> Result<(), Failure> {
        let named =
            sequences.iter().flat_map(|sequence| sequence.owner().private_link_groups.iter().cloned());
        let mut groups = self.groups(&named.collect()).await?;
        groups.extend(asked.iter().cloned());
        let links = self.list(&groups, &groups, newer_than).await?;
        observed.private_links = links.found;
        let denied = links.denied.into_iter().map(|(group, failure)| (group, failure.message));
        observed.unreadable_private_links = denied.collect();
        Ok(())
    }

    /// Applies the steps of one Service in order. A private link service that does not keep what is written is left as
    /// it is.
    pub(crate) async fn write(
        &self,
        steps: &[Step],
        sequence: &mut Sequence,
        notices: &mut Vec<Notice>,
    ) -> Result<(), Failure> {
        for step in steps {
            if let Some(notice) = self.is_of_no_use(step, sequence) {
                sequence.accept(step.target.clone());
                notices.push(notice);
                continue;
            }
            self.take(step).await?;
            if step.action != Action::Delete {
                let mut repeats = self.repeats.lock();
                let repeats = repeats.entry(step.target.clone()).or_default();
                repeats.written(fingerprint::of([step]), Instant::now());
            }
        }
        Ok(())
    }

    async fn take(&self, step: &Step) -> Result<(), Failure> {
        let result = match &step.document {
            Some(Document::Subnet(_)) => {
                let subnet = self.azure.put::<Subnet>(step, ApiVersion::NETWORK).await;
                subnet.map(|document| drop(self.observed.subnet_list(&step.target).store(document)))
            }
            Some(_) => {
                let link = self.azure.put::<PrivateLinkService>(step, ApiVersion::NETWORK).await;
                let known = step.target.parent().map(|group| self.observed.private_links(&group));
                link.map(|document| drop(known.map(|known| known.store(document))))
            }
            None => self.delete(step).await,
        };
        if result.is_err() || step.action == Action::Delete {
            self.observed.invalidate_private_links();
        }
        if result.is_err() && matches!(step.document, Some(Document::Subnet(_))) {
            self.observed.subnet_list(&step.target).invalidate();
        }
        result
    }

    async fn delete(&self, step: &Step) -> Result<(), Failure> {
        let begun = match self.azure.begin_delete(step, ApiVersion::NETWORK).await {
            Err(failure) if failure.is_not_found() => return Ok(()),
            begun => begun?,
        };
        match begun.operation {
            Some(operation) => self.azure.outcome(&operation).await,
            None => Ok(()),
        }
    }

    /// Whether the same write was made before and did not last; returns the notice for the owner then.
    fn is_of_no_use(&self, step: &Step, sequence: &Sequence) -> Option<Notice> {
        if step.action != Action::Update {
            return None;
        }
        let mut repeats = self.repeats.lock();
        let repeats = repeats.get_mut(&step.target)?;
        let Verdict::Wait(wait) = repeats.judge(fingerprint::of([step]), Instant::now()) else { return None };
        warn!(resource = %step.target, wait_ms = wait.as_millis(),
            "something undoes what is written: it is used as it is");
        let message = format!(
            "{} does not keep what is written to it ({}): it is used as it is. Look for another program (or a policy) \
             that changes it",
            planner::describe_resource(&step.target),
            change::in_words(&step.changes)
        );
        let service = sequence.key().clone();
        Some(Notice { service, warning: true, reason: "CreateOrUpdatePrivateLinkService", message })
    }

    /// The steps that remove the cluster's private link services from frontends that are deleted: connections first;
    /// `None` if a foreign one uses one of these frontends. A group that may not be read is skipped: Azure keeps a
    /// frontend that is used from there.
    pub(crate) async fn removal(
        &self,
        frontends: &[ResourceId],
        named: &BTreeSet<ResourceId>,
    ) -> Result<Option<Vec<Step>>, Failure> {
        let links = self.list(&self.groups(named).await?, named, LogicalTime::now()).await?;
        for (group, failure) in &links.denied {
            debug!(resource_group = %group, error = %failure.message, "private link services cannot be read");
        }
        let is_kept = private_link::has_unmanaged(&self.cluster, frontends, &links.found);
        Ok((!is_kept).then(|| private_link::plan_removal(&self.cluster, frontends, &links.found)))
    }

    /// Applies the steps of a removal in order.
    pub(crate) async fn remove(&self, steps: &[Step]) -> Result<(), Failure> {
        for step in steps {
            self.take(step).await?;
        }
        Ok(())
    }

    /// Records the resource groups of private link services that Azure names because they use a frontend that is to be
    /// deleted. Returns whether one of these groups was unknown. A Service that changes to another group leaves no
    /// other trace of the first.
    pub(crate) fn learn_groups(&self, failure: &Failure, named: &[ResourceId]) -> bool {
        if !failure.has_code(FRONTEND_IN_USE) {
            return false;
        }
        let known: BTreeSet<ResourceId> = self.observed.private_link_groups().into_iter().collect();
        let mut is_new = false;
        for group in named.iter().filter_map(ResourceId::parent).filter(|group| !known.contains(group)) {
            self.observed.private_links(&group);
            self.learned.lock().insert(group);
            is_new = true;
        }
        is_new
    }
}
