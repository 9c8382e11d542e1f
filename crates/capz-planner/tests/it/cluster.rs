//! Goals of AzureClusters.

use std::collections::BTreeSet;

use azure_types::ResourceId;
use capz_api::azure_cluster::AzureClusterSpec;
use capz_api::{Context, Gates};
use capz_planner::cluster::{Endpoint, Memory, complete, end, endpoint, ends, goals, read_back, remembered};
use capz_planner::service::CLUSTER;
use capz_planner::{ClusterScope, Goal, ObservedResources};
use serde_json::{Value, json};

use super::azure::Azure;

static NOTHING_KEPT: BTreeSet<ResourceId> = BTreeSet::new();

struct NoRandom;
impl capz_api::Random for NoRandom {
    fn guid(&mut self) -> String {
        "5e5e5e5e-0000-0000-0000-000000000000".into()
    }
    fn ssh_public_key(&mut self) -> String {
        String::new()
    }
}

/// A cluster in the form that a controller reconciles: after admission, and completed.
pub struct Cluster {
    pub spec: AzureClusterSpec,
    pub zones: Vec<String>,
    pub port: Option<i32>,
    pub gates: Gates,
}

impl Cluster {
    pub fn new(spec: Value) -> Self {
        Self::with(spec, None, Gates::default())
    }

    pub fn with(mut spec: Value, port: Option<i32>, gates: Gates) -> Self {
        for (member, value) in [("location", "eastus"), ("resourceGroup", "my-rg")] {
            spec.as_object_mut().unwrap().entry(member).or_insert(json!(value));
        }
        let object = json!({ "metadata": { "name": "my-cluster" }, "spec": spec });
        let context = Context { gates, ..Context::default() };
        let object =
            capz_api::admission::set_defaults("AzureCluster", object, &context, &mut NoRandom).unwrap();
        let spec: AzureClusterSpec = serde_json::from_value(object["spec"].clone()).unwrap();
        let mut cluster = Self { spec, zones: Vec::new(), port, gates };
        cluster.complete();
        cluster
    }

    pub fn complete(&mut self) {
        let port = self.port.unwrap_or(6443);
        complete(&mut self.spec, "my-cluster", "123", port, "cloudapp.azure.com");
    }

    pub fn scope(&self) -> ClusterScope<'_> {
        ClusterScope {
            cluster: "my-cluster",
            id: None,
            marked_only: false,
            kept: &NOTHING_KEPT,
            namespace: "default",
            name: "my-cluster",
            spec: &self.spec,
            subscription: "123",
            api_server_port: self.port,
            zones: &self.zones,
            dns_suffix: "cloudapp.azure.com",
            gates: self.gates,
        }
    }

    /// Its goals, each of a service whose condition is written.
    pub fn goals(&self) -> Vec<Goal> {
        let goals = goals(self.scope(), &Memory::default());
        for goal in &goals {
            assert!(CLUSTER.contains(&goal.service), "{} is not in service::CLUSTER", goal.service.name);
        }
        goals
    }

    /// The document of the goal with this name.
    pub fn document(&self, name: &str) -> Value {
        let goals = self.goals();
        let found: Vec<&Goal> = goals.iter().filter(|goal| goal.id.name() == name).collect();
        assert_eq!(found.len(), 1, "{name} among {goals:?}");
        found[0].document.clone()
    }

    pub fn has(&self, name: &str) -> bool {
        self.goals().iter().any(|goal| goal.id.name() == name)
    }
}

/// CAPZ-048: order is derived from references; resources that do not depend on each other are created in parallel.
#[test]
fn a_public_cluster_is_made_in_as_few_rounds_as_its_references_allow() {
    let cluster = Cluster::new(json!({}));
    let mut azure = Azure::default();
    let plan = azure.settle("my-cluster", &cluster.goals());
    assert!(plan.is_reached(), "{plan}");
    let rounds: Vec<Vec<&str>> =
        azure.rounds.iter().map(|round| round.iter().map(String::as_str).collect()).collect();
    assert_eq!(
        rounds,
        [
            vec!["my-rg"],
            // Of two clusters that create one group at the same moment, one creates this, and the other one nothing.
            // The longest chain depends on it.
            vec!["pip-my-cluster-node-natgw"],
            vec![
                "my-cluster-vnet",
                "my-cluster-controlplane-nsg",
                "my-cluster-node-nsg",
                "my-cluster-node-routetable",
                "pip-my-cluster-apiserver",
                "my-cluster-node-natgw",
            ],
            // One write to the network at a time.
            vec!["my-cluster-controlplane-subnet", "my-cluster-public-lb"],
            vec!["my-cluster-node-subnet"],
        ]
    );
    // At rest: nothing to write, and few reads.
    assert_eq!(azure.plan("my-cluster", cluster.goals()).steps().count(), 0);
    assert!(ObservedResources::default().missing(&cluster.goals()).len() <= 12);
}

fn public_ip(cluster: &Cluster) -> capz_api::network::PublicIp {
    let balancer = cluster.scope().api_server_balancer().unwrap();
    balancer.frontend_ips.clone().unwrap()[0].public_ip.clone().unwrap()
}

fn known(cluster: &Cluster) -> (String, i32) {
    match endpoint(cluster.scope()) {
        Endpoint::Known(endpoint) => (endpoint.host.unwrap(), endpoint.port.unwrap()),
        Endpoint::Awaited(member) => panic!("{member} is missing"),
    }
}

/// CAPZ-049, CAPZ-050: the public name of the API server.
#[test]
fn a_public_api_server_has_a_generated_name_or_the_declared_one() {
    let cluster = Cluster::new(json!({}));
    let name = "my-cluster-3f5c6fa8.eastus.cloudapp.azure.com";
    assert_eq!(public_ip(&cluster).dns_name.as_deref(), Some(name));
    assert_eq!(known(&cluster), (name.to_owned(), 6443));
    let label = &cluster.document("pip-my-cluster-apiserver")["properties"]["dnsSettings"];
    assert_eq!(label["domainNameLabel"], "my-cluster-3f5c6fa8");

    let own = json!({ "name": "front", "publicIP": { "name": "ip", "dnsName": "api.example.com" } });
    let cluster = Cluster::new(json!({ "networkSpec": { "apiServerLB": { "frontendIPs": [own] } } }));
    assert_eq!(known(&cluster), ("api.example.com".to_owned(), 6443));
}

/// CAPZ-052: a private API server has a name in a private zone.
#[test]
fn a_private_api_server_is_found_in_its_zone() {
    let cluster = Cluster::new(json!({ "networkSpec": { "apiServerLB": { "type": "Internal" } } }));
    assert_eq!(known(&cluster), ("apiserver.my-cluster.capz.io".to_owned(), 6443));
    assert_eq!(cluster.document("my-cluster.capz.io")["location"], "global");
    let link = cluster.document("my-cluster-vnet-link");
    assert_eq!(link["properties"]["registrationEnabled"], false);
    let record = &cluster.document("apiserver")["properties"];
    assert_eq!(*record, json!({ "ttl": 300, "aRecords": [{ "ipv4Address": "10.0.0.100" }] }));
    assert!(!cluster.has("pip-my-cluster-apiserver"));
    let mut azure = Azure::default();
    assert!(azure.settle("my-cluster", &cluster.goals()).is_reached());

    let none = json!({ "networkSpec": { "apiServerLB": { "type": "Internal" }, "privateDNSZone": "None" } });
    assert!(!Cluster::new(none).has("my-cluster.capz.io"));
}

/// CAPZ-053: another port reaches the endpoint, rules, probe and security rule. CAPZ-071: further ports.
#[test]
fn ports_of_the_api_server_are_declared_once() {
    let further = json!([{ "name": "rke2", "port": 9345 }]);
    let spec = json!({ "networkSpec": { "additionalAPIServerLBPorts": further } });
    let cluster = Cluster::with(spec, Some(8443), Gates::default());
    assert_eq!(known(&cluster).1, 8443);
    let balancer = &cluster.document("my-cluster-public-lb")["properties"];
    let ports: Vec<_> = balancer["loadBalancingRules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| {
            assert!(rule["properties"]["probe"]["id"].as_str().unwrap().ends_with("/probes/HTTPSProbe"));
            (
                rule["name"].clone(),
                rule["properties"]["frontendPort"].clone(),
                rule["properties"]["backendPort"].clone(),
            )
        })
        .collect();
    assert_eq!(
        ports,
        [(json!("LBRuleHTTPS"), json!(8443), json!(8443)), (json!("rke2"), json!(9345), json!(9345))]
    );
    assert_eq!(balancer["probes"][0]["properties"]["port"], 8443);
    assert_eq!(balancer["probes"][0]["properties"]["requestPath"], "/readyz");
    let rules = cluster.document("my-cluster-controlplane-nsg")["properties"]["securityRules"].clone();
    assert_eq!(rules[1]["properties"]["destinationPortRange"], "8443");
}

/// CAPZ-054, CAPZ-055: default rules of the control plane's security group.
#[test]
fn default_rules_give_way_to_rules_for_the_same_port() {
    let names = |cluster: &Cluster, group: &str| -> Vec<(String, i64)> {
        let document = cluster.document(group);
        document["properties"]["securityRules"]
            .as_array()
            .unwrap()
            .iter()
            .map(|rule| {
                (rule["name"].as_str().unwrap().to_owned(), rule["properties"]["priority"].as_i64().unwrap())
            })
            .collect()
    };
    let cluster = Cluster::new(json!({}));
    assert_eq!(
        names(&cluster, "my-cluster-controlplane-nsg"),
        [("allow_ssh".to_owned(), 2200), ("allow_apiserver".to_owned(), 2201)]
    );
    assert_eq!(names(&cluster, "my-cluster-node-nsg"), []);

    let deny = json!({
        "name": "no_ssh", "description": "No SSH", "priority": 100, "protocol": "Tcp", "direction": "Inbound",
        "action": "Deny", "source": "*", "sourcePorts": "*", "destination": "*", "destinationPorts": "22",
    });
    let subnets = json!([
        { "name": "cp", "role": "control-plane", "securityGroup": { "name": "nsg", "securityRules": [deny] } },
        { "name": "n", "role": "node" },
    ]);
    let cluster = Cluster::new(json!({ "networkSpec": { "subnets": subnets } }));
    assert_eq!(names(&cluster, "nsg"), [("no_ssh".to_owned(), 100), ("allow_apiserver".to_owned(), 2201)]);
    let document = cluster.document("nsg");
    assert_eq!(document["properties"]["securityRules"][0]["properties"]["access"], "Deny");
}

/// CAPZ-056: a rule that we applied and that is no longer declared is deleted; one from the portal stays.
#[test]
fn rules_of_others_stay_and_ours_go_when_they_are_declared_no_more() {
    let subnets = |rules: Value| {
        json!({ "networkSpec": { "subnets": [
            { "name": "cp", "role": "control-plane", "securityGroup": { "name": "nsg", "securityRules": rules } },
            { "name": "n", "role": "node" },
        ] } })
    };
    let rule = json!({
        "name": "web", "description": "Web", "priority": 300, "protocol": "Tcp", "direction": "Inbound",
        "action": "Allow", "destinationPorts": "443",
    });
    let (before, after) = (Cluster::new(subnets(json!([rule]))), Cluster::new(subnets(json!([]))));
    let mut azure = Azure::default();
    azure.settle("my-cluster", &before.goals());
    let id = before.scope().in_network_group("networkSecurityGroups", "nsg");
    let rules = azure.documents.get_mut(&id).unwrap()["properties"]["securityRules"].as_array_mut().unwrap();
    rules.push(json!({ "name": "portal", "properties": { "priority": 400 } }));

    let memory = Memory::of(&remembered(before.scope()).annotations());
    assert_eq!(memory, remembered(before.scope()));
    let plan = azure.plan("my-cluster", goals(after.scope(), &memory));
    let steps: Vec<_> = plan.steps().collect();
    assert_eq!(steps.len(), 1, "{plan}");
    let names: Vec<&str> = steps[0].document["properties"]["securityRules"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|rule| rule["name"].as_str())
        .collect();
    assert_eq!(names, ["allow_ssh", "allow_apiserver", "portal"]);
    assert_eq!(steps[0].if_match, azure.documents[&id]["etag"].as_str().map(str::to_owned));
}

/// CAPZ-057: a foreign network is not changed except for missing subnets. CAPZ-060: neither is a foreign public IP.
#[test]
fn what_others_made_is_used_as_it_is() {
    let cluster = Cluster::new(json!({ "networkSpec": {
        "vnet": { "name": "theirs", "resourceGroup": "their-rg" },
        "subnets": [
            { "name": "cp", "role": "control-plane", "cidrBlocks": ["10.0.0.0/24"] },
            { "name": "n", "role": "node", "id": "given" },
        ],
    } }));
    let mut azure = Azure::default();
    let network = cluster.scope().network();
    azure.put(&cluster.scope().network_group(), json!({ "location": "eastus" }));
    azure.put(&network, json!({ "properties": { "addressSpace": { "addressPrefixes": ["10.0.0.0/16"] } } }));
    azure.put(&network.child("subnets", "cp"), json!({ "properties": { "addressPrefix": "10.0.9.0/24" } }));
    let ip = cluster.scope().public_ip("pip-my-cluster-apiserver");
    azure.put(&cluster.scope().group(), json!({ "location": "eastus" }));
    azure.put(&ip, json!({ "properties": { "ipAddress": "1.2.3.4" } }));
    let before = azure.documents.clone();
    let plan = azure.settle("my-cluster", &cluster.goals());
    assert!(plan.is_reached(), "{plan}");
    for (id, document) in before {
        assert_eq!(azure.documents[&id], document, "{id}");
    }
    let made: Vec<&str> = azure.documents.keys().map(|id| id.name()).collect();
    assert!(!made.iter().any(|name| name.ends_with("nsg") || name.ends_with("routetable")), "{made:?}");
    assert!(made.contains(&"my-cluster-public-lb"), "{made:?}");
}

/// CAPZ-061, CAPZ-062: foreign items in the API server's load balancer stay; our rule comes back.
#[test]
fn drift_of_the_load_balancer_is_mended_and_foreign_rules_stay() {
    let cluster = Cluster::new(json!({}));
    let mut azure = Azure::default();
    azure.settle("my-cluster", &cluster.goals());
    let id = cluster.scope().balancer("my-cluster-public-lb");
    let document = azure.documents.get_mut(&id).unwrap();
    document["properties"]["loadBalancingRules"][0]["properties"]["backendPort"] = json!(1);
    let rules = document["properties"]["loadBalancingRules"].as_array_mut().unwrap();
    rules.push(json!({ "name": "foreign", "properties": { "frontendPort": 80 } }));
    document["properties"]["inboundNatRules"] =
        json!([{ "name": "my-vm", "properties": { "frontendPort": 22 } }]);
    let plan = azure.settle("my-cluster", &cluster.goals());
    assert!(plan.is_reached());
    let held = &azure.documents[&id]["properties"];
    assert_eq!(held["loadBalancingRules"][0]["properties"]["backendPort"], 6443);
    assert_eq!(held["loadBalancingRules"][1]["name"], "foreign");
    assert_eq!(held["inboundNatRules"][0]["name"], "my-vm");
}

/// CAPZ-063: peerings lead both ways.
#[test]
fn networks_are_peered_in_both_directions() {
    let peerings = json!([{ "remoteVnetName": "vnet2", "resourceGroup": "rg2",
        "forwardPeeringProperties": { "allowForwardedTraffic": true } }]);
    let cluster = Cluster::new(json!({ "networkSpec": { "vnet": { "peerings": peerings } } }));
    let there = cluster.document("my-cluster-vnet-To-vnet2");
    assert_eq!(there["properties"]["allowForwardedTraffic"], true);
    let goals = cluster.goals();
    let back = goals.iter().find(|goal| goal.id.name() == "vnet2-To-my-cluster-vnet").unwrap();
    assert_eq!(back.id.group_name(), Some("rg2"));
}

/// CAPZ-064: a foreign zone stays as it is; links and the record are created. With our tag it is ours: it is created
/// again if its creation failed, and deleted with the cluster.
#[test]
fn a_foreign_zone_is_used_until_it_is_tagged() {
    let cluster = Cluster::new(json!({ "networkSpec": { "apiServerLB": { "type": "Internal" } } }));
    let tags = json!({ "sigs.k8s.io_cluster-api-provider-azure_cluster_my-cluster": "owned" });
    for is_tagged in [false, true] {
        let mut azure = Azure::default();
        let goals = cluster.goals();
        let zone = goals.iter().find(|goal| goal.id.name() == "my-cluster.capz.io").unwrap().id.clone();
        // The group is foreign, so that resources are deleted one by one.
        azure.put(&cluster.scope().group(), json!({}));
        azure.put(&zone, json!({ "location": "global", "properties": { "provisioningState": "Failed" } }));
        assert!(azure.settle("my-cluster", &goals).is_reached());
        assert_eq!(azure.documents[&zone]["properties"]["provisioningState"], "Failed");
        assert!(azure.documents[&zone]["tags"].is_null());
        assert!(azure.names().contains("my-cluster-vnet-link") && azure.names().contains("apiserver"));
        if is_tagged {
            azure.documents.get_mut(&zone).unwrap()["tags"] = tags.clone();
            assert!(azure.settle("my-cluster", &goals).is_reached());
            assert_eq!(azure.documents[&zone]["properties"]["provisioningState"], "Succeeded");
        }
        let how = end(cluster.scope(), true, &azure.observed(&goals));
        let plan = azure.settle("my-cluster", &ends(cluster.scope(), &remembered(cluster.scope()), how));
        assert!(plan.is_reached(), "{plan}");
        assert_eq!(azure.documents.contains_key(&zone), !is_tagged);
        assert!(!azure.names().contains("my-cluster-vnet-link"));
    }
}

/// CAPZ-067: additional tags of groups are changed, removed when they are no longer declared, and do not affect others'
/// tags.
#[test]
fn additional_tags_of_groups_are_kept_up() {
    let (before, after) = (
        Cluster::new(json!({ "additionalTags": { "a": "b", "gone": "x" } })),
        Cluster::new(json!({ "additionalTags": { "a": "c" } })),
    );
    let mut azure = Azure::default();
    azure.settle("my-cluster", &before.goals());
    let id = before.scope().group();
    azure.documents.get_mut(&id).unwrap()["tags"]["theirs"] = json!("kept");
    azure.settle("my-cluster", &goals(after.scope(), &remembered(before.scope())));
    let tags = &azure.documents[&id]["tags"];
    assert_eq!((&tags["a"], &tags["theirs"], &tags["gone"]), (&json!("c"), &json!("kept"), &Value::Null));
}

/// CAPZ-072: subnets share a NAT gateway. CAPZ-073: a subnet that is no longer declared is deleted with its gateway.
#[test]
fn subnets_and_their_gateways_come_and_go() {
    let subnets = |names: &[(&str, &str)]| {
        let mut subnets = vec![json!({ "name": "cp", "role": "control-plane" })];
        subnets.extend(names.iter().enumerate().map(|(at, (name, gateway))| {
            json!({ "name": name, "role": "node", "cidrBlocks": [format!("10.{}.0.0/16", at + 1)],
                "natGateway": { "name": gateway } })
        }));
        Cluster::new(json!({ "networkSpec": { "subnets": subnets } }))
    };
    let before = subnets(&[("a", "gw"), ("b", "gw"), ("c", "gw-c")]);
    let gateways = before.goals().iter().filter(|goal| goal.id.name() == "gw").count();
    assert_eq!(gateways, 1);
    let gateway_of = |name: &str| before.document(name)["properties"]["natGateway"]["id"].clone();
    let gateway = json!(before.scope().in_group("natGateways", "gw").as_str());
    assert_eq!([gateway_of("a"), gateway_of("b")], [gateway.clone(), gateway.clone()]);
    assert_ne!(gateway_of("c"), gateway);
    let mut azure = Azure::default();
    azure.settle("my-cluster", &before.goals());
    assert!(azure.names().contains("c") && azure.names().contains("gw-c"));
    let after = subnets(&[("a", "gw"), ("b", "gw")]);
    let plan = azure.settle("my-cluster", &goals(after.scope(), &remembered(before.scope())));
    assert!(plan.is_reached(), "{plan}");
    assert!(!azure.names().contains("c") && !azure.names().contains("gw-c"), "{:?}", azure.names());
    // A gateway that others use stays, as do those others.
    for name in ["gw", "a", "b", "cp"] {
        assert!(azure.names().contains(name), "{name}");
    }
    let subnets = ["a", "b"].map(|name| &azure.documents[&after.scope().subnet(name)]["properties"]);
    assert!(subnets.iter().all(|subnet| subnet["natGateway"]["id"] == gateway), "{subnets:?}");
}

/// Withdrawn resources are recorded: some are deleted at once, all of them with the cluster, and never foreign ones.
#[test]
fn what_was_applied_before_is_gone_in_the_end() {
    let further = json!({ "name": "more", "role": "node", "cidrBlocks": ["10.7.0.0/16"],
        "securityGroup": { "name": "more-nsg" }, "routeTable": { "name": "theirs" },
        "natGateway": { "name": "more-out", "ip": { "name": "more-out-ip" } },
        "privateEndpoints": [{ "name": "files", "privateLinkServiceConnections": [] }] });
    let with = |more: &[&Value], peerings: Value| {
        let mut subnets =
            vec![json!({ "name": "cp", "role": "control-plane" }), json!({ "name": "n", "role": "node" })];
        subnets.extend(more.iter().map(|subnet| (*subnet).clone()));
        Cluster::new(json!({ "networkSpec": { "apiServerLB": { "type": "Internal" }, "subnets": subnets,
            "vnet": { "peerings": peerings } } }))
    };
    let before = with(&[&further], json!([{ "remoteVnetName": "vnet2", "resourceGroup": "rg2" }]));
    let after = with(&[], json!([]));
    let mut azure = Azure::default();
    let remote = azure_types::ResourceId::group("123", "rg2");
    azure.put(&remote, json!({}));
    azure.put(&remote.resource("Microsoft.Network", "virtualNetworks", "vnet2"), json!({ "properties": {} }));
    azure.put(&before.scope().group(), json!({}));
    azure.put(&before.scope().in_network_group("routeTables", "theirs"), json!({ "properties": {} }));
    let at_first = azure.documents.clone();
    assert!(azure.settle("my-cluster", &before.goals()).is_reached());

    let memory = Memory::of(&remembered(before.scope()).annotations());
    assert_eq!(memory, remembered(before.scope()));
    let made = azure.names();
    assert!(azure.settle("my-cluster", &goals(after.scope(), &memory)).is_reached());
    let left = azure.names();
    let gone: Vec<&str> = made.difference(&left).map(String::as_str).collect();
    assert_eq!(
        gone,
        ["files", "more", "more-out", "my-cluster-vnet-To-vnet2", "vnet2-To-my-cluster-vnet", "vnet2-link"]
    );
    // The rest is recorded, and not read again before the deletion.
    let memory = remembered(after.scope()).with(&memory.until_the_end());
    assert_eq!(goals(after.scope(), &memory).len(), after.goals().len());
    let end = end(after.scope(), true, &azure.observed(&after.goals()));
    let plan = azure.settle("my-cluster", &ends(after.scope(), &memory, end));
    assert!(plan.is_reached(), "{plan}");
    assert_eq!(azure.documents, at_first);
}

/// The name of a bastion host counts at creation; another name in Azure's answer is no difference.
#[test]
fn the_name_of_a_bastion_is_asked_for_once() {
    let bastion =
        json!({ "name": "Watch", "publicIP": { "name": "watch-ip", "dnsName": "Watch.eastus.example.com" } });
    let cluster = Cluster::new(json!({ "bastionSpec": { "azureBastion": bastion } }));
    assert_eq!(cluster.document("Watch")["properties"]["dnsName"], "watch-bastion");
    assert_eq!(cluster.document("watch-ip")["properties"]["dnsSettings"]["domainNameLabel"], "watch");
    let mut azure = Azure::default();
    azure.settle("my-cluster", &cluster.goals());
    let id = cluster.scope().in_group("bastionHosts", "Watch");
    let name = &mut azure.documents.get_mut(&id).unwrap()["properties"]["dnsName"];
    assert_eq!(*name, "watch-bastion");
    *name = json!("bst-1.bastion.azure.com");
    assert_eq!(azure.plan("my-cluster", cluster.goals()).steps().count(), 0);
}

/// Values that Azure assigned are written to the spec.
#[test]
fn ids_and_ranges_are_read_back() {
    let mut cluster = Cluster::new(json!({}));
    let mut azure = Azure::default();
    azure.settle("my-cluster", &cluster.goals());
    let observed = azure.observed(&cluster.goals());
    let mut spec = cluster.spec.clone();
    read_back(&mut spec, cluster.scope(), &observed);
    let network = spec.network_spec.clone().unwrap();
    let vnet = network.vnet.unwrap();
    assert_eq!(vnet.id.as_deref(), Some(cluster.scope().network().as_str()));
    assert!(vnet.tags.unwrap().contains_key("sigs.k8s.io_cluster-api-provider-azure_cluster_my-cluster"));
    let subnets = network.subnets.unwrap();
    let node = subnets.iter().find(|it| it.name.as_deref() == Some("my-cluster-node-subnet")).unwrap();
    assert_eq!(node.id.as_deref(), Some(cluster.scope().subnet("my-cluster-node-subnet").as_str()));
    assert!(node.nat_gateway.clone().unwrap().id.is_some());
    // Values that were read back change nothing.
    cluster.spec = spec;
    cluster.complete();
    assert_eq!(azure.plan("my-cluster", cluster.goals()).steps().count(), 0);
}

#[test]
fn the_default_rules_are_those_of_the_control_planes_own_subnet() {
    for roles in [["cluster", "control-plane"], ["control-plane", "cluster"]] {
        let subnets = roles.map(|role| json!({ "role": role, "name": role }));
        let cluster = Cluster::new(json!({ "networkSpec": { "subnets": subnets } }));
        let subnets = cluster.spec.network_spec.as_ref().unwrap().subnets.clone().unwrap();
        let with_rules = subnets.iter().filter(|subnet| {
            subnet
                .security_group
                .as_ref()
                .is_some_and(|group| group.security_rules.iter().flatten().next().is_some())
        });
        let names: Vec<&str> = with_rules.filter_map(|subnet| subnet.name.as_deref()).collect();
        assert_eq!(names, ["control-plane"], "{roles:?}");
    }
}

/// Subnets may share a security group: it has the rules of all of them, each once.
#[test]
fn a_shared_security_group_has_the_rules_of_all_subnets() {
    let rule = |name: &str| json!({ "name": name, "description": name, "protocol": "Tcp", "priority": 500 });
    let subnet = |role: &str, rules: &[&str]| {
        let rules: Vec<Value> = rules.iter().map(|name| rule(name)).collect();
        json!({ "role": role, "name": role, "securityGroup": { "name": "shared", "securityRules": rules } })
    };
    let subnets = [subnet("control-plane", &["a", "b"]), subnet("node", &["b", "c"])];
    let cluster = Cluster::new(json!({ "networkSpec": { "subnets": subnets } }));
    let document = cluster.document("shared");
    let rules = document["properties"]["securityRules"].as_array().unwrap();
    let names: Vec<&str> = rules.iter().filter_map(|rule| rule["name"].as_str()).collect();
    assert_eq!(names, ["a", "b", "allow_ssh", "allow_apiserver", "c"]);
}

#[test]
fn a_nat_gateway_is_in_the_declared_zones() {
    for (zones, expected) in
        [(json!(["1"]), json!(["1"])), (json!([]), Value::Null), (Value::Null, Value::Null)]
    {
        let subnets = json!([
            { "role": "control-plane", "name": "cp" },
            { "role": "node", "name": "n", "natGateway": { "name": "gateway", "zones": zones } },
        ]);
        let cluster = Cluster::new(json!({ "networkSpec": { "subnets": subnets } }));
        assert_eq!(cluster.document("gateway")["zones"], expected, "{zones}");
    }
}
