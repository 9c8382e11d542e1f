//! Reports on clusters while they change: each item once, when it happens.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use azure_simulator::view::{ClusterPart, ClusterView, Stand};
use serde_json::{Value, json};
use tokio::time::Instant;

/// Reasons of Cluster API's conditions for missing objects.
const MISSING: [&str; 4] =
    ["InfrastructureTemplateCloningFailed", "IncorrectExternalRef", "ObjectDoesNotExist", "ProbeFailed"];
/// Cluster API's condition for the connection to a Cluster's API server.
const PROBE: &str = "RemoteConnectionProbe";
const OUTSIDE: &str = ", as seen by the management cluster, which is outside of Azure's networks";

/// What was already reported.
#[derive(Debug, Default)]
pub struct ReportHistory {
    parts: BTreeMap<String, (Stand, String)>,
    troubles: BTreeSet<String>,
}

/// News of clusters.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct News {
    /// What was completed.
    pub done: Vec<String>,
    /// New problems.
    pub troubles: Vec<String>,
}

impl ReportHistory {
    /// Compares the trees of all clusters and all current problems with the last report.
    pub fn news(&mut self, clusters: &[ClusterView], troubles: Vec<String>) -> News {
        let now: BTreeMap<String, (Stand, String)> = clusters
            .iter()
            .flat_map(|cluster| reported_parts(&cluster.parts))
            .map(|part| (part.name.clone(), (part.stand, part.words.clone())))
            .collect();
        let mut done = Vec::new();
        for (name, (stand, words)) in &now {
            let before = self.parts.get(name);
            if *stand == Stand::Done && before.is_none_or(|before| *before != (*stand, words.clone())) {
                done.push(format!("{name}: {words}"));
            }
        }
        done.extend(
            self.parts.keys().filter(|name| !now.contains_key(*name)).map(|name| format!("{name}: gone")),
        );
        self.parts = now;
        let troubles: BTreeSet<String> = troubles.into_iter().collect();
        let new = troubles.difference(&self.troubles).cloned().collect();
        // A problem that is gone may come back, and is reported again then.
        self.troubles = troubles;
        News { done, troubles: new }
    }
}

/// All parts except the single resources of a network or of a control plane that Azure manages.
fn reported_parts(parts: &[ClusterPart]) -> Vec<&ClusterPart> {
    let mut of_resources = false;
    let mut reported = Vec::new();
    for part in parts {
        if part.depth < 2 {
            of_resources = part.name.starts_with("Azure");
        }
        if part.depth < 2 || !of_resources {
            reported.push(part);
        }
    }
    reported
}

/// Whether there is a cluster, and everything of all clusters is ready.
pub fn is_ready(clusters: &[ClusterView]) -> bool {
    !clusters.is_empty()
        && clusters.iter().all(|cluster| cluster.parts.iter().all(|part| part.stand == Stand::Done))
}

/// The parts that are not done, as lines: if a part has parts of its own that are not done, only these.
pub fn open(clusters: &[ClusterView]) -> Vec<String> {
    let mut open = Vec::new();
    for ClusterView { parts } in clusters {
        for (index, part) in parts.iter().enumerate() {
            let mut below = parts.iter().skip(index + 1).take_while(|later| later.depth > part.depth);
            if part.stand != Stand::Done && !below.any(|later| later.stand != Stand::Done) {
                open.push(format!("{}: {}", part.name, part.words));
            }
        }
    }
    open
}

/// Problems that are reported only if they last: the missing object may just not exist yet.
#[derive(Debug, Default)]
pub struct LastingProblems {
    since: BTreeMap<String, Instant>,
}

impl LastingProblems {
    /// The problems at `now` that have lasted for `min_duration`.
    pub fn lasting(&mut self, wrong: Vec<String>, now: Instant, min_duration: Duration) -> Vec<String> {
        self.since.retain(|text, _| wrong.contains(text));
        for text in wrong {
            self.since.entry(text).or_insert(now);
        }
        let lasts = self.since.iter().filter(|(_, since)| now.duration_since(**since) >= min_duration);
        lasts.map(|(text, _)| text.clone()).collect()
    }
}

/// Problems that Cluster API reports, and that count if they last: a missing reference, or an API server that does not
/// answer.
pub fn missing(objects: &[Value]) -> Vec<String> {
    let mut found = BTreeSet::new();
    // An object that is being deleted loses what it refers to.
    for object in objects.iter().filter(|it| it["metadata"]["deletionTimestamp"].is_null()) {
        let status = &object["status"];
        let conditions = [&status["conditions"], &status["deprecated"]["v1beta1"]["conditions"]];
        let conditions = conditions.into_iter().filter_map(Value::as_array).flatten();
        let unmet = conditions
            .filter(|one| one["status"] == "False" && MISSING.iter().any(|it| one["reason"] == *it));
        for one in unmet {
            let message = one["message"].as_str().unwrap_or_default();
            let why = if one["type"] == PROBE { OUTSIDE } else { "" };
            if !message.is_empty() {
                found.insert(format!("{}: {message}{why}", title(object)));
            }
        }
    }
    found.into_iter().collect()
}

/// Kind and name, with the namespace unless it is the default one.
pub fn title(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let namespace = match text(&object["metadata"]["namespace"]).as_str() {
        "" | "default" => String::new(),
        other => format!("{other}/"),
    };
    format!("{} {namespace}{}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

/// The problems that objects of the management cluster report themselves, and the warnings of events.
pub fn troubles(objects: &[Value], events: &[Value]) -> Vec<String> {
    let mut found = BTreeSet::new();
    let text = |value: &Value| value.as_str().unwrap_or_default().trim().replace('\n', " ");
    for object in objects {
        let name = title(object);
        let status = &object["status"];
        for failure in ["failureMessage", "errorMessage"] {
            found.insert((name.clone(), text(&status[failure])));
        }
        let conditions = status["conditions"].as_array().into_iter().flatten();
        let wrong = conditions.filter(|one| one["status"] == "False" && is_severe(one));
        found.extend(wrong.map(|one| (name.clone(), text(&one["message"]))));
    }
    for event in events.iter().filter(|event| event["type"] == "Warning") {
        let about = &event["involvedObject"];
        let name = title(&json!({ "kind": about["kind"], "metadata": about }));
        found.insert((name, text(&event["message"])));
    }
    // Two conditions often report the same problem, or a condition and a longer event.
    let words = |(name, message): &(String, String)| format!("{name}: {message}");
    let is_said = |one: &&(String, String)| {
        !found.iter().any(|other| other != *one && other.0 == one.0 && other.1.contains(&one.1))
    };
    found.iter().filter(|one| !one.1.is_empty()).filter(is_said).map(words).collect()
}

fn is_severe(condition: &Value) -> bool {
    condition["severity"] == "Error" || condition["severity"] == "Warning"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(depth: usize, name: &str, stand: Stand, words: &str) -> ClusterPart {
        ClusterPart { depth, name: name.to_owned(), stand, words: words.to_owned(), zone: None }
    }

    fn cluster(parts: Vec<ClusterPart>) -> [ClusterView; 1] {
        [ClusterView { parts }]
    }

    #[test]
    fn each_thing_is_told_when_it_comes_about_and_when_it_goes() {
        let mut history = ReportHistory::default();
        let begins = cluster(vec![
            part(0, "Cluster c", Stand::Works, "provisioning"),
            part(1, "AzureCluster c", Stand::Works, "its network is made"),
            part(2, "Public IPs", Stand::Done, "ready"),
            part(1, "MachineDeployment w", Stand::Works, "0 of 1 ready"),
            part(2, "w-1", Stand::Waits, "waiting for bootstrap data"),
        ]);
        assert_eq!(history.news(&begins, Vec::new()), News::default());
        assert!(!is_ready(&begins));
        assert_eq!(open(&begins), ["AzureCluster c: its network is made", "w-1: waiting for bootstrap data"]);
        let ready = cluster(vec![
            part(0, "Cluster c", Stand::Done, "provisioned"),
            part(1, "MachineDeployment w", Stand::Done, "1 of 1 ready"),
            part(2, "w-1", Stand::Done, "its node is ready"),
        ]);
        let news = history.news(&ready, vec!["AzureMachine w-1: x".to_owned()]);
        assert_eq!(
            news.done,
            [
                "Cluster c: provisioned",
                "MachineDeployment w: 1 of 1 ready",
                "w-1: its node is ready",
                "AzureCluster c: gone"
            ]
        );
        assert_eq!(news.troubles, ["AzureMachine w-1: x"]);
        assert!(is_ready(&ready) && open(&ready).is_empty());
        assert_eq!(history.news(&ready, vec!["AzureMachine w-1: x".to_owned()]), News::default());
        // A part that is gone and comes back is reported again.
        let lost = cluster(vec![part(0, "Cluster c", Stand::Works, "provisioned")]);
        assert_eq!(history.news(&lost, Vec::new()).done, ["MachineDeployment w: gone", "w-1: gone"]);
        assert_eq!(history.news(&ready, Vec::new()).done.len(), 3);
        assert!(!is_ready(&[]));
    }

    #[test]
    fn what_is_missing_is_said_when_it_lasts() {
        let condition = |kind: &str, reason: &str, message: &str| json!([{ "type": kind, "status": "False", "reason": reason, "message": message }]);
        let cluster = json!({ "kind": "Cluster", "metadata": { "name": "c", "namespace": "team" },
            "status": { "conditions": condition("RemoteConnectionProbe", "ProbeFailed", "10.0.0.4:6443 does not answer") } });
        let set = json!({ "kind": "MachineSet", "metadata": { "name": "s", "namespace": "default" },
            "status": { "deprecated": { "v1beta1": { "conditions":
                condition("MachinesCreated", "InfrastructureTemplateCloningFailed", "AzureMachineTemplate t does not exist") } } } });
        let waits = json!({ "kind": "MachineSet", "metadata": { "name": "w" },
            "status": { "conditions": condition("MachinesCreated", "PreflightCheckFailed", "Waiting") } });
        let wrong = missing(&[cluster, set, waits]);
        assert_eq!(
            wrong,
            [
                format!("Cluster team/c: 10.0.0.4:6443 does not answer{OUTSIDE}"),
                "MachineSet s: AzureMachineTemplate t does not exist".to_owned(),
            ]
        );
        let (mut patient, begun, patience) =
            (LastingProblems::default(), Instant::now(), Duration::from_secs(10));
        let after = |seconds: u64| begun + Duration::from_secs(seconds);
        assert!(patient.lasting(wrong.clone(), begun, patience).is_empty());
        assert_eq!(patient.lasting(wrong[1..].to_vec(), after(10), patience), wrong[1..]);
        // A problem that was gone meanwhile starts anew.
        assert_eq!(patient.lasting(wrong.clone(), after(11), patience), wrong[1..]);
    }

    #[test]
    fn what_is_wrong_is_said_once_with_its_object() {
        let machine = json!({
            "kind": "AzureMachine", "metadata": { "name": "m" },
            "status": {
                "failureMessage": "no such size",
                "conditions": [
                    { "type": "VMRunning", "status": "False", "severity": "Info", "message": "it is made" },
                    { "type": "VMRunning", "status": "False", "severity": "Error", "message": "quota is used up" },
                    { "type": "Ready", "status": "False", "severity": "Error", "message": "quota is used up" },
                ],
            },
        });
        let event = |kind: &str, message: &str| json!({ "type": kind, "message": message, "involvedObject": { "kind": "AzureMachine", "name": "m" } });
        let events = [
            event("Warning", "cannot be made: quota is used up"),
            event("Normal", "made"),
            event("Warning", "no\nidentity"),
        ];
        assert_eq!(
            troubles(&[machine], &events),
            [
                "AzureMachine m: cannot be made: quota is used up",
                "AzureMachine m: no identity",
                "AzureMachine m: no such size"
            ]
        );
    }
}
