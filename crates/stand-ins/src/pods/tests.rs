use super::*;

const NOW: &str = "2026-01-01T00:00:00Z";

fn node(name: &str, ready: bool) -> Value {
    let status = if ready { "True" } else { "Unknown" };
    json!({"metadata": {"name": name}, "spec": {},
        "status": {"conditions": [{"type": "Ready", "status": status}],
            "addresses": [{"type": "InternalIP", "address": "10.240.0.4"}]}})
}

fn deployment(replicas: u64, image: &str) -> Value {
    json!({"metadata": {"namespace": "shop", "name": "web", "uid": "web", "generation": 1},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": image}]}}}})
}

/// Objects at an API that does as it is told.
struct Api {
    objects: Objects,
    made: usize,
}

impl Api {
    fn new(objects: impl IntoIterator<Item = (Kind, Value)>) -> Self {
        let mut all = Objects::default();
        objects.into_iter().for_each(|(kind, object)| all.insert(kind, object));
        Self { objects: all, made: 0 }
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
                self.objects.insert(kind, object);
            }
            Action::Patch(kind, key, patch) => {
                let mut object = self.objects.0[&(kind, key)].clone();
                json_patch::merge(&mut object, &patch);
                self.objects.insert(kind, object);
            }
            Action::PatchStatus(kind, key, status) => {
                let mut object = self.objects.0[&(kind, key)].clone();
                json_patch::merge(&mut object["status"], &status);
                self.objects.insert(kind, object);
            }
            Action::Delete(kind, key) => self.objects.remove(kind, &key),
        }
    }

    /// Goes on until nothing is left to be done; gives the names of the images that ran at each step.
    fn settle(&mut self) -> Vec<Vec<String>> {
        let mut steps = Vec::new();
        for _ in 0..50 {
            let actions = next_actions(&self.objects, NOW);
            if actions.is_empty() {
                return steps;
            }
            actions.into_iter().for_each(|action| self.perform(action));
            steps.push(self.images());
        }
        panic!("never at rest: {:#?}", next_actions(&self.objects, NOW));
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

    fn status(&self) -> &Value {
        &self.objects.of(Kind::Deployment).next().unwrap()["status"]
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
    api.objects.insert(Kind::Deployment, deployment(1, "a"));
    api.settle();
    assert_eq!(api.places().len(), 1);
}

#[test]
fn pods_of_a_new_template_come_before_the_old_ones_go() {
    let mut api = on_two_nodes(deployment(2, "a"));
    api.settle();
    api.objects.insert(Kind::Deployment, deployment(2, "b"));
    let steps = api.settle();
    assert!(steps.iter().all(|images| images.len() >= 2), "{steps:?}");
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
    api.objects.insert(Kind::Deployment, recreated("b"));
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
    api.objects.insert(Kind::Node, node("n0", true));
    api.settle();
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
fn taints_are_tolerated_and_nodes_selected_as_pods_say() {
    let mut special = node("n0", true);
    special["metadata"]["labels"] = json!({"pool": "spot"});
    special["spec"]["taints"] = json!([{"key": "spot", "value": "true", "effect": "NoSchedule"}]);
    let takes = |pod: Value| takes(&special, &pod);
    assert!(!takes(json!({})));
    for toleration in [
        json!({"operator": "Exists"}),
        json!({"key": "spot", "operator": "Exists"}),
        json!({"key": "spot", "value": "true"}),
    ] {
        assert!(takes(json!({"tolerations": [toleration]})), "{toleration}");
        assert!(!takes(json!({"tolerations": [toleration], "nodeSelector": {"pool": "other"}})));
        assert!(takes(json!({"tolerations": [toleration], "nodeSelector": {"pool": "spot"}})));
    }
    for toleration in [json!({"key": "spot", "value": "x"}), json!({"key": "other", "operator": "Exists"})] {
        assert!(!takes(json!({"tolerations": [toleration]})), "{toleration}");
    }
}
