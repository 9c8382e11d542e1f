//! The progress of clusters that Cluster API's objects declare, as a tree: network, control plane, workers, machine by
//! machine. Of clusters that Azure manages: their resources, and their pools with the nodes.

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
const OTHER_WORDS: [(&str, &str); 5] = [
    ("AzureResourceAvailable", "Resource health"),
    ("Fleet", "Fleet member"),
    ("ManagedClusterRunning", "Managed cluster"),
    ("VNet", "Virtual network"),
    ("VnetPeering", "Peerings"),
];

/// An object with Azure resources of a cluster.
struct Foundation {
    /// The Cluster's reference to it.
    reference: &'static str,
    kind: &'static str,
    /// What is said of it until it is ready.
    unready: &'static str,
    /// Whether it stands for the API server when it is ready.
    has_api_server: bool,
}

const FOUNDATIONS: [Foundation; 4] = [
    Foundation {
        reference: "infrastructureRef",
        kind: "AzureCluster",
        unready: "its network is made",
        has_api_server: true,
    },
    Foundation {
        reference: "infrastructureRef",
        kind: "AzureASOManagedCluster",
        unready: "its resources are made",
        has_api_server: false,
    },
    Foundation {
        reference: "controlPlaneRef",
        kind: "AzureManagedControlPlane",
        unready: "its control plane is made",
        has_api_server: true,
    },
    Foundation {
        reference: "controlPlaneRef",
        kind: "AzureASOManagedControlPlane",
        unready: "its control plane is made",
        has_api_server: true,
    },
];

/// The kinds that are read.
const KINDS: [&str; 14] = [
    "Cluster",
    "AzureCluster",
    "AzureASOManagedCluster",
    "AzureASOManagedControlPlane",
    "AzureASOManagedMachinePool",
    "AzureManagedControlPlane",
    "AzureManagedMachinePool",
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
        for foundation in &FOUNDATIONS {
            let reference = &cluster["spec"][foundation.reference];
            let is_of_kind = reference["kind"].as_str().is_none_or(|kind| kind == foundation.kind);
            let azure = self.referred(cluster, foundation.kind, text(&reference["name"]));
            if let Some(azure) = azure.filter(|_| is_of_kind) {
                parts.extend(foundation.parts(azure));
            }
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
        below.extend(self.nodes_without_machines(maker));
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

    /// The object that makes a pool's machines.
    fn infrastructure_of_pool(&self, pool: &Value) -> Option<&Value> {
        let reference = &pool["spec"]["template"]["spec"]["infrastructureRef"];
        self.referred(pool, text(&reference["kind"]), text(&reference["name"]))
    }

    /// The nodes of a pool that Azure manages: its machines are no objects.
    fn nodes_without_machines(&self, pool: &Value) -> Vec<ClusterPart> {
        if !self.infrastructure_of_pool(pool).is_some_and(is_managed_by_azure) {
            return Vec::new();
        }
        let ids = pool["spec"]["providerIDList"].as_array().map_or(&[] as &[Value], Vec::as_slice);
        let nodes = self.nodes.iter().filter(|node| ids.contains(&node["spec"]["providerID"]));
        let part = |node: &Value| {
            let (stand, words) = stand_of_node(node);
            ClusterPart { zone: zone_of_node(node), ..part(2, full_name(node), stand, words) }
        };
        nodes.map(part).collect()
    }

    /// What is still missing of a pool whose machines are all ready.
    fn lacks_of_pool(&self, pool: &Value) -> Option<String> {
        if pool["metadata"]["generation"] != pool["status"]["observedGeneration"] {
            return Some("not reconciled yet".to_owned());
        }
        let (name, template) = (text(&pool["metadata"]["name"]), &pool["spec"]["template"]["spec"]);
        let reference = &template["infrastructureRef"];
        let azure = self.infrastructure_of_pool(pool);
        if !azure.is_some_and(|azure| azure["status"]["ready"] == true) {
            return Some(format!("its {} is not ready", text(&reference["kind"])));
        }
        if azure.is_some_and(is_managed_by_azure) {
            // Azure may run a later version than the declared one.
            let changes = azure.and_then(|azure| conditions(azure).find(|one| one["status"] == "False"));
            return changes.map(|one| in_words(text(&one["reason"])).to_lowercase());
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
            (_, Some(node)) => stand_of_node(node),
            (Some(azure), None) if azure["status"]["ready"] == true => {
                (Stand::Works, "runs, and is not a node yet".to_owned())
            }
            (Some(azure), None) => waiting(azure),
            (None, None) => (Stand::Waits, "waits".to_owned()),
        };
        // A scale set chooses the zones of its machines.
        let declared = machine["spec"]["failureDomain"].as_str().map(str::to_owned);
        let zone = declared.or_else(|| zone_of_node(node?));
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

impl Foundation {
    /// The object, and its resources.
    fn parts(&self, azure: &Value) -> Vec<ClusterPart> {
        let is_going = !azure["metadata"]["deletionTimestamp"].is_null();
        let is_ready = azure["status"]["ready"] == true && !is_going;
        let endpoint = |part: &str| azure[part]["controlPlaneEndpoint"]["host"].as_str();
        let host = endpoint("spec").or_else(|| endpoint("status")).filter(|_| self.has_api_server);
        let words = match host {
            _ if is_going => "goes".to_owned(),
            _ if !is_ready => self.unready.to_owned(),
            Some(host) => format!("API server at {host}"),
            None => "ready".to_owned(),
        };
        let stand = if is_ready { Stand::Done } else { Stand::Works };
        let mut parts = vec![part(1, format!("{} {}", self.kind, full_name(azure)), stand, words)];
        let of_user = azure["status"]["resources"].as_array().into_iter().flatten();
        for entry in of_user {
            let resource = &entry["resource"];
            let name = format!("{} {}", text(&resource["kind"]), text(&resource["name"]));
            parts.push(match entry["ready"] == true {
                true => part(2, name, Stand::Done, "ready".to_owned()),
                false => part(2, name, Stand::Works, "is made".to_owned()),
            });
        }
        if !azure["spec"]["resources"].is_null() {
            return parts;
        }
        for condition in conditions(azure).filter(|one| is_of_interest(azure, text(&one["type"]))) {
            let name = in_words(text(&condition["type"]).trim_end_matches("Ready"));
            parts.push(match condition["status"] == "True" {
                true => part(2, name, Stand::Done, "ready".to_owned()),
                false => part(2, name, Stand::Works, in_words(text(&condition["reason"])).to_lowercase()),
            });
        }
        parts
    }
}

/// Whether a condition is about something that is desired: some conditions are true even where nothing is.
fn is_of_interest(azure: &Value, condition: &str) -> bool {
    let (spec, is_filled) = (&azure["spec"], |list: &Value| list.as_array().is_some_and(|it| !it.is_empty()));
    let has_endpoints = |subnet: &Value| is_filled(&subnet["privateEndpoints"]);
    match condition {
        "AKSExtensionsReady" => is_filled(&spec["extensions"]),
        "BastionHostReady" => !spec["bastionSpec"]["azureBastion"].is_null(),
        "FleetReady" => !spec["fleetsMember"].is_null(),
        "PrivateEndpointsReady" => {
            has_endpoints(&spec["virtualNetwork"]["subnet"])
                || spec["networkSpec"]["subnets"].as_array().is_some_and(|it| it.iter().any(has_endpoints))
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

/// Whether an object stands for a pool whose machines Azure manages.
fn is_managed_by_azure(pool: &Value) -> bool {
    ["AzureManagedMachinePool", "AzureASOManagedMachinePool"].contains(&text(&pool["kind"]))
}

fn stand_of_node(node: &Value) -> (Stand, String) {
    match is_ready(node) {
        true => (Stand::Done, "its node is ready".to_owned()),
        false => (Stand::Works, "its node is there, and not ready yet".to_owned()),
    }
}

/// The zone of a node: its label has the region before the zone, and `0` where there is none.
fn zone_of_node(node: &Value) -> Option<String> {
    let zone = node["metadata"]["labels"][ZONE].as_str()?.rsplit('-').next()?;
    (zone != "0").then(|| zone.to_owned())
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

    #[test]
    fn clusters_that_azure_manages_have_their_resources_and_the_nodes_of_their_pools() {
        let reference = |kind: &str, name: &str| json!({ "kind": kind, "name": name });
        let cluster = |name: &str, infrastructure: &str, control_plane: &str| {
            json!({ "metadata": { "name": name }, "status": { "phase": "Provisioned" }, "spec": {
                "infrastructureRef": reference(infrastructure, name), "controlPlaneRef": reference(control_plane, name) } })
        };
        let pool = |name: &str, cluster: &str, kind: &str, ids: &[&str]| {
            json!({ "metadata": { "name": name }, "spec": { "clusterName": cluster, "replicas": 2, "providerIDList": ids,
                "template": { "spec": { "infrastructureRef": reference(kind, name) } } } })
        };
        let of_azure = |kind: &str, name: &str, status: Value| json!({ "kind": kind, "metadata": { "name": name }, "status": status });
        let node = |name: &str, id: &str, is_ready: &str, zone: &str| {
            json!({ "metadata": { "name": name, "labels": { (ZONE): zone } }, "spec": { "providerID": id },
                "status": { "conditions": [{ "type": "Ready", "status": is_ready }] } })
        };
        let mut aks = of_azure(
            "AzureManagedControlPlane",
            "a",
            json!({ "ready": true, "conditions": [
                { "type": "Ready", "status": "True" },
                { "type": "ManagedClusterRunning", "status": "True" },
                { "type": "FleetReady", "status": "True" },
                { "type": "AKSExtensionsReady", "status": "False", "reason": "Creating" } ] }),
        );
        aks["spec"] =
            json!({ "controlPlaneEndpoint": { "host": "a.example" }, "extensions": [{ "name": "flux" }] });
        let mut raw = of_azure(
            "AzureASOManagedControlPlane",
            "r",
            json!({ "resources": [
                { "resource": { "kind": "ManagedCluster", "name": "r" }, "ready": true },
                { "resource": { "kind": "MaintenanceConfiguration", "name": "nights" }, "ready": false } ] }),
        );
        raw["spec"] = json!({ "resources": [{}, {}] });
        let objects = Objects {
            by_kind: HashMap::from([
                (
                    "Cluster",
                    vec![
                        cluster("a", "AzureManagedCluster", "AzureManagedControlPlane"),
                        cluster("r", "AzureASOManagedCluster", "AzureASOManagedControlPlane"),
                    ],
                ),
                // Another cluster's.
                ("AzureCluster", vec![of_azure("AzureCluster", "a", json!({}))]),
                ("AzureManagedControlPlane", vec![aks]),
                ("AzureASOManagedControlPlane", vec![raw]),
                (
                    "MachinePool",
                    vec![
                        pool("p", "a", "AzureManagedMachinePool", &["azure:///1", "azure:///2"]),
                        pool("q", "r", "AzureASOManagedMachinePool", &["azure:///3", "azure:///4"]),
                    ],
                ),
                (
                    "AzureManagedMachinePool",
                    vec![of_azure("AzureManagedMachinePool", "p", json!({ "ready": true }))],
                ),
                (
                    "AzureASOManagedMachinePool",
                    vec![of_azure("AzureASOManagedMachinePool", "q", json!({ "ready": true }))],
                ),
            ]),
            nodes: vec![
                node("n1", "azure:///1", "True", "eastus-1"),
                node("n2", "azure:///2", "True", "0"),
                node("n3", "azure:///3", "False", "0"),
                node("other", "azure:///9", "True", "0"),
            ],
        };
        let said: Vec<_> = objects
            .clusters()
            .into_iter()
            .flat_map(|cluster| cluster.parts)
            .map(|part| (part.depth, part.name, part.stand, part.words, part.zone))
            .collect();
        let expected = [
            (0, "Cluster a", Stand::Done, "provisioned", None),
            (1, "AzureManagedControlPlane a", Stand::Done, "API server at a.example", None),
            (2, "Managed cluster", Stand::Done, "ready", None),
            (2, "AKS extensions", Stand::Works, "creating", None),
            (1, "MachinePool p", Stand::Done, "2 of 2 ready", None),
            (2, "n1", Stand::Done, "its node is ready", Some("1")),
            (2, "n2", Stand::Done, "its node is ready", None),
            (0, "Cluster r", Stand::Done, "provisioned", None),
            (1, "AzureASOManagedControlPlane r", Stand::Works, "its control plane is made", None),
            (2, "ManagedCluster r", Stand::Done, "ready", None),
            (2, "MaintenanceConfiguration nights", Stand::Works, "is made", None),
            (1, "MachinePool q", Stand::Works, "0 of 2 ready", None),
            (2, "n3", Stand::Works, "its node is there, and not ready yet", None),
        ];
        let expected = expected.map(|(depth, name, stand, words, zone)| {
            (depth, name.to_owned(), stand, words.to_owned(), zone.map(str::to_owned))
        });
        assert_eq!(said, expected);
    }
}
