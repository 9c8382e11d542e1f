//! The progress of clusters that Cluster API's objects declare, as a tree: network, control plane, workers, machine by
//! machine.

use std::collections::HashMap;

use azure_simulator::view::{ClusterPart, ClusterView, Stand};
use kubernetes_simulator::Kubernetes;
use serde_json::Value;

/// The labels that name the owner for which a Machine was created.
const MAKERS: [&str; 3] =
    ["cluster.x-k8s.io/control-plane-name", "cluster.x-k8s.io/deployment-name", POOL_NAME];
const POOL_NAME: &str = "cluster.x-k8s.io/pool-name";
/// The label with the name of the Cluster that an object belongs to.
const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
/// The label of nodes with their zone, such as `westeurope-1`.
const ZONE: &str = "topology.kubernetes.io/zone";
/// Conditions that summarize others.
const SUMS: [&str; 2] = ["Ready", "NetworkInfrastructureReady"];

/// The objects that the tree is built from.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    /// Objects of the management cluster, by kind.
    by_kind: HashMap<&'static str, Vec<Value>>,
    /// Nodes of workload clusters.
    nodes: Vec<Value>,
}

/// Names with a clearer wording.
const OTHER_WORDS: [(&str, &str); 2] = [("VNet", "Virtual network"), ("VnetPeering", "Peerings")];
/// The kinds that are read.
const KINDS: [&str; 9] = [
    "Cluster",
    "AzureCluster",
    "KubeadmControlPlane",
    "MachineDeployment",
    "MachinePool",
    "Machine",
    "AzureMachine",
    "AzureMachinePool",
    "AzureMachinePoolMachine",
];

impl Objects {
    /// Reads the objects of a management cluster and of its workload clusters.
    pub(crate) fn read<'a>(
        management: &Kubernetes,
        workloads: impl IntoIterator<Item = &'a Kubernetes>,
    ) -> Self {
        let list = |api: &Kubernetes, kind: &str| -> Vec<Value> {
            api.list(kind).iter().map(|object| object.value().clone()).collect()
        };
        Self {
            by_kind: KINDS.iter().map(|kind| (*kind, list(management, kind))).collect(),
            nodes: workloads.into_iter().flat_map(|api| list(api, "Node")).collect(),
        }
    }

    fn of(&self, kind: &str) -> &[Value] {
        self.by_kind.get(kind).map(Vec::as_slice).unwrap_or_default()
    }

    /// The object that another one refers to, in the same namespace.
    fn referred(&self, by: &Value, kind: &str, name: &str) -> Option<&Value> {
        self.of(kind).iter().find(|object| object["metadata"]["name"] == name && are_together(object, by))
    }

    /// The clusters, by name.
    pub(crate) fn clusters(&self) -> Vec<ClusterView> {
        self.of("Cluster").iter().map(|cluster| ClusterView { parts: self.cluster(cluster) }).collect()
    }

    fn cluster(&self, cluster: &Value) -> Vec<ClusterPart> {
        let name = text(&cluster["metadata"]["name"]);
        let title = full_name(cluster);
        let phase = text(&cluster["status"]["phase"]);
        let stand = if phase == "Provisioned" { Stand::Done } else { Stand::Works };
        let mut parts = vec![part(0, format!("Cluster {title}"), stand, phase.to_lowercase())];
        let azure = text(&cluster["spec"]["infrastructureRef"]["name"]);
        if let Some(azure) = self.referred(cluster, "AzureCluster", azure) {
            parts.extend(network(azure));
        }
        let of_cluster = |object: &&Value| {
            are_together(object, cluster)
                && (object["spec"]["clusterName"] == name
                    || object["metadata"]["labels"][CLUSTER_NAME] == name
                    || object["metadata"]["name"] == cluster["spec"]["controlPlaneRef"]["name"])
        };
        for kind in ["KubeadmControlPlane", "MachineDeployment", "MachinePool"] {
            for maker in self.of(kind).iter().filter(of_cluster) {
                parts.extend(self.machines_of(kind, maker));
            }
        }
        let is_alone = |machine: &&Value| {
            MAKERS.iter().all(|label| machine["metadata"]["labels"][label].is_null()) && of_cluster(machine)
        };
        for machine in self.of("Machine").iter().filter(is_alone) {
            let part = self.machine(machine);
            parts.push(ClusterPart { depth: 1, name: format!("Machine {}", part.name), ..part });
        }
        parts
    }

    fn machines_of(&self, kind: &str, maker: &Value) -> Vec<ClusterPart> {
        let name = text(&maker["metadata"]["name"]);
        let made = |machine: &&Value| {
            are_together(machine, maker)
                && MAKERS.iter().any(|label| machine["metadata"]["labels"][label] == name)
        };
        let mut below: Vec<ClusterPart> =
            self.of("Machine").iter().filter(made).map(|it| self.machine(it)).collect();
        below.sort_by(|one, other| one.name.cmp(&other.name));
        let wanted = maker["spec"]["replicas"].as_u64().unwrap_or(1);
        let ready = below.iter().filter(|line| line.stand == Stand::Done).count();
        let all_ready = wanted == ready as u64 && below.len() == ready;
        let lacks = match kind {
            "MachinePool" => self.lacks_of_pool(maker),
            _ => lacks(maker, wanted),
        };
        let stand = match (all_ready && lacks.is_none(), below.is_empty()) {
            (true, _) => Stand::Done,
            (false, true) if !all_ready => Stand::Waits,
            (false, _) => Stand::Works,
        };
        let words = match lacks.filter(|_| ready as u64 >= wanted) {
            Some(lacks) => format!("{ready} of {wanted} ready, {lacks}"),
            None => format!("{ready} of {wanted} ready"),
        };
        let mut parts = vec![part(1, format!("{kind} {}", full_name(maker)), stand, words)];
        parts.extend(below);
        parts
    }

    /// What is still missing of a pool whose machines are all ready.
    fn lacks_of_pool(&self, pool: &Value) -> Option<String> {
        if pool["metadata"]["generation"] != pool["status"]["observedGeneration"] {
            return Some("not reconciled yet".to_owned());
        }
        let (name, template) = (text(&pool["metadata"]["name"]), &pool["spec"]["template"]["spec"]);
        let reference = &template["infrastructureRef"];
        let azure = self.referred(pool, text(&reference["kind"]), text(&reference["name"]));
        if !azure.is_some_and(|azure| azure["status"]["ready"] == true) {
            return Some(format!("its {} is not ready", text(&reference["kind"])));
        }
        // The version of a custom image is unknown.
        let has_own_image = azure.is_some_and(|azure| !azure["spec"]["template"]["image"].is_null());
        let machines: Vec<&Value> = self
            .of("Machine")
            .iter()
            .filter(|one| are_together(one, pool) && one["metadata"]["labels"][POOL_NAME] == name)
            .collect();
        let is_updated = |machine: &&&Value| {
            let reference = &machine["spec"]["infrastructureRef"];
            let azure = self.referred(machine, text(&reference["kind"]), text(&reference["name"]));
            let version = self.node(machine).map(|node| &node["status"]["nodeInfo"]["kubeletVersion"]);
            azure.is_none_or(|azure| azure["status"]["latestModelApplied"] != false)
                && (has_own_image || template["version"].is_null() || version == Some(&template["version"]))
        };
        let updated = machines.iter().filter(is_updated).count();
        (updated != machines.len()).then(|| format!("{updated} up to date"))
    }

    /// The Node of a machine. Nodes of other clusters may have the same name.
    fn node(&self, machine: &Value) -> Option<&Value> {
        let name = text(&machine["status"]["nodeRef"]["name"]);
        self.nodes.iter().find(|it| {
            !name.is_empty()
                && it["metadata"]["name"] == name
                && it["spec"]["providerID"] == machine["spec"]["providerID"]
        })
    }

    fn machine(&self, machine: &Value) -> ClusterPart {
        let name = full_name(machine);
        let reference = &machine["spec"]["infrastructureRef"];
        let azure = self.referred(machine, text(&reference["kind"]), text(&reference["name"]));
        let node = self.node(machine);
        let (stand, words) = match (azure, node) {
            _ if !machine["metadata"]["deletionTimestamp"].is_null() => (Stand::Works, "goes".to_owned()),
            (_, Some(node)) if is_ready(node) => (Stand::Done, "its node is ready".to_owned()),
            (_, Some(_)) => (Stand::Works, "its node is there, and not ready yet".to_owned()),
            (Some(azure), None) if azure["status"]["ready"] == true => {
                (Stand::Works, "runs, and is not a node yet".to_owned())
            }
            (Some(azure), None) => waiting(azure),
            (None, None) => (Stand::Waits, "waits".to_owned()),
        };
        // A scale set chooses the zones of its machines; the Node's label has the region before the zone.
        let label = || node?["metadata"]["labels"][ZONE].as_str()?.rsplit('-').next();
        let zone = machine["spec"]["failureDomain"].as_str().or_else(label).map(str::to_owned);
        ClusterPart { zone, ..part(2, name, stand, words) }
    }
}

/// What is still missing of a control plane or a deployment whose machines are all ready: some may have an earlier
/// version.
fn lacks(maker: &Value, wanted: u64) -> Option<String> {
    let status = &maker["status"];
    if maker["metadata"]["generation"] != status["observedGeneration"] {
        return Some("not reconciled yet".to_owned());
    }
    let number = |member: &str| status[member].as_u64().unwrap_or_default();
    let (count, updated) = (number("replicas"), number("upToDateReplicas"));
    (count != wanted || updated != wanted).then(|| format!("{updated} up to date"))
}

fn are_together(one: &Value, other: &Value) -> bool {
    one["metadata"]["namespace"] == other["metadata"]["namespace"]
}

/// The name of an object, with its namespace unless that is the usual one.
fn full_name(object: &Value) -> String {
    let name = text(&object["metadata"]["name"]);
    match text(&object["metadata"]["namespace"]) {
        "" | "default" => name.to_owned(),
        namespace => format!("{namespace}/{name}"),
    }
}

/// What a machine without a Node waits for, according to its conditions.
fn waiting(azure: &Value) -> (Stand, String) {
    let unmet = conditions(azure).find(|one| one["status"] != "True" && one["type"] != "Ready");
    match unmet.map(|one| text(&one["reason"])) {
        Some(reason) if reason.starts_with("Waiting") => (Stand::Waits, in_words(reason).to_lowercase()),
        Some(reason) if !reason.is_empty() => {
            let what =
                unmet.map(|one| in_words(text(&one["type"]).trim_end_matches("Ready"))).unwrap_or_default();
            (Stand::Works, format!("{}: {}", what, in_words(reason).to_lowercase()))
        }
        _ => (Stand::Works, "is made".to_owned()),
    }
}

fn network(azure: &Value) -> Vec<ClusterPart> {
    let is_ready = azure["status"]["ready"] == true;
    let host = text(&azure["spec"]["controlPlaneEndpoint"]["host"]);
    let mut parts = vec![part(
        1,
        format!("AzureCluster {}", full_name(azure)),
        if is_ready { Stand::Done } else { Stand::Works },
        if is_ready { format!("API server at {host}") } else { "its network is made".to_owned() },
    )];
    for condition in conditions(azure).filter(|one| is_of_interest(azure, text(&one["type"]))) {
        let name = in_words(text(&condition["type"]).trim_end_matches("Ready"));
        parts.push(match condition["status"] == "True" {
            true => part(2, name, Stand::Done, "ready".to_owned()),
            false => part(2, name, Stand::Works, in_words(text(&condition["reason"])).to_lowercase()),
        });
    }
    parts
}

/// Whether a condition is about something that is desired: some conditions are true even where nothing is.
fn is_of_interest(azure: &Value, condition: &str) -> bool {
    let has_endpoints =
        |subnet: &Value| subnet["privateEndpoints"].as_array().is_some_and(|it| !it.is_empty());
    match condition {
        "BastionHostReady" => !azure["spec"]["bastionSpec"]["azureBastion"].is_null(),
        "PrivateEndpointsReady" => {
            azure["spec"]["networkSpec"]["subnets"].as_array().is_some_and(|it| it.iter().any(has_endpoints))
        }
        other => !SUMS.contains(&other),
    }
}

fn part(depth: usize, name: String, stand: Stand, words: String) -> ClusterPart {
    ClusterPart { depth, name, stand, words, zone: None }
}

fn conditions(object: &Value) -> impl Iterator<Item = &Value> {
    object["status"]["conditions"].as_array().into_iter().flatten()
}

/// Whether a Node is ready and a cloud controller manager has initialized it.
fn is_ready(node: &Value) -> bool {
    let ready = conditions(node).any(|one| one["type"] == "Ready" && one["status"] == "True");
    let mut taints = node["spec"]["taints"].as_array().into_iter().flatten();
    ready && !taints.any(|taint| text(&taint["key"]) == "node.cloudprovider.kubernetes.io/uninitialized")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// `SecurityGroups` in words: `Security groups`; abbreviations in capitals stay so.
fn in_words(name: &str) -> String {
    if let Some((_, words)) = OTHER_WORDS.iter().find(|(known, _)| *known == name) {
        return (*words).to_owned();
    }
    let letters: Vec<char> = name.chars().collect();
    let mut words = String::new();
    for (index, letter) in letters.iter().enumerate() {
        let is_lower = |at: usize| letters.get(at).is_some_and(|it| it.is_lowercase());
        let begins = index > 0
            && letter.is_uppercase()
            && (is_lower(index - 1) || (is_lower(index + 1) && is_lower(index + 2)));
        if begins {
            words.push(' ');
        }
        if begins && is_lower(index + 1) {
            words.extend(letter.to_lowercase());
        } else {
            words.push(*letter);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_of_conditions_are_written_as_people_write_them() {
        for (name, words) in [
            ("SecurityGroups", "Security groups"),
            ("VNet", "Virtual network"),
            ("PublicIPs", "Public IPs"),
            ("NATGateways", "NAT gateways"),
            ("ResourceGroup", "Resource group"),
            ("WaitingForBootstrapData", "Waiting for bootstrap data"),
        ] {
            assert_eq!(in_words(name), words);
        }
    }

    #[test]
    fn a_rollout_is_done_when_all_machines_are_of_the_declared_version() {
        let deployment = |observed: u64, replicas: u64, updated: u64| {
            json!({ "metadata": { "generation": 2 }, "status": { "observedGeneration": observed,
                "replicas": replicas, "upToDateReplicas": updated } })
        };
        assert_eq!(lacks(&deployment(1, 2, 2), 2).as_deref(), Some("not reconciled yet"));
        assert_eq!(lacks(&deployment(2, 2, 1), 2).as_deref(), Some("1 up to date"));
        assert_eq!(lacks(&deployment(2, 3, 2), 2).as_deref(), Some("2 up to date"));
        assert_eq!(lacks(&deployment(2, 2, 2), 2), None);
    }

    #[test]
    fn a_pool_is_done_when_its_scale_set_and_the_versions_of_its_machines_are() {
        let stands = |ready: bool, applied: bool, version: &str, image: Value| {
            let machine = json!({ "metadata": { "name": "p-0", "labels": { POOL_NAME: "p", CLUSTER_NAME: "c" } },
                "spec": { "infrastructureRef": { "kind": "AzureMachinePoolMachine", "name": "p-0" },
                    "providerID": "azure:///p/0" }, "status": { "nodeRef": { "name": "p0" } } });
            let node = |id: &str, version: &str| {
                json!({ "metadata": { "name": "p0" }, "spec": { "providerID": id }, "status": {
                    "nodeInfo": { "kubeletVersion": version },
                    "conditions": [{ "type": "Ready", "status": "True" }] } })
            };
            let objects = Objects {
                by_kind: HashMap::from([
                    ("Cluster", vec![json!({ "metadata": { "name": "c" } })]),
                    (
                        "MachinePool",
                        vec![
                            json!({ "metadata": { "name": "p" }, "spec": { "clusterName": "c", "template": { "spec": {
                    "version": "v1.33.2", "infrastructureRef": { "kind": "AzureMachinePool", "name": "p" } } } } }),
                        ],
                    ),
                    ("Machine", vec![machine]),
                    (
                        "AzureMachinePool",
                        vec![
                            json!({ "metadata": { "name": "p" }, "spec": { "template": { "image": image } },
                            "status": { "ready": ready } }),
                        ],
                    ),
                    (
                        "AzureMachinePoolMachine",
                        vec![
                            json!({ "metadata": { "name": "p-0" }, "status": { "latestModelApplied": applied } }),
                        ],
                    ),
                ]),
                nodes: vec![node("azure:///of-another/0", "v1.33.2"), node("azure:///p/0", version)],
            };
            let parts = objects.clusters().remove(0).parts;
            (parts[1].stand, parts[1].words.clone())
        };
        let said = |stand: Stand, words: &str| (stand, words.to_owned());
        let done = said(Stand::Done, "1 of 1 ready");
        assert_eq!(stands(true, true, "v1.33.2", Value::Null), done);
        assert_eq!(stands(true, true, "v1.32.0", json!({ "id": "mine" })), done);
        let old = said(Stand::Works, "1 of 1 ready, 0 up to date");
        assert_eq!(stands(true, true, "v1.32.0", Value::Null), old);
        assert_eq!(stands(true, false, "v1.33.2", Value::Null), old);
        let unready = said(Stand::Works, "1 of 1 ready, its AzureMachinePool is not ready");
        assert_eq!(stands(false, true, "v1.33.2", Value::Null), unready);
    }

    #[test]
    fn clusters_of_one_name_in_two_namespaces_have_each_their_own_parts() {
        let of = |kind: &str, name: &str| {
            let in_namespace = |namespace: &str| {
                json!({ "kind": kind, "metadata": { "name": name, "namespace": namespace },
                    "spec": { "clusterName": "c", "infrastructureRef": { "name": "c" } } })
            };
            ["default", "team"].map(in_namespace).to_vec()
        };
        let objects = Objects {
            by_kind: ["Cluster", "AzureCluster", "Machine"]
                .map(|kind| (kind, of(kind, if kind == "Machine" { "m" } else { "c" })))
                .into(),
            nodes: Vec::new(),
        };
        let names = |view: &ClusterView| view.parts.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
        let all: Vec<_> = objects.clusters().iter().map(names).collect();
        assert_eq!(
            all,
            [
                vec!["Cluster c", "AzureCluster c", "Machine m"],
                vec!["Cluster team/c", "AzureCluster team/c", "Machine team/m"]
            ]
        );
    }

    #[test]
    fn the_tree_says_of_each_part_how_far_it_is() {
        let label = json!({ "cluster.x-k8s.io/control-plane-name": "cp" });
        let machine = |name: &str, node: Value| {
            json!({ "metadata": { "name": name, "labels": label },
                "spec": { "failureDomain": "1", "infrastructureRef": { "kind": "AzureMachine", "name": name } },
                "status": { "nodeRef": node } })
        };
        let ready = json!([{ "type": "Ready", "status": "True" }]);
        let taint = json!([{ "key": "node.cloudprovider.kubernetes.io/uninitialized" }]);
        let waits = json!([{ "type": "VMRunning", "status": "False", "reason": "WaitingForBootstrapData" }]);
        let objects = Objects {
            by_kind: HashMap::from([
                (
                    "Cluster",
                    vec![json!({ "metadata": { "name": "c" }, "status": { "phase": "Provisioning" },
"spec": { "infrastructureRef": { "name": "c" }, "controlPlaneRef": { "name": "cp" } } })],
                ),
                (
                    "AzureCluster",
                    vec![json!({ "metadata": { "name": "c" }, "status": { "conditions": [
                        { "type": "Ready", "status": "False" },
                        { "type": "ResourceGroupReady", "status": "True" },
                        { "type": "PublicIPsReady", "status": "False", "reason": "Creating" } ] } })],
                ),
                (
                    "KubeadmControlPlane",
                    vec![json!({ "metadata": { "name": "cp" }, "spec": { "replicas": 3 } })],
                ),
                (
                    "Machine",
                    vec![
                        machine("a", json!({ "name": "a" })),
                        machine("b", json!({ "name": "b" })),
                        machine("c", Value::Null),
                    ],
                ),
                (
                    "AzureMachine",
                    vec![json!({ "metadata": { "name": "c" }, "status": { "conditions": waits } })],
                ),
            ]),
            nodes: vec![
                json!({ "metadata": { "name": "a" }, "status": { "conditions": ready } }),
                json!({ "metadata": { "name": "b" }, "spec": { "taints": taint }, "status": { "conditions": ready } }),
            ],
        };
        let clusters = objects.clusters();
        let said: Vec<_> = clusters[0]
            .parts
            .iter()
            .map(|part| {
                (part.depth, part.name.as_str(), part.stand, part.words.as_str(), part.zone.as_deref())
            })
            .collect();
        assert_eq!(
            said,
            [
                (0, "Cluster c", Stand::Works, "provisioning", None),
                (1, "AzureCluster c", Stand::Works, "its network is made", None),
                (2, "Resource group", Stand::Done, "ready", None),
                (2, "Public IPs", Stand::Works, "creating", None),
                (1, "KubeadmControlPlane cp", Stand::Works, "1 of 3 ready", None),
                (2, "a", Stand::Done, "its node is ready", Some("1")),
                (2, "b", Stand::Works, "its node is there, and not ready yet", Some("1")),
                (2, "c", Stand::Waits, "waiting for bootstrap data", Some("1")),
            ]
        );
    }
}
