//! The list of a machine's data disks, as a shared resource with one writer.
//!
//! The list is read anew for what arrives after the last reading, and written under the version that was read: another writer's
//! change makes Azure refuse the write, and it is planned again. Callers are answered by what Azure's list shows afterwards.

use std::collections::BTreeSet;
use std::collections::hash_map::DefaultHasher;
use std::convert::Infallible;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use arm::{Accepted, ApiVersion, Class, Error};
use async_trait::async_trait;
use azure_types::ResourceId;
use logical_time::LogicalTime;
use parking_lot::Mutex;
use serde_json::Value;
use telemetry::metrics::MachineDiskMetrics;
use tokio::time::{Instant, sleep};
use volume_planner::attach::disk_list::{AttachOutcome, DetachOutcome, ListPlan, plan};
use volume_planner::attach::intent::{Attach, Detach};
use volume_planner::attach::machine::{Machine, list_document, manager_id};
use volume_planner::disk::observed::ObservedDisk;
use volume_planner::id::DiskId;
use volume_planner::{Code, Refusal};
use writer::{Failure, Kind, Planned, Resource, Scope, Written};

use super::intent::DiskIntent;
use super::observed::{ObservedMachine, disks};
use super::on_the_way::{Expected, OnTheWay};
use super::waiting::Urgency;
use crate::controller::azure::{Azure, Connection, Sizes, is_gone, says_full, was_canceled};
use crate::controller::kubernetes::KubernetesView;

/// Azure allows twelve reads of a machine in a minute.
const BETWEEN_READS: Duration = Duration::from_secs(5);

/// The list of one machine.
pub(crate) struct DiskList {
    machine: ResourceId,
    /// The node's name in Kubernetes.
    node: String,
    is_stack: bool,
    azure: Azure,
    view: KubernetesView,
    sizes: Sizes,
    metrics: MachineDiskMetrics,
    pub(super) urgency: Urgency,
    pub(super) expected: Expected,
    /// The latest state, and what it is newer than.
    latest: Mutex<Option<(LogicalTime, ObservedMachine)>>,
    /// Disks that were just proven not to exist, for the plan that follows. Azure refuses every list with one of them.
    absent: Mutex<BTreeSet<DiskId>>,
}

/// A list that is to be written.
#[derive(Debug)]
pub(crate) struct ListWrite {
    data_disks: Vec<Value>,
    /// The disks that it attaches or detaches, and the numbers of the requests.
    concerned: Vec<(DiskId, u64)>,
    is_forced: bool,
}

impl DiskList {
    pub(super) fn new(
        machine: ResourceId,
        node: String,
        is_stack: bool,
        azure: Azure,
        view: KubernetesView,
        sizes: Sizes,
        metrics: MachineDiskMetrics,
    ) -> Self {
        Self {
            machine,
            node,
            is_stack,
            azure,
            view,
            sizes,
            metrics,
            urgency: Urgency::default(),
            expected: Expected::default(),
            latest: Mutex::default(),
            absent: Mutex::default(),
        }
    }

    async fn read(&self) -> Result<ObservedMachine, Failure> {
        let begun = LogicalTime::now();
        let client = &self.connection().await?.client;
        let document: Value =
            client.get(&self.machine, ApiVersion::COMPUTE, Class::Delete).await.map_err(failed)?;
        let observed = ObservedMachine::of(&document);
        *self.latest.lock() = Some((begun, observed.clone()));
        Ok(observed)
    }

    async fn connection(&self) -> Result<Arc<Connection>, Failure> {
        let without =
            |status: tonic::Status| Failure::new(Kind::PermissionDenied, status.message().to_owned());
        self.azure.connection().await.map_err(without)
    }

    fn facts(&self, observed: &ObservedMachine) -> Machine {
        Machine {
            id: self.machine.clone(),
            capacity: self.sizes.max_data_disks(observed.size.as_deref()),
            reserved_luns: self.view.luns_of(&self.node),
            os_encryption_set: observed.os_encryption_set.clone(),
            has_ultra: observed.has_ultra,
            is_stack: self.is_stack,
            absent_disks: observed.absent_disks.clone(),
        }
    }

    /// A disk; `None` if it does not exist.
    async fn disk(&self, disk: &DiskId) -> Result<Option<Value>, Failure> {
        let client = &self.connection().await?.client;
        client.get_optional(disk.resource(), ApiVersion::DISKS, Class::Delete).await.map_err(failed)
    }

    /// Whether a disk is where the operation on the machine brings it; `None` if it cannot be read.
    async fn has_arrived(&self, moved: &OnTheWay) -> Option<bool> {
        let document = self.disk(&moved.disk).await.ok()??;
        let managers = ObservedDisk(&document).all_managers();
        let is_here = managers.iter().map(manager_id).any(|manager| manager == self.machine);
        Some(is_here != moved.leaves)
    }

    /// The first disk that the operation on the machine still moves. What is there already is moved by none.
    async fn moved(&self, observed: &ObservedMachine, arrived: &mut BTreeSet<OnTheWay>) -> Option<OnTheWay> {
        for candidate in self.expected.on_the_way(observed) {
            if !arrived.contains(&candidate) && self.has_arrived(&candidate).await == Some(false) {
                return Some(candidate);
            }
            arrived.insert(candidate);
        }
        None
    }

    /// Waits until the operation on the machine may be done: until a disk that it moves has arrived, at most for the pause between two
    /// reads of the machine.
    async fn rest(&self, observed: &ObservedMachine, arrived: &mut BTreeSet<OnTheWay>) {
        let moved = self.moved(observed, arrived).await;
        sleep(BETWEEN_READS / 2).await;
        let Some(moved) = moved else { return sleep(BETWEEN_READS / 2).await };
        match self.has_arrived(&moved).await {
            Some(true) => drop(arrived.insert(moved)),
            _ => sleep(BETWEEN_READS / 2).await,
        }
    }

    /// The disks of the list that do not exist, after Azure did not find something.
    async fn absent_of(&self, list: &[Value]) -> Result<BTreeSet<DiskId>, Failure> {
        let mut absent = BTreeSet::new();
        for (disk, _) in disks(list) {
            if self.disk(&disk).await?.is_none() {
                tracing::warn!(machine = %self.machine, %disk, "a disk in a machine's list does not exist: it is left out");
                absent.insert(disk);
            }
        }
        Ok(absent)
    }

    /// Sends the list, and waits until Azure has applied it.
    async fn send(&self, observed: &ObservedMachine, write: &ListWrite) -> Result<(), Failure> {
        let client = self.connection().await?.client.giving_faults_back();
        let document = list_document(&self.machine, &observed.location, write.data_disks.clone());
        let etag = observed.etag.as_deref();
        let accepted: Accepted<Value> = client
            .put(&self.machine, ApiVersion::COMPUTE, &document, etag, Class::Delete)
            .await
            .map_err(failed)?;
        let Some(operation) = accepted.operation else { return Ok(()) };
        let superseded = || Failure::new(Kind::Aborted, "a forced detach takes the place of this write");
        let ended = self.urgency.unless_urgent(client.wait(&operation)).await.ok_or_else(superseded)?;
        ended.map_err(failed)
    }
}

/// A failed call for the writer.
fn failed(error: Error) -> Failure {
    let (gone, canceled, full) = (is_gone(&error), was_canceled(&error), says_full(&error));
    let failure = Failure::of(error, &[]);
    let (kind, scope) = match failure.kind {
        _ if gone => (Kind::NotFound, Scope::All),
        // A cancellation is about none of the disks: all are planned again.
        _ if canceled => (Kind::Aborted, Scope::All),
        _ if full => (Kind::ResourceExhausted, Scope::Unclear),
        kind => (kind, failure.scope),
    };
    Failure { kind, scope, ..failure }
}

/// A refusal of the planner for the writer.
fn refused(refusal: &Refusal) -> Failure {
    let kind = match refusal.code() {
        Code::InvalidArgument | Code::OutOfRange | Code::AlreadyExists => Kind::InvalidArgument,
        Code::NotFound => Kind::NotFound,
        Code::PermissionDenied => Kind::PermissionDenied,
        Code::ResourceExhausted => Kind::ResourceExhausted,
        Code::FailedPrecondition => Kind::FailedPrecondition,
        Code::Aborted => Kind::Aborted,
        Code::Internal | Code::Unavailable => Kind::Unavailable,
    };
    Failure::new(kind, refusal.to_string())
}

/// The intents of a batch, and of each disk the number of its request.
fn split(batch: &[(DiskId, DiskIntent)]) -> (Vec<Attach>, Vec<Detach>) {
    let (mut attaches, mut detaches) = (Vec::new(), Vec::new());
    for (_, intent) in batch {
        match intent {
            DiskIntent::Attach(attach) => attaches.push((**attach).clone()),
            DiskIntent::Detach { detach, .. } => detaches.push(detach.clone()),
        }
    }
    (attaches, detaches)
}

#[async_trait]
impl Resource for DiskList {
    type Key = DiskId;
    type Intent = DiskIntent;
    type Observed = ObservedMachine;
    type Write = ListWrite;
    type Claim = ();
    type Notice = Infallible;

    fn name(&self) -> String {
        format!("machine {}", self.node)
    }

    async fn observe(&self, newer_than: LogicalTime) -> Result<ObservedMachine, Failure> {
        let latest = self.latest.lock().clone().filter(|(begun, _)| *begun > newer_than);
        let mut observed = match latest {
            Some((_, observed)) => observed,
            None => self.read().await?,
        };
        let mut arrived = BTreeSet::new();
        while observed.is_working() && !self.urgency.is_announced() {
            if observed.is_being_deleted() {
                return Err(Failure::new(Kind::NotFound, format!("machine {} is being deleted", self.node)));
            }
            self.urgency.unless_urgent(self.rest(&observed, &mut arrived)).await;
            observed = self.read().await?;
        }
        observed.absent_disks = std::mem::take(&mut *self.absent.lock());
        Ok(observed)
    }

    fn claim(&self, _: &ObservedMachine, _: &[(DiskId, DiskIntent)]) {}

    fn plan(&self, observed: &ObservedMachine, batch: &[(DiskId, DiskIntent)], _: &()) -> Planned<Self> {
        let (attaches, detaches) = split(batch);
        let ListPlan { data_disks, attaches, detaches } =
            plan(&observed.data_disks, &attaches, &detaches, &self.facts(observed));
        // Nothing works on the machine: a detach that Azure has begun has failed, and so may an attach after a failure.
        let is_due = |disk: &DiskId| match (attaches.get(disk), detaches.get(disk)) {
            (_, Some(DetachOutcome::Requested | DetachOutcome::Leaving))
            | (Some(AttachOutcome::Added(_)), _) => true,
            (Some(AttachOutcome::Present(_)), _) => observed.has_failed(),
            _ => false,
        };
        let concerned: Vec<_> = batch
            .iter()
            .filter(|(disk, _)| is_due(disk))
            .map(|(disk, intent)| (disk.clone(), intent.arrival()))
            .collect();
        let is_forced = batch.iter().any(|(disk, intent)| intent.is_forced() && is_due(disk));
        let write = (data_disks.is_some() || !concerned.is_empty()).then(|| ListWrite {
            data_disks: data_disks.unwrap_or_else(|| observed.data_disks.clone()),
            concerned,
            is_forced,
        });
        let refused = attaches.into_iter().filter_map(|(disk, outcome)| match outcome {
            AttachOutcome::Refused(refusal) => Some((disk, refused(&refusal))),
            _ => None,
        });
        Planned { write, refused: refused.collect(), notices: Vec::new() }
    }

    async fn write(
        &self,
        observed: &ObservedMachine,
        write: &ListWrite,
    ) -> Result<Written<ObservedMachine>, Failure> {
        let disks: Vec<String> = write.concerned.iter().map(|(disk, _)| disk.name().to_owned()).collect();
        let begun = Instant::now();
        let sent = self.send(observed, write).await;
        self.metrics.written(write.concerned.len(), begun.elapsed(), sent.is_ok());
        match &sent {
            Ok(()) => {
                tracing::info!(
                    node = self.node,
                    disks = disks.join(","),
                    is_forced = write.is_forced,
                    "wrote a machine's list of disks"
                );
            }
            Err(failure) => {
                tracing::warn!(node = self.node, disks = disks.join(","), error = %failure.message,
                    "a write of a machine's list of disks failed");
            }
        }
        let Err(failure) = sent else { return Ok(Written::Whole(self.read().await?)) };
        *self.latest.lock() = None;
        if !failure.is_not_found() {
            return Err(failure);
        }
        let absent = self.absent_of(&write.data_disks).await?;
        if absent.is_empty() {
            return Err(failure);
        }
        let mut hasher = DefaultHasher::new();
        absent.hash(&mut hasher);
        *self.absent.lock() = absent;
        Ok(Written::Prepared { what: hasher.finish() })
    }

    /// A request that is made again is a new one, although its list may be one that was written before.
    fn fingerprint(&self, write: &ListWrite) -> u64 {
        let mut hasher = DefaultHasher::new();
        write.concerned.hash(&mut hasher);
        for entry in &write.data_disks {
            entry.to_string().hash(&mut hasher);
        }
        hasher.finish()
    }

    fn concerned(&self, write: &ListWrite, _: &[(DiskId, DiskIntent)]) -> Vec<DiskId> {
        write.concerned.iter().map(|(disk, _)| disk.clone()).collect()
    }

    fn blame(&self, message: &str, batch: &[(DiskId, DiskIntent)]) -> Vec<DiskId> {
        let message = message.to_lowercase();
        let names = |disk: &DiskId| {
            let quoted =
                |mark: char| message.contains(&format!("{mark}{}{mark}", disk.name().to_lowercase()));
            message.contains(&disk.to_string().to_lowercase()) || quoted('\'') || quoted('"')
        };
        batch.iter().map(|(disk, _)| disk).filter(|disk| names(disk)).cloned().collect()
    }

    /// Kubernetes may want something else by then, and asks again if it does not.
    fn outlives_its_caller(&self, _: &DiskIntent) -> bool {
        false
    }

    fn is_urgent(&self, _: &DiskId) -> bool {
        self.urgency.is_announced()
    }
}
