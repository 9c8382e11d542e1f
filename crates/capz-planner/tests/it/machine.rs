//! Goals of AzureMachines.

use std::collections::BTreeMap;
use std::sync::Arc;

use capz_api::azure_machine::AzureMachineSpec;
use capz_api::{Context, Gates, Lookup};
use capz_planner::machine::{self, GoalError, MachineInputs, MachineScope, OwnerMachine};
use capz_planner::sku::{ALIGNED, AVAILABILITY_SETS, Skus, VIRTUAL_MACHINES};
use capz_planner::{Goal, ObservedResources, Plan, noun};
use cloud_config::Secret;
use serde_json::{Value, json};

use super::azure::Azure;
use super::cluster::Cluster;

pub const SIZE: &str = "Standard_D2s_v3";
/// `ssh-ed25519 AAAA… me`, in base64.
const KEY: &str = "c3NoLWVkMjU1MTkgQUFBQUMzTnphQzFsWkRJMU5URTVBQUFBSUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUEgbWU=";

pub struct Fixed;
impl capz_api::Random for Fixed {
    fn guid(&mut self) -> String {
        "5e5e5e5e-0000-0000-0000-000000000000".into()
    }
    fn ssh_public_key(&mut self) -> String {
        KEY.into()
    }
}

/// A machine in the form that a controller reconciles: after admission, and completed.
pub struct Machine {
    pub cluster: Cluster,
    pub name: String,
    pub spec: AzureMachineSpec,
    pub annotations: BTreeMap<String, String>,
    pub labels: BTreeMap<String, String>,
    pub earlier: Vec<String>,
    pub failure_domain: Option<String>,
    pub skus: Skus,
    pub image: capz_api::machine::Image,
}

impl Machine {
    pub fn worker(spec: Value) -> Self {
        Self::with(Cluster::new(json!({})), spec, &[("cluster.x-k8s.io/deployment-name", "md-0")])
    }

    pub fn control_plane(cluster: Cluster, spec: Value) -> Self {
        Self::with(cluster, spec, &[(machine::CONTROL_PLANE_LABEL, "")])
    }

    pub fn with(cluster: Cluster, mut spec: Value, labels: &[(&str, &str)]) -> Self {
        for (member, value) in [("vmSize", json!(SIZE)), ("osDisk", json!({ "osType": "Linux" }))] {
            spec.as_object_mut().unwrap().entry(member).or_insert(value);
        }
        let object = json!({ "metadata": { "name": "m" }, "spec": spec });
        let context = Context { subscription: Lookup::Found("123".into()), ..Context::default() };
        let object = capz_api::admission::set_defaults("AzureMachine", object, &context, &mut Fixed).unwrap();
        let mut machine = Self {
            cluster,
            name: "my-machine".into(),
            spec: serde_json::from_value(object["spec"].clone()).unwrap(),
            annotations: BTreeMap::new(),
            labels: labels.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect(),
            earlier: Vec::new(),
            failure_domain: None,
            skus: Skus::default(),
            image: serde_json::from_value(json!({ "id": "/any/image" })).unwrap(),
        };
        machine.set_capabilities(&[]);
        let role = machine.scope().role();
        machine::complete(&mut machine.spec, machine.cluster.scope(), role).unwrap();
        machine
    }

    /// Adds these capabilities of the size to those that Kubernetes needs.
    pub fn set_capabilities(&mut self, more: &[(&str, &str)]) {
        let enough = [("vCPUs", "2"), ("MemoryGB", "8"), ("CpuArchitectureType", "x64")];
        let list = |all: &[(&str, &str)]| -> Vec<Value> {
            all.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect()
        };
        let size = json!({
            "name": SIZE,
            "resourceType": VIRTUAL_MACHINES,
            "capabilities": list(&[&enough[..], more].concat()),
        });
        let sets = json!({
            "name": ALIGNED,
            "resourceType": AVAILABILITY_SETS,
            "capabilities": list(&[("MaximumPlatformFaultDomainCount", "3")]),
        });
        self.skus = Skus::read("eastus", &[size, sets]);
    }

    pub fn scope(&self) -> MachineScope<'_> {
        MachineScope {
            cluster: self.cluster.scope(),
            name: &self.name,
            spec: &self.spec,
            annotations: &self.annotations,
            owner: OwnerMachine {
                version: Some("v1.31.1"),
                failure_domain: self.failure_domain.as_deref(),
                labels: &self.labels,
            },
            earlier: &self.earlier,
        }
    }

    pub fn try_goals(&self, observed: &ObservedResources) -> Result<Vec<Goal>, GoalError> {
        let inputs = MachineInputs {
            bootstrap: Secret::new("Ym9vdA=="),
            password: Secret::new("correct horse"),
            image: self.image.clone(),
            size: self.skus.get(SIZE, VIRTUAL_MACHINES).unwrap().clone(),
            skus: Arc::new(self.skus.clone()),
        };
        machine::goals(&self.scope(), &inputs, observed)
    }

    pub fn goals(&self) -> Vec<Goal> {
        self.try_goals(&ObservedResources::default()).unwrap()
    }

    pub fn names(&self) -> Vec<String> {
        self.goals().iter().map(|goal| goal.id.name().to_owned()).collect()
    }

    pub fn document(&self, name: &str) -> Value {
        let goals = self.goals();
        let found: Vec<&Goal> = goals.iter().filter(|goal| goal.id.name() == name).collect();
        assert_eq!(found.len(), 1, "{name} among {goals:?}");
        found[0].document.clone()
    }

    /// Pools and rule of the first interface, by name; and whether it has a public address.
    fn membership(&self) -> (Vec<String>, Option<String>, bool) {
        let document = self.document("my-machine-nic");
        let primary = &document["properties"]["ipConfigurations"][0]["properties"];
        let last = |value: &Value| value["id"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        let pools = primary["loadBalancerBackendAddressPools"].as_array().unwrap();
        (
            pools.iter().map(last).collect(),
            primary.get("loadBalancerInboundNatRules").map(|rules| last(&rules[0])),
            primary.get("publicIPAddress").is_some(),
        )
    }

    /// The cluster in Azure, and this machine in it.
    pub fn settled(&self) -> Azure {
        let mut azure = Azure::default();
        assert!(azure.settle("my-cluster", &self.cluster.goals()).is_reached());
        self.settle(&mut azure);
        azure
    }

    pub fn settle(&self, azure: &mut Azure) -> Plan {
        // Goals are derived again from the observed state, as a controller does.
        for _ in 0..3 {
            let observed = azure.observed(&self.goals());
            let goals = self.try_goals(&observed).unwrap();
            let plan = azure.settle("my-cluster", &goals);
            assert!(plan.is_reached(), "{plan}");
        }
        let observed = azure.observed(&self.goals());
        azure.plan("my-cluster", self.try_goals(&observed).unwrap())
    }
}

fn internal(more: Value) -> Cluster {
    let mut network = json!({ "apiServerLB": { "type": "Internal" } });
    network.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Cluster::new(json!({ "networkSpec": network }))
}

/// CAPZ-101.
#[test]
fn machines_are_called_like_their_objects() {
    let mut machine = Machine::worker(json!({}));
    for (os, name, provider_id, vm) in [
        ("Windows", "machine-90123456", None, "machine-9-23456"),
        ("Windows", "machine--0123456", None, "machine--23456"),
        ("Windows", "short-windows-1", None, "short-windows-1"),
        ("Linux", "a-machine-with-a-very-long-name", None, "a-machine-with-a-very-long-name"),
        (
            "Windows",
            "machine-90123456",
            Some(
                "azure:///subscriptions/123/resourceGroups/my-rg/providers/Microsoft.Compute/virtualMachines/other",
            ),
            "other",
        ),
    ] {
        machine.name = name.into();
        machine.spec.provider_id = provider_id.map(str::to_owned);
        machine.spec.os_disk.as_mut().unwrap().os_type = Some(os.into());
        assert_eq!(machine.scope().vm_name(), vm);
        assert_eq!(machine.scope().vm().name(), vm);
    }
}

/// CAPZ-102: the first port at the load balancer that no other machine has.
#[test]
fn control_plane_machines_are_reached_over_ports_of_their_own() {
    let machine = Machine::control_plane(Cluster::new(json!({})), json!({}));
    let balancer = machine.cluster.scope().balancer("my-cluster-public-lb");
    let all: Vec<i64> = std::iter::once(22).chain(2201..=2219).collect();
    for (taken, port) in [
        (&[][..], Some(22)),
        (&[22], Some(2201)),
        (&[22, 2201], Some(2202)),
        (&[22, 2202], Some(2201)),
        (&[2201], Some(22)),
        (all.as_slice(), None),
    ] {
        let rules: Vec<Value> = taken
            .iter()
            .map(|port| json!({ "name": format!("m{port}"), "properties": { "frontendPort": port } }))
            .collect();
        let mut observed = ObservedResources::default();
        observed.take(&balancer, Some(json!({ "properties": { "inboundNatRules": rules } })));
        let goals = machine.try_goals(&observed);
        let Some(port) = port else {
            let error = goals.unwrap_err().to_string();
            assert!(error.starts_with("No available SSH Frontend ports"), "{error}");
            continue;
        };
        let goals = goals.unwrap();
        let rule = goals.iter().find(|goal| noun(&goal.id) == "inbound NAT rule").unwrap();
        assert_eq!(rule.id.name(), "my-machine");
        assert_eq!(rule.document["properties"]["frontendPort"], port, "{taken:?}");
        assert_eq!(rule.document["properties"]["backendPort"], 22);
        let frontend = rule.document["properties"]["frontendIPConfiguration"]["id"].as_str().unwrap();
        assert!(
            frontend
                .ends_with("/my-cluster-public-lb/frontendIPConfigurations/my-cluster-public-lb-frontEnd"),
            "{frontend}"
        );
    }
    // Of machines that are created at the same time, each leaves the first ports to those before it, unless they have
    // theirs.
    let mut last = Machine::control_plane(Cluster::new(json!({})), json!({}));
    last.earlier = vec!["a".into(), "b".into()];
    for (rules, port) in [
        (json!([]), 2202),
        (json!([{ "name": "A", "properties": { "frontendPort": 22 } }]), 2202),
        (json!([{ "name": "b", "properties": { "frontendPort": 2201 } }]), 2202),
        (
            json!([
                { "name": "a", "properties": { "frontendPort": 22 } },
                { "name": "b", "properties": { "frontendPort": 2202 } },
            ]),
            2201,
        ),
    ] {
        let mut observed = ObservedResources::default();
        observed.take(&balancer, Some(json!({ "properties": { "inboundNatRules": rules } })));
        let goals = last.try_goals(&observed).unwrap();
        let rule = goals.iter().find(|goal| noun(&goal.id) == "inbound NAT rule").unwrap();
        assert_eq!(rule.document["properties"]["frontendPort"], port, "{rules}");
    }
    // A machine keeps its port, even if all ports are taken.
    let mut rules: Vec<Value> = all
        .iter()
        .map(|port| json!({ "name": format!("m{port}"), "properties": { "frontendPort": port } }))
        .collect();
    rules[3]["name"] = json!("My-Machine");
    let mut observed = ObservedResources::default();
    observed.take(&balancer, Some(json!({ "properties": { "inboundNatRules": rules } })));
    let goals = machine.try_goals(&observed).unwrap();
    let rule = goals.iter().find(|goal| noun(&goal.id) == "inbound NAT rule").unwrap();
    assert_eq!(rule.document["properties"]["frontendPort"], 2203);
    assert_eq!(
        machine.membership(),
        (vec!["my-cluster-public-lb-backendPool".into()], Some("my-machine".into()), false)
    );
    assert!(!Machine::worker(json!({})).goals().iter().any(|goal| noun(&goal.id) == "inbound NAT rule"));
}

/// CAPZ-103.
#[test]
fn a_private_control_plane_is_behind_its_internal_balancer() {
    let machine = Machine::control_plane(internal(json!({})), json!({}));
    assert_eq!(machine.membership(), (vec!["my-cluster-internal-lb-backendPool".into()], None, false));
    let machine = Machine::control_plane(
        internal(json!({ "controlPlaneOutboundLB": { "frontendIPsCount": 1 } })),
        json!({}),
    );
    assert_eq!(
        machine.membership().0,
        ["my-cluster-internal-lb-backendPool", "my-cluster-outbound-lb-outboundBackendPool"]
    );
    // With the twin of a public balancer, machines are in both.
    let gates = Gates { api_server_ilb: true, ..Gates::default() };
    let machine = Machine::control_plane(Cluster::with(json!({}), None, gates), json!({}));
    assert_eq!(
        machine.membership(),
        (
            vec![
                "my-cluster-public-lb-backendPool".into(),
                "my-cluster-public-lb-backendPool-internal".into()
            ],
            Some("my-machine".into()),
            false
        )
    );
}

/// CAPZ-104.
#[test]
fn workers_go_out_in_one_way() {
    // Subnets of nodes have NAT gateways by default.
    assert_eq!(Machine::worker(json!({})).membership(), (vec![], None, false));
    let with_balancer = || {
        let subnets = json!([
            { "name": "cp", "role": "control-plane" },
            { "name": "n", "role": "node", "id": "/subscriptions/123/resourceGroups/my-rg" },
        ]);
        Cluster::new(
            json!({ "networkSpec": { "subnets": subnets, "nodeOutboundLB": { "frontendIPsCount": 1 } } }),
        )
    };
    let machine = Machine::with(with_balancer(), json!({}), &[]);
    assert_eq!(machine.membership(), (vec!["my-cluster-outboundBackendPool".into()], None, false));
    let mut machine = Machine::with(with_balancer(), json!({ "allocatePublicIP": true }), &[]);
    machine.cluster.zones = vec!["1".into(), "2".into()];
    assert_eq!(machine.membership(), (vec![], None, true));
    let address = machine.document("pip-my-machine");
    assert_eq!(address["zones"], json!(["1", "2"]));
    assert_eq!(address["sku"]["name"], "Standard");
}

/// CAPZ-105, CAPZ-106.
#[test]
fn interfaces_are_as_declared() {
    let mut machine = Machine::worker(json!({
        "networkInterfaces": [
            { "privateIPConfigs": 2 },
            { "subnetName": "other", "acceleratedNetworking": false },
        ],
        "dnsServers": ["10.0.0.4"],
        "enableIPForwarding": true,
    }));
    assert_eq!(machine.names(), ["my-machine-nic-0", "my-machine-nic-1", "my-cluster_md-0-as", "my-machine"]);
    let (first, second) = (machine.document("my-machine-nic-0"), machine.document("my-machine-nic-1"));
    let name =
        |document: &Value, index: usize| document["properties"]["ipConfigurations"][index]["name"].clone();
    assert_eq!([name(&first, 0), name(&first, 1)], ["pipConfig", "my-machine-nic-0-1"]);
    assert_eq!(first["properties"]["dnsSettings"], json!({ "dnsServers": ["10.0.0.4"] }));
    assert_eq!(second["properties"].get("dnsSettings"), None);
    assert_eq!(second["properties"]["enableIPForwarding"], true);
    let primary = &second["properties"]["ipConfigurations"][0]["properties"];
    assert_eq!(primary.get("loadBalancerBackendAddressPools"), None);
    assert!(primary["subnet"]["id"].as_str().unwrap().ends_with("/my-cluster-vnet/subnets/other"));
    for (capability, declared, fast) in [
        ("True", None, true),
        ("False", None, false),
        ("True", Some(false), false),
        ("False", Some(true), true),
    ] {
        machine.set_capabilities(&[("AcceleratedNetworkingEnabled", capability)]);
        machine.spec.network_interfaces.as_mut().unwrap()[0].accelerated_networking = declared;
        let document = machine.document("my-machine-nic-0");
        assert_eq!(document["properties"]["enableAcceleratedNetworking"], fast, "{capability} {declared:?}");
    }
    let many = Machine::worker(json!({ "networkInterfaces": [{ "privateIPConfigs": 10 }] }));
    let document = many.document("my-machine-nic");
    let configurations = document["properties"]["ipConfigurations"].as_array().unwrap();
    assert_eq!(configurations.len(), 10);
    assert_eq!(configurations[9]["name"], "my-machine-nic-9");
    let six =
        Cluster::new(json!({ "networkSpec": { "vnet": { "cidrBlocks": ["10.0.0.0/8", "2001:db8::/56"] } } }));
    let document = Machine::with(six, json!({}), &[]).document("my-machine-nic");
    assert_eq!(
        document["properties"]["ipConfigurations"][1]["properties"]["privateIPAddressVersion"],
        "IPv6"
    );
}

#[test]
fn the_first_interface_is_in_the_only_subnet_that_it_could_be_in() {
    let complete = |subnets: Value, role: &str, named: Option<&str>| {
        let cluster = Cluster::new(json!({ "networkSpec": { "subnets": subnets } }));
        let mut spec =
            AzureMachineSpec { subnet_name: named.map(str::to_owned), ..AzureMachineSpec::default() };
        machine::complete(&mut spec, cluster.scope(), role)
            .map(|()| spec.network_interfaces.unwrap()[0].subnet_name.clone().unwrap())
    };
    let subnet = |name: &str, role: &str| json!({ "name": name, "role": role });
    let several = json!([subnet("cp", "control-plane"), subnet("a", "node"), subnet("b", "node")]);
    assert_eq!(complete(several.clone(), "control-plane", None).as_deref(), Ok("cp"));
    assert_eq!(complete(several.clone(), "node", Some("b")).as_deref(), Ok("b"));
    let error = complete(several, "node", None).unwrap_err();
    assert!(error.contains("a subnet name must be specified") && error.contains("\"a\", \"b\""), "{error}");
    assert_eq!(complete(json!([subnet("all", "cluster")]), "node", None).as_deref(), Ok("all"));
    assert_eq!(
        complete(json!([subnet("all", "cluster"), subnet("a", "node")]), "node", None).as_deref(),
        Ok("a")
    );
}

/// CAPZ-107, CAPZ-108.
#[test]
fn machines_are_in_a_zone_or_in_an_availability_set() {
    let set = |machine: &Machine| machine.names().into_iter().find(|name| name.ends_with("-as"));
    let mut machine = Machine::worker(json!({}));
    assert_eq!(set(&machine).as_deref(), Some("my-cluster_md-0-as"));
    let document = machine.document("my-cluster_md-0-as");
    assert_eq!(
        (&document["sku"]["name"], &document["properties"]["platformFaultDomainCount"]),
        (&json!("Aligned"), &json!(3))
    );
    let vm = machine.document("my-machine");
    assert!(
        vm["properties"]["availabilitySet"]["id"]
            .as_str()
            .unwrap()
            .ends_with("/availabilitySets/my-cluster_md-0-as")
    );
    assert_eq!(vm.get("zones"), None);
    machine.labels = [("cluster.x-k8s.io/set-name".to_owned(), "ms".to_owned())].into();
    assert_eq!(set(&machine).as_deref(), Some("my-cluster_ms-as"));
    machine.labels.clear();
    assert_eq!(set(&machine), None);
    let control_plane = Machine::control_plane(Cluster::new(json!({})), json!({}));
    assert_eq!(set(&control_plane).as_deref(), Some("my-cluster_control-plane-as"));
    for spec in [
        json!({ "spotVMOptions": {} }),
        json!({ "failureDomain": "1" }),
        json!({ "virtualMachineScaleSetID": "azure:///subscriptions/123/resourceGroups/my-rg/providers/Microsoft.Compute/virtualMachineScaleSets/s" }),
    ] {
        assert_eq!(set(&Machine::worker(spec)), None);
    }
    let mut machine = Machine::worker(json!({ "failureDomain": "1" }));
    assert_eq!(machine.document("my-machine")["zones"], json!(["1"]));
    machine.failure_domain = Some("2".into());
    assert_eq!(machine.document("my-machine")["zones"], json!(["2"]));
    let mut machine = Machine::worker(json!({}));
    machine.cluster.zones = vec!["1".into()];
    assert_eq!(set(&machine), None, "where there are zones, availability sets are not used");
}

/// CAPZ-090, CAPZ-100, CAPZ-112: what the document of a machine holds.
#[test]
fn a_machine_is_what_is_declared() {
    let machine = Machine::worker(json!({
        "osDisk": { "osType": "Linux", "diskSizeGB": 30, "managedDisk": { "storageAccountType": "Premium_LRS" }, "cachingType": "None" },
        "dataDisks": [{ "nameSuffix": "etcd", "diskSizeGB": 256, "managedDisk": { "storageAccountType": "UltraSSD_LRS" } }],
        "sshPublicKey": KEY,
        "spotVMOptions": { "maxPrice": "0.04" },
        "identity": "UserAssigned",
        "userAssignedIdentities": [{ "providerID": "azure:///subscriptions/123/resourceGroups/r/providers/Microsoft.ManagedIdentity/userAssignedIdentities/i" }],
        "additionalTags": { "team": "a" },
        "capacityReservationGroupID": "/subscriptions/123/resourceGroups/r/providers/Microsoft.Compute/capacityReservationGroups/c",
    }));
    let document = machine.document("my-machine");
    assert_eq!(
        document,
        json!({
            "location": "eastus",
            "tags": {
                "Name": "my-machine",
                "kubernetes.io_cluster_my-cluster": "owned",
                "sigs.k8s.io_cluster-api-provider-azure_cluster_my-cluster": "owned",
                "sigs.k8s.io_cluster-api-provider-azure_role": "node",
                "team": "a",
            },
            "identity": {
                "type": "UserAssigned",
                "userAssignedIdentities": {
                    "/subscriptions/123/resourceGroups/r/providers/Microsoft.ManagedIdentity/userAssignedIdentities/i": {},
                },
            },
            "properties": {
                "hardwareProfile": { "vmSize": "Standard_D2s_v3" },
                "storageProfile": {
                    "imageReference": { "id": "/any/image" },
                    "osDisk": {
                        "name": "my-machine_OSDisk",
                        "osType": "Linux",
                        "createOption": "FromImage",
                        "diskSizeGB": 30,
                        "caching": "None",
                        "managedDisk": { "storageAccountType": "Premium_LRS" },
                    },
                    "dataDisks": [{
                        "name": "my-machine_etcd",
                        "createOption": "Empty",
                        "diskSizeGB": 256,
                        "lun": 0,
                        "caching": "None",
                        "managedDisk": { "storageAccountType": "UltraSSD_LRS" },
                    }],
                },
                "osProfile": {
                    "computerName": "my-machine",
                    "adminUsername": "capi",
                    "customData": "Ym9vdA==",
                    "allowExtensionOperations": true,
                    "linuxConfiguration": {
                        "disablePasswordAuthentication": true,
                        "ssh": { "publicKeys": [{
                            "path": "/home/capi/.ssh/authorized_keys",
                            "keyData": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA me",
                        }] },
                    },
                },
                "networkProfile": { "networkInterfaces": [{
                    "id": "/subscriptions/123/resourceGroups/my-rg/providers/Microsoft.Network/networkInterfaces/my-machine-nic",
                    "properties": { "primary": true },
                }] },
                "diagnosticsProfile": { "bootDiagnostics": { "enabled": true } },
                "additionalCapabilities": { "ultraSSDEnabled": true },
                "capacityReservation": { "capacityReservationGroup": {
                    "id": "/subscriptions/123/resourceGroups/r/providers/Microsoft.Compute/capacityReservationGroups/c",
                } },
                "priority": "Spot",
                "evictionPolicy": "Deallocate",
                "billingProfile": { "maxPrice": 0.04 },
            },
        })
    );
    let mut machine = Machine::worker(json!({
        "osDisk": { "osType": "Windows" },
        "dataDisks": [{ "nameSuffix": "a", "diskSizeGB": 4, "managedDisk": { "storageAccountType": "UltraSSD_LRS" } }],
        "additionalCapabilities": { "ultraSSDEnabled": false },
        "disableExtensionOperations": true,
        "diagnostics": { "boot": { "storageAccountType": "UserManaged", "userManaged": { "storageAccountURI": "https://mine/" } } },
        "securityProfile": { "securityType": "TrustedLaunch", "encryptionAtHost": false, "uefiSettings": { "secureBootEnabled": true, "vTpmEnabled": false } },
    }));
    machine.image = serde_json::from_value(json!({
        "marketplace": { "publisher": "p", "offer": "o", "sku": "s", "version": "1", "thirdPartyImage": true },
    }))
    .unwrap();
    let document = machine.document("my-machine");
    let properties = &document["properties"];
    assert_eq!(document["plan"], json!({ "publisher": "p", "product": "o", "name": "s" }));
    assert_eq!(properties["additionalCapabilities"], json!({ "ultraSSDEnabled": false }));
    assert_eq!(properties["osProfile"]["adminPassword"], "correct horse");
    assert_eq!(properties["osProfile"]["windowsConfiguration"], json!({ "enableAutomaticUpdates": false }));
    assert_eq!(properties["osProfile"]["allowExtensionOperations"], false);
    assert_eq!(
        properties["diagnosticsProfile"],
        json!({ "bootDiagnostics": { "enabled": true, "storageUri": "https://mine/" } })
    );
    assert_eq!(
        properties["securityProfile"],
        json!({ "encryptionAtHost": false, "securityType": "TrustedLaunch", "uefiSettings": { "secureBootEnabled": true } })
    );
}

/// CAPZ-116, CAPZ-118.
#[test]
fn extensions_are_installed_one_after_the_other() {
    let extensions = |machine: &Machine| -> Vec<Goal> {
        machine.goals().into_iter().filter(|goal| noun(&goal.id) == "extension").collect()
    };
    let mut machine = Machine::worker(json!({
        "disableVMBootstrapExtension": false,
        "vmExtensions": [{
            "name": "CustomScript",
            "publisher": "Microsoft.Azure.Extensions",
            "version": "2.1",
            "settings": { "a": "b" },
            "protectedSettings": { "commandToExecute": "echo" },
        }],
    }));
    let goals = extensions(&machine);
    let names: Vec<&str> = goals.iter().map(|goal| goal.id.name()).collect();
    assert_eq!(names, ["CustomScript", "CAPZ.Linux.Bootstrapping"]);
    assert_eq!(goals[1].after, [goals[0].id.clone()]);
    assert_eq!(
        goals[0].document["properties"],
        json!({
            "publisher": "Microsoft.Azure.Extensions",
            "type": "CustomScript",
            "typeHandlerVersion": "2.1",
            "settings": { "a": "b" },
            "protectedSettings": { "commandToExecute": "echo" },
        })
    );
    let properties = &goals[1].document["properties"];
    assert_eq!(
        (&properties["publisher"], &properties["typeHandlerVersion"]),
        (&json!("Microsoft.Azure.ContainerUpstream"), &json!("1.0"))
    );
    assert!(
        properties["protectedSettings"]["commandToExecute"]
            .as_str()
            .unwrap()
            .contains("/run/cluster-api/bootstrap-success.complete")
    );
    assert_eq!(properties.get("settings"), None);
    let azure = machine.settled();
    let order: Vec<&String> = azure.rounds.iter().flatten().rev().take(3).collect();
    assert_eq!(order, ["CAPZ.Linux.Bootstrapping", "CustomScript", "my-machine"]);

    machine.skus = Skus::read(
        "eastus",
        &[json!({ "name": SIZE, "capabilities": [
            { "name": "vCPUs", "value": "2" }, { "name": "MemoryGB", "value": "8" }, { "name": "CpuArchitectureType", "value": "Arm64" },
        ] })],
    );
    machine.labels.clear();
    assert_eq!(extensions(&machine)[1].document["properties"]["typeHandlerVersion"], "1.1");
    machine.cluster.spec.azure_environment = Some("AzureChinaCloud".into());
    assert_eq!(extensions(&machine).len(), 1, "other clouds do not have it");
    let windows =
        Machine::worker(json!({ "disableVMBootstrapExtension": false, "osDisk": { "osType": "Windows" } }));
    assert_eq!(extensions(&windows)[0].id.name(), "CAPZ.Windows.Bootstrapping");
    for spec in [
        json!({}),
        json!({ "disableVMBootstrapExtension": true }),
        json!({ "disableVMBootstrapExtension": false, "disableExtensionOperations": true }),
    ] {
        assert_eq!(extensions(&Machine::worker(spec)).len(), 0);
    }
}
