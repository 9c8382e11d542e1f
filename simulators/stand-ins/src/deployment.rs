//! Deployments: a ReplicaSet for each pod template, and the rollout from one to the next.
//!
//! A rollout follows `maxSurge` and `maxUnavailable`, or `Recreate`; revisions are stored in the annotations that
//! `kubectl rollout` reads. Left out: several ReplicaSets are not scaled in proportion when `replicas` changes in the
//! middle of a rollout, and ReplicaSets without a controller are not adopted.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::objects::{
    Action, Kind, Round, condition_of, hash, is_deleting, key, list, name, number, owner, replicas, scaled,
    text, time,
};
use crate::replica_set::sum;

/// The label that distinguishes the ReplicaSets of a Deployment and their pods.
const TEMPLATE_HASH: &str = "pod-template-hash";
/// The revision of a ReplicaSet, counted from 1.
const REVISION: &str = "deployment.kubernetes.io/revision";
/// The earlier revisions of a ReplicaSet to which a rollout went back.
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const MAX: &str = "deployment.kubernetes.io/max-replicas";
/// Annotations that belong to the Deployment alone and are not copied to its ReplicaSets.
const NOT_COPIED: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    HISTORY,
    DESIRED,
    MAX,
    "deprecated.deployment.rollback.to",
];

/// Reconciles the ReplicaSets of all Deployments.
pub(crate) fn keep_all(round: &mut Round<'_>) {
    for deployment in round.objects.of(Kind::Deployment).filter(|one| !is_deleting(one)) {
        let mut sets: Vec<&Value> = round.objects.controlled_by(Kind::ReplicaSet, deployment).collect();
        // The oldest first.
        sets.sort_by_key(|set| {
            (revision(set), text(&set["metadata"]["creationTimestamp"]).to_owned(), key(set))
        });
        Rollout::of(deployment, sets).keep(round);
    }
}

struct Rollout<'a> {
    deployment: &'a Value,
    sets: Vec<&'a Value>,
    /// The ReplicaSet of the current template.
    new: Option<&'a Value>,
    old: Vec<&'a Value>,
    wanted: u64,
    surge: u64,
    unavailable: u64,
}

impl<'a> Rollout<'a> {
    fn of(deployment: &'a Value, sets: Vec<&'a Value>) -> Self {
        let template = &deployment["spec"]["template"];
        let new = sets.iter().find(|set| is_of(set, template)).copied();
        let is_new = |set: &Value| new.is_some_and(|new| std::ptr::eq(new, set));
        let old = sets.iter().filter(|set| !is_new(set)).copied().collect();
        let wanted = replicas(deployment);
        let (mut surge, mut unavailable) = (0, 0);
        if !recreates(deployment) {
            let limits = &deployment["spec"]["strategy"]["rollingUpdate"];
            let limit = |member: &str, up| {
                let quarter = json!("25%");
                let limit = &limits[member];
                scaled(if limit.is_null() { &quarter } else { limit }, wanted, up).unwrap_or_default()
            };
            (surge, unavailable) = (limit("maxSurge", true), limit("maxUnavailable", false).min(wanted));
            // If both are 0, no pod could ever be replaced.
            if surge == 0 && unavailable == 0 {
                unavailable = 1;
            }
        }
        Self { deployment, sets, new, old, wanted, surge, unavailable }
    }

    fn keep(&self, round: &mut Round<'_>) {
        let mut created = None;
        if self.deployment["spec"]["paused"] == true {
            // A paused Deployment only scales.
            if let Some(active) = self.sets.iter().rev().find(|set| replicas(set) > 0).or(self.new.as_ref()) {
                self.scale(round, active, self.wanted);
            }
        } else {
            let old_has_pods =
                self.old.iter().any(|set| replicas(set) > 0 || number(&set["status"]["replicas"]) > 0);
            match self.new {
                None if recreates(self.deployment) && old_has_pods => {}
                None => created = Some(self.create(round)),
                Some(new) => self.number(round, new),
            }
            if recreates(self.deployment) {
                self.recreate(round, old_has_pods)
            } else {
                self.roll(round)
            }
            self.forget(round);
        }
        let status = self.status(round, created.as_deref());
        round.write_status(Kind::Deployment, self.deployment, status);
    }

    /// The allowed size of the new ReplicaSet: as many pods as fit below the surge.
    fn room(&self, new: u64) -> u64 {
        let all = new + self.old.iter().map(|set| replicas(set)).sum::<u64>();
        let more = (self.wanted + self.surge).saturating_sub(all);
        new + more.min(self.wanted.saturating_sub(new))
    }

    fn create(&self, round: &mut Round<'_>) -> String {
        let (metadata, spec) = (&self.deployment["metadata"], &self.deployment["spec"]);
        let hash = hash(&spec["template"]);
        let mut template = spec["template"].clone();
        template["metadata"]["labels"][TEMPLATE_HASH] = hash.as_str().into();
        let mut selector = spec["selector"].clone();
        selector["matchLabels"][TEMPLATE_HASH] = hash.as_str().into();
        let name = format!("{}-{hash}", text(&metadata["name"]));
        let number = self.next_revision();
        let mut annotations = self.annotations();
        annotations.insert(REVISION.to_owned(), number.as_str().into());
        round.act(Action::Create(
            Kind::ReplicaSet,
            json!({
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "metadata": {
                    "name": name,
                    "namespace": metadata["namespace"],
                    "labels": template["metadata"]["labels"],
                    "annotations": annotations,
                    "ownerReferences": [owner(Kind::Deployment, self.deployment)],
                },
                "spec": {
                    "replicas": self.room(0),
                    "minReadySeconds": spec["minReadySeconds"],
                    "selector": selector,
                    "template": template,
                },
            }),
        ));
        self.number_deployment(round, &number);
        name
    }

    fn next_revision(&self) -> String {
        (self.old.iter().map(|set| revision(set)).max().unwrap_or_default() + 1).to_string()
    }

    /// The annotations that a ReplicaSet has from its Deployment.
    fn annotations(&self) -> Map<String, Value> {
        let own = self.deployment["metadata"]["annotations"].as_object().into_iter().flatten();
        let mut annotations: Map<String, Value> = own
            .filter(|(key, _)| !NOT_COPIED.contains(&key.as_str()))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        annotations.insert(DESIRED.to_owned(), self.wanted.to_string().into());
        annotations.insert(MAX.to_owned(), (self.wanted + self.surge).to_string().into());
        annotations
    }

    /// Gives the new ReplicaSet the highest revision, even if it is an old one that a rollback returned to.
    fn number(&self, round: &mut Round<'_>, new: &Value) {
        let highest = self.old.iter().map(|set| revision(set)).max().unwrap_or_default();
        let mut annotations = self.annotations();
        let mut number = revision(new);
        if number <= highest {
            let history = match text(&new["metadata"]["annotations"][HISTORY]) {
                "" => number.to_string(),
                earlier => format!("{earlier},{number}"),
            };
            annotations.insert(HISTORY.to_owned(), history.into());
            number = highest + 1;
        }
        annotations.insert(REVISION.to_owned(), number.to_string().into());
        let before = &new["metadata"]["annotations"];
        annotations.retain(|annotation, value| before[annotation.as_str()] != *value);
        if !annotations.is_empty() {
            let patch = json!({"metadata": {"annotations": annotations}});
            round.act(Action::Patch(Kind::ReplicaSet, key(new), patch));
        }
        self.number_deployment(round, &number.to_string());
    }

    fn number_deployment(&self, round: &mut Round<'_>, number: &str) {
        if self.deployment["metadata"]["annotations"][REVISION] != number {
            let patch = json!({"metadata": {"annotations": {REVISION: number}}});
            round.act(Action::Patch(Kind::Deployment, key(self.deployment), patch));
        }
    }

    fn scale(&self, round: &mut Round<'_>, set: &Value, wanted: u64) {
        if replicas(set) != wanted {
            let patch = json!({"spec": {"replicas": wanted}});
            round.act(Action::Patch(Kind::ReplicaSet, key(set), patch));
        }
    }

    fn recreate(&self, round: &mut Round<'_>, old_has_pods: bool) {
        for set in &self.old {
            self.scale(round, set, 0);
        }
        if let Some(new) = self.new.filter(|_| !old_has_pods) {
            self.scale(round, new, self.wanted);
        }
    }

    fn roll(&self, round: &mut Round<'_>) {
        let Some(new) = self.new else { return };
        let size = replicas(new);
        if size > self.wanted {
            return self.scale(round, new, self.wanted);
        }
        let grown = self.room(size);
        if grown > size {
            return self.scale(round, new, grown);
        }
        // Deleting an unavailable pod costs nothing. Of the others, at most as many go as may be unavailable.
        let least = self.wanted.saturating_sub(self.unavailable);
        let all: u64 = self.sets.iter().map(|set| replicas(set)).sum();
        let not_yet = size.saturating_sub(number(&new["status"]["availableReplicas"]));
        let mut may_go = all.saturating_sub(least + not_yet);
        let mut sizes: Vec<u64> = self.old.iter().map(|set| replicas(set)).collect();
        for (set, size) in self.old.iter().zip(&mut sizes) {
            let idle = size.saturating_sub(number(&set["status"]["availableReplicas"])).min(may_go);
            *size -= idle;
            may_go -= idle;
        }
        let mut may_go = sum(&self.sets, "availableReplicas").saturating_sub(least).min(may_go);
        for size in &mut sizes {
            let served = (*size).min(may_go);
            *size -= served;
            may_go -= served;
        }
        for (set, size) in self.old.iter().zip(sizes) {
            self.scale(round, set, size);
        }
    }

    /// Deletes old ReplicaSets beyond `revisionHistoryLimit` once the rollout is complete.
    fn forget(&self, round: &mut Round<'_>) {
        let limit = self.deployment["spec"]["revisionHistoryLimit"].as_u64().unwrap_or(10);
        let empty = self
            .old
            .iter()
            .filter(|set| replicas(set) == 0 && number(&set["status"]["replicas"]) == 0 && !is_deleting(set));
        let empty: Vec<&&Value> = empty.collect();
        if self.is_complete() {
            let surplus = empty.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
            for set in empty.into_iter().take(surplus) {
                round.act(Action::Delete(Kind::ReplicaSet, key(set)));
            }
        }
    }

    fn updated(&self) -> u64 {
        self.new.map_or(0, |new| number(&new["status"]["replicas"]))
    }

    fn is_complete(&self) -> bool {
        self.updated() == self.wanted
            && sum(&self.sets, "replicas") == self.wanted
            && sum(&self.sets, "availableReplicas") == self.wanted
    }

    fn status(&self, round: &mut Round<'_>, created: Option<&str>) -> Value {
        let asked: u64 = self.sets.iter().map(|set| replicas(set)).sum();
        let available = sum(&self.sets, "availableReplicas");
        let mut status = json!({
            "observedGeneration": self.deployment["metadata"]["generation"],
            "replicas": sum(&self.sets, "replicas"),
            "updatedReplicas": self.updated(),
            "readyReplicas": sum(&self.sets, "readyReplicas"),
            "availableReplicas": available,
            "unavailableReplicas": asked.saturating_sub(available),
        });
        let enough = available >= self.wanted.saturating_sub(self.unavailable);
        let served = match enough {
            true => ("True", "MinimumReplicasAvailable", "Deployment has minimum availability."),
            false => {
                ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
            }
        };
        let available = self.dated(round, "Available", served, false);
        let progressing = self.progressing(round, &status, created);
        // Conditions keep the order in which they were first written.
        let mut conditions = vec![available];
        conditions.extend(progressing);
        let known = list(&self.deployment["status"]["conditions"]);
        conditions.sort_by_key(|condition| {
            known.iter().position(|one| one["type"] == condition["type"]).unwrap_or(known.len())
        });
        status["conditions"] = conditions.into();
        status
    }

    /// A condition with the time of its latest change.
    fn dated(
        &self,
        round: &Round<'_>,
        kind: &str,
        (status, reason, message): (&str, &str, &str),
        news: bool,
    ) -> Value {
        let mut condition = round.condition(self.deployment, kind, status, reason, message);
        if news || condition["lastUpdateTime"].is_null() {
            condition["lastUpdateTime"] = round.seconds().into();
            condition["message"] = message.into();
        }
        condition
    }

    fn progressing(&self, round: &mut Round<'_>, status: &Value, created: Option<&str>) -> Option<Value> {
        const KIND: &str = "Progressing";
        let deadline = self.deployment["spec"]["progressDeadlineSeconds"].as_u64()?;
        let before = condition_of(self.deployment, KIND);
        let reason = before.map(|one| text(&one["reason"])).unwrap_or_default();
        let subject = match self.new {
            Some(new) => format!("ReplicaSet \"{}\"", name(new)),
            None => format!("Deployment \"{}\"", name(self.deployment)),
        };
        let is = |round: &Round<'_>, status: &str, reason: &str, message: &str, news: bool| {
            Some(self.dated(round, KIND, (status, reason, message), news))
        };
        if self.deployment["spec"]["paused"] == true {
            return match reason {
                "ProgressDeadlineExceeded" => before.cloned(),
                _ => is(round, "Unknown", "DeploymentPaused", "Deployment is paused", false),
            };
        }
        if let Some(created) = created {
            return is(
                round,
                "True",
                "NewReplicaSetCreated",
                &format!("Created new replica set \"{created}\""),
                true,
            );
        }
        if reason == "DeploymentPaused" {
            return is(round, "Unknown", "DeploymentResumed", "Deployment is resumed", true);
        }
        if self.is_complete() {
            let message = format!("{subject} has successfully progressed.");
            let news =
                reason != "NewReplicaSetAvailable" || before.is_some_and(|one| one["message"] != message);
            return is(round, "True", "NewReplicaSetAvailable", &message, news);
        }
        if before.is_none() {
            return is(
                round,
                "True",
                "FoundNewReplicaSet",
                &format!("Found new replica set \"{}\"", self.new.map(name).unwrap_or_default()),
                true,
            );
        }
        // A completed rollout is not judged again because a pod is gone.
        if reason == "NewReplicaSetAvailable" && status["replicas"] == status["updatedReplicas"] {
            return before.cloned();
        }
        if self.has_progressed(status) {
            return is(round, "True", "ReplicaSetUpdated", &format!("{subject} is progressing."), true);
        }
        let latest = before.and_then(|one| time(&one["lastUpdateTime"])).unwrap_or(round.now);
        if reason != "ProgressDeadlineExceeded" && round.has_come(latest + Duration::from_secs(deadline)) {
            return is(
                round,
                "False",
                "ProgressDeadlineExceeded",
                &format!("{subject} has timed out progressing."),
                true,
            );
        }
        before.cloned()
    }

    fn has_progressed(&self, now: &Value) -> bool {
        let (before, now) = (&self.deployment["status"], now);
        let more = |member: &str| number(&now[member]) > number(&before[member]);
        let old =
            |status: &Value| number(&status["replicas"]).saturating_sub(number(&status["updatedReplicas"]));
        more("updatedReplicas")
            || more("readyReplicas")
            || more("availableReplicas")
            || old(now) < old(before)
    }
}

fn recreates(deployment: &Value) -> bool {
    deployment["spec"]["strategy"]["type"] == "Recreate"
}

fn revision(set: &Value) -> u64 {
    text(&set["metadata"]["annotations"][REVISION]).parse().unwrap_or_default()
}

/// Whether a ReplicaSet was made from this template.
fn is_of(set: &Value, template: &Value) -> bool {
    let mut own = set["spec"]["template"].clone();
    if let Some(labels) = own["metadata"]["labels"].as_object_mut() {
        labels.remove(TEMPLATE_HASH);
    }
    own == *template
}
