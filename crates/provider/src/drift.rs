//! Drift: Services that had what they wanted, and whose resources in Azure were then found changed.
//!
//! Writers repair differences in shared documents with each write. Everything else (a public IP, a changed address, an
//! event) is a matter of the single Service, which is ensured again.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use arm::{Repeats, Verdict};
use cloud::{Drifted, Notice};
use k8s::ObjectKey;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::failure;
use writer::Disturbance;

/// Reason of the event for repaired parts.
const REPAIRED: &str = "LoadBalancerRepaired";
/// Reason of the event for parts that are changed repeatedly, or that cannot be repaired.
const NOT_KEPT: &str = "LoadBalancerNotKept";

/// The kinds of resources that may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    LoadBalancer,
    PoolMembership,
    PrivateLink,
    PublicIp,
    SecurityGroup,
    Status,
}

impl Kind {
    /// The name in metrics, and the one in texts.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::LoadBalancer => ("load_balancer", "load balancer"),
            Self::PoolMembership => ("pool_membership", "backend pool"),
            Self::PrivateLink => ("private_link", "private link service"),
            Self::PublicIp => ("public_ip", "public IP"),
            Self::SecurityGroup => ("security_group", "security group"),
            Self::Status => ("status", "status"),
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        self.names().0
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.names().1)
    }
}

/// Differences that were found and not yet returned.
#[derive(Debug, Default)]
pub(crate) struct Drift {
    differences: Mutex<Differences>,
    /// The notices of the latest comparison, which are not repeated while they apply.
    reported: Mutex<BTreeSet<(ObjectKey, String)>>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct Differences {
    drifted: BTreeMap<ObjectKey, Drifted>,
    counts: BTreeMap<&'static str, u64>,
    /// How often a Service was ensured because of a kind that no writer repairs.
    repeats: BTreeMap<(ObjectKey, Kind), Repeats>,
    /// Whether the next comparison follows one that found differences.
    second_resync: bool,
}

impl Differences {
    fn of(&mut self, service: &ObjectKey) -> &mut Drifted {
        let new = || Drifted { service: service.clone(), notices: Vec::new(), ensure: false };
        self.drifted.entry(service.clone()).or_insert_with(new)
    }
}

impl Drift {
    /// Records a change of a Service's part of a shared resource. `name` is the resource in words.
    pub(crate) fn disturbed(&self, service: &ObjectKey, kind: Kind, name: &str, what: &Disturbance) {
        let (warning, reason, message) = describe(name, what);
        let notice = Notice { service: service.clone(), warning, reason, message: failure::short(message) };
        self.add(service, kind, Some(notice), !matches!(what, Disturbance::Repeated(_)));
    }

    /// Records that a resource of a single Service differs: the Service has to be ensured. On repeated differences it
    /// is ensured ever less often, and its owner is warned.
    pub(crate) fn differs(&self, service: &ObjectKey, kind: Kind) {
        let again = {
            let mut differences = self.differences.lock();
            let (repeats, now) =
                (differences.repeats.entry((service.clone(), kind)).or_default(), Instant::now());
            if repeats.judge(0, now) != Verdict::Write {
                return;
            }
            repeats.written(0, now);
            let again = repeats.judge(0, now);
            differences.repeats.retain(|_, repeats| !repeats.is_past(now));
            again
        };
        let notice = match again {
            Verdict::Write => None,
            Verdict::Wait(wait) => {
                let (warning, reason, message) =
                    describe(&format!("its {kind}"), &Disturbance::Repeated(wait));
                Some(Notice { service: service.clone(), warning, reason, message })
            }
        };
        self.add(service, kind, notice, true);
    }

    /// Counts a difference that belongs to no particular Service.
    pub(crate) fn count(&self, kind: Kind) {
        *self.differences.lock().counts.entry(kind.as_str()).or_default() += 1;
    }

    /// Sends notices to Services' owners, without those that the previous comparison sent as well.
    pub(crate) fn notify(&self, notices: Vec<Notice>) {
        let now = notices.iter().map(|one| (one.service.clone(), one.message.clone())).collect();
        let before = std::mem::replace(&mut *self.reported.lock(), now);
        let mut differences = self.differences.lock();
        for mut notice in notices {
            if before.contains(&(notice.service.clone(), notice.message.clone())) {
                continue;
            }
            notice.message = failure::short(notice.message);
            differences.of(&notice.service.clone()).notices.push(notice);
        }
        drop(differences);
        self.wake.notify_one();
    }

    fn add(&self, service: &ObjectKey, kind: Kind, notice: Option<Notice>, ensure: bool) {
        tracing::info!(service = %service, kind = kind.as_str(), "a Service does not have what it wants any more");
        let mut differences = self.differences.lock();
        *differences.counts.entry(kind.as_str()).or_default() += 1;
        let drifted = differences.of(service);
        drifted.notices.extend(notice);
        drifted.ensure |= ensure;
        drop(differences);
        self.wake.notify_one();
    }

    /// Waits until there are differences, and returns them.
    pub(crate) async fn next(&self) -> Vec<Drifted> {
        loop {
            let differences = std::mem::take(&mut self.differences.lock().drifted);
            if !differences.is_empty() {
                return differences.into_values().collect();
            }
            self.wake.notified().await;
        }
    }

    /// Whether a second comparison has to follow soon because this one found differences. A second one has no
    /// successor, so that comparisons do not become frequent when something changes repeatedly.
    pub(crate) fn needs_second_resync(&self, differences: &BTreeMap<&'static str, u64>) -> bool {
        let follows = &mut self.differences.lock().second_resync;
        *follows = !differences.is_empty() && !*follows;
        *follows
    }

    /// The differences since the last call, by kind.
    pub(crate) fn take_counts(&self) -> BTreeMap<&'static str, u64> {
        std::mem::take(&mut self.differences.lock().counts)
    }
}

/// A notice that Azure does not keep what is written; `failure` is the reason.
pub(crate) fn not_kept_notice(service: &ObjectKey, failure: &str) -> Notice {
    Notice { service: service.clone(), warning: true, reason: NOT_KEPT, message: failure.to_owned() }
}

/// Whether it is a warning, the event's reason and the event's text; `name` is the affected resource in words.
fn describe(name: &str, what: &Disturbance) -> (bool, &'static str, String) {
    match what {
        Disturbance::Repaired => {
            let message = format!(
                "{name} was not as this Service wants it, because something else had changed it: repaired"
            );
            (false, REPAIRED, message)
        }
        Disturbance::Repeated(wait) => {
            let message = format!(
                "{name} does not stay as this Service wants it: something else changes it again and again. Look for \
                 another program (or a policy) that does; it is repaired again in {} s at the earliest",
                wait.as_secs()
            );
            (true, NOT_KEPT, message)
        }
        Disturbance::Failed(error) => {
            let message = format!("{name} is not as this Service wants it, and cannot be repaired: {error}");
            (true, NOT_KEPT, message)
        }
    }
}
