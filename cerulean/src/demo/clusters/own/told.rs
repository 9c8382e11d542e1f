//! What is told of clusters while they come and change: each thing once, when it comes about.

use std::collections::{BTreeMap, BTreeSet};

use azure_simulator::view::{ClusterPart, ClusterView, Stand};
use serde_json::Value;

/// What was told already.
#[derive(Debug, Default)]
pub struct Told {
    parts: BTreeMap<String, (Stand, String)>,
    troubles: BTreeSet<String>,
}

/// News of clusters.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct News {
    /// What came about.
    pub done: Vec<String>,
    /// What went wrong, or needs somebody.
    pub troubles: Vec<String>,
}

impl Told {
    /// What is new, given the trees of all clusters and all that is wrong now.
    pub fn news(&mut self, clusters: &[ClusterView], troubles: Vec<String>) -> News {
        let now: BTreeMap<String, (Stand, String)> = clusters
            .iter()
            .flat_map(|cluster| worth_telling(&cluster.parts))
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
        // What is over may come back, and is told again then.
        self.troubles = troubles;
        News { done, troubles: new }
    }
}

/// All but the single conditions of a network.
fn worth_telling(parts: &[ClusterPart]) -> Vec<&ClusterPart> {
    let mut of_network = false;
    let mut worth = Vec::new();
    for part in parts {
        if part.depth < 2 {
            of_network = part.name.starts_with("AzureCluster ");
        }
        if part.depth < 2 || !of_network {
            worth.push(part);
        }
    }
    worth
}

/// Whether there is a cluster, and nothing of any is still to come.
pub fn is_ready(clusters: &[ClusterView]) -> bool {
    !clusters.is_empty()
        && clusters.iter().all(|cluster| cluster.parts.iter().all(|part| part.stand == Stand::Done))
}

/// What is not done, as lines: of what has parts that are not done only these.
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

/// What objects of the management cluster say of themselves that is wrong, and what events warn of.
pub fn troubles(objects: &[Value], events: &[Value]) -> Vec<String> {
    let mut found = BTreeSet::new();
    let text = |value: &Value| value.as_str().unwrap_or_default().trim().replace('\n', " ");
    for object in objects {
        let name = format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]));
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
        let name = format!("{} {}", text(&about["kind"]), text(&about["name"]));
        found.insert((name, text(&event["message"])));
    }
    // The same is often said by two conditions, or by one and by an event in a longer sentence.
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
    use serde_json::json;

    use super::*;

    fn part(depth: usize, name: &str, stand: Stand, words: &str) -> ClusterPart {
        ClusterPart { depth, name: name.to_owned(), stand, words: words.to_owned(), zone: None }
    }

    fn cluster(parts: Vec<ClusterPart>) -> [ClusterView; 1] {
        [ClusterView { parts }]
    }

    #[test]
    fn each_thing_is_told_when_it_comes_about_and_when_it_goes() {
        let mut told = Told::default();
        let begins = cluster(vec![
            part(0, "Cluster c", Stand::Works, "provisioning"),
            part(1, "AzureCluster c", Stand::Works, "its network is made"),
            part(2, "Public IPs", Stand::Done, "ready"),
            part(1, "MachineDeployment w", Stand::Works, "0 of 1 ready"),
            part(2, "w-1", Stand::Waits, "waiting for bootstrap data"),
        ]);
        assert_eq!(told.news(&begins, Vec::new()), News::default());
        assert!(!is_ready(&begins));
        assert_eq!(open(&begins), ["AzureCluster c: its network is made", "w-1: waiting for bootstrap data"]);
        let ready = cluster(vec![
            part(0, "Cluster c", Stand::Done, "provisioned"),
            part(1, "MachineDeployment w", Stand::Done, "1 of 1 ready"),
            part(2, "w-1", Stand::Done, "its node is ready"),
        ]);
        let news = told.news(&ready, vec!["AzureMachine w-1: x".to_owned()]);
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
        assert_eq!(told.news(&ready, vec!["AzureMachine w-1: x".to_owned()]), News::default());
        // What is over and comes again is told again.
        let lost = cluster(vec![part(0, "Cluster c", Stand::Works, "provisioned")]);
        assert_eq!(told.news(&lost, Vec::new()).done, ["MachineDeployment w: gone", "w-1: gone"]);
        assert_eq!(told.news(&ready, Vec::new()).done.len(), 3);
        assert!(!is_ready(&[]));
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
