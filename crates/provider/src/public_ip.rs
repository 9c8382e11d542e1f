//! Public IPs: written in parallel, looked after together (`spec/load-balancer.md` 4.8 to 4.11).
//!
//! Nobody polls the operation of a single public IP. Everybody who waits looks at the same list at the same
//! moments: one request tells all states and addresses.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use arm::{ApiVersion, Operation};
use azure_types::{PublicIpAddress, ResourceId};
use cloud::LogicalTime;
use futures::future::join_all;
use planner::public_ip as plans;
use planner::{Action, Cluster, Document, Family, ServiceIntent, ServiceRemoval, Step};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::info;

use crate::azure::Azure;
use crate::collection::Collection;
use crate::failure::{self, Failure, Kind};
use crate::observed::{Observed, State};
use crate::{Notice, ServiceError};

/// How often one Service's public IPs are planned again because somebody else changed them.
const MOST_CHANGES: u32 = 10;
/// How often they are tried again because Azure was busy.
const MOST_BUSY: u32 = 8;
/// How often a failed public IP is written again to repair it.
const MOST_REPAIRS: u32 = 2;
/// How long a public IP may take: far more than Azure ever needs.
const LONGEST: Duration = Duration::from_secs(15 * 60);
/// The longest wait between two tries where Azure does not say how long.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The public IPs of the cluster.
pub(crate) struct PublicIps {
    cluster: Arc<Cluster>,
    azure: Azure,
    observed: Arc<Observed>,
    permits: Semaphore,
    look: Duration,
    busy: Duration,
    origin: Instant,
}

/// The public IPs of one Service, ready to be referred to.
#[derive(Debug, Default)]
pub(crate) struct Secured {
    /// The public IP of each family.
    pub(crate) ids: BTreeMap<Family, ResourceId>,
    /// The addresses; absent where Azure allocates one only when it is used.
    pub(crate) addresses: BTreeMap<Family, Option<IpAddr>>,
    /// Whether something has to be given up once nothing refers to it.
    pub(crate) release: bool,
    /// Whether a public IP can only be created after the release.
    pub(crate) again: bool,
    /// What to tell the Service's owner.
    pub(crate) notices: Vec<Notice>,
}

/// How often something was tried in vain.
#[derive(Default)]
struct Tries {
    changes: u32,
    busy: u32,
}

fn state(public_ip: &PublicIpAddress) -> State {
    State::of(public_ip.properties.as_ref().and_then(|p| p.provisioning_state.as_ref()))
}

/// Whether a public IP may matter to a Service: by tag, by name or by address. Planning for one of hundreds
/// of Services should not copy the public IPs of all of them.
fn concerns(owner: &ServiceRemoval, key: &str, public_ip: &PublicIpAddress) -> bool {
    let name = public_ip.name.as_deref().unwrap_or_default().to_ascii_lowercase();
    let by_name = owner.base_name.as_deref().is_some_and(|base| name.contains(&base.to_ascii_lowercase()))
        || owner.public_ip_names.values().any(|wanted| wanted.eq_ignore_ascii_case(&name));
    let by_tag =
        || public_ip.tags.iter().flatten().any(|(_, value)| value.to_ascii_lowercase().contains(key));
    let by_address = || {
        let text = public_ip.properties.as_ref().and_then(|p| p.ip_address.as_deref());
        let address = text.and_then(|text| text.parse::<IpAddr>().ok());
        address.is_some_and(|address| owner.requested_addresses.values().any(|wanted| *wanted == address))
    };
    by_name || by_tag() || by_address()
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
        look: Duration,
        busy: Duration,
    ) -> Self {
        let permits = Semaphore::new(parallelism.max(1));
        let look = look.max(Duration::from_millis(1));
        Self { cluster, azure, observed, permits, look, busy, origin: Instant::now() }
    }

    /// The resource groups that a Service's public IPs may be in: its own, and the cluster's (4.8).
    fn groups(&self, owner: &ServiceRemoval) -> Vec<ResourceId> {
        let own = self.cluster.network_group(&owner.public_ip_group);
        let of_cluster = self.cluster.network_group(&self.cluster.config.resource_group);
        if own == of_cluster { vec![own] } else { vec![own, of_cluster] }
    }

    fn collection(&self, id: &ResourceId) -> Option<Arc<Collection<PublicIpAddress>>> {
        id.parent().map(|group| self.observed.public_ips(&group))
    }

    /// The public IPs that a Service may have to do with.
    pub(crate) async fn concerning(
        &self,
        owner: &ServiceRemoval,
        newer_than: LogicalTime,
    ) -> Result<Vec<PublicIpAddress>, Failure> {
        let key = owner.key.to_string().to_ascii_lowercase();
        let mut found = Vec::new();
        for group in self.groups(owner) {
            let all = self.observed.public_ips(&group).all(newer_than).await?;
            found.extend(
                all.iter().filter(|ip| concerns(owner, &key, ip)).map(|ip| PublicIpAddress::clone(ip)),
            );
        }
        Ok(found)
    }

    /// All public IPs of the resource groups in use.
    pub(crate) async fn known(&self, newer_than: LogicalTime) -> Result<Vec<PublicIpAddress>, Failure> {
        let mut found = Vec::new();
        for known in self.observed.all_public_ips() {
            found.extend(known.all(newer_than).await?.iter().map(|ip| PublicIpAddress::clone(ip)));
        }
        Ok(found)
    }

    /// The next of the moments at which everybody looks.
    async fn tick(&self) {
        let step = self.look.as_nanos().max(1);
        let passed = self.origin.elapsed().as_nanos();
        let next = step - passed % step;
        sleep_until(Instant::now() + Duration::from_nanos(u64::try_from(next).unwrap_or(u64::MAX))).await;
    }

    async fn write(&self, step: &Step) -> Result<Option<Operation>, Failure> {
        let _permit = self.permits.acquire().await;
        let known = self.collection(&step.target);
        match self.azure.begin_put::<PublicIpAddress>(step, ApiVersion::NETWORK).await {
            Ok(begun) => {
                match (begun.document, &known) {
                    (Some(document), Some(known)) => drop(known.store(document)),
                    (None, Some(known)) => known.distrust(),
                    _ => {}
                }
                Ok(begun.operation)
            }
            Err(failure) => {
                if let Some(known) = &known {
                    known.distrust();
                }
                Err(failure)
            }
        }
    }

    async fn delete(&self, step: &Step) -> Result<(), Failure> {
        let Some(known) = self.collection(&step.target) else { return Ok(()) };
        let begun = {
            let _permit = self.permits.acquire().await;
            self.azure.begin_delete(step, ApiVersion::NETWORK).await
        };
        let operation = match begun {
            Ok(begun) => begun.operation,
            Err(failure) => {
                known.distrust();
                return Err(failure);
            }
        };
        let Some(operation) = operation else {
            known.remove(step.target.name());
            return Ok(());
        };
        let begin = Instant::now();
        while begin.elapsed() < LONGEST {
            self.tick().await;
            match known.one(step.target.name(), LogicalTime::now()).await {
                Ok(None) => return Ok(()),
                // It stands again: the operation tells why.
                Ok(Some(document)) if state(&document) != State::Running => {
                    self.azure.outcome(&operation).await?;
                }
                Ok(Some(_)) => {}
                Err(failure) if failure.kind == Kind::Busy => {}
                Err(failure) => return Err(failure),
            }
        }
        let message = format!("{} is still being deleted after a quarter of an hour", step.target);
        Err(Failure::new(Kind::Busy, message))
    }

    /// Waits until no operation runs on these public IPs.
    async fn settled(&self, ids: &[ResourceId]) -> Result<(), Failure> {
        let begin = Instant::now();
        let mut waiting = ids.iter();
        let mut current = waiting.next();
        while let Some(id) = current {
            let Some(known) = self.collection(id) else { return Ok(()) };
            self.tick().await;
            let document = known.one(id.name(), LogicalTime::now()).await?;
            if !document.is_some_and(|document| state(&document) == State::Running) {
                current = waiting.next();
            } else if begin.elapsed() > LONGEST {
                let message =
                    format!("public IP {} is still not ready after a quarter of an hour", id.name());
                return Err(Failure::new(Kind::Denied, message));
            }
        }
        Ok(())
    }

    /// Whether it makes sense to go on after a failure; waits as long as Azure asks.
    async fn survives(&self, failure: &Failure, tries: &mut Tries) -> bool {
        match failure.kind {
            Kind::Changed | Kind::Unanswered => {
                tries.changes += 1;
                tries.changes <= MOST_CHANGES
            }
            Kind::Busy => {
                tries.busy += 1;
                if tries.busy > MOST_BUSY {
                    return false;
                }
                let doubled = self.busy.saturating_mul(1 << tries.busy.min(10)) / 2;
                sleep(failure.after.unwrap_or(doubled.min(LONGEST_WAIT))).await;
                true
            }
            Kind::Missing | Kind::Refused | Kind::Limited | Kind::Denied => false,
        }
    }

    /// Brings a Service's public IPs to what it wants and waits until they may be referred to.
    pub(crate) async fn secure(
        &self,
        intent: &ServiceIntent,
        newer_than: LogicalTime,
    ) -> Result<Secured, ServiceError> {
        const REASON: &str = "CreateOrUpdatePublicIPAddress";
        let owner = intent.removal();
        let mut newer_than = newer_than;
        let mut tries = Tries::default();
        let mut operations: HashMap<ResourceId, Operation> = HashMap::new();
        let mut repairs: HashMap<ResourceId, u32> = HashMap::new();
        loop {
            let observed = match self.concerning(owner, newer_than).await {
                Ok(observed) => observed,
                Err(failure) if self.survives(&failure, &mut tries).await => continue,
                Err(failure) => return Err(failure.into_service_error(Vec::new())),
            };
            newer_than = LogicalTime::BEGINNING;
            let plan = plans::plan(&self.cluster, intent, &observed)
                .map_err(|refusal| failure::of_refusal(refusal, Vec::new()))?;
            let mut steps = plan.ensure.clone();
            let mut running = Vec::new();
            if steps.is_empty() {
                for id in plan.use_ids.values() {
                    let Some(document) = observed.iter().find(|document| document.id.as_ref() == Some(id))
                    else {
                        continue;
                    };
                    match state(document) {
                        State::Succeeded => {}
                        State::Running => running.push(id.clone()),
                        State::Failed => {
                            if let Some(operation) = operations.remove(id)
                                && let Err(failure) = self.azure.outcome(&operation).await
                                && matches!(failure.kind, Kind::Refused | Kind::Limited | Kind::Denied)
                            {
                                let notice = warning(owner, REASON, &failure.message);
                                return Err(failure.into_service_error(vec![notice]));
                            }
                            let count = repairs.entry(id.clone()).or_default();
                            *count += 1;
                            if *count > MOST_REPAIRS {
                                let message = format!("public IP {} is in a failed state", id.name());
                                return Err(failure::retry(message, None));
                            }
                            steps.push(repair_step(id, document, owner));
                        }
                    }
                }
            }
            if !steps.is_empty() {
                let results = join_all(steps.iter().map(|step| self.write(step))).await;
                let mut problem: Option<Failure> = None;
                for (step, result) in steps.iter().zip(results) {
                    match result {
                        Ok(Some(operation)) => drop(operations.insert(step.target.clone(), operation)),
                        Ok(None) => {}
                        Err(failure) => problem = Some(failure),
                    }
                }
                if let Some(failure) = problem
                    && !self.survives(&failure, &mut tries).await
                {
                    let notice = warning(owner, REASON, &failure.message);
                    return Err(failure.into_service_error(vec![notice]));
                }
                continue;
            }
            if running.is_empty() {
                return Ok(Secured {
                    ids: plan.use_ids,
                    addresses: plan.addresses,
                    release: !plan.release.is_empty(),
                    again: plan.again,
                    notices: plan.notices,
                });
            }
            match self.settled(&running).await {
                Ok(()) => {}
                Err(failure) if self.survives(&failure, &mut tries).await => {}
                Err(failure) => return Err(failure.into_service_error(Vec::new())),
            }
        }
    }

    /// Gives up what a Service no longer uses (or, with `intent` absent, everything that it has).
    pub(crate) async fn release(
        &self,
        owner: &ServiceRemoval,
        intent: Option<&ServiceIntent>,
        newer_than: LogicalTime,
    ) -> Result<Vec<Notice>, ServiceError> {
        const REASON: &str = "DeletePublicIPAddress";
        let mut newer_than = newer_than;
        let mut tries = Tries::default();
        let mut kept: BTreeSet<ResourceId> = BTreeSet::new();
        let mut notices = Vec::new();
        loop {
            let observed = match self.concerning(owner, newer_than).await {
                Ok(observed) => observed,
                Err(failure) if self.survives(&failure, &mut tries).await => continue,
                Err(failure) => return Err(failure.into_service_error(notices)),
            };
            newer_than = LogicalTime::BEGINNING;
            let plan = match intent {
                Some(intent) => plans::plan(&self.cluster, intent, &observed)
                    .map_err(|refusal| failure::of_refusal(refusal, Vec::new()))?,
                None => plans::plan_removal(&self.cluster, owner, &observed),
            };
            let steps: Vec<Step> =
                plan.release.into_iter().filter(|step| !kept.contains(&step.target)).collect();
            if steps.is_empty() {
                return Ok(notices);
            }
            let work = steps.iter().map(|step| async move {
                match step.action {
                    Action::Delete => self.delete(step).await,
                    Action::Create | Action::Update => self.write(step).await.map(drop),
                }
            });
            let results = join_all(work).await;
            for (step, result) in steps.iter().zip(results) {
                let Err(failure) = result else { continue };
                if failure.message.contains("PublicIPAddressCannotBeDeleted") {
                    // Something else refers to it: the Service may go all the same (4.11).
                    info!(public_ip = %step.target, "kept, because something else refers to it");
                    notices.push(warning(owner, REASON, &failure.message));
                    kept.insert(step.target.clone());
                } else if !self.survives(&failure, &mut tries).await {
                    notices.push(warning(owner, REASON, &failure.message));
                    return Err(match failure.kind {
                        // A deletion that is refused now may be possible later without the Service changing.
                        Kind::Refused => Failure { kind: Kind::Denied, ..failure },
                        _ => failure,
                    }
                    .into_service_error(notices));
                }
            }
        }
    }

    /// Writes a public IP as it is, so that Azure finishes what it failed to do, and waits until it is ready
    /// (3.6).
    pub(crate) async fn repair(&self, id: &ResourceId) -> Result<(), Failure> {
        let Some(known) = self.collection(id) else { return Ok(()) };
        let begin = Instant::now();
        let mut written = false;
        while begin.elapsed() < LONGEST {
            let Some(document) = known.one(id.name(), LogicalTime::now()).await? else { return Ok(()) };
            match state(&document) {
                State::Running => self.tick().await,
                State::Succeeded if written => return Ok(()),
                State::Failed if written => break,
                State::Succeeded | State::Failed => {
                    let step = Step { on_behalf_of: Vec::new(), ..repair_of(id, &document) };
                    match self.write(&step).await {
                        Ok(_) => written = true,
                        Err(failure) if failure.kind == Kind::Changed => {}
                        Err(failure) => return Err(failure),
                    }
                }
            }
        }
        Err(Failure::new(Kind::Busy, format!("public IP {} does not become ready", id.name())))
    }
}

fn repair_of(id: &ResourceId, document: &PublicIpAddress) -> Step {
    Step {
        action: Action::Update,
        target: id.clone(),
        if_match: document.etag.clone(),
        document: Some(Document::PublicIp(Box::new(document.clone()))),
        changes: vec!["repair: written as it is, because Azure did not finish it".to_owned()],
        on_behalf_of: Vec::new(),
    }
}

fn repair_step(id: &ResourceId, document: &PublicIpAddress, owner: &ServiceRemoval) -> Step {
    Step { on_behalf_of: vec![owner.key.clone()], ..repair_of(id, document) }
}
