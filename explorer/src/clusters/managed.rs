//! Clusters that Azure manages: the objects with which users declare them, and those of Cluster API's core.

use serde_json::{Value, json};

use super::flavor::Flavor;
use super::management::{CORE, INFRASTRUCTURE, LOCATION, Management, SUBSCRIPTION};
use super::member::{ApiServer, FINALIZER, HUB, Member, Network};

const VERSION: &str = "v1.33.2";
/// The version that clusters are upgraded to.
const NEXT_VERSION: &str = "v1.34.0";
/// The network in Azure that several clusters of whole resources declare. Others use networks that exist, whose owner
/// these do not show.
const WHOLE_NETWORK: &str = "whole";
const NODES: &str = "nodes";
const CREDENTIAL_FROM: &str = "serviceoperator.azure.com/credential-from";
const POLICY: &str = "serviceoperator.azure.com/reconcile-policy";

impl Member {
    pub(super) fn credential(&self, number: usize) -> String {
        format!("credential-of-{number}-{}", self.name)
    }

    /// Creates the Secret with the credential of whole resources.
    pub(super) fn create_credential(&self, number: usize, client: &str, management: &Management) {
        let members = [
            ("AZURE_SUBSCRIPTION_ID", SUBSCRIPTION),
            ("AZURE_TENANT_ID", "tenant"),
            ("AZURE_CLIENT_ID", client),
            ("AZURE_CLIENT_SECRET", "secret"),
        ];
        let data: serde_json::Map<String, Value> =
            members.into_iter().map(|(key, text)| (key.to_owned(), json!(text))).collect();
        management.create(json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": self.credential(number), "namespace": self.namespace }, "stringData": data,
        }));
    }

    /// The objects of a managed cluster, as they are after the core's first reconcile.
    pub(super) fn create_managed(&self, number: usize, users_group: bool, management: &Management) {
        let Some(control_plane) = self.flavor.control_plane() else { return };
        let infrastructure = self.flavor.infrastructure();
        let reference = |kind: &str| json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": kind, "name": self.name });
        let cluster = management.create(json!({
            "apiVersion": CORE, "kind": "Cluster",
            "metadata": { "name": self.name, "namespace": self.namespace, "finalizers": [FINALIZER],
                "labels": self.labels() },
            "spec": { "clusterNetwork": { "services": { "cidrBlocks": ["192.168.0.0/16"] } },
                "controlPlaneRef": reference(control_plane), "infrastructureRef": reference(infrastructure) },
        }));
        let owner = json!([{ "apiVersion": CORE, "kind": "Cluster", "name": self.name,
            "uid": cluster["metadata"]["uid"] }]);
        let (infrastructure_spec, control_plane_spec) = match self.flavor {
            Flavor::SelfManaged | Flavor::Aks => (json!({}), self.control_plane(number)),
            Flavor::AksAso => (
                json!({ "resources": self.whole_surroundings(number, users_group) }),
                json!({ "version": VERSION, "resources": [self.whole_cluster(number, &json!({}))] }),
            ),
        };
        for (kind, spec) in [(infrastructure, infrastructure_spec), (control_plane, control_plane_spec)] {
            management.admit(
                kind,
                json!({
                    "apiVersion": INFRASTRUCTURE, "kind": kind,
                    "metadata": { "name": self.name, "namespace": self.namespace, "labels": self.labels(),
                        "ownerReferences": owner },
                    "spec": spec,
                }),
            );
        }
        // A cluster is not created without a System pool.
        for pool in 0..self.machines.max(1) {
            self.create_node_pool(number, pool, management);
        }
    }

    /// The specification of an AzureManagedControlPlane.
    fn control_plane(&self, number: usize) -> Value {
        let network = match self.network {
            Network::Own | Network::Peered => json!({ "name": self.name }),
            Network::Named => json!({ "name": "network" }),
            Network::Hub => json!({ "name": HUB, "resourceGroup": HUB,
                "subnet": { "name": NODES, "cidrBlock": "10.1.0.0/16" } }),
        };
        let access = match self.api_server {
            ApiServer::Public => json!({ "authorizedIPRanges": ["12.34.56.78/32"] }),
            ApiServer::Private | ApiServer::NamedZone | ApiServer::UsersZone => {
                json!({ "enablePrivateCluster": true })
            }
        };
        json!({
            "location": LOCATION, "resourceGroupName": self.group_name(), "version": VERSION,
            "identityRef": { "kind": "AzureClusterIdentity", "name": self.identity(number),
                "namespace": self.namespace },
            "virtualNetwork": network, "apiServerAccessProfile": access, "sku": { "tier": "Standard" },
            "addonProfiles": [{ "name": "azurepolicy", "enabled": true }],
            "autoscalerProfile": { "expander": "least-waste" },
            "loadBalancerProfile": { "managedOutboundIPs": 2 },
            "autoUpgradeProfile": { "upgradeChannel": "patch" },
            "securityProfile": { "imageCleaner": { "enabled": true, "intervalHours": 48 } },
        })
    }

    fn whole(&self, number: usize, api: &str, kind: &str, name: &str, spec: &Value) -> Value {
        json!({
            "apiVersion": api, "kind": kind,
            "metadata": { "name": name, "annotations": { CREDENTIAL_FROM: self.credential(number) } },
            "spec": spec,
        })
    }

    /// The name of the objects of its network. As names of objects are unique in a namespace, references find them.
    fn whole_network(&self) -> String {
        format!("{}-network", self.name)
    }

    /// The resources around a managed cluster: its group, and a network.
    fn whole_surroundings(&self, number: usize, users_group: bool) -> Vec<Value> {
        let (name, place) = (self.group_name(), json!({ "location": LOCATION }));
        let mut group =
            self.whole(number, "resources.azure.com/v1api20200601", "ResourceGroup", name, &place);
        if self.group.is_some() && users_group {
            group["metadata"]["annotations"][POLICY] = json!("skip");
        }
        let mut all = vec![group];
        if self.network == Network::Named {
            const API: &str = "network.azure.com/v1api20240301";
            let network = self.whole_network();
            let space = json!({ "azureName": WHOLE_NETWORK, "location": LOCATION, "owner": { "name": name },
                "addressSpace": { "addressPrefixes": ["10.0.0.0/8"] } });
            all.push(self.whole(number, API, "VirtualNetwork", &network, &space));
            let subnet =
                json!({ "azureName": NODES, "owner": { "name": network }, "addressPrefix": "10.1.0.0/16" });
            all.push(self.whole(number, API, "VirtualNetworksSubnet", &network, &subnet));
        }
        all
    }

    /// The managed cluster as a whole resource.
    fn whole_cluster(&self, number: usize, tags: &Value) -> Value {
        let spec = json!({
            "location": LOCATION, "owner": { "name": self.group_name() }, "dnsPrefix": self.name,
            "identity": { "type": "SystemAssigned" }, "servicePrincipalProfile": { "clientId": "msi" },
            "networkProfile": { "networkPlugin": "azure", "dnsServiceIP": "192.168.0.10" },
            "apiServerAccessProfile": match self.api_server {
                ApiServer::Public => json!({ "authorizedIPRanges": ["12.34.56.78/32"] }),
                ApiServer::Private | ApiServer::NamedZone | ApiServer::UsersZone => {
                    json!({ "enablePrivateCluster": true })
                }
            },
            "autoUpgradeProfile": { "upgradeChannel": "patch" }, "tags": tags,
        });
        self.whole(number, "containerservice.azure.com/v1api20240901", "ManagedCluster", &self.name, &spec)
    }

    /// The name of a node pool's objects. Names are unique in a namespace.
    fn node_pool_name(&self, pool: usize) -> String {
        // Only the first is a System pool, without which nothing begins.
        if self.common_machines && pool > 0 {
            format!("pool-{pool}")
        } else {
            format!("{}-pool-{pool}", self.name)
        }
    }

    /// Creates a MachinePool with its infrastructure, unless another object has its name. The first is a System pool.
    pub(super) fn create_node_pool(&self, number: usize, pool: usize, management: &Management) {
        let mode = if pool == 0 { "System" } else { "User" };
        self.create_named_node_pool(
            number,
            &self.node_pool_name(pool),
            &format!("pool{pool}"),
            mode,
            management,
        );
    }

    /// The same with a name and a mode.
    pub(super) fn create_named_node_pool(
        &self,
        number: usize,
        name: &str,
        name_in_azure: &str,
        mode: &str,
        management: &Management,
    ) {
        let namespace = &self.namespace;
        if management.get("MachinePool", namespace, name).is_some() {
            return;
        }
        let kind = self.flavor.pool();
        let made = management.create(json!({
            "apiVersion": CORE, "kind": "MachinePool",
            "metadata": { "name": name, "namespace": namespace, "labels": self.labels(), "finalizers": [FINALIZER] },
            "spec": { "clusterName": self.name, "replicas": 1, "template": { "spec": {
                "clusterName": self.name, "version": VERSION, "bootstrap": { "dataSecretName": "" },
                "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": kind, "name": name } } } },
        }));
        let spec = match self.flavor {
            Flavor::SelfManaged | Flavor::Aks => {
                json!({ "name": name_in_azure, "mode": mode, "sku": "Standard_D2s_v3",
                    "nodeLabels": { "team": "a" } })
            }
            Flavor::AksAso => {
                let mut spec = json!({ "azureName": name_in_azure, "owner": { "name": self.name }, "mode": mode,
                    "type": "VirtualMachineScaleSets", "vmSize": "Standard_D2s_v3" });
                match self.network {
                    Network::Own | Network::Peered => {}
                    Network::Named => {
                        spec["vnetSubnetReference"] = json!({ "group": "network.azure.com",
                            "kind": "VirtualNetworksSubnet", "name": self.whole_network() });
                    }
                    Network::Hub => {
                        let id = azure_types::ResourceId::group(SUBSCRIPTION, HUB)
                            .resource("Microsoft.Network", "virtualNetworks", HUB)
                            .child("subnets", NODES);
                        spec["vnetSubnetReference"] = json!({ "armId": id.as_str() });
                    }
                }
                let api = "containerservice.azure.com/v1api20240901";
                json!({ "resources": [self.whole(number, api, "ManagedClustersAgentPool", name, &spec)] })
            }
        };
        management.admit(
            kind,
            json!({
                "apiVersion": INFRASTRUCTURE, "kind": kind,
                "metadata": { "name": name, "namespace": namespace, "labels": self.labels(),
                    "ownerReferences": [{ "apiVersion": CORE, "kind": "MachinePool", "name": name,
                        "uid": made["metadata"]["uid"] }] },
                "spec": spec,
            }),
        );
    }

    /// The patch of a managed control plane that gives the cluster a tag, or takes it away.
    pub(super) fn tag_of_control_plane(&self, number: usize, value: &Value) -> Value {
        match self.flavor {
            Flavor::SelfManaged | Flavor::Aks => json!({ "spec": { "additionalTags": { "cost": value } } }),
            Flavor::AksAso => {
                let tags = if value.is_null() { json!({}) } else { json!({ "cost": value }) };
                json!({ "spec": { "resources": [self.whole_cluster(number, &tags)] } })
            }
        }
    }

    /// The patch of a managed control plane that upgrades it.
    pub(super) fn upgrade_of_control_plane() -> Value {
        json!({ "spec": { "version": NEXT_VERSION } })
    }

    /// The host of the API server, as the objects of a managed cluster show it; empty before Azure has said it.
    pub(super) fn endpoint(&self, management: &Management) -> String {
        let object = management.get(self.flavor.served(), &self.namespace, &self.name).unwrap_or_default();
        let shown = [&object["spec"], &object["status"]];
        let mut hosts = shown.iter().filter_map(|it| it["controlPlaneEndpoint"]["host"].as_str());
        hosts.next_back().unwrap_or_default().to_owned()
    }

    /// Whether a pool may be deleted alone: the System pool may not.
    pub(super) fn may_lose(&self, pool: &str) -> bool {
        self.flavor.is_self_managed() || pool != self.node_pool_name(0)
    }

    /// The name of the part of this number by which the cluster grows.
    pub(super) fn part_name(&self, part: usize) -> String {
        if self.flavor.is_self_managed() { self.machine_name(part) } else { self.node_pool_name(part) }
    }
}
