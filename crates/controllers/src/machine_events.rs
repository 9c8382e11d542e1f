//! Scheduled events of a node's machine: they appear in a condition of the node and in Events, and the node takes no
//! new work if its machine does not come back.
//!
//! [`NodeAnnouncements::next`] decides (pure); [`Watch`] reads and writes. A failed write is decided again in the next round.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cloud::{ClusterState, MachineEvent, MachineEventType, MachineEvents};
use k8s::{Node, Taint, Time, names};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::api::{ApiError, call};
use crate::events::Recorder;
use crate::repeated_warning::RepeatedWarnings;
use crate::taints::{add, edit_taints_as, remove};
use clock::Clock;

/// How long a machine that was about to end has to be without scheduled events before its node takes work again.
/// Azure's list may drop an event shortly before the machine ends.
const CALM_TIMEOUT: Duration = Duration::from_secs(120);
/// Delay before an event is approved: in that time load balancers are updated and schedulers have seen the node.
const APPROVAL_DELAY: Duration = Duration::from_secs(30);
/// New pods go elsewhere; existing ones end by themselves or with the machine.
const EFFECT: &str = "NoSchedule";
/// The subjects of repeated warnings.
const LIST: &str = "list";
const APPROVAL: &str = "approval";
const WRITE: &str = "write";

/// Whether, how often and how a node manager reacts to its machine's scheduled events.
#[derive(Clone)]
pub struct MachineEventOptions {
    /// The source of scheduled events.
    pub source: Arc<dyn MachineEvents>,
    /// Interval between reads.
    pub interval: Duration,
    /// Whether a node drains when its machine goes away.
    pub drains: bool,
    /// Whether events that affect only this machine are approved.
    pub approves: bool,
}

/// The desired condition.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Condition {
    is_true: bool,
    reason: &'static str,
    message: String,
}

/// The next action.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// The value of the taint, and the events that cause it.
    Taint(&'static str, Vec<String>),
    Untaint,
    SetCondition(Condition),
    /// An event, its type, and the text that is reported.
    Report(String, MachineEventType, String),
    Approve(String),
}

/// The known state of one event.
#[derive(Debug, Clone, Copy)]
struct EventProgress {
    since: Instant,
    /// When the node was tainted for it.
    tainted: Option<Instant>,
    is_reported: bool,
    is_approved: bool,
}

/// The known state of one node.
#[derive(Debug, Default)]
struct NodeAnnouncements {
    node: Option<String>,
    events: BTreeMap<String, EventProgress>,
    calm_since: Option<Instant>,
    /// The condition as last written.
    written: Option<Condition>,
    /// Whether the node's condition announces something.
    has_announced: bool,
    /// Whether this process may remove the taint: it wrote it, or found the node announcing what an earlier process had
    /// written.
    owns_taint: bool,
}

fn reason(event_type: MachineEventType) -> &'static str {
    match event_type {
        MachineEventType::Freeze => "FreezeScheduled",
        MachineEventType::Reboot => "RebootScheduled",
        MachineEventType::Redeploy => "RedeployScheduled",
        MachineEventType::Preempt => "PreemptScheduled",
        MachineEventType::Terminate => "TerminateScheduled",
        MachineEventType::Other => "VMEventScheduled",
    }
}

/// The severity of an event for a node: the most severe one determines the reason of the condition.
fn weight(event_type: MachineEventType) -> u8 {
    match event_type {
        MachineEventType::Preempt => 5,
        MachineEventType::Terminate => 4,
        MachineEventType::Redeploy => 3,
        MachineEventType::Reboot => 2,
        MachineEventType::Freeze => 1,
        MachineEventType::Other => 0,
    }
}

fn taint_value(event_type: MachineEventType) -> &'static str {
    match event_type {
        MachineEventType::Preempt => names::DRAINING_SPOT_EVICTION,
        _ => names::DRAINING_TERMINATION,
    }
}

/// An event as a text that stays the same until it starts.
fn words(event: &MachineEvent) -> String {
    let when = match (event.has_started, event.not_before.as_str()) {
        (true, _) => "takes place now".to_owned(),
        (false, "") => "will take place".to_owned(),
        (false, time) => format!("will not take place before {time}"),
    };
    let lasts = match event.duration {
        _ if event.event_type.ends_machine() => ": the machine does not come back".to_owned(),
        Some(duration) => format!(", for {} s", duration.as_secs()),
        None => String::new(),
    };
    let why = match event.description.as_str() {
        "" => String::new(),
        why => format!(": {why}"),
    };
    format!("{} {when}{lasts}{why} (event {})", event.name, event.id)
}

fn condition(events: &[MachineEvent]) -> Condition {
    let worst = events.iter().map(|event| event.event_type).max_by_key(|one| weight(*one));
    match worst {
        Some(worst) => {
            let mut all: Vec<String> = events.iter().map(words).collect();
            all.sort();
            let message = k8s::shorten(all.join("; "), k8s::MAX_EVENT_MESSAGE);
            Condition { is_true: true, reason: reason(worst), message }
        }
        None => Condition {
            is_true: false,
            reason: "NoVMEventScheduled",
            message: "Nothing is announced for the machine".to_owned(),
        },
    }
}

impl NodeAnnouncements {
    /// Updates the state with the current events.
    fn update(&mut self, node: &Node, events: &[MachineEvent], now: Instant) {
        if self.node.as_ref() != node.metadata.uid.as_ref() {
            let has_announced = node
                .status
                .conditions
                .iter()
                .any(|one| one.kind == names::CONDITION_VM_EVENT_SCHEDULED && one.status == "True");
            let node = node.metadata.uid.clone();
            *self = Self { node, has_announced, owns_taint: has_announced, ..Self::default() };
        }
        let new = EventProgress { since: now, tainted: None, is_reported: false, is_approved: false };
        let before = std::mem::take(&mut self.events);
        let progress =
            |event: &MachineEvent| (event.id.clone(), before.get(&event.id).copied().unwrap_or(new));
        self.events = events.iter().map(progress).collect();
        match events.is_empty() {
            true => _ = self.calm_since.get_or_insert(now),
            false => self.calm_since = None,
        }
    }

    /// The next action; [`NodeAnnouncements::done`] records that it was taken.
    fn next(
        &self,
        node: &Node,
        events: &[MachineEvent],
        options: &MachineEventOptions,
        now: Instant,
    ) -> Option<Step> {
        let progress = |event: &MachineEvent| self.events.get(&event.id);
        let desired = condition(events);
        if !desired.is_true {
            let is_tainted = self.owns_taint && node.spec.taints.iter().any(is_ours);
            let is_calm = self.calm_since.is_some_and(|since| now.duration_since(since) >= CALM_TIMEOUT);
            return match (self.has_announced, options.drains && is_tainted) {
                (false, _) => None,
                (true, false) => Some(Step::SetCondition(desired)),
                (true, true) => is_calm.then_some(Step::Untaint),
            };
        }
        // This comes first: it shows the next process who owns the taint.
        if self.written.as_ref() != Some(&desired) {
            return Some(Step::SetCondition(desired));
        }
        let ending = || events.iter().filter(|event| event.event_type.ends_machine());
        // Once for each event: an operator who removes the taint has decided.
        if options.drains
            && ending().any(|event| progress(event).is_some_and(|event| event.tainted.is_none()))
        {
            let worst = ending().map(|event| event.event_type).max_by_key(|one| weight(*one));
            let value = worst.map_or(names::DRAINING_TERMINATION, taint_value);
            return Some(Step::Taint(value, ending().map(|event| event.id.clone()).collect()));
        }
        for event in events {
            let Some(progress) = progress(event) else { continue };
            if !progress.is_reported {
                return Some(Step::Report(event.id.clone(), event.event_type, words(event)));
            }
            if options.approves && may_approve(event, progress, now) {
                return Some(Step::Approve(event.id.clone()));
            }
        }
        None
    }

    /// Records that a step was made, and whether it changed anything.
    fn done(&mut self, step: Step, has_changed: bool, now: Instant) {
        match step {
            Step::Taint(_, events) => {
                self.owns_taint |= has_changed;
                for id in events {
                    if let Some(event) = self.events.get_mut(&id) {
                        event.tainted.get_or_insert(now);
                    }
                }
            }
            Step::SetCondition(condition) => {
                self.has_announced = condition.is_true;
                self.written = Some(condition);
            }
            Step::Report(id, ..) => {
                if let Some(event) = self.events.get_mut(&id) {
                    event.is_reported = true;
                }
            }
            Step::Approve(id) => {
                if let Some(event) = self.events.get_mut(&id) {
                    event.is_approved = true;
                }
            }
            Step::Untaint => self.owns_taint = false,
        }
    }
}

fn is_ours(taint: &Taint) -> bool {
    taint.key == names::TAINT_DRAINING
        && [names::DRAINING_SPOT_EVICTION, names::DRAINING_TERMINATION].contains(&taint.value.as_str())
}

/// Whether an event may start earlier than announced.
fn may_approve(event: &MachineEvent, progress: &EventProgress, now: Instant) -> bool {
    // Other machines may not be ready when this one is.
    if event.is_shared || event.has_started || progress.is_approved {
        return false;
    }
    let is_old = |since: Instant| now.duration_since(since) >= APPROVAL_DELAY;
    match event.event_type {
        MachineEventType::Freeze => true,
        MachineEventType::Reboot | MachineEventType::Redeploy => is_old(progress.since),
        // Without draining no workload was asked to leave.
        MachineEventType::Terminate => progress.tainted.is_some_and(is_old),
        // Half a minute is little enough.
        MachineEventType::Preempt | MachineEventType::Other => false,
    }
}

/// Reads scheduled events and writes the node.
pub(crate) struct Watch {
    pub api: Api<Node>,
    pub state: ClusterState,
    pub node: String,
    /// The field manager of writes in `managedFields`.
    pub manager: &'static str,
    pub recorder: Recorder,
    pub clock: Clock,
    pub options: MachineEventOptions,
}

impl Watch {
    /// Runs until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let (mut announcements, warnings) = (NodeAnnouncements::default(), RepeatedWarnings::default());
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = self.handle(&mut announcements, &warnings) => {}
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(self.options.interval) => {}
            }
        }
    }

    async fn handle(&self, announcements: &mut NodeAnnouncements, warnings: &RepeatedWarnings) {
        let events = match self.options.source.upcoming().await {
            Ok(events) => events,
            Err(error) => {
                if warnings.is_due(LIST, &error) {
                    tracing::warn!(
                        node = self.node,
                        error,
                        "failed to read the scheduled events of the machine"
                    );
                }
                return;
            }
        };
        warnings.forget(LIST);
        let Some(node) = self.state.node(&self.node) else { return };
        announcements.update(&node, &events, Instant::now());
        // One step of each kind for each event, and each is made once.
        for _ in 0..=events.len() * 2 + 2 {
            let Some(step) = announcements.next(&node, &events, &self.options, Instant::now()) else {
                return;
            };
            let subject = if matches!(step, Step::Approve(_)) { APPROVAL } else { WRITE };
            match self.make(&node, &step).await {
                Ok(has_changed) => {
                    warnings.forget(subject);
                    announcements.done(step, has_changed, Instant::now());
                }
                Err(error) => {
                    if warnings.is_due(subject, &error) {
                        tracing::warn!(
                            node = self.node,
                            error,
                            "failed to handle the scheduled events of the machine"
                        );
                    }
                    return;
                }
            }
        }
    }

    /// Makes a step. Returns whether it changed anything.
    async fn make(&self, node: &Node, step: &Step) -> Result<bool, String> {
        let written = match step {
            Step::Taint(value, _) => self.taint(node, value).await,
            Step::Untaint => self.untaint(node).await,
            Step::SetCondition(condition) => self.write_condition(node, condition).await.map(|()| true),
            Step::Report(_, event_type, words) => {
                tracing::info!(node = self.node, event = words, "Announced for the machine");
                self.recorder.warning(node, reason(*event_type), words.as_str());
                Ok(true)
            }
            Step::Approve(id) => {
                self.options.source.approve(id).await?;
                tracing::info!(node = self.node, event = id, "Approved an event of the machine");
                Ok(true)
            }
        };
        written.map_err(|error| error.to_string())
    }

    fn params(&self) -> PatchParams {
        PatchParams { field_manager: Some(self.manager.to_owned()), ..PatchParams::default() }
    }

    async fn taint(&self, node: &Node, value: &str) -> Result<bool, ApiError> {
        let taint = || Taint {
            key: names::TAINT_DRAINING.to_owned(),
            value: value.to_owned(),
            effect: EFFECT.into(),
            time_added: None,
        };
        let added = edit_taints_as(&self.params(), &self.api, node, |taints| add(taints, taint())).await?;
        if added {
            tracing::info!(node = self.node, value, "The machine goes away: the node drains");
        }
        Ok(added)
    }

    async fn untaint(&self, node: &Node) -> Result<bool, ApiError> {
        let removed =
            edit_taints_as(&self.params(), &self.api, node, |taints| remove(taints, is_ours)).await?;
        if removed {
            tracing::info!(node = self.node, "The machine stays: the node takes work again");
        }
        Ok(removed)
    }

    async fn write_condition(&self, node: &Node, condition: &Condition) -> Result<(), ApiError> {
        let now = Time(self.clock.now());
        let was_true = node
            .status
            .conditions
            .iter()
            .find(|one| one.kind == names::CONDITION_VM_EVENT_SCHEDULED)
            .map(|one| one.status == "True");
        let mut written = json!({
            "type": names::CONDITION_VM_EVENT_SCHEDULED,
            "status": if condition.is_true { "True" } else { "False" },
            "reason": condition.reason, "message": condition.message, "lastHeartbeatTime": now,
        });
        if was_true != Some(condition.is_true) {
            written["lastTransitionTime"] = json!(now);
        }
        let name = node.name();
        let patch = Patch::Strategic(json!({"status": {"conditions": [written]}}));
        let (params, what) = (self.params(), || format!("write the condition of node {name}"));
        call(what, self.api.patch_status(name, &params, &patch)).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use serde_json::Value;

    use super::*;

    struct Silent;

    #[async_trait]
    impl MachineEvents for Silent {
        async fn upcoming(&self) -> Result<Vec<MachineEvent>, String> {
            Ok(Vec::new())
        }

        async fn approve(&self, _: &str) -> Result<(), String> {
            Ok(())
        }
    }

    fn options(drains: bool, approves: bool) -> MachineEventOptions {
        MachineEventOptions { source: Arc::new(Silent), interval: Duration::from_secs(1), drains, approves }
    }

    fn event(id: &str, event_type: MachineEventType) -> MachineEvent {
        MachineEvent {
            id: id.into(),
            event_type,
            name: format!("{event_type:?}"),
            is_shared: false,
            has_started: false,
            not_before: String::new(),
            duration: None,
            description: String::new(),
        }
    }

    fn node(value: Value) -> Node {
        serde_json::from_value(value).unwrap()
    }

    /// All steps of one round, as text.
    fn steps(
        announcements: &mut NodeAnnouncements,
        node: &Node,
        events: &[MachineEvent],
        options: &MachineEventOptions,
    ) -> Vec<String> {
        let now = Instant::now();
        announcements.update(node, events, now);
        let mut all = Vec::new();
        while let Some(step) = announcements.next(node, events, options, now) {
            all.push(match &step {
                Step::Taint(value, events) => format!("taint {value} {}", events.join(",")),
                Step::Untaint => "untaint".to_owned(),
                Step::SetCondition(condition) => format!("say {}", condition.reason),
                Step::Report(id, ..) => format!("tell {id}"),
                Step::Approve(id) => format!("approve {id}"),
            });
            assert!(all.len() < 10, "it does not end: {all:?}");
            announcements.done(step, true, now);
        }
        all
    }

    /// NODE-221, NODE-222
    #[tokio::test(start_paused = true)]
    async fn node_222_what_others_go_on_from_is_said_first() {
        let (node, options) = (node(json!({"metadata": {"name": "n1", "uid": "1"}})), options(true, true));
        let mut announcements = NodeAnnouncements::default();
        assert_eq!(steps(&mut announcements, &node, &[], &options), Vec::<String>::new());
        let (spot, end) = (event("a", MachineEventType::Preempt), event("b", MachineEventType::Terminate));
        let both = [end.clone(), spot];
        assert_eq!(
            steps(&mut announcements, &node, &both, &options),
            ["say PreemptScheduled", "taint spot-eviction b,a", "tell b", "tell a"]
        );
        assert_eq!(steps(&mut announcements, &node, &both, &options), Vec::<String>::new());
        tokio::time::advance(APPROVAL_DELAY).await;
        assert_eq!(
            steps(&mut announcements, &node, &both, &options),
            ["approve b"],
            "half a minute is no time to give away"
        );
        // One of them has ended.
        assert_eq!(steps(&mut announcements, &node, &[end], &options), ["say TerminateScheduled"]);
    }

    /// NODE-223
    #[tokio::test(start_paused = true)]
    async fn node_223_only_a_taint_of_ours_keeps_the_announcement_standing() {
        let tainted = |value: &str, status: &str| {
            node(json!({
                "metadata": {"name": "n1", "uid": "1"},
                "spec": {"taints": [{"key": names::TAINT_DRAINING, "value": value, "effect": "NoSchedule"}]},
                "status": {"conditions": [{"type": names::CONDITION_VM_EVENT_SCHEDULED, "status": status}]},
            }))
        };
        let none: [String; 0] = [];
        for (value, status, drains, first, later) in [
            // The state that an earlier process left.
            (
                "termination",
                "True",
                true,
                &none[..],
                &["untaint".to_owned(), "say NoVMEventScheduled".into()][..],
            ),
            ("spot-eviction", "True", true, &none, &["untaint".to_owned(), "say NoVMEventScheduled".into()]),
            ("mine", "True", true, &["say NoVMEventScheduled".to_owned()], &none),
            ("termination", "True", false, &["say NoVMEventScheduled".to_owned()], &none),
            ("termination", "False", true, &none, &none),
        ] {
            let (node, options) = (tainted(value, status), options(drains, false));
            let mut announcements = NodeAnnouncements::default();
            assert_eq!(steps(&mut announcements, &node, &[], &options), first, "{value} {status}");
            tokio::time::advance(CALM_TIMEOUT).await;
            assert_eq!(steps(&mut announcements, &node, &[], &options), later, "{value} {status}");
            // A node of the same name is a different one.
            let other = self::node(json!({"metadata": {"name": "n1", "uid": "2"}}));
            assert_eq!(steps(&mut announcements, &other, &[], &options), none);
        }
    }

    #[test]
    fn events_are_told_in_words() {
        let long = MachineEvent {
            is_shared: true,
            not_before: "Mon, 19 Sep 2016 18:29:47 GMT".into(),
            duration: Some(Duration::from_secs(9)),
            description: "Host maintenance.".into(),
            ..event("A", MachineEventType::Freeze)
        };
        assert_eq!(
            words(&long),
            "Freeze will not take place before Mon, 19 Sep 2016 18:29:47 GMT, for 9 s: Host maintenance. (event A)"
        );
        let started = MachineEvent { has_started: true, ..event("B", MachineEventType::Preempt) };
        assert_eq!(words(&started), "Preempt takes place now: the machine does not come back (event B)");
        assert_eq!(words(&event("C", MachineEventType::Other)), "Other will take place (event C)");
    }
}
