//! Services that were refused for good, and when their owners were last reminded of it.
//!
//! A refusal holds until the Service changes, and costs the cloud no calls meanwhile. Events live an hour: the refusal
//! is reported again about as often while it holds, and at once after a change of the Service that does not matter to
//! its load balancer.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use cloud::Notice;
use k8s::{ObjectKey, Service};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::service_change::needs_update;

/// Interval between reports of one refusal: as long as Kubernetes keeps an event (`--event-ttl` of the API server).
const REPORT_INTERVAL: Duration = Duration::from_secs(3600);

/// The state of a Service that may have been refused.
#[derive(Debug, PartialEq)]
pub(crate) enum RefusalState {
    /// Its current state was not refused: it is to be tried.
    NotRefused,
    /// It stays refused, which was reported recently: the next report is due after this time.
    Reported(Duration),
    /// It stays refused, and a report is due now; the next one is due after this time.
    ReportDue(String, Vec<Notice>, Duration),
}

#[derive(Debug)]
struct Refusal {
    /// The Service as it was refused.
    service: Arc<Service>,
    /// Whether it was touched since the latest report.
    touched: bool,
    message: String,
    notices: Vec<Notice>,
    reported: Instant,
}

/// Services that were refused for good.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<HashMap<ObjectKey, Refusal>>);

/// Whether anything was written that the controller does not write itself (finalizers, status).
fn is_touched(before: &Service, now: &Service) -> bool {
    let (a, b) = (&before.metadata, &now.metadata);
    a.resource_version != b.resource_version && a.finalizers == b.finalizers && before.status == now.status
}

impl Refusals {
    /// Records a refusal that is being reported. Returns when the next report is due.
    pub fn insert(&self, service: &Arc<Service>, message: String, notices: Vec<Notice>) -> Duration {
        let service = Arc::clone(service);
        let refusal = Refusal { service, touched: false, message, notices, reported: Instant::now() };
        let key = refusal.service.key();
        self.0.lock().insert(key, refusal);
        REPORT_INTERVAL
    }

    /// Removes the refusal of a Service.
    pub fn remove(&self, key: &ObjectKey) {
        self.0.lock().remove(key);
    }

    pub fn contains(&self, key: &ObjectKey) -> bool {
        self.0.lock().contains_key(key)
    }

    /// Records a change of a Service. Returns whether it was refused and has been touched since: its owner may be
    /// waiting for an answer.
    pub fn follow(&self, before: &Service, now: &Service) -> bool {
        let mut all = self.0.lock();
        let Some(refusal) = all.get_mut(&now.key()).filter(|_| is_touched(before, now)) else { return false };
        refusal.touched = true;
        true
    }

    /// Judges the current state of a Service.
    pub fn judge(&self, service: &Arc<Service>) -> RefusalState {
        let mut all = self.0.lock();
        let Some(refusal) = all.get_mut(&service.key()) else { return RefusalState::NotRefused };
        if needs_update(&refusal.service, service) {
            return RefusalState::NotRefused;
        }
        let touched = std::mem::take(&mut refusal.touched);
        let age = refusal.reported.elapsed();
        if !touched && age < REPORT_INTERVAL {
            return RefusalState::Reported(REPORT_INTERVAL - age);
        }
        refusal.reported = Instant::now();
        RefusalState::ReportDue(refusal.message.clone(), refusal.notices.clone(), REPORT_INTERVAL)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn service(version: &str, finalizers: &[&str], port: u16) -> Arc<Service> {
        let object = json!({
            "metadata": {"namespace": "shop", "name": "web", "uid": "1", "resourceVersion": version,
                         "finalizers": finalizers},
            "spec": {"type": "LoadBalancer", "ports": [{"port": port}]},
        });
        Arc::new(serde_json::from_value(object).unwrap())
    }

    /// D4: a refusal is reported again each hour while it holds, and at once when the Service is touched.
    #[tokio::test(start_paused = true)]
    async fn a_refusal_is_reported_again_while_it_holds() {
        let refusals = Refusals::default();
        let refused = service("1", &[], 80);
        assert_eq!(refusals.judge(&refused), RefusalState::NotRefused);
        refusals.insert(&refused, "no".into(), Vec::new());
        assert_eq!(refusals.judge(&refused), RefusalState::Reported(REPORT_INTERVAL));
        // The controller's own writes do not touch it.
        let ours = service("2", &["ours"], 80);
        assert!(!refusals.follow(&refused, &ours));
        let mut reports = 0;
        for _ in 0..24 * 4 {
            tokio::time::advance(REPORT_INTERVAL / 4).await;
            reports += usize::from(matches!(refusals.judge(&ours), RefusalState::ReportDue(..)));
        }
        assert_eq!(reports, 24, "one an hour");
        let touched = service("3", &["ours"], 80);
        assert!(refusals.follow(&ours, &touched));
        assert!(matches!(refusals.judge(&touched), RefusalState::ReportDue(text, ..) if text == "no"));
        assert!(matches!(refusals.judge(&touched), RefusalState::Reported(_)));
        let changed = service("4", &["ours"], 81);
        assert_eq!(refusals.judge(&changed), RefusalState::NotRefused, "it is worth a try");
    }
}
