//! Public IPs: written in parallel, polled together.
//!
//! Operations of single public IPs are not polled. Services that wait at the same time share the list of their resource
//! group: one request shows all states and addresses. It is read when such operations usually end, and as soon as one
//! Service has read it, all others see whether their operations are done.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arm::{ApiVersion, Operation, OperationWatch, Progress, Repeats, Verdict};
use azure_types::{PublicIpAddress, ResourceId};
use cloud::{LogicalTime, Notice};
use freshness::Polls;
use futures::future::join_all;
use k8s::ObjectKey;
use parking_lot::Mutex;
use planner::public_ip::{self as plans, PublicIpOwners};
use planner::sequence::Sequence;
use planner::{Action, Cluster, Purpose, ServiceRemoval, Step, change};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

use crate::azure::Azure;
use crate::failure::{self, Failure, Kind};
use crate::fingerprint;
use crate::observed::Observed;
use crate::resource_list::ResourceList;

/// How often one Service's public IPs are planned again because of concurrent changes. Ten lost races in a row mean
/// that another client writes all the time: the Service backs off.
const MAX_CONFLICTS: u32 = 10;
/// How often they are retried because Azure was busy: with doubled waits some four minutes.
const MAX_BUSY: u32 = 8;
/// How often a failed public IP is written again to repair it, before its Service backs off.
const MAX_REPAIRS: u32 = 2;
/// How long a public IP may take: far more than Azure ever needs. Then the Service backs off.
const READY_TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// How long a list that may show the end of an operation at once waits for writes and deletions that are under way. A
/// write takes a fraction of a second: one that takes longer is in trouble.
const MAX_GATHERING: Duration = Duration::from_secs(2);
/// Services that start together come some milliseconds apart: so long after the last one the list is read for all.
const LINGER: Duration = Duration::from_millis(12);
/// The longest wait between two tries if Azure does not say how long.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// The public IPs of the cluster.
pub(crate) struct PublicIps {
    cluster: Arc<Cluster>,
    azure: Azure,
    observed: Arc<Observed>,
    permits: Semaphore,
    /// Number of Services that may send a write or a deletion, and of such calls without an answer.
    under_way: watch::Sender<usize>,
    busy: Duration,
    /// The latest writes, to detect those that have no effect.
    repeats: Mutex<HashMap<ResourceId, Repeats>>,
}

/// A call without an answer, or a Service that may send one; until dropped.
struct UnderWay<'a>(&'a watch::Sender<usize>);

impl<'a> UnderWay<'a> {
    fn announce(count: &'a watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

fn state(public_ip: &PublicIpAddress) -> Progress {
    Progress::of_document(public_ip.properties.as_ref().and_then(|p| p.provisioning_state.as_ref()))
}

fn warning(owner: &ServiceRemoval, reason: &'static str, message: &str) -> Notice {
    Notice { service: owner.key.clone(), warning: true, reason, message: failure::short(message.to_owned()) }
}

impl PublicIps {
    pub(crate) fn new(
        cluster: Arc<Cluster>,
        azure: Azure,
        observed: Arc<Observed>,
        parallelism: usize,
        busy: Duration,
    ) -> Self {
        let permits = Semaphore::new(parallelism.max(1));
        let (under_way, repeats) = (watch::Sender::default(), Mutex::default());
        Self { cluster, azure, observed, permits, under_way, busy, repeats }
    }

    /// Whether a write is skipped for now because it was made before and did not last.
    pub(crate) fn is_left(&self, step: &Step) -> bool {
        let repeats = self.repeats.lock();
        let verdict = repeats.get(&step.target).map(|one| one.judge(fingerprint::of([step]), Instant::now()));
        step.action != Action::Create && matches!(verdict, Some(Verdict::Wait(_)))
    }

    fn cache(&self, id: &ResourceId) -> Option<Arc<ResourceList<PublicIpAddress>>> {
        id.parent().map(|group| self.observed.public_ips(&group))
    }

    /// The public IPs that may belong to a Service.
    pub(crate) async fn concerning(
        &self,
        owner: &ServiceRemoval,
        newer_than: LogicalTime,
    ) -> Result<Vec<Arc<PublicIpAddress>>, Failure> {
        let owners = PublicIpOwners::new(std::iter::once(owner));
        let mut found = Vec::new();
        for group in &owner.public_ip_groups {
            let all = self.observed.public_ips(group).list(newer_than).await?;
            let mine = all.iter().filter(|public_ip| !owners.concerned(public_ip).is_empty());
            found.extend(mine.cloned());
        }
        Ok(found)
    }

    async fn write(&self, step: &Step) -> Result<Option<Operation>, Failure> {
        let _permit = self.permits.acquire().await;
        let known = self.cache(&step.target);
        match self.azure.begin_put::<PublicIpAddress>(step, ApiVersion::NETWORK).await {
            Ok(begun) => {
                match (begun.document, &known) {
                    (Some(document), Some(known)) => drop(known.store(document)),
                    (None, Some(known)) => known.invalidate(),
                    _ => {}
                }
                Ok(begun.operation)
            }
            Err(failure) => {
                if let Some(known) = &known {
                    known.invalidate();
                }
                Err(failure)
            }
        }
    }

    async fn delete(&self, step: &Step) -> Result<(), Failure> {
        let Some(group) = step.target.parent() else { return Ok(()) };
        let known = self.observed.public_ips(&group);
        self.repeats.lock().remove(&step.target);
        let begun = {
            let _under_way = UnderWay::announce(&self.under_way);
            let _permit = self.permits.acquire().await;
            self.azure.begin_delete(step, ApiVersion::NETWORK).await
        };
        let operation = match begun {
            Ok(begun) => begun.operation,
            Err(failure) => {
                known.invalidate();
                return Err(failure);
            }
        };
        let Some(operation) = operation else {
            known.remove(step.target.name());
            return Ok(());
        };
        let begin = Instant::now();
        let mut watch = self.azure.watch(&operation);
        let mut pause = watch.first_pause();
        while begin.elapsed() < READY_TIMEOUT {
            match known.get_when(step.target.name(), self.due(pause)).await {
                Ok(None) => {
                    watch.succeeded();
                    return Ok(());
                }
                // The deletion has ended without success: the operation says why.
                Ok(Some(document)) if state(&document) != Progress::Running => {
                    self.azure.outcome(&operation).await?;
                }
                Ok(Some(_)) => {}
                Err(failure) if failure.kind == Kind::Unavailable => {}
                Err(failure) => return Err(failure),
            }
            pause = watch.still_runs();
        }
        let message = format!("{} is still being deleted after a quarter of an hour", step.target);
        Err(Failure::new(Kind::Unavailable, message))
    }

    /// Waits until the list of public IPs is due: after a pause, or if an operation may be done at once, when all Services
    /// that are about to write have written. Services that come one after the other do not read one list each.
    async fn due(&self, pause: Duration) {
        if pause.is_zero() {
            _ = timeout(MAX_GATHERING, self.gathered()).await;
        } else {
            sleep(pause).await;
        }
    }

    /// Waits until no write or deletion is under way, and none comes for a short time.
    async fn gathered(&self) {
        let mut under_way = self.under_way.subscribe();
        while under_way.wait_for(|count| *count == 0).await.is_ok() {
            if timeout(LINGER, under_way.changed()).await.is_err() {
                return;
            }
        }
    }

    /// Waits until no operation runs on these public IPs of one resource group. Known operations determine the time of
    /// the first read; one of another program, seen running a moment ago, is polled as one of unknown duration.
    async fn settled(
        &self,
        ids: &[ResourceId],
        operations: &HashMap<ResourceId, Operation>,
    ) -> Result<(), Failure> {
        let (begin, mut foreign) = (Instant::now(), Polls::unknown());
        let watch = |id| operations.get(id).map(|operation| self.azure.watch(operation));
        let mut running: Vec<_> = ids.iter().map(|id| (id, watch(id))).collect();
        let first = |watch: &mut Option<OperationWatch>| match watch {
            Some(watch) => watch.first_pause(),
            None => foreign.missed(Duration::ZERO),
        };
        let mut pause = running.iter_mut().map(|(_, watch)| watch).map(first).max().unwrap_or_default();
        while let Some((id, _)) = running.first() {
            let Some(known) = self.cache(id) else { return Ok(()) };
            let read = LogicalTime::now();
            known.get_when(id.name(), self.due(std::mem::take(&mut pause))).await?;
            for (id, mut watch) in std::mem::take(&mut running) {
                let document = known.get(id.name(), read).await?;
                match document.map(|document| state(&document)) {
                    Some(Progress::Running) if begin.elapsed() > READY_TIMEOUT => {
                        let message =
                            format!("public IP {} is still not ready after a quarter of an hour", id.name());
                        return Err(Failure::new(Kind::Overdue, message));
                    }
                    Some(Progress::Running) => {
                        let next = match &mut watch {
                            Some(watch) => watch.still_runs(),
                            None => foreign.missed(begin.elapsed()),
                        };
                        pause = pause.max(next);
                        running.push((id, watch));
                    }
                    Some(Progress::Succeeded) => watch.into_iter().for_each(OperationWatch::succeeded),
                    Some(Progress::Failed) | None => {}
                }
            }
        }
        Ok(())
    }

    /// Writes a public IP unchanged, so that Azure completes what failed; skipped while Azure works on it. Does not
    /// wait for the end: a Service that needs the public IP is retried. `load_balancer` refers to it.
    pub(crate) async fn repair(&self, id: &ResourceId, load_balancer: &ResourceId) -> Result<(), Failure> {
        let Some(known) = self.cache(id) else { return Ok(()) };
        let Some(document) = known.get(id.name(), LogicalTime::now()).await? else { return Ok(()) };
        if state(&document) == Progress::Running {
            return Ok(());
        }
        let proof = plans::used_by(&self.cluster, load_balancer);
        match self.write(&plans::repair(id, &document, proof)).await {
            Err(failure) if failure.kind != Kind::Aborted => Err(failure),
            _ => Ok(()),
        }
    }

    /// Makes public IPs keep their addresses when no frontend of this load balancer uses them any more, and waits until
    /// they do.
    pub(crate) async fn keep_addresses(
        &self,
        load_balancer: &ResourceId,
        ids: &[ResourceId],
        on_behalf_of: &[ObjectKey],
    ) -> Result<(), Failure> {
        let (mut written, mut operations) = (Vec::new(), HashMap::new());
        for id in ids {
            let Some(known) = self.cache(id) else { continue };
            let public_ip = known.get(id.name(), LogicalTime::now()).await?;
            let step = public_ip.and_then(|one| {
                let proof = plans::used_by(&self.cluster, load_balancer);
                plans::keep_address(id, &one, on_behalf_of, proof)
            });
            if let Some(step) = step {
                let operation = self.write(&step).await?;
                operations.extend(operation.map(|operation| (id.clone(), operation)));
                written.push(id.clone());
            }
        }
        self.settled(&written, &operations).await
    }

    /// Starts work on the public IPs of one Service.
    pub(crate) fn attempt(&self) -> Attempt<'_> {
        Attempt {
            public_ips: self,
            under_way: Some(UnderWay::announce(&self.under_way)),
            conflicts: 0,
            busy: 0,
            put_off: None,
            operations: HashMap::new(),
            repairs: HashMap::new(),
        }
    }
}

/// Work on one Service's public IPs, with the failed attempts so far.
pub(crate) struct Attempt<'a> {
    public_ips: &'a PublicIps,
    /// Held until it is known whether there is anything to write, and that is sent.
    under_way: Option<UnderWay<'a>>,
    conflicts: u32,
    busy: u32,
    put_off: Option<Duration>,
    operations: HashMap<ResourceId, Operation>,
    repairs: HashMap<ResourceId, u32>,
}

impl Attempt<'_> {
    /// Ends the announcement: the Service will send no further write.
    pub(crate) fn arrived(&mut self) {
        self.under_way = None;
    }

    /// How long to wait before the next try, if Azure asked for it.
    pub(crate) fn put_off(&mut self) -> Option<Duration> {
        self.put_off.take()
    }

    /// Whether to retry after a failure, and after the pause that Azure asks for ([`Self::put_off`]).
    pub(crate) fn should_retry(&mut self, failure: &Failure) -> bool {
        self.arrived();
        match failure.kind {
            Kind::Aborted | Kind::Unknown => {
                self.conflicts += 1;
                self.conflicts <= MAX_CONFLICTS
            }
            Kind::Unavailable => {
                self.busy += 1;
                if self.busy > MAX_BUSY {
                    return false;
                }
                let doubled = self.public_ips.busy.saturating_mul(1 << self.busy.min(10)) / 2;
                self.put_off = self.put_off.max(Some(failure.after.unwrap_or(doubled.min(MAX_WAIT))));
                true
            }
            Kind::NotFound
            | Kind::InvalidArgument
            | Kind::FailedPrecondition
            | Kind::ResourceExhausted
            | Kind::PermissionDenied
            | Kind::Overdue => false,
        }
    }

    /// Writes public IPs in parallel. A lost race is not a failure: the resource is planned again.
    pub(crate) async fn write(
        &mut self,
        steps: &[Step],
        sequence: &mut Sequence,
        notices: &mut Vec<Notice>,
    ) -> Result<(), Failure> {
        const REASON: &str = "CreateOrUpdatePublicIPAddress";
        let owner = Arc::clone(sequence.owner());
        let mut now = Vec::new();
        for step in steps {
            if step.purpose == Purpose::Repair {
                self.repair(step, &owner).await?;
            } else if let Some(notice) = self.is_of_no_use(step, &owner) {
                sequence.accept(step.target.clone());
                notices.push(notice);
                continue;
            }
            now.push(step);
        }
        let results = join_all(now.iter().map(|step| self.public_ips.write(step))).await;
        self.arrived();
        let mut problem: Option<Failure> = None;
        for (step, result) in now.iter().zip(results) {
            match result {
                Ok(operation) => {
                    if step.purpose == Purpose::Change {
                        let mut repeats = self.public_ips.repeats.lock();
                        let repeats = repeats.entry(step.target.clone()).or_default();
                        repeats.written(fingerprint::of([*step]), Instant::now());
                    }
                    self.operations.extend(operation.map(|operation| (step.target.clone(), operation)));
                }
                Err(failure) => problem = Some(failure),
            }
        }
        match problem {
            Some(failure) if !self.should_retry(&failure) => {
                notices.push(warning(&owner, REASON, &failure.message));
                Err(failure)
            }
            _ => Ok(()),
        }
    }

    /// Checks before a failed public IP is written again: if our own write failed, its operation says why.
    async fn repair(&mut self, step: &Step, owner: &ServiceRemoval) -> Result<(), Failure> {
        let refused = [Kind::InvalidArgument, Kind::FailedPrecondition, Kind::PermissionDenied];
        if let Some(operation) = self.operations.remove(&step.target)
            && let Err(failure) = self.public_ips.azure.outcome(&operation).await
            && refused.contains(&failure.kind)
        {
            let notice = warning(owner, "CreateOrUpdatePublicIPAddress", &failure.message);
            return Err(failure.with_notices([notice]));
        }
        let count = self.repairs.entry(step.target.clone()).or_default();
        *count += 1;
        if *count > MAX_REPAIRS {
            let message = format!("public IP {} is in a failed state", step.target.name());
            return Err(Failure::new(Kind::FailedPrecondition, message));
        }
        Ok(())
    }

    /// Whether the same write was made before and did not last; returns the notice for the owner then.
    fn is_of_no_use(&self, step: &Step, owner: &ServiceRemoval) -> Option<Notice> {
        let mut repeats = self.public_ips.repeats.lock();
        let repeats = repeats.get_mut(&step.target)?;
        let Verdict::Wait(wait) = repeats.judge(fingerprint::of([step]), Instant::now()) else { return None };
        let name = step.target.name();
        warn!(public_ip = %step.target, wait_ms = wait.as_millis(),
            "something undoes what is written: the public IP is used as it is");
        let message = format!(
            "public IP {name} does not keep what is written to it ({}): it is used as it is. Look for another \
             program (or a policy) that changes it",
            change::in_words(&step.changes)
        );
        Some(warning(owner, "CreateOrUpdatePublicIPAddress", &message))
    }

    /// Waits until no operation runs on these public IPs.
    pub(crate) async fn settle(&mut self, ids: &[ResourceId]) -> Result<(), Failure> {
        match self.public_ips.settled(ids, &self.operations).await {
            Err(failure) if !self.should_retry(&failure) => Err(failure),
            _ => Ok(()),
        }
    }

    /// Releases public IPs in parallel. A public IP that something else refers to stays, and the Service goes on
    /// without it.
    pub(crate) async fn release(
        &mut self,
        steps: &[Step],
        sequence: &mut Sequence,
        notices: &mut Vec<Notice>,
    ) -> Result<(), Failure> {
        const REASON: &str = "DeletePublicIPAddress";
        let owner = Arc::clone(sequence.owner());
        let public_ips = self.public_ips;
        let work = steps.iter().map(|step| async move {
            match step.action {
                Action::Delete => public_ips.delete(step).await,
                Action::Create | Action::Update => public_ips.write(step).await.map(drop),
            }
        });
        for (step, result) in steps.iter().zip(join_all(work).await) {
            let Err(failure) = result else { continue };
            if failure.has_code("PublicIPAddressCannotBeDeleted") {
                info!(public_ip = %step.target, "public IP kept: something else refers to it");
                notices.push(warning(&owner, REASON, &failure.message));
                sequence.keep(step.target.clone());
            } else if !self.should_retry(&failure) {
                notices.push(warning(&owner, REASON, &failure.message));
                // A deletion that is refused now may be possible later without the Service changing.
                return Err(failure.not_attributable());
            }
        }
        Ok(())
    }
}
