//! One cluster of a neighbourhood: what a user declares, and the objects that Cluster API's core creates for it.

use rand::Rng as _;
use rand::rngs::SmallRng;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::flavor::Flavor;
use super::ledger::client_of;
use super::management::{CORE, INFRASTRUCTURE, LOCATION, Management, ssh_key};

const NAMES: [&str; 3] = ["prod", "prod", "dev"];
/// The names of clusters of whole resources. These bear no marks of their owner, so that a cluster of another flavor and
/// of the same name takes them over, as it does what was made by hand.
const WHOLE_NAMES: [&str; 3] = ["whole", "whole", "part"];
pub(super) const NAMESPACES: [&str; 2] = ["team-a", "team-b"];
/// The group that several clusters name.
pub(super) const TEAM_GROUP: &str = "team";
/// The group and network of a user.
pub(super) const HUB: &str = "hub";
/// The zone that several clusters name.
pub(super) const ZONE: &str = "corp.example.com";
/// The group of the user's zone.
pub(super) const ZONE_GROUP: &str = "dns";

/// How a cluster gets its network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Network {
    /// The default network.
    Own,
    /// A network of its own, with a name that others use as well.
    Named,
    /// A user's network, whose subnets several clusters use.
    Hub,
    /// The default network, peered with a user's.
    Peered,
}

/// How a cluster's API server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ApiServer {
    /// Public.
    Public,
    /// Private, under a name in a zone of its own.
    Private,
    /// Private, under a name in a zone that others name as well, in the cluster's group.
    NamedZone,
    /// Private, under a name in a zone of a user's group.
    UsersZone,
}

/// A user's declaration of one cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Member {
    /// The number of its first management cluster.
    pub management: usize,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its declaration.
    #[serde(default, skip_serializing_if = "Flavor::is_self_managed")]
    pub flavor: Flavor,
    /// The group that it names; by default the cluster's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Its network.
    pub network: Network,
    /// Its API server.
    pub api_server: ApiServer,
    /// Whether its security groups and load balancer have names that others use as well.
    #[serde(default)]
    pub common_names: bool,
    /// The initial number of machines: the first is a control plane. For a cluster that Azure manages, that of node pools:
    /// the first, which it always has, is a System pool.
    pub machines: usize,
    /// Whether machines, or node pools, have names that others use as well.
    #[serde(default)]
    pub common_machines: bool,
    /// Whether it has a pool of one machine.
    #[serde(default)]
    pub pool: bool,
}

impl Member {
    /// A cluster that shares nothing.
    pub fn alone(number: usize) -> Self {
        Self {
            management: 0,
            namespace: NAMESPACES[0].to_owned(),
            name: format!("alone-{number}"),
            flavor: Flavor::SelfManaged,
            group: None,
            network: Network::Own,
            api_server: ApiServer::Public,
            common_names: false,
            machines: 2,
            common_machines: false,
            pool: false,
        }
    }

    /// A random cluster. Two management clusters with the same key contain two clusters of one name.
    pub(super) fn draw(random: &mut SmallRng, taken: &[Self]) -> Self {
        loop {
            let flavor = Flavor::draw(random);
            let names = if flavor == Flavor::AksAso { WHOLE_NAMES } else { NAMES };
            let mut one = Self {
                flavor,
                management: random.random_range(0..2),
                namespace: NAMESPACES[random.random_range(0..2)].to_owned(),
                name: names[random.random_range(0..names.len())].to_owned(),
                group: random.random_bool(0.4).then(|| TEAM_GROUP.to_owned()),
                network: [Network::Own, Network::Own, Network::Named, Network::Hub, Network::Peered]
                    [random.random_range(0..5)],
                api_server: [
                    ApiServer::Public,
                    ApiServer::Public,
                    ApiServer::Private,
                    ApiServer::NamedZone,
                    ApiServer::UsersZone,
                ][random.random_range(0..5)],
                common_names: random.random_bool(0.3),
                machines: random.random_range(0..=2),
                common_machines: random.random_bool(0.4),
                pool: random.random_bool(0.25),
            };
            if !flavor.is_self_managed() {
                one.plain();
            }
            // A move must not meet an object with the same key.
            let is_same = |other: &&Self| (&other.namespace, &other.name) == (&one.namespace, &one.name);
            let same = taken.iter().find(is_same);
            if taken.len() > 2 || same.is_none_or(|other| other.management != one.management) {
                return one;
            }
        }
    }

    /// Takes away what clusters that Azure manages do not have.
    fn plain(&mut self) {
        self.pool = false;
        self.common_names = false;
        if self.network == Network::Peered {
            self.network = Network::Own;
        }
        if self.api_server != ApiServer::Public {
            self.api_server = ApiServer::Private;
        }
    }

    /// The group of its resources.
    pub(super) fn group_name(&self) -> &str {
        self.group.as_deref().unwrap_or(&self.name)
    }

    /// Whether the two clusters claim something that only one of them can have.
    pub(super) fn may_conflict_with(&self, other: &Self) -> bool {
        self.name == other.name
            || self.group_name() == other.group_name()
            || self.zone().is_some() && self.zone() == other.zone()
    }

    /// Whether the two clusters have networks of one name in two groups, and both are peered with the same network:
    /// Azure has only one peering of that name for the two.
    pub(super) fn wants_peering_of(&self, other: &Self) -> bool {
        [self, other].iter().all(|it| it.network == Network::Peered)
            && self.name == other.name
            && self.group_name() != other.group_name()
    }

    /// The zone that it names, with its group.
    fn zone(&self) -> Option<(&str, &str)> {
        match self.api_server {
            ApiServer::Public | ApiServer::Private => None,
            ApiServer::NamedZone => Some((self.group_name(), ZONE)),
            ApiServer::UsersZone => Some((ZONE_GROUP, ZONE)),
        }
    }

    /// The second octet of its control planes' addresses: networks that are peered must not overlap.
    pub(super) fn second_octet(&self, number: usize) -> usize {
        if self.network == Network::Peered { 16 * (number + 1) } else { 0 }
    }

    pub(super) fn identity(&self, number: usize) -> String {
        format!("identity-of-{number}-{}", self.name)
    }

    /// Creates its prerequisites in a management cluster.
    pub(super) fn prepare(&self, number: usize, management: &Management) {
        management.namespace(&self.namespace);
        management.create(json!({
            "apiVersion": INFRASTRUCTURE, "kind": "AzureClusterIdentity",
            "metadata": { "name": self.identity(number), "namespace": self.namespace },
            "spec": { "type": "WorkloadIdentity", "clientID": client_of(number), "tenantID": "tenant",
                "allowedNamespaces": {} },
        }));
        if self.flavor == Flavor::AksAso {
            self.create_credential(number, &client_of(number), management);
        }
    }

    fn spec(&self, number: usize) -> Value {
        let mut vnet = json!({});
        let mut subnets = json!([
            { "role": "control-plane", "name": "control-planes" },
            { "role": "node", "name": "nodes" },
        ]);
        match self.network {
            Network::Own => {}
            Network::Named => vnet = json!({ "name": "network" }),
            Network::Hub => vnet = json!({ "name": HUB, "resourceGroup": HUB }),
            Network::Peered => {
                vnet = json!({ "peerings": [{ "remoteVnetName": HUB, "resourceGroup": HUB }] })
            }
        }
        if self.common_names && self.network != Network::Hub {
            subnets[0]["securityGroup"] = json!({ "name": "guard" });
            subnets[1]["securityGroup"] = json!({ "name": "guard-of-nodes" });
        }
        if self.network == Network::Hub {
            subnets[0]["name"] = json!("cp");
        }
        if self.network == Network::Peered {
            let base = self.second_octet(number);
            vnet["cidrBlocks"] = json!([format!("10.{base}.0.0/12")]);
            subnets[0]["cidrBlocks"] = json!([format!("10.{base}.0.0/16")]);
            subnets[1]["cidrBlocks"] = json!([format!("10.{}.0.0/16", base + 1)]);
        }
        let mut network = json!({ "vnet": vnet, "subnets": subnets });
        let mut balancer = json!({});
        if self.common_names {
            balancer["name"] = json!("api-server");
        }
        if self.api_server != ApiServer::Public {
            balancer["type"] = json!("Internal");
            // In a user's network two internal frontends must differ.
            let address = match self.network {
                Network::Hub => format!("10.0.0.{}", 100 + number),
                Network::Peered | Network::Own | Network::Named => {
                    format!("10.{}.0.100", self.second_octet(number))
                }
            };
            balancer["frontendIPs"] = json!([{ "name": "front", "privateIP": address }]);
        }
        network["apiServerLB"] = balancer;
        match self.api_server {
            ApiServer::Public | ApiServer::Private => {}
            ApiServer::NamedZone => network["privateDNSZoneName"] = json!(ZONE),
            ApiServer::UsersZone => {
                network["privateDNSZoneName"] = json!(ZONE);
                network["privateDNSZoneResourceGroup"] = json!(ZONE_GROUP);
            }
        }
        let mut spec = json!({
            "location": LOCATION, "networkSpec": network,
            "identityRef": { "kind": "AzureClusterIdentity", "name": self.identity(number) },
        });
        if let Some(group) = &self.group {
            spec["resourceGroup"] = json!(group);
        }
        spec
    }

    /// The Cluster with its infrastructure, as they are after the core's first reconcile. A user may have created the
    /// group that clusters name.
    pub(super) fn create(&self, number: usize, users_group: bool, management: &Management) {
        if self.flavor.is_self_managed() {
            self.create_self_managed(number, management);
        } else {
            self.create_managed(number, users_group, management);
        }
    }

    fn create_self_managed(&self, number: usize, management: &Management) {
        let (name, namespace) = (&self.name, &self.namespace);
        let cluster = management.create(json!({
            "apiVersion": CORE, "kind": "Cluster",
            "metadata": { "name": name, "namespace": namespace, "finalizers": [FINALIZER], "labels": self.labels() },
            "spec": { "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AzureCluster",
                "name": name } },
        }));
        let owner = json!([{ "apiVersion": CORE, "kind": "Cluster", "name": name, "uid": cluster["metadata"]["uid"] }]);
        management.admit(
            "AzureCluster",
            json!({
                "apiVersion": INFRASTRUCTURE, "kind": "AzureCluster",
                "metadata": { "name": name, "namespace": namespace, "labels": self.labels(), "ownerReferences": owner },
                "spec": self.spec(number),
            }),
        );
        for machine in 0..self.machines {
            self.create_machine(machine, management);
        }
        if self.pool {
            self.create_pool(management);
        }
    }

    pub(super) fn labels(&self) -> Value {
        json!({ LABEL: self.name })
    }

    /// The name of a machine. Names are unique in a namespace, so two clusters of one namespace use different ones.
    pub(super) fn machine_name(&self, machine: usize) -> String {
        let role = if machine == 0 { "cp" } else { "worker" };
        if self.common_machines {
            format!("{role}-{machine}")
        } else {
            format!("{}-{role}-{machine}", self.name)
        }
    }

    /// Creates the part of this number by which the cluster grows, unless another object has its name.
    pub(super) fn create_part(&self, number: usize, part: usize, management: &Management) {
        if self.flavor.is_self_managed() {
            self.create_machine(part, management);
        } else {
            self.create_node_pool(number, part, management);
        }
    }

    /// Creates a Machine with its AzureMachine and bootstrap data, unless another object has its name.
    pub(super) fn create_machine(&self, machine: usize, management: &Management) {
        self.create_named_machine(&self.machine_name(machine), machine == 0, management);
    }

    /// The same with a name and a role.
    pub(super) fn create_named_machine(&self, name: &str, is_control_plane: bool, management: &Management) {
        let namespace = &self.namespace;
        if management.get("Machine", namespace, name).is_some() {
            return;
        }
        let data = self.create_data(name, management);
        let mut labels = self.labels();
        if is_control_plane {
            labels["cluster.x-k8s.io/control-plane"] = json!("");
        }
        let made = management.create(json!({
            "apiVersion": CORE, "kind": "Machine",
            "metadata": { "name": name, "namespace": namespace, "labels": labels, "finalizers": [FINALIZER] },
            "spec": { "clusterName": self.name, "version": "v1.33.0", "bootstrap": { "dataSecretName": data },
                "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AzureMachine", "name": name } },
        }));
        management.admit(
            "AzureMachine",
            json!({
                "apiVersion": INFRASTRUCTURE, "kind": "AzureMachine",
                "metadata": { "name": name, "namespace": namespace, "labels": labels,
                    "ownerReferences": [{ "apiVersion": CORE, "kind": "Machine", "name": name,
                        "uid": made["metadata"]["uid"] }] },
                "spec": { "vmSize": "Standard_D2s_v3", "osDisk": { "osType": "Linux", "diskSizeGB": 30 },
                    "sshPublicKey": ssh_key() },
            }),
        );
    }

    fn create_data(&self, name: &str, management: &Management) -> String {
        let data = format!("{name}-data");
        if management.get("Secret", &self.namespace, &data).is_none() {
            management.create(json!({
                "apiVersion": "v1", "kind": "Secret",
                "metadata": { "name": data, "namespace": self.namespace, "labels": self.labels() },
                "data": { "value": "I2Nsb3VkLWNvbmZpZw==" },
            }));
        }
        data
    }

    pub(super) fn pool_name(&self) -> String {
        if self.common_machines { "pool".to_owned() } else { format!("{}-pool", self.name) }
    }

    fn create_pool(&self, management: &Management) {
        let (name, namespace) = (self.pool_name(), &self.namespace);
        if management.get("MachinePool", namespace, &name).is_some() {
            return;
        }
        let data = self.create_data(&name, management);
        let made = management.create(json!({
            "apiVersion": CORE, "kind": "MachinePool",
            "metadata": { "name": name, "namespace": namespace, "labels": self.labels(), "finalizers": [FINALIZER] },
            "spec": { "clusterName": self.name, "replicas": 1, "template": { "spec": {
                "clusterName": self.name, "version": "v1.33.0", "bootstrap": { "dataSecretName": data },
                "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AzureMachinePool",
                    "name": name } } } },
        }));
        management.admit(
            "AzureMachinePool",
            json!({
                "apiVersion": INFRASTRUCTURE, "kind": "AzureMachinePool",
                "metadata": { "name": name, "namespace": namespace, "labels": self.labels(),
                    "ownerReferences": [{ "apiVersion": CORE, "kind": "MachinePool", "name": name,
                        "uid": made["metadata"]["uid"] }] },
                "spec": { "location": LOCATION, "template": { "vmSize": "Standard_D2s_v3",
                    "osDisk": { "osType": "Linux", "diskSizeGB": 30 }, "sshPublicKey": ssh_key() } },
            }),
        );
    }
}

/// The label with the name of an object's cluster.
pub(super) const LABEL: &str = "cluster.x-k8s.io/cluster-name";
/// The finalizer of the core on its own objects.
pub(super) const FINALIZER: &str = "core.cluster.x-k8s.io";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_that_share_a_name_a_group_or_a_zone_may_conflict() {
        let one = Member::alone(1);
        assert!(!one.may_conflict_with(&Member::alone(2)));
        let zone = |number| Member { api_server: ApiServer::UsersZone, ..Member::alone(number) };
        assert!(zone(1).may_conflict_with(&zone(2)));
        let named = |number| Member { api_server: ApiServer::NamedZone, ..Member::alone(number) };
        assert!(!named(1).may_conflict_with(&named(2)));
        let group = |number| Member { group: Some("g".into()), ..Member::alone(number) };
        assert!(group(1).may_conflict_with(&group(2)));
    }
}
