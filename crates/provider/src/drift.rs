//! Services whose parts in Azure were found to be other than they want them, although they had what they want.
//!
//! Writers repair what differs in shared documents with each write. What else has to happen (a public IP, an
//! address that is another one now, an event) is the Service's own matter: it is ensured again.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use arm::{Repeats, Verdict};
use cloud::Drifted;
use k8s::ObjectKey;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::Notice;
use crate::failure;
use crate::writer::Disturbance;

/// The event for parts that were repaired.
const REPAIRED: &str = "LoadBalancerRepaired";
/// The event for parts that others change again and again, or that cannot be repaired.
const NOT_KEPT: &str = "LoadBalancerNotKept";

/// The kinds of what may differ, as metrics name them.
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
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::LoadBalancer => "load_balancer",
            Self::PoolMembership => "pool_membership",
            Self::PrivateLink => "private_link",
            Self::PublicIp => "public_ip",
            Self::SecurityGroup => "security_group",
            Self::Status => "status",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LoadBalancer => "load balancer",
            Self::PoolMembership => "backend pool",
            Self::PrivateLink => "private link service",
            Self::PublicIp => "public IP",
            Self::SecurityGroup => "security group",
            Self::Status => "status",
        })
    }
}

/// What was found and not fetched yet.
#[derive(Debug, Default)]
pub(crate) struct Drift {
    found: Mutex<Found>,
    /// What the latest look said and does not say again while it holds.
    said: Mutex<BTreeSet<(ObjectKey, String)>>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct Found {
    drifted: BTreeMap<ObjectKey, Drifted>,
    counts: BTreeMap<&'static str, u64>,
    /// How often a Service was asked to be ensured because of a kind that no writer repairs.
    repeats: BTreeMap<(ObjectKey, Kind), Repeats>,
    /// Whether the next look is the second one after another that found differences.
    second_look: bool,
}

impl Drift {
    /// Something happened to a Service's part of a shared resource, which `name` names in words.
    pub(crate) fn disturbed(&self, service: &ObjectKey, kind: Kind, name: &str, what: &Disturbance) {
        let (warning, reason, message) = told(name, what);
        let notice = Notice { service: service.clone(), warning, reason, message: failure::short(message) };
        self.add(service, kind, Some(notice), !matches!(what, Disturbance::Repeated(_)));
    }

    /// Something that is a Service's alone differs: it has to be ensured. What differs again and again is ensured ever
    /// more seldom, and its owner is warned.
    pub(crate) fn differs(&self, service: &ObjectKey, kind: Kind) {
        let again = {
            let mut found = self.found.lock();
            let (repeats, now) = (found.repeats.entry((service.clone(), kind)).or_default(), Instant::now());
            if repeats.judge(0, now) != Verdict::Write {
                return;
            }
            repeats.written(0, now);
            let again = repeats.judge(0, now);
            found.repeats.retain(|_, repeats| !repeats.is_past(now));
            again
        };
        let notice = match again {
            Verdict::Write => None,
            Verdict::Wait(wait) => {
                let (warning, reason, message) = told(&format!("its {kind}"), &Disturbance::Repeated(wait));
                Some(Notice { service: service.clone(), warning, reason, message })
            }
        };
        self.add(service, kind, notice, true);
    }

    /// Something differed that belongs to no Service in particular.
    pub(crate) fn count(&self, kind: Kind) {
        *self.found.lock().counts.entry(kind.as_str()).or_default() += 1;
    }

    /// Tells Services' owners what a look found, but not what the look before found as well.
    pub(crate) fn say(&self, notices: Vec<Notice>) {
        let now = notices.iter().map(|one| (one.service.clone(), one.message.clone())).collect();
        let before = std::mem::replace(&mut *self.said.lock(), now);
        let mut found = self.found.lock();
        for mut notice in notices {
            if before.contains(&(notice.service.clone(), notice.message.clone())) {
                continue;
            }
            notice.message = failure::short(notice.message);
            let service = notice.service.clone();
            let new = || Drifted { service: service.clone(), notices: Vec::new(), ensure: false };
            found.drifted.entry(service.clone()).or_insert_with(new).notices.push(notice);
        }
        drop(found);
        self.wake.notify_one();
    }

    fn add(&self, service: &ObjectKey, kind: Kind, notice: Option<Notice>, ensure: bool) {
        tracing::info!(service = %service, kind = kind.as_str(), "a Service does not have what it wants any more");
        let mut found = self.found.lock();
        *found.counts.entry(kind.as_str()).or_default() += 1;
        let new = || Drifted { service: service.clone(), notices: Vec::new(), ensure: false };
        let drifted = found.drifted.entry(service.clone()).or_insert_with(new);
        drifted.notices.extend(notice);
        drifted.ensure |= ensure;
        drop(found);
        self.wake.notify_one();
    }

    /// Waits until something was found, and gives it.
    pub(crate) async fn next(&self) -> Vec<Drifted> {
        loop {
            let found = std::mem::take(&mut self.found.lock().drifted);
            if !found.is_empty() {
                return found.into_values().collect();
            }
            self.wake.notified().await;
        }
    }

    /// Whether a look that found these differences is to be followed by a second one soon. A second one is not, so that looks do not
    /// become frequent where something is changed again and again.
    pub(crate) fn needs_second_look(&self, differences: &BTreeMap<&'static str, u64>) -> bool {
        let follows = &mut self.found.lock().second_look;
        *follows = !differences.is_empty() && !*follows;
        *follows
    }

    /// How many differences there were since this was last asked, by kind.
    pub(crate) fn take_counts(&self) -> BTreeMap<&'static str, u64> {
        std::mem::take(&mut self.found.lock().counts)
    }
}

/// A look found that Azure does not keep what is written, for whatever reason the `failure` gives.
pub(crate) fn not_kept(service: &ObjectKey, failure: &str) -> Notice {
    Notice { service: service.clone(), warning: true, reason: NOT_KEPT, message: failure.to_owned() }
}

/// Whether it is a warning, the event's reason and the event's text; `name` is what it happened to, in words.
fn told(name: &str, what: &Disturbance) -> (bool, &'static str, String) {
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
