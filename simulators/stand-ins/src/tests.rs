//! Controllers, scheduler and kubelets together, at a mock API that performs every action.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::controllers::decide;
use crate::objects::{Action, Kind, Objects, is_ready, key, list, name, text};

const NOW: &str = "2026-01-01T00:00:00Z";

fn node(name: &str, ready: bool) -> Value {
    let status = if ready { "True" } else { "Unknown" };
    json!({"metadata": {"name": name}, "spec": {},
        "status": {"conditions": [{"type": "Ready", "status": status}],
            "addresses": [{"type": "InternalIP", "address": "10.240.0.4"}]}})
}

fn deployment(replicas: u64, image: &str) -> Value {
    json!({"metadata": {"namespace": "shop", "name": "web", "uid": "web", "generation": 1},
        "spec": {"replicas": replicas, "progressDeadlineSeconds": 600, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": image}]}}}})
}

/// Objects at a mock API that performs every action.
struct Api {
    objects: Objects,
    made: usize,
    events: Vec<Value>,
    now: Timestamp,
    /// How far time may advance by itself.
    end: Timestamp,
}

impl Api {
    fn new(objects: impl IntoIterator<Item = (Kind, Value)>) -> Self {
        let mut all = Objects::default();
        objects.into_iter().for_each(|(kind, object)| all.insert(kind, object));
        let now: Timestamp = NOW.parse().unwrap();
        Self { objects: all, made: 0, events: Vec::new(), now, end: now + Duration::from_secs(60) }
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Create(kind, mut object) => {
                self.made += 1;
                let metadata = &mut object["metadata"];
                metadata["uid"] = format!("uid-{}", self.made).into();
                if let Some(prefix) = metadata["generateName"].as_str() {
                    metadata["name"] = format!("{prefix}{:05}", self.made).into();
                }
                assert!(self.objects.get(kind, &key(&object)).is_none(), "made twice: {object}");
                self.objects.insert(kind, object);
            }
            Action::Patch(kind, key, patch) => {
                let mut object = self.objects.get(kind, &key).unwrap().clone();
                json_patch::merge(&mut object, &patch);
                self.objects.insert(kind, object);
            }
            Action::PatchStatus(kind, key, status) => {
                let mut object = self.objects.get(kind, &key).unwrap().clone();
                json_patch::merge(&mut object["status"], &status);
                self.objects.insert(kind, object);
            }
            // The kubelet ends a pod that has a node; all other objects are deleted at once.
            Action::Delete(Kind::Pod, key) => {
                let mut pod = self.objects.get(Kind::Pod, &key).unwrap().clone();
                if pod["spec"]["nodeName"].is_null() {
                    return self.objects.remove(Kind::Pod, &key);
                }
                pod["metadata"]["deletionTimestamp"] = NOW.into();
                self.objects.insert(Kind::Pod, pod);
            }
            Action::Delete(kind, key) => self.objects.remove(kind, &key),
            Action::Finish(key) => self.objects.remove(Kind::Pod, &key),
            Action::Bind(key, node) => {
                let mut pod = self.objects.get(Kind::Pod, &key).unwrap().clone();
                pod["spec"]["nodeName"] = node.into();
                self.objects.insert(Kind::Pod, pod);
            }
            Action::Record(event) => self.events.push(event),
        }
    }

    /// Runs rounds until no action is left; returns the names of the images that ran at each step.
    fn settle(&mut self) -> Vec<Vec<String>> {
        let mut steps = Vec::new();
        for _ in 0..100 {
            let round = decide(&self.objects, self.now);
            let (actions, wake) = (round.actions, round.wake);
            match wake {
                // No action is left but to wait for a time that comes soon.
                Some(wake) if actions.is_empty() && wake < self.end => self.now = wake,
                _ if actions.is_empty() => return steps,
                _ => {}
            }
            actions.into_iter().for_each(|action| self.perform(action));
            steps.push(self.images());
        }
        panic!("never at rest: {:#?}", decide(&self.objects, self.now).actions);
    }

    /// The images of all pods that are ready.
    fn images(&self) -> Vec<String> {
        let ready = self.objects.of(Kind::Pod).filter(|pod| is_ready(pod));
        ready.map(|pod| text(&pod["spec"]["containers"][0]["image"]).to_owned()).collect()
    }

    /// The nodes of all pods, in order; those without one have an empty name.
    fn places(&self) -> Vec<&str> {
        let mut places: Vec<&str> =
            self.objects.of(Kind::Pod).map(|pod| text(&pod["spec"]["nodeName"])).collect();
        places.sort_unstable();
        places
    }

    fn only(&self, kind: Kind) -> &Value {
        let all: Vec<&Value> = self.objects.of(kind).collect();
        assert_eq!(all.len(), 1, "{all:?}");
        all[0]
    }

    fn status(&self) -> &Value {
        &self.only(Kind::Deployment)["status"]
    }

    fn annotation(&self, name: &str) -> &str {
        text(&self.only(Kind::Deployment)["metadata"]["annotations"][name])
    }

    /// Changes the spec of an object, as a user does who applies it.
    fn change(&mut self, kind: Kind, patch: &Value) {
        let mut object = self.only(kind).clone();
        json_patch::merge(&mut object, patch);
        self.objects.insert(kind, object);
    }

    fn names(&self, kind: Kind) -> Vec<&str> {
        self.objects.of(kind).map(name).collect()
    }
}

fn on_two_nodes(deployment: Value) -> Api {
    let nodes = ["n0", "n1"].map(|name| (Kind::Node, node(name, true)));
    Api::new([(Kind::Deployment, deployment)].into_iter().chain(nodes))
}

#[test]
fn pods_are_spread_over_the_nodes_and_counted() {
    let mut api = on_two_nodes(deployment(3, "a"));
    api.settle();
    assert_eq!(api.places(), ["n0", "n0", "n1"]);
    let status = api.status();
    assert_eq!((&status["readyReplicas"], &status["updatedReplicas"]), (&json!(3), &json!(3)));
    assert_eq!(status["conditions"][0]["status"], "True");
    assert_eq!(status["conditions"][1]["reason"], "NewReplicaSetAvailable");
    assert_eq!(api.annotation("deployment.kubernetes.io/revision"), "1");
    api.change(Kind::Deployment, &json!({"spec": {"replicas": 1}}));
    api.settle();
    assert_eq!(api.places().len(), 1);
}

#[test]
fn pods_of_a_new_template_come_before_the_old_ones_go() {
    let mut api = on_two_nodes(deployment(2, "a"));
    api.settle();
    api.change(Kind::Deployment, &deployment(2, "b"));
    let steps = api.settle();
    assert!(steps.iter().all(|images| (2..=3).contains(&images.len())), "{steps:?}");
    assert_eq!(api.images(), ["b", "b"]);
    assert_eq!(api.objects.of(Kind::ReplicaSet).count(), 2, "the old one can be gone back to");
}

#[test]
fn recreated_pods_never_run_beside_those_that_they_replace() {
    let recreated = |image| {
        let mut deployment = deployment(2, image);
        deployment["spec"]["strategy"] = json!({"type": "Recreate"});
        deployment
    };
    let mut api = on_two_nodes(recreated("a"));
    api.settle();
    api.change(Kind::Deployment, &recreated("b"));
    let steps = api.settle();
    assert!(steps.iter().all(|images| images.iter().all(|image| *image == images[0])), "{steps:?}");
    assert_eq!(api.images(), ["b", "b"]);
}

#[test]
fn a_pod_waits_for_a_node_that_takes_it() {
    let mut tainted = node("n0", true);
    tainted["spec"]["taints"] =
        json!([{"key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoSchedule"}]);
    let mut api = Api::new([(Kind::Deployment, deployment(1, "a")), (Kind::Node, tainted)]);
    api.settle();
    assert_eq!((api.places(), api.images().len()), (vec![""], 0));
    let pod = api.objects.of(Kind::Pod).next().unwrap();
    assert_eq!(pod["status"]["conditions"][0]["reason"], "Unschedulable");
    assert_eq!(pod["status"]["conditions"][0]["message"], "0/1 nodes are available.");
    api.objects.insert(Kind::Node, node("n0", true));
    api.settle();
    let reports: Vec<_> =
        api.events.iter().map(|event| (text(&event["reason"]), text(&event["message"]))).collect();
    assert_eq!(reports, [("FailedScheduling", "0/1 nodes are available.")], "W10: reported once");
    assert_eq!((api.places(), api.images().len()), (vec!["n0"], 1));
}

#[test]
fn pods_are_as_ready_as_their_node_and_go_with_it() {
    let mut api = on_two_nodes(deployment(2, "a"));
    api.settle();
    api.objects.insert(Kind::Node, node("n1", false));
    api.settle();
    assert_eq!((api.places(), api.images().len()), (vec!["n0", "n1"], 1));
    assert_eq!(api.status()["conditions"][0]["status"], "False");
    api.objects.remove(Kind::Node, &(String::new(), "n1".to_owned()));
    api.settle();
    assert_eq!((api.places(), api.images().len()), (vec!["n0", "n0"], 2));
}

#[test]
fn a_rollout_keeps_to_its_limits() {
    for (surge, unavailable, seen) in [(json!(0), json!(1), 3..=4), (json!("50%"), json!(0), 4..=6)] {
        let mut api = on_two_nodes(deployment(4, "a"));
        let strategy = json!({"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}});
        api.change(Kind::Deployment, &json!({"spec": {"strategy": strategy}}));
        api.settle();
        api.change(Kind::Deployment, &deployment(4, "b"));
        let steps = api.settle();
        let counts: Vec<usize> = steps.iter().map(Vec::len).collect();
        assert!(counts.iter().all(|count| seen.contains(count)), "{surge} {unavailable}: {counts:?}");
        assert!(counts.contains(seen.start()) || counts.contains(seen.end()), "{counts:?}");
        assert_eq!(api.images(), ["b"; 4]);
    }
}

#[test]
fn going_back_gives_the_old_replica_set_the_next_number() {
    let mut api = on_two_nodes(deployment(1, "a"));
    for (image, revision) in [("a", "1"), ("b", "2"), ("a", "3")] {
        api.change(Kind::Deployment, &deployment(1, image));
        api.settle();
        assert_eq!(
            (api.images(), api.annotation("deployment.kubernetes.io/revision")),
            (vec![image.to_owned()], revision)
        );
    }
    let sets: Vec<&Value> = api.objects.of(Kind::ReplicaSet).collect();
    let back = sets.iter().find(|set| set["spec"]["replicas"] == 1).unwrap();
    assert_eq!(back["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"], "1");
    assert_eq!(sets.len(), 2);
}

#[test]
fn a_paused_deployment_changes_nothing_but_its_size() {
    let mut api = on_two_nodes(deployment(1, "a"));
    api.settle();
    api.change(Kind::Deployment, &json!({"spec": {"paused": true}}));
    api.change(Kind::Deployment, &deployment(3, "b"));
    api.settle();
    assert_eq!(api.images(), ["a"; 3]);
    api.change(Kind::Deployment, &json!({"spec": {"paused": null}}));
    api.settle();
    assert_eq!(api.images(), ["b"; 3]);
}

#[test]
fn a_rollout_that_stands_still_is_called_overdue() {
    let mut api = Api::new([(Kind::Deployment, deployment(1, "a"))]);
    api.change(Kind::Deployment, &json!({"spec": {"progressDeadlineSeconds": 30}}));
    api.settle();
    let progress = list(&api.status()["conditions"]).iter().find(|one| one["type"] == "Progressing").unwrap();
    assert_eq!(
        (&progress["status"], &progress["reason"]),
        (&json!("False"), &json!("ProgressDeadlineExceeded"))
    );
}

fn stateful_set(replicas: u64, image: &str) -> Value {
    json!({"metadata": {"namespace": "shop", "name": "db", "uid": "db", "generation": 1},
        "spec": {"replicas": replicas, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
            "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "db", "image": image}]}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]}})
}

fn with_nodes(kind: Kind, object: Value) -> Api {
    let nodes = ["n0", "n1"].map(|name| (Kind::Node, node(name, true)));
    Api::new([(kind, object)].into_iter().chain(nodes))
}

#[test]
fn pods_of_a_stateful_set_come_and_go_in_order() {
    let mut api = with_nodes(Kind::StatefulSet, stateful_set(3, "a"));
    let counts: Vec<usize> = api.settle().iter().map(Vec::len).collect();
    assert!(counts.windows(2).all(|pair| pair[1] <= pair[0] + 1), "one after the other: {counts:?}");
    assert_eq!(api.names(Kind::Pod), ["db-0", "db-1", "db-2"]);
    assert_eq!(api.names(Kind::PersistentVolumeClaim), ["data-db-0", "data-db-1", "data-db-2"]);
    api.change(Kind::StatefulSet, &json!({"spec": {"replicas": 1}}));
    api.settle();
    assert_eq!(api.names(Kind::Pod), ["db-0"]);
    assert_eq!(api.only(Kind::StatefulSet)["status"]["readyReplicas"], 1);
}

#[test]
fn a_stateful_set_is_updated_down_to_its_partition() {
    let mut api = with_nodes(Kind::StatefulSet, stateful_set(3, "a"));
    api.settle();
    let partition = json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 1}}}});
    api.change(Kind::StatefulSet, &partition);
    api.change(Kind::StatefulSet, &stateful_set(3, "b"));
    let steps = api.settle();
    assert!(steps.iter().all(|images| images.len() >= 2), "{steps:?}");
    assert_eq!(api.images(), ["a", "b", "b"]);
    let status = &api.only(Kind::StatefulSet)["status"];
    assert_ne!(status["currentRevision"], status["updateRevision"]);
    assert_eq!(status["updatedReplicas"], 2);
    api.change(Kind::StatefulSet, &json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}}));
    api.settle();
    assert_eq!(api.images(), ["b"; 3]);
    assert_eq!(api.names(Kind::ControllerRevision).len(), 2);
}

#[test]
fn a_daemon_set_has_a_pod_on_every_node_that_may_have_it() {
    let set = |image: &str| {
        json!({"metadata": {"namespace": "shop", "name": "log", "uid": "log", "generation": 1},
            "spec": {"selector": {"matchLabels": {"app": "log"}},
                "template": {"metadata": {"labels": {"app": "log"}}, "spec": {"containers": [{"name": "log", "image": image}]}}}})
    };
    let mut api = with_nodes(Kind::DaemonSet, set("a"));
    let mut cordoned = node("n1", true);
    cordoned["spec"]["unschedulable"] = true.into();
    api.objects.insert(Kind::Node, cordoned);
    let mut tainted = node("n2", true);
    tainted["spec"]["taints"] = json!([{"key": "gpu", "effect": "NoSchedule"}]);
    api.objects.insert(Kind::Node, tainted);
    api.settle();
    assert_eq!(api.places(), ["n0", "n1"], "cordoned nodes have it, tainted ones do not");
    api.change(Kind::DaemonSet, &set("b"));
    let steps = api.settle();
    assert!(steps.iter().all(|images| !images.is_empty()), "one at a time: {steps:?}");
    assert_eq!(api.images(), ["b", "b"]);
    api.objects.remove(Kind::Node, &(String::new(), "n1".to_owned()));
    api.settle();
    assert_eq!(api.places(), ["n0"]);
    let status = &api.only(Kind::DaemonSet)["status"];
    assert_eq!(
        (&status["desiredNumberScheduled"], &status["updatedNumberScheduled"]),
        (&json!(1), &json!(1))
    );
}

#[test]
fn a_job_ends_when_enough_of_its_pods_have() {
    let job = json!({"metadata": {"namespace": "shop", "name": "sum", "uid": "sum"},
        "spec": {"completions": 3, "parallelism": 2,
            "template": {"metadata": {"labels": {"app": "sum"}}, "spec": {"containers": [{"name": "sum", "image": "a"}]}}}});
    let mut api = with_nodes(Kind::Job, job);
    let steps = api.settle();
    assert!(steps.iter().all(|images| images.len() <= 2), "{steps:?}");
    let status = &api.only(Kind::Job)["status"];
    assert_eq!((&status["succeeded"], &status["active"]), (&json!(3), &json!(0)));
    let conditions: Vec<_> = list(&status["conditions"]).iter().map(|one| &one["type"]).collect();
    assert_eq!(conditions, ["SuccessCriteriaMet", "Complete"]);
    assert_eq!(api.names(Kind::Pod).len(), 3, "what has ended can be looked at");
    api.change(Kind::Job, &json!({"spec": {"ttlSecondsAfterFinished": 10}}));
    api.settle();
    assert_eq!(api.names(Kind::Job), Vec::<&str>::new());
}

#[test]
fn a_job_that_fails_too_often_has_failed() {
    let job = json!({"metadata": {"namespace": "shop", "name": "sum", "uid": "sum"},
        "spec": {"backoffLimit": 0, "template": {"spec": {"containers": [{"name": "sum", "image": "a"}]}}}});
    let mut api = with_nodes(Kind::Job, job);
    api.end = api.now;
    api.settle();
    api.change(Kind::Pod, &json!({"status": {"phase": "Failed"}}));
    api.settle();
    assert_eq!(api.only(Kind::Job)["status"]["conditions"][0]["reason"], "BackoffLimitExceeded");
}

#[test]
fn budgets_count_what_may_be_disturbed() {
    for (budget, allowed) in [
        (json!({"minAvailable": 2}), 1),
        (json!({"minAvailable": "50%"}), 1),
        (json!({"minAvailable": 3}), 0),
        (json!({"maxUnavailable": 1}), 1),
        (json!({"maxUnavailable": "100%"}), 3),
        (json!({"maxUnavailable": 0}), 0),
    ] {
        let mut api = on_two_nodes(deployment(3, "a"));
        let mut spec = budget.clone();
        spec["selector"] = json!({"matchLabels": {"app": "web"}});
        api.objects.insert(
            Kind::PodDisruptionBudget,
            json!({"metadata": {"namespace": "shop", "name": "web", "generation": 1}, "spec": spec}),
        );
        api.settle();
        let status = &api.only(Kind::PodDisruptionBudget)["status"];
        assert_eq!(status["disruptionsAllowed"], allowed, "{budget}");
        assert_eq!(status["currentHealthy"], 3);
    }
}

#[test]
fn endpoints_are_the_pods_that_a_service_selects() {
    let mut api = on_two_nodes(deployment(2, "a"));
    let service = |name: &str, app: &str| {
        json!({"metadata": {"namespace": "shop", "name": name, "uid": name},
            "spec": {"selector": {"app": app}, "ports": [{"port": 80, "targetPort": 8080, "protocol": "TCP"}]}})
    };
    api.objects.insert(Kind::Service, service("web", "web"));
    api.objects.insert(Kind::Service, service("none", "none"));
    api.settle();
    let endpoints = api.only(Kind::Endpoints);
    assert_eq!((name(endpoints), &endpoints["subsets"][0]["ports"][0]["port"]), ("web", &json!(8080)));
    assert_eq!(endpoints["subsets"][0]["addresses"].as_array().unwrap().len(), 2);
    api.objects.insert(Kind::Node, node("n1", false));
    api.settle();
    let subset = &api.only(Kind::Endpoints)["subsets"][0];
    assert_eq!(subset["notReadyAddresses"].as_array().unwrap().len(), 1);
}

#[test]
fn claims_and_volumes_that_nobody_uses_are_let_go() {
    let going = |name: &str, finalizers: Value| {
        json!({"metadata": {"namespace": "shop", "name": name, "finalizers": finalizers, "deletionTimestamp": NOW,
            "resourceVersion": "7"}})
    };
    let claim =
        |name: &str| (Kind::PersistentVolumeClaim, going(name, json!(["kubernetes.io/pvc-protection"])));
    let pod = |name: &str, node: Value, claim: &str| {
        let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]);
        let pod = json!({"metadata": {"namespace": "shop", "name": name},
            "spec": {"nodeName": node, "volumes": volumes}});
        (Kind::Pod, pod)
    };
    let mut bound = going("bound", json!(["kubernetes.io/pv-protection"]));
    bound["status"]["phase"] = "Bound".into();
    let staying = json!({"metadata": {"namespace": "shop", "name": "staying",
        "finalizers": ["kubernetes.io/pvc-protection"]}});
    let mut objects = Objects::default();
    for (kind, object) in [
        claim("used"),
        claim("waited-for"),
        claim("free"),
        pod("a", json!("node-0"), "used"),
        pod("b", Value::Null, "waited-for"),
        (Kind::PersistentVolumeClaim, staying),
        (Kind::PersistentVolume, bound),
        (Kind::PersistentVolume, going("released", json!(["example.com/x", "kubernetes.io/pv-protection"]))),
    ] {
        objects.insert(kind, object);
    }
    let mut round = crate::objects::Round::new(&objects, NOW.parse().unwrap());
    crate::protection::keep_all(&mut round);
    let done: Vec<(&str, &Value)> = round
        .actions
        .iter()
        .map(|action| match action {
            Action::Patch(_, (_, name), patch) => (name.as_str(), &patch["metadata"]["finalizers"]),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        done,
        [("free", &json!([])), ("waited-for", &json!([])), ("released", &json!(["example.com/x"]))]
    );
}
