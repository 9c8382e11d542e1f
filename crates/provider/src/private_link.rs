//! Private link services: read where there may be one, and written for one Service at a time.
//!
//! Nobody needs the right to read them unless a Service asks for one: where the list is denied, none is known, and
//! Azure keeps a frontend that one offers.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arm::ApiVersion;
use azure_types::{PrivateLinkService, ResourceId, Subnet};
use cloud::LogicalTime;
use parking_lot::Mutex;
use planner::sequence::Sequence;
use planner::{Action, Cluster, Document, ServiceIntent, Step, change, private_link};
use tokio::time::Instant;
use tracing::warn;

use crate::Notice;
use crate::azure::Azure;
use crate::failure::{Failure, Kind};
use crate::fingerprint;
use crate::observed::Observed;
use crate::repeats::{Repeats, Verdict};

/// How often the private link services of frontends that go are looked for: connections, the services, and nothing
/// left; and once more for a connection that came meanwhile.
const MAX_REMOVAL_ROUNDS: u32 = 4;
/// What Azure says where a frontend is to go that a private link service offers.
const FRONTEND_IN_USE: &str = "LoadBalancerFrontendIPConfigurationInUseByPrivateLinkService";

/// The private link services of the cluster.
pub(crate) struct PrivateLinks {
    cluster: Arc<Cluster>,
    azure: Azure,
    observed: Arc<Observed>,
    /// The latest writes, to notice those that are of no use.
    repeats: Mutex<HashMap<ResourceId, Repeats>>,
}

/// Whether a Service that asks for no private link service may have asked for one.
fn may_have_one(intent: &ServiceIntent) -> bool {
    intent.flavor.is_internal() || intent.arrives_at_nodes()
}

impl PrivateLinks {
    pub(crate) fn new(cluster: Arc<Cluster>, azure: Azure, observed: Arc<Observed>) -> Self {
        Self { cluster, azure, observed, repeats: Mutex::default() }
    }

    async fn list(
        &self,
        groups: &BTreeSet<ResourceId>,
        newer_than: LogicalTime,
    ) -> Result<Vec<PrivateLinkService>, Failure> {
        let mut found = Vec::new();
        for group in groups {
            let all = self.observed.private_links(group).list(newer_than).await?;
            found.extend(all.iter().map(|link| PrivateLinkService::clone(link)));
        }
        Ok(found)
    }

    /// Those that are known, however old that knowledge is.
    pub(crate) fn cached(&self) -> Vec<PrivateLinkService> {
        let groups = self.observed.private_link_groups();
        let all = groups.iter().flat_map(|group| self.observed.private_links(group).all_cached());
        all.map(|link| PrivateLinkService::clone(&link)).collect()
    }

    /// Those among which a Service's is; absent where it can have none.
    pub(crate) async fn concerning(
        &self,
        sequence: &Sequence,
        newer_than: LogicalTime,
    ) -> Result<Option<Vec<PrivateLinkService>>, Failure> {
        let Some(intent) = sequence.intent() else { return Ok(None) };
        let groups = &sequence.owner().private_link_groups;
        if intent.private_link.is_some() {
            return self.list(groups, newer_than).await.map(Some);
        }
        // What is cached only says whether there is anything to look for: after a deletion it still shows what went.
        if !may_have_one(intent) && self.cached().is_empty() {
            return Ok(Some(Vec::new()));
        }
        // It may have asked for one before this process began to look. What came since is known.
        match self.list(groups, self.observed.started).await {
            Err(failure) if failure.kind == Kind::PermissionDenied => Ok(None),
            other => other.map(Some),
        }
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

    /// The same, where it has to be written: each frontend that came into it made a new version of it.
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

    /// All of the groups in which Services' may be, for a preview.
    pub(crate) async fn of_services(
        &self,
        sequences: &[Sequence],
        is_asked_for: bool,
        newer_than: LogicalTime,
    ) -> Result<Vec<PrivateLinkService>, Failure> {
        let groups =
            sequences.iter().flat_map(|sequence| sequence.owner().private_link_groups.iter().cloned());
        match self.list(&groups.collect(), newer_than).await {
            Err(failure) if failure.kind == Kind::PermissionDenied && !is_asked_for => Ok(Vec::new()),
            other => other,
        }
    }

    /// Takes the steps of one Service, one after the other. What does not keep what is written to it is left.
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
                subnet.map(|document| self.observed.store_subnet(&step.target, document))
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
            self.observed.invalidate_subnet(&step.target);
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

    /// Whether the same write was made before and did not last; what to tell the owner then.
    fn is_of_no_use(&self, step: &Step, sequence: &Sequence) -> Option<Notice> {
        if step.action != Action::Update {
            return None;
        }
        let mut repeats = self.repeats.lock();
        let repeats = repeats.get_mut(&step.target)?;
        let Verdict::Wait(wait) = repeats.judge(fingerprint::of([step]), Instant::now()) else { return None };
        warn!(resource = %step.target, wait_seconds = wait.as_secs(),
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

    /// Removes the cluster's private link services from frontends that go. Tells whether the load balancer has to be
    /// planned again: something was removed, or somebody else's was found.
    pub(crate) async fn clear(
        &self,
        frontends: &[ResourceId],
        groups: &BTreeSet<ResourceId>,
    ) -> Result<bool, Failure> {
        let mut groups = groups.clone();
        groups.extend(self.observed.private_link_groups());
        let mut removed = false;
        for _ in 0..MAX_REMOVAL_ROUNDS {
            let links = match self.list(&groups, LogicalTime::now()).await {
                Err(failure) if failure.kind == Kind::PermissionDenied => return Ok(false),
                links => links?,
            };
            if private_link::has_unmanaged(&self.cluster, frontends, &links) {
                return Ok(true);
            }
            let steps = private_link::plan_removal(&self.cluster, frontends, &links);
            if steps.is_empty() {
                return Ok(removed);
            }
            for step in &steps {
                self.take(step).await?;
            }
            removed = true;
        }
        let message =
            "private endpoints connect to a private link service that is to go, faster than it goes";
        Err(Failure::new(Kind::Unavailable, message))
    }

    /// Takes note of private link services that Azure names because they offer a frontend that is to go; tells whether
    /// nobody knew of their resource group. A Service that names another group leaves no other trace of the first.
    pub(crate) fn learn_groups(&self, failure: &Failure, named: &[ResourceId]) -> bool {
        if !failure.has_code(FRONTEND_IN_USE) {
            return false;
        }
        let known: BTreeSet<ResourceId> = self.observed.private_link_groups().into_iter().collect();
        let mut is_new = false;
        for group in named.iter().filter_map(ResourceId::parent).filter(|group| !known.contains(group)) {
            self.observed.private_links(&group);
            is_new = true;
        }
        is_new
    }
}
