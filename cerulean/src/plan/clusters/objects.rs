//! The clusters that manifests declare, with their machines and pools, each as it is after admission.

use std::collections::{BTreeMap, BTreeSet};

use capz_planner::machine::CONTROL_PLANE_LABEL;
use serde_json::{Value, json};

use super::finder::Finder;
use super::managed_objects::{self, Managed};
use super::own_pools::Pool;
use crate::manifests::Manifest;
use crate::plan::values::{beside_each_other, optional, text, texts, title};

/// The label with the name of the Cluster that an object belongs to.
const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
/// Labels with the name of a Machine's owner.
const OF_CONTROL_PLANE: &str = "cluster.x-k8s.io/control-plane-name";
const OF_DEPLOYMENT: &str = "cluster.x-k8s.io/deployment-name";
const OF_SET: &str = "cluster.x-k8s.io/set-name";

/// A cluster with everything that belongs to it.
#[derive(Debug)]
pub struct Declared {
    /// The name of the Cluster.
    pub cluster: String,
    /// `clusterNetwork.apiServerPort` of the Cluster.
    pub port: Option<i32>,
    /// The AzureCluster, as it is after admission.
    pub azure: Value,
    /// Machines, those of the control plane first.
    pub machines: Vec<Machine>,
    /// Pools.
    pub pools: Vec<Pool>,
}

/// A machine.
#[derive(Debug)]
pub struct Machine {
    /// The AzureMachine, as it is after admission.
    pub object: Value,
    /// Its Machine's version of Kubernetes.
    pub version: Option<String>,
    /// Its Machine's failure domain.
    pub zone: Option<String>,
    /// Its Machine's labels.
    pub labels: BTreeMap<String, String>,
    /// The owner that will create it, if it does not exist yet, such as `MachineDeployment workers`: then its name is
    /// an example.
    pub maker: Option<String>,
}

/// The declarations in manifests.
#[derive(Debug, Default)]
pub struct DeclaredObjects {
    /// Clusters on Azure.
    pub clusters: Vec<Declared>,
    /// Clusters that Azure manages.
    pub managed: Vec<Managed>,
    /// Objects that are refused, such as `AzureCluster default/web`, and why.
    pub refused: Vec<(String, String)>,
    /// Notes for the plan's readers.
    pub notes: Vec<String>,
}

/// The regions of the clusters with machines of their own. Self-managed pools may join clusters that Azure manages.
pub fn locations(objects: &[Value]) -> BTreeSet<String> {
    let has_pools = objects.iter().any(|object| text(object, "/kind") == "AzureMachinePool");
    let clusters = objects.iter().filter(|object| match text(object, "/kind") {
        "AzureCluster" => true,
        "AzureManagedControlPlane" => has_pools,
        _ => false,
    });
    clusters.map(|object| text(object, "/spec/location").to_owned()).collect()
}

/// The objects, each with its namespace; `namespace` is the default.
pub fn with_namespaces(manifests: &[Manifest], namespace: &str) -> Vec<Value> {
    let objects = manifests.iter().map(|manifest| {
        let mut object = manifest.object.clone();
        if text(&object, "/metadata/namespace").is_empty() {
            object["metadata"]["namespace"] = namespace.into();
        }
        object
    });
    objects.collect()
}

/// Finds the clusters. `misshapen` are objects that do not match the schemas of their kinds, and why; `zones` are those
/// of the regions, for spreading control planes; `subscription` is the default of clusters.
pub fn find(
    objects: &[Value],
    misshapen: Vec<(String, String)>,
    zones: &BTreeMap<String, Vec<String>>,
    subscription: Option<&str>,
) -> DeclaredObjects {
    let mut finder = Finder { objects, zones, subscription, refused: misshapen, notes: Vec::new() };
    finder.admit_all();
    let mut clusters = Vec::new();
    for azure in finder.of("AzureCluster") {
        clusters.extend(finder.cluster(azure));
    }
    let managed = managed_objects::find(&mut finder);
    DeclaredObjects { clusters, managed, refused: finder.refused, notes: finder.notes }
}

impl Finder<'_> {
    fn cluster(&mut self, azure: &Value) -> Option<Declared> {
        let name = text(azure, "/metadata/name");
        let owner = self.cluster_of(azure, "infrastructureRef");
        if owner.is_none() {
            self.notes.push(format!(
                "no Cluster refers to {}: nothing is created for it before, and a Cluster of the same name is assumed",
                title(azure)
            ));
        }
        let cluster = owner.map_or(name, |owner| text(owner, "/metadata/name")).to_owned();
        let port = owner.and_then(|owner| owner.pointer("/spec/clusterNetwork/apiServerPort")?.as_i64());
        let azure = self.admit(azure.clone(), None)?;
        let mut machines = self.machines_of(&azure, &cluster);
        if let Some(owner) = owner {
            machines.extend(self.control_plane_of(owner, &azure));
        }
        machines.extend(self.workers_of(&azure, &cluster));
        machines.sort_by_key(|machine| !machine.labels.contains_key(CONTROL_PLANE_LABEL));
        let pools = self.pools_of(&azure, &cluster);
        Some(Declared { cluster, port: port.and_then(|it| it.try_into().ok()), azure, machines, pools })
    }

    /// Machines that are declared as objects.
    fn machines_of(&mut self, azure: &Value, cluster: &str) -> Vec<Machine> {
        let mut machines = Vec::new();
        for owner in self.of("Machine") {
            let name = text(owner, "/spec/infrastructureRef/name");
            if text(owner, "/spec/clusterName") != cluster || !beside_each_other(owner, azure) {
                continue;
            }
            let Some(object) = self.beside(owner, "AzureMachine", name) else { continue };
            let Some(object) = self.admit(object.clone(), None) else { continue };
            machines.push(Machine {
                object,
                version: optional(owner, "/spec/version"),
                zone: optional(owner, "/spec/failureDomain"),
                labels: texts(owner, "/metadata/labels"),
                maker: None,
            });
        }
        machines
    }

    fn control_plane_of(&mut self, cluster: &Value, azure: &Value) -> Vec<Machine> {
        let name = text(cluster, "/spec/controlPlaneRef/name");
        let kind = text(cluster, "/spec/controlPlaneRef/kind");
        let Some(owner) = self.beside(azure, kind, name) else { return Vec::new() };
        let reference =
            ["/spec/machineTemplate/infrastructureRef", "/spec/machineTemplate/spec/infrastructureRef"];
        let template =
            reference.iter().map(|at| text(owner, &format!("{at}/name"))).find(|name| !name.is_empty());
        let labels = [(CONTROL_PLANE_LABEL, ""), (OF_CONTROL_PLANE, name)];
        let wishes = &azure["spec"]["failureDomains"];
        let zones = self.zones.get(text(azure, "/spec/location")).into_iter().flatten();
        let zones: Vec<&String> =
            zones.filter(|zone| wishes[zone.as_str()]["controlPlane"] != false).collect();
        let zone = |index: usize| {
            let count = zones.len().max(1);
            zones.get(index % count).map(|zone| (*zone).clone())
        };
        let cluster = text(cluster, "/metadata/name");
        let version = optional(owner, "/spec/version");
        self.made_of_template(owner, cluster, template.unwrap_or_default(), &labels, version.as_deref(), zone)
    }

    fn workers_of(&mut self, azure: &Value, cluster: &str) -> Vec<Machine> {
        let mut machines = Vec::new();
        for owner in self.of("MachineDeployment") {
            if text(owner, "/spec/clusterName") != cluster || !beside_each_other(owner, azure) {
                continue;
            }
            let name = text(owner, "/metadata/name");
            let template = text(owner, "/spec/template/spec/infrastructureRef/name");
            let zone = optional(owner, "/spec/template/spec/failureDomain");
            let version = optional(owner, "/spec/template/spec/version");
            let labels = [(OF_DEPLOYMENT, name), (OF_SET, name)];
            let made = self
                .made_of_template(owner, cluster, template, &labels, version.as_deref(), |_| zone.clone());
            machines.extend(made);
        }
        machines
    }

    /// The machines that are still to be created from a template.
    fn made_of_template(
        &mut self,
        owner: &Value,
        cluster: &str,
        template: &str,
        labels: &[(&str, &str)],
        version: Option<&str>,
        zone: impl Fn(usize) -> Option<String>,
    ) -> Vec<Machine> {
        let maker = format!("{} {}", text(owner, "/kind"), text(owner, "/metadata/name"));
        // A missing template is noted like any missing reference.
        let Some(template) = self.beside(owner, "AzureMachineTemplate", template) else { return Vec::new() };
        let labels: BTreeMap<String, String> = labels
            .iter()
            .chain(&[(CLUSTER_NAME, cluster)])
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        let is_there = |machine: &&Value| {
            [OF_CONTROL_PLANE, OF_DEPLOYMENT].iter().any(|key| {
                labels
                    .get(*key)
                    .is_some_and(|name| texts(machine, "/metadata/labels").get(*key) == Some(name))
            })
        };
        let there = self.of("Machine").iter().filter(|machine| is_there(machine)).count();
        let replicas = owner.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or(1);
        let replicas = usize::try_from(replicas).unwrap_or(usize::MAX);
        let mut machines = Vec::new();
        for index in there..replicas {
            let object = json!({
                "apiVersion": template["apiVersion"],
                "kind": "AzureMachine",
                "metadata": {
                    "name": format!("{}-{}", text(owner, "/metadata/name"), example_suffix(index)),
                    "namespace": template["metadata"]["namespace"],
                    "labels": labels,
                    "annotations": template["spec"]["template"]["metadata"]["annotations"],
                },
                "spec": template["spec"]["template"]["spec"],
            });
            let Some(object) = self.admit(object, None) else { break };
            machines.push(Machine {
                object,
                version: version.map(str::to_owned),
                zone: zone(index),
                labels: labels.clone(),
                maker: Some(maker.clone()),
            });
        }
        machines
    }
}

/// The suffix of the name of a future machine: five letters, as Cluster API generates them, in alphabetical order.
fn example_suffix(index: usize) -> String {
    let mut letters = [b'a'; 5];
    let mut rest = index;
    for letter in letters.iter_mut().rev() {
        *letter += u8::try_from(rest % 26).unwrap_or_default();
        rest /= 26;
    }
    letters.iter().map(|letter| char::from(*letter)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifests(text: &str) -> Vec<Manifest> {
        let objects = simulated_cluster::manifests::read("test", text).unwrap();
        objects.into_iter().map(|object| Manifest { source: "test".to_owned(), object }).collect()
    }

    fn declared(text: &str) -> DeclaredObjects {
        let zones = BTreeMap::from([("westeurope".to_owned(), ["1", "2", "3"].map(str::to_owned).to_vec())]);
        let objects = with_namespaces(&manifests(text), "default");
        find(&objects, Vec::new(), &zones, Some("00000000-0000-4000-8000-000000000000"))
    }

    const FILES: [&str; 3] = [
        include_str!("../../../../examples/clusters/cluster.yaml"),
        include_str!("../../../../examples/clusters/control-plane.yaml"),
        include_str!("../../../../examples/clusters/workers.yaml"),
    ];

    #[test]
    fn machines_come_of_templates_in_the_zones_in_which_they_will_be() {
        let found = declared(&FILES.join("\n---\n"));
        assert_eq!(found.refused, []);
        let [cluster] = found.clusters.as_slice() else { panic!("{found:?}") };
        let machines: Vec<_> = cluster
            .machines
            .iter()
            .map(|machine| {
                (text(&machine.object, "/metadata/name"), machine.zone.as_deref().unwrap_or_default())
            })
            .collect();
        assert_eq!(
            machines,
            [
                ("harbour-control-plane-aaaaa", "1"),
                ("harbour-control-plane-aaaab", "2"),
                ("harbour-control-plane-aaaac", "3"),
                ("harbour-workers-1-aaaaa", "1"),
                ("harbour-workers-2-aaaaa", "2"),
                ("harbour-workers-3-aaaaa", "3"),
            ]
        );
        assert_eq!(cluster.machines[0].object["spec"]["osDisk"]["cachingType"], "None");
    }

    /// Machines that already exist in the management cluster are not created again.
    #[test]
    fn machines_that_are_there_count_and_have_their_names() {
        let there = "apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata: {name: m, labels: {cluster.x-k8s.io/deployment-name: harbour-workers-1}}
spec: {clusterName: harbour, version: v1.33.2, failureDomain: '1', infrastructureRef: {kind: AzureMachine, name: here}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: AzureMachine
metadata: {name: here}
spec: {vmSize: Standard_D2s_v3, osDisk: {osType: Linux, diskSizeGB: 64}}
";
        let found = declared(&[FILES[0], FILES[2], there].join("\n---\n"));
        let names: Vec<_> =
            found.clusters[0].machines.iter().map(|it| text(&it.object, "/metadata/name")).collect();
        assert_eq!(names, ["here", "harbour-workers-2-aaaaa", "harbour-workers-3-aaaaa"]);
    }

    #[test]
    fn what_admission_refuses_is_said_with_the_place() {
        let wrong = FILES[0].replace("10.0.0.0/8", "10.0.0.0/99");
        let found = declared(&wrong);
        assert_eq!(found.clusters.len(), 0);
        let [(object, why)] = found.refused.as_slice() else { panic!("{found:?}") };
        assert_eq!(object, "AzureCluster default/harbour");
        assert!(why.contains("spec.networkSpec.vnet.cidrBlocks[0]"), "{why}");
    }

    #[test]
    fn names_of_machines_are_five_letters() {
        assert_eq!([0, 25, 26, 27].map(example_suffix), ["aaaaa", "aaaaz", "aaaba", "aaabb"]);
    }
}
