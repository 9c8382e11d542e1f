//! The lease on the cluster's Azure resources, which programs of different owners (this one, the AKS resource provider)
//! hold while they write shared resources (LB-039 to LB-044).
//!
//! Upstream takes and releases it around every operation, with five calls each. Here the first operation takes it,
//! concurrent operations share it, it is renewed while they last, and it is released a few seconds after the last one.

use std::sync::Arc;
use std::time::Duration;

use cloud::{LoadBalancers, ServiceError};
use jiff::{SignedDuration, Timestamp};
use k8s::ObjectMeta;
use k8s::api::api::coordination::v1::{Lease, LeaseSpec};
use k8s::api::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::PostParams;
use kube::{Api, Client};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::api::{ApiError, call};
use clock::Clock;

/// Location, holder and duration of the Lease; fixed, because other programs rely on them.
const NAMESPACE: &str = "kube-system";
const NAME: &str = "aks-managed-resource-locker";
const HOLDER: &str = "cloud-controller-manager";
const DURATION_SECONDS: i32 = 900;
const PREVIOUS_HOLDER: &str = "aks-managed-resource-locker-previous-holder";

/// A held lease is renewed after a third of its duration.
const RENEW_INTERVAL: Duration = Duration::from_secs(300);

/// How long the lease is kept after the last operation, so that consecutive operations cost two writes in total instead
/// of two each.
const IDLE_TIMEOUT: Duration = Duration::from_secs(3);

/// Interval between retries of a failed release, until it succeeds or the lease has expired by itself: until then no
/// other program can work.
const RELEASE_RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// Maximum number of attempts to write while others write concurrently.
const MAX_ATTEMPTS: u32 = 3;

/// Why the lease could not be taken.
#[derive(Debug, Clone, thiserror::Error)]
enum LockError {
    #[error(
        "lease {NAMESPACE}/{NAME} is held by {holder:?} until {until}: another component works on the same \
         resources, and this goes on when it is done or its lease has expired"
    )]
    Held { holder: String, until: String },
    #[error("lease {NAMESPACE}/{NAME}: {0}")]
    Api(Arc<ApiError>),
}

/// The lease on the cluster's Azure resources; clones share it.
#[derive(Clone)]
pub(crate) struct ResourceLease(Arc<Shared>);

struct Shared {
    api: Api<Lease>,
    clock: Clock,
    cloud: Arc<dyn LoadBalancers>,
    /// Serialises calls; contains when the held lease was last taken or renewed.
    held: tokio::sync::Mutex<LeaseState>,
    users: Mutex<LeaseUsers>,
    changed: Notify,
}

#[derive(Default)]
struct LeaseState {
    renewed: Option<Instant>,
    failed: Option<(Instant, LockError)>,
    /// When the retry of a failed release is due.
    release_again: Option<Instant>,
}

struct LeaseUsers {
    count: usize,
    idle_since: Instant,
}

/// A user of the lease; the lease is held until the guard is dropped.
pub(crate) struct Guard(Arc<Shared>);

impl Drop for Guard {
    fn drop(&mut self) {
        let mut users = self.0.users.lock();
        users.count -= 1;
        if users.count == 0 {
            users.idle_since = Instant::now();
            self.0.changed.notify_one();
        }
    }
}

impl ResourceLease {
    pub fn new(client: Client, clock: Clock, cloud: Arc<dyn LoadBalancers>) -> Self {
        Self(Arc::new(Shared {
            api: Api::namespaced(client, NAMESPACE),
            clock,
            cloud,
            held: tokio::sync::Mutex::default(),
            users: Mutex::new(LeaseUsers { count: 0, idle_since: Instant::now() }),
            changed: Notify::new(),
        }))
    }

    /// Holds the lease, if there is one, for an operation; fails if another program holds it.
    pub async fn hold_any(lease: Option<&Self>, operation: &str) -> Result<Option<Guard>, ServiceError> {
        match lease {
            Some(lease) => lease.hold(operation).await.map(Some),
            None => Ok(None),
        }
    }

    /// Holds the lease for an operation.
    async fn hold(&self, operation: &str) -> Result<Guard, ServiceError> {
        let requested_at = Instant::now();
        // Counted before the wait, so that the keeper does not release in between.
        let guard = self.enter();
        let mut held = self.0.held.lock().await;
        let outcome = match &held.failed {
            // One of the concurrent callers makes the call.
            Some((at, error)) if *at >= requested_at => Err(error.clone()),
            _ if held.renewed.is_some_and(|at| at.elapsed() < RENEW_INTERVAL) => Ok(()),
            _ => self.0.acquire(&mut held).await,
        };
        match outcome {
            Ok(()) => Ok(guard),
            Err(error) => Err(ServiceError::Retry {
                message: format!(
                    "{operation}: failed to lock the Azure resources, tried again with back-off: {error}"
                ),
                after: None,
                notices: vec![],
            }),
        }
    }

    fn enter(&self) -> Guard {
        self.0.users.lock().count += 1;
        Guard(Arc::clone(&self.0))
    }

    /// Renews the lease while it is used and releases it when it is not, until `stop`; then releases it.
    pub async fn keep(self, stop: CancellationToken) {
        loop {
            let wake = self.0.next_wake().await;
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = self.0.changed.notified() => {}
                () = sleep_until(wake) => {}
            }
            self.0.tend().await;
        }
        let mut held = self.0.held.lock().await;
        if held.renewed.is_some()
            && let Err(error) = self.0.release(&mut held).await
        {
            tracing::warn!(
                "failed to unlock the Azure resources: {error}; remove the holder of the Lease, or it expires after \
                 {DURATION_SECONDS} s"
            );
        }
    }
}

async fn sleep_until(wake: Option<Instant>) {
    match wake {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

impl Shared {
    async fn next_wake(&self) -> Option<Instant> {
        let held = self.held.lock().await;
        let renewed = held.renewed?;
        let users = self.users.lock();
        let idle = held.release_again.unwrap_or(users.idle_since + IDLE_TIMEOUT);
        Some(if users.count == 0 { idle } else { renewed + RENEW_INTERVAL })
    }

    async fn tend(&self) {
        let mut held = self.held.lock().await;
        let Some(renewed) = held.renewed else { return };
        let (used, idle) = {
            let users = self.users.lock();
            (users.count > 0, users.idle_since.elapsed())
        };
        if !used && idle >= IDLE_TIMEOUT {
            let Err(error) = self.release(&mut held).await else { return };
            held.release_again = Some(Instant::now() + RELEASE_RETRY_INTERVAL);
            tracing::warn!(
                "failed to unlock the Azure resources: {error}; tried again every {} s. Other programs wait until then, \
                 or until the holder of the Lease is removed, or until it expires after {DURATION_SECONDS} s",
                RELEASE_RETRY_INTERVAL.as_secs()
            );
        } else if used
            && renewed.elapsed() >= RENEW_INTERVAL
            && let Err(error) = self.acquire(&mut held).await
        {
            // Running operations continue: every write to Azure is conditional.
            tracing::error!(%error, "the lease on the Azure resources could not be renewed");
        }
    }

    /// Takes or renews the lease.
    async fn acquire(&self, held: &mut LeaseState) -> Result<(), LockError> {
        held.renewed = None;
        held.release_again = None;
        let outcome = self.write_holder().await;
        match &outcome {
            Ok(()) => {
                held.renewed = Some(Instant::now());
                held.failed = None;
                // The keeper must know when to renew or release.
                self.changed.notify_one();
            }
            Err(error) => held.failed = Some((Instant::now(), error.clone())),
        }
        outcome
    }

    async fn write_holder(&self) -> Result<(), LockError> {
        let mut attempt = 1;
        loop {
            let (lease, existed) = match self.read().await? {
                Some(lease) => (lease, true),
                None => (new_lease(), false),
            };
            let now = self.clock.now();
            if let Some(until) = expiry(&lease, now)
                && !holder(&lease).eq_ignore_ascii_case(HOLDER)
            {
                return Err(LockError::Held {
                    holder: holder(&lease).to_owned(),
                    until: format!("{until:.0}"),
                });
            }
            let mut next = lease.clone();
            let spec = next.spec.get_or_insert_default();
            spec.holder_identity = Some(HOLDER.to_owned());
            spec.lease_duration_seconds = spec.lease_duration_seconds.or(Some(DURATION_SECONDS));
            spec.acquire_time = Some(MicroTime(now));
            spec.renew_time = Some(MicroTime(now));
            let params = PostParams::default();
            let written = if existed {
                call(|| "take".to_owned(), self.api.replace(NAME, &params, &next)).await
            } else {
                call(|| "create".to_owned(), self.api.create(&params, &next)).await
            };
            match written {
                Ok(_) => {
                    if another_held(&lease) {
                        tracing::info!("another component held the Azure resources; observing them again");
                        self.cloud.forget_observed();
                    }
                    return Ok(());
                }
                Err(error) if error.is_conflict() && attempt < MAX_ATTEMPTS => attempt += 1,
                Err(error) => return Err(LockError::Api(Arc::new(error))),
            }
        }
    }

    /// Releases the lease. If that fails the lease stays held, and the release is retried; the operations under it have
    /// succeeded nevertheless.
    async fn release(&self, held: &mut LeaseState) -> Result<(), LockError> {
        let outcome = self.clear_holder().await;
        let lifetime = Duration::from_secs(DURATION_SECONDS.unsigned_abs().into());
        let has_expired = held.renewed.is_none_or(|at| at.elapsed() > lifetime);
        if outcome.is_ok() || has_expired {
            held.renewed = None;
            return Ok(());
        }
        outcome
    }

    async fn clear_holder(&self) -> Result<(), LockError> {
        let mut attempt = 1;
        loop {
            let Some(mut lease) = self.read().await? else { return Ok(()) };
            if !holder(&lease).eq_ignore_ascii_case(HOLDER) || expiry(&lease, self.clock.now()).is_none() {
                return Ok(());
            }
            lease.spec.get_or_insert_default().holder_identity = Some(String::new());
            let annotations = lease.metadata.annotations.get_or_insert_default();
            annotations.insert(PREVIOUS_HOLDER.to_owned(), HOLDER.to_owned());
            let params = PostParams::default();
            match call(|| "release".to_owned(), self.api.replace(NAME, &params, &lease)).await {
                Ok(_) => return Ok(()),
                Err(error) if error.is_conflict() && attempt < MAX_ATTEMPTS => attempt += 1,
                Err(error) => return Err(LockError::Api(Arc::new(error))),
            }
        }
    }

    async fn read(&self) -> Result<Option<Lease>, LockError> {
        call(|| "read".to_owned(), self.api.get_opt(NAME))
            .await
            .map_err(|error| LockError::Api(Arc::new(error)))
    }
}

fn new_lease() -> Lease {
    Lease {
        metadata: ObjectMeta {
            name: Some(NAME.to_owned()),
            namespace: Some(NAMESPACE.to_owned()),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec { lease_duration_seconds: Some(DURATION_SECONDS), ..LeaseSpec::default() }),
    }
}

fn holder(lease: &Lease) -> &str {
    lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default()
}

/// Until when a lease is held; `None` if it has no holder or has expired.
fn expiry(lease: &Lease, now: Timestamp) -> Option<Timestamp> {
    let spec = lease.spec.as_ref()?;
    if holder(lease).is_empty() {
        return None;
    }
    let duration = SignedDuration::from_secs(spec.lease_duration_seconds.unwrap_or(0).into());
    let until = spec.renew_time.as_ref()?.0.checked_add(duration).ok()?;
    (now <= until).then_some(until)
}

/// Whether the lease shows that its last holder was another program: one that released it, or one that let it expire. A
/// lease without annotations does not show who released it.
fn another_held(lease: &Lease) -> bool {
    let holder = holder(lease);
    if !holder.is_empty() && !holder.eq_ignore_ascii_case(HOLDER) {
        return true;
    }
    lease.metadata.annotations.as_ref().is_some_and(|annotations| {
        !annotations.is_empty()
            && !annotations.get(PREVIOUS_HOLDER).is_some_and(|holder| holder.eq_ignore_ascii_case(HOLDER))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn lease(spec: Value, annotations: Value) -> Lease {
        serde_json::from_value(json!({"metadata": {"name": NAME, "annotations": annotations}, "spec": spec}))
            .unwrap()
    }

    #[test]
    fn when_a_lease_counts_as_held() {
        let now: Timestamp = "2026-01-01T00:15:00Z".parse().unwrap();
        let rows = [
            ("no holder", json!({"renewTime": "2026-01-01T00:15:00Z", "leaseDurationSeconds": 900}), false),
            (
                "empty holder",
                json!({"holderIdentity": "", "renewTime": "2026-01-01T00:15:00Z", "leaseDurationSeconds": 900}),
                false,
            ),
            ("no renew time", json!({"holderIdentity": "aks-rp", "leaseDurationSeconds": 900}), false),
            (
                "held",
                json!({"holderIdentity": "aks-rp", "renewTime": "2026-01-01T00:14:00Z", "leaseDurationSeconds": 900}),
                true,
            ),
            (
                "at its end",
                json!({"holderIdentity": "aks-rp", "renewTime": "2026-01-01T00:00:00Z", "leaseDurationSeconds": 900}),
                true,
            ),
            (
                "expired",
                json!({"holderIdentity": "aks-rp", "renewTime": "2025-12-31T23:59:59Z", "leaseDurationSeconds": 900}),
                false,
            ),
        ];
        for (name, spec, held) in rows {
            assert_eq!(expiry(&lease(spec, json!({})), now).is_some(), held, "{name}");
        }
    }

    /// LB-041, NODE-150.
    #[test]
    fn lb_041_when_another_program_has_held_it() {
        for (annotations, expected) in [
            (json!({}), false),
            (json!({PREVIOUS_HOLDER: "cloud-controller-manager"}), false),
            (json!({PREVIOUS_HOLDER: "Cloud-Controller-Manager"}), false),
            (json!({PREVIOUS_HOLDER: "aks-rp"}), true),
            (json!({"other": "x"}), true),
        ] {
            assert_eq!(another_held(&lease(json!({}), annotations.clone())), expected, "{annotations}");
        }
        let expired = lease(json!({"holderIdentity": "aks-rp"}), json!({PREVIOUS_HOLDER: HOLDER}));
        assert!(another_held(&expired), "it never released");
    }
}
