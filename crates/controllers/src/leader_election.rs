//! Leader election: client-go's protocol over a Lease, so that a Go and a Rust replica can hold the same Lease in turn.
//!
//! * Every write replaces the whole object, on condition of the resource version that was read: of two candidates that
//!   saw the same state, one gets 409.
//! * Each process decides by its own clock whether a holder has expired: the holder's record must not have changed for
//!   its duration *since this process first saw it*. The times inside the record are for people, and clocks of
//!   different machines are never compared.
//! * A leader that cannot renew until the renew deadline, counted from its last success, stops leading, before others
//!   may start.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use k8s::ObjectMeta;
use k8s::api::api::coordination::v1::{Lease, LeaseSpec};
use k8s::api::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::PostParams;
use kube::{Api, Client};
use parking_lot::Mutex;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::api::{ApiError, call_within};
use crate::events::{self, Reference};
use crate::health::HealthCheck;
use crate::observer::Observer;
use clock::Clock;

/// Maximum jitter: candidates wait between attempts for the retry period times 1 to 1 + `JITTER`.
const JITTER: f64 = 1.2;

/// How long after the lease's duration a leader that does not renew is reported as unhealthy.
const HEALTH_TOLERANCE: Duration = Duration::from_secs(20);

/// How long it may take to release the Lease and to send the last events. Together with the time that the controllers
/// take to end ([`crate::Options::drain`] and what follows it) it stays within 20 s.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(3);

/// Maximum number of attempts to release the Lease while others write it. Candidates write it only once it has expired,
/// so a second conflict is rare already; a Lease that is not released expires.
const MAX_RELEASE_ATTEMPTS: u32 = 3;

/// The Lease, the candidate, and the timing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The Lease's namespace (`--leader-elect-resource-namespace`).
    pub namespace: String,
    /// The Lease's name (`--leader-elect-resource-name`).
    pub name: String,
    /// This process, in the format of [`identity`].
    pub identity: String,
    /// The program, as the source of events.
    pub component: &'static str,
    /// How long candidates wait for a silent leader (`--leader-elect-lease-duration`).
    pub lease_duration: Duration,
    /// How long after its last success a leader stops (`--leader-elect-renew-deadline`).
    pub renew_deadline: Duration,
    /// Interval between attempts (`--leader-elect-retry-period`).
    pub retry_period: Duration,
}

impl Config {
    /// Upstream's defaults: `kube-system/cloud-controller-manager`, 15 s, 10 s, 2 s.
    pub fn new(identity: impl Into<String>) -> Self {
        Self {
            namespace: "kube-system".to_owned(),
            name: "cloud-controller-manager".to_owned(),
            identity: identity.into(),
            component: "cloud-controller-manager",
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }

    /// Checks that the three durations allow only one leader at a time.
    pub fn validate(&self) -> Result<(), Error> {
        let seconds = Duration::as_secs_f64;
        let (lease, renew, retry) = (self.lease_duration, self.renew_deadline, self.retry_period);
        let problem = if self.identity.is_empty() {
            "the identity is empty; replicas need different identities".to_owned()
        } else if lease < Duration::from_secs(1) {
            format!(
                "--leader-elect-lease-duration={}s is below 1s, the unit that a Lease counts in; raise it",
                seconds(&lease)
            )
        } else if retry.is_zero() {
            "--leader-elect-retry-period=0s would try without a pause; raise it".to_owned()
        } else if lease <= renew {
            format!(
                "--leader-elect-lease-duration={}s must be longer than --leader-elect-renew-deadline={}s, \
                 or two replicas could lead at once",
                seconds(&lease),
                seconds(&renew)
            )
        } else if renew <= retry.mul_f64(JITTER) {
            format!(
                "--leader-elect-renew-deadline={}s must be longer than {JITTER} times \
                 --leader-elect-retry-period={}s, or a leader could miss its only attempt",
                seconds(&renew),
                seconds(&retry)
            )
        } else {
            return Ok(());
        };
        Err(Error::Config(problem))
    }
}

/// A unique name for this process: `<hostname>_<uuid>`.
pub fn identity(hostname: &str) -> String {
    format!("{hostname}_{}", uuid::Uuid::new_v4())
}

/// A seed for the jitter of the candidate with this name. Process ids are not sufficient: in a container each is 1.
fn seed_of(identity: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    identity.hash(&mut hasher);
    hasher.finish()
}

/// Why leadership ended, or never began.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// The configuration cannot work; the text names the flag and the remedy.
    #[error("leader election: {0}")]
    Config(String),
    /// The Lease could not be renewed in time, or another process holds it: this process must not continue.
    #[error("leaderelection lost: {0}")]
    Lost(String),
}

/// The result of one attempt.
#[derive(Debug, PartialEq, Eq)]
enum Attempt {
    Leads,
    HeldBy(String),
}

/// A record and when this process first saw it.
#[derive(Debug)]
struct ObservedLease {
    lease: Lease,
    at: Instant,
}

/// A candidate.
pub struct Elector {
    client: Client,
    api: Api<Lease>,
    config: Config,
    clock: Clock,
    observer: Arc<dyn Observer>,
    rng: SmallRng,
    observed: Option<ObservedLease>,
    /// When the leading process last renewed; `None` while it does not lead.
    renewed: Arc<Mutex<Option<Instant>>>,
}

impl std::fmt::Debug for Elector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Elector").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Elector {
    /// A candidate. The client should be built with `default_retry = false`: a late retry of a write by a lower layer
    /// is worse than an error here.
    pub fn new(
        client: Client,
        config: Config,
        clock: Clock,
        observer: Arc<dyn Observer>,
    ) -> Result<Self, Error> {
        config.validate()?;
        Ok(Self {
            api: Api::namespaced(client.clone(), &config.namespace),
            client,
            rng: SmallRng::seed_from_u64(seed_of(&config.identity)),
            config,
            clock,
            observer,
            observed: None,
            renewed: Arc::default(),
        })
    }

    /// The check `leaderElection`: fails if this process leads and has not renewed for the lease's duration and 20 s
    /// more.
    pub fn health_check(&self) -> HealthCheck {
        let (renewed, limit) = (Arc::clone(&self.renewed), self.config.lease_duration + HEALTH_TOLERANCE);
        HealthCheck::new("leaderElection", move || match *renewed.lock() {
            Some(at) if at.elapsed() > limit => {
                Err(format!("the lease was not renewed for {} s", at.elapsed().as_secs()))
            }
            _ => Ok(()),
        })
    }

    /// Waits until this process leads, then runs `lead` while it does.
    ///
    /// `lead` gets `stop`, and its end releases the Lease, so that another replica can start at once. Returns `None` if
    /// `stop` came before this process led. If the Lease is lost, `lead` is dropped immediately: another process may
    /// already be leading.
    pub async fn run<T, R>(
        mut self,
        stop: CancellationToken,
        lead: impl FnOnce(CancellationToken) -> R,
    ) -> Result<Option<T>, Error>
    where
        R: Future<Output = T>,
    {
        let (recorder, writer) = events::recorder(
            self.client.clone(),
            self.clock.clone(),
            "",
            self.config.component,
            Arc::clone(&self.observer),
        );
        let ended = CancellationToken::new();
        let writer = tokio::spawn(writer.run(ended.clone()));
        self.observer.leading(&self.config.name, false);
        if self.acquire(&stop).await {
            let about = self.reference();
            let identity = self.config.identity.clone();
            tracing::info!(lease = %self.config.name, identity, "became leader");
            recorder.normal(about.clone(), "LeaderElection", format!("{identity} became leader"));
            self.observer.leading(&self.config.name, true);
            let outcome = tokio::select! {
                biased;
                lost = self.renew() => Err(lost),
                value = lead(stop) => Ok(Some(value)),
            };
            *self.renewed.lock() = None;
            self.observer.leading(&self.config.name, false);
            recorder.normal(about, "LeaderElection", format!("{identity} stopped leading"));
            let release = outcome.is_ok();
            self.close(release, &ended, writer).await;
            outcome
        } else {
            self.close(false, &ended, writer).await;
            Ok(None)
        }
    }

    /// Releases the Lease, if this process still holds it, and sends the last events.
    async fn close(&mut self, release: bool, ended: &CancellationToken, writer: JoinHandle<()>) {
        ended.cancel();
        let closing = async {
            let released = async {
                if release {
                    self.release().await;
                }
            };
            let (written, ()) = tokio::join!(writer, released);
            if let Err(error) = written {
                tracing::warn!(%error, "the writer of events ended early");
            }
        };
        if timeout(CLOSING_TIMEOUT, closing).await.is_err() {
            tracing::warn!("stopped without an answer from the API server; the lease expires by itself");
        }
    }

    fn reference(&self) -> Reference {
        let metadata = self.observed.as_ref().map(|observed| &observed.lease.metadata);
        Reference::lease(metadata.unwrap_or(&ObjectMeta::default()))
    }

    /// Tries until this process leads; `false` if `stop` came first.
    async fn acquire(&mut self, stop: &CancellationToken) -> bool {
        let mut waits_for = String::new();
        while !stop.is_cancelled() {
            // The stop never interrupts an attempt: its write might still arrive.
            match self.attempt().await {
                Ok(Attempt::Leads) => return true,
                // Logged once for each leader: a standby is silent otherwise.
                Ok(Attempt::HeldBy(holder)) if holder != waits_for => {
                    tracing::info!(lease = %self.config.name, leader = holder, "waiting to become leader");
                    waits_for = holder;
                }
                Ok(Attempt::HeldBy(_)) => {}
                Err(error) => tracing::warn!(%error, "failed to acquire the lease, trying again"),
            }
            let pause = self.config.retry_period.mul_f64(1.0 + self.rng.random::<f64>() * JITTER);
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
        false
    }

    /// Renews until the last success is as old as the renew deadline, or another process holds the Lease. Candidates
    /// count from the last write that they saw, so the deadline counts from there, too.
    async fn renew(&mut self) -> Error {
        let mut problem = "no answer from the API server".to_owned();
        loop {
            let renewed = *self.renewed.lock();
            let deadline = renewed.unwrap_or_else(Instant::now) + self.config.renew_deadline;
            let next = Instant::now() + self.config.retry_period;
            if next >= deadline {
                tokio::time::sleep_until(deadline).await;
                let seconds = self.config.renew_deadline.as_secs_f64();
                return Error::Lost(format!("not renewed for {seconds} s: {problem}"));
            }
            tokio::time::sleep_until(next).await;
            match timeout_at(deadline, self.attempt()).await {
                Ok(Ok(Attempt::Leads)) | Err(_) => {}
                Ok(Ok(Attempt::HeldBy(holder))) => {
                    return Error::Lost(format!("{holder} holds the lease"));
                }
                Ok(Err(error)) => {
                    tracing::warn!(%error, "failed to renew the lease, trying again");
                    problem = error.to_string();
                }
            }
        }
    }

    /// Tries once to become or to stay the leader.
    async fn attempt(&mut self) -> Result<Attempt, ApiError> {
        // The leader knows the Lease's contents and skips the read, unless another process has written.
        if let Some(observed) = &self.observed
            && self.is_mine(&observed.lease)
            && !self.is_expired(observed)
        {
            let next = self.next(&observed.lease);
            match self.replace(next).await {
                Ok(()) => return Ok(Attempt::Leads),
                Err(error) => {
                    tracing::debug!(%error, "renewing without a read failed");
                    self.observer.leader_election_slow_path(&self.config.name);
                }
            }
        }
        let Some(lease) = self.read().await? else {
            return match self.create().await {
                Err(error) if error.is_conflict() => Ok(Attempt::HeldBy("another candidate".to_owned())),
                other => other.map(|()| Attempt::Leads),
            };
        };
        self.observe(lease);
        let Some(observed) = &self.observed else { return Ok(Attempt::HeldBy(String::new())) };
        let holder = holder(&observed.lease);
        if !holder.is_empty() && !self.is_mine(&observed.lease) && !self.is_expired(observed) {
            return Ok(Attempt::HeldBy(holder.to_owned()));
        }
        let next = self.next(&observed.lease);
        match self.replace(next).await {
            Err(error) if error.is_conflict() => Ok(Attempt::HeldBy("another candidate".to_owned())),
            other => other.map(|()| Attempt::Leads),
        }
    }

    fn is_mine(&self, lease: &Lease) -> bool {
        holder(lease) == self.config.identity
    }

    /// Whether a record has not changed, as seen by this process, for the duration that it names.
    fn is_expired(&self, observed: &ObservedLease) -> bool {
        let named = spec(&observed.lease)
            .and_then(|spec| spec.lease_duration_seconds)
            .and_then(|seconds| u64::try_from(seconds).ok())
            .filter(|seconds| *seconds > 0);
        let duration = named.map_or(self.config.lease_duration, Duration::from_secs);
        observed.at.elapsed() >= duration
    }

    /// The Lease with this process as its holder.
    fn next(&self, lease: &Lease) -> Lease {
        let mut lease = lease.clone();
        let mine = self.is_mine(&lease);
        let now = MicroTime(self.clock.now());
        let spec = lease.spec.get_or_insert_default();
        if !mine {
            spec.acquire_time = Some(now.clone());
            spec.lease_transitions = Some(spec.lease_transitions.unwrap_or(0).saturating_add(1));
        }
        spec.holder_identity = Some(self.config.identity.clone());
        spec.lease_duration_seconds = Some(self.duration_seconds());
        spec.renew_time = Some(now);
        lease
    }

    fn duration_seconds(&self) -> i32 {
        i32::try_from(self.config.lease_duration.as_secs()).unwrap_or(i32::MAX)
    }

    fn observe(&mut self, lease: Lease) {
        match &mut self.observed {
            Some(observed) if observed.lease.spec == lease.spec => observed.lease = lease,
            _ => self.observed = Some(ObservedLease { lease, at: Instant::now() }),
        }
    }

    /// The timeout of client-go's lock: half the renew deadline, so that there is time for a second attempt.
    fn call_limit(&self) -> Duration {
        (self.config.renew_deadline / 2).max(Duration::from_secs(1))
    }

    fn describe(&self, verb: &str) -> String {
        format!("{verb} lease {}/{}", self.config.namespace, self.config.name)
    }

    async fn read(&self) -> Result<Option<Lease>, ApiError> {
        call_within(self.call_limit(), || self.describe("read"), self.api.get_opt(&self.config.name)).await
    }

    async fn create(&mut self) -> Result<(), ApiError> {
        let now = MicroTime(self.clock.now());
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(self.config.name.clone()),
                namespace: Some(self.config.namespace.clone()),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(self.config.identity.clone()),
                lease_duration_seconds: Some(self.duration_seconds()),
                acquire_time: Some(now.clone()),
                renew_time: Some(now),
                lease_transitions: Some(0),
                ..LeaseSpec::default()
            }),
        };
        let requested_at = Instant::now();
        let params = PostParams::default();
        let request = self.api.create(&params, &lease);
        let lease = call_within(self.call_limit(), || self.describe("create"), request).await?;
        self.hold(lease, requested_at);
        Ok(())
    }

    async fn replace(&mut self, lease: Lease) -> Result<(), ApiError> {
        let requested_at = Instant::now();
        let params = PostParams::default();
        let request = self.api.replace(&self.config.name, &params, &lease);
        let lease = call_within(self.call_limit(), || self.describe("write"), request).await?;
        self.hold(lease, requested_at);
        Ok(())
    }

    /// Counts a successful write from the time of its request: others may have seen it since then.
    fn hold(&mut self, lease: Lease, requested_at: Instant) {
        self.observed = Some(ObservedLease { lease, at: requested_at });
        *self.renewed.lock() = Some(requested_at);
    }

    /// Writes an empty holder, so that no candidate has to wait for the expiry.
    async fn release(&mut self) {
        for _ in 0..MAX_RELEASE_ATTEMPTS {
            let mut lease = match self.read().await {
                Ok(Some(lease)) if self.is_mine(&lease) => lease,
                Ok(_) => return,
                Err(error) => {
                    tracing::warn!(%error, "the lease was not released; it expires by itself");
                    return;
                }
            };
            let now = MicroTime(self.clock.now());
            let spec = lease.spec.get_or_insert_default();
            spec.holder_identity = Some(String::new());
            spec.lease_duration_seconds = Some(1);
            spec.acquire_time = Some(now.clone());
            spec.renew_time = Some(now);
            let params = PostParams::default();
            let request = self.api.replace(&self.config.name, &params, &lease);
            match call_within(self.call_limit(), || self.describe("release"), request).await {
                Ok(_) => return,
                Err(error) if error.is_conflict() => {}
                Err(error) => {
                    tracing::warn!(%error, "the lease was not released; it expires by itself");
                    return;
                }
            }
        }
    }
}

fn spec(lease: &Lease) -> Option<&LeaseSpec> {
    lease.spec.as_ref()
}

fn holder(lease: &Lease) -> &str {
    spec(lease).and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_that_allow_two_leaders_are_refused() {
        let with = |lease: u64, renew: u64, retry: u64| Config {
            lease_duration: Duration::from_secs(lease),
            renew_deadline: Duration::from_secs(renew),
            retry_period: Duration::from_secs(retry),
            ..Config::new("a_1")
        };
        assert_eq!(Config::new("a_1").validate(), Ok(()));
        for (config, flag) in [
            (with(10, 10, 2), "--leader-elect-lease-duration=10s"),
            (with(15, 12, 10), "--leader-elect-renew-deadline=12s"),
            (with(15, 10, 0), "--leader-elect-retry-period=0s"),
            (with(0, 10, 2), "--leader-elect-lease-duration=0s"),
            (Config::new(""), "identity"),
        ] {
            let error = config.validate().unwrap_err().to_string();
            assert!(error.contains(flag), "{error}");
        }
    }

    #[test]
    fn identities_and_their_jitter_differ_although_every_container_has_process_1() {
        let (a, b) = (identity("host"), identity("host"));
        assert!(a.starts_with("host_") && a != b);
        assert_ne!(seed_of(&a), seed_of(&b));
        assert_eq!(a.len(), "host_".len() + 36);
    }

    #[test]
    fn a_lease_written_by_go_round_trips() {
        let written = serde_json::json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "cloud-controller-manager", "namespace": "kube-system", "resourceVersion": "812"},
            "spec": {
                "acquireTime": "2026-03-01T11:22:33.000045Z",
                "holderIdentity": "master-0_0f4c2e2c-52b8-44ce-9a51-0d2d1e3a1c11",
                "leaseDurationSeconds": 15,
                "leaseTransitions": 7,
                "renewTime": "2026-03-01T12:00:00.120000Z",
            },
        });
        let lease: Lease = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(serde_json::to_value(&lease).unwrap(), written);
    }
}
