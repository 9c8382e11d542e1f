//! Clusters from bootstrap data: Cluster API's stand-in, machines of the simulated Azure, and the way between them.

use std::sync::Arc;
use std::time::Duration;

use azure_simulator::Azure;
use azure_types::ResourceId;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use certificate_authority::{CertificateAuthority, ClientCertificate, IssuedCertificate};
use cluster_api_stand_in::{ClusterApi, ConversionWebhook, Workloads, conversion_router, install};
use kube::api::{DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use kubernetes_simulator::{Kubernetes, WebhookHost};
use serde_json::{Value, json};
use simulated_cluster::{Boot, Outcome, Shape, WorkloadClusters, WorkloadOptions};
use tokio_util::sync::CancellationToken;

const DEFINITIONS: [&str; 4] = [
    include_str!("../../../../deploy/capz/crd/azuremachinepools.yaml"),
    include_str!("../../../../deploy/capz/crd/azureclusters.yaml"),
    include_str!("../../../../deploy/capz/crd/azuremachines.yaml"),
    include_str!("../../../../deploy/capz/crd/azuremachinetemplates.yaml"),
];
const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io/v1beta1";
const FINALIZER: &str = "played.example/infrastructure";

#[derive(Clone)]
struct World {
    azure: Azure,
    shape: Arc<Shape>,
    management: Kubernetes,
    workloads: WorkloadClusters,
}

impl World {
    async fn start(options: WorkloadOptions) -> World {
        Self::start_at("2026-01-01T00:00:00Z", options).await
    }

    async fn start_at(now: &str, options: WorkloadOptions) -> World {
        let shape = Shape { pools: Vec::new(), ..Shape::default() };
        let azure = Azure::new(azure_simulator::Options {
            subscription: shape.subscription.clone(),
            region: shape.region.clone(),
            start: now.parse().unwrap(),
            ..Default::default()
        });
        shape.lay_out(&azure).unwrap();
        let management = Kubernetes::new(kubernetes_simulator::Options::default());
        for definition in DEFINITIONS {
            management.create(serde_saphyr::from_str(definition).unwrap()).unwrap();
        }
        management.webhook_host("cluster-api.example", WebhookHost::InProcess(conversion_router()));
        let client = Client::new(management.router(), "default");
        let authority = management.authority().unwrap().certificate_pem().to_owned();
        let webhook = ConversionWebhook { url: "https://cluster-api.example/convert".to_owned(), authority };
        install(&client, &webhook).await.unwrap();
        let stop = CancellationToken::new();
        let workloads = WorkloadClusters::start(azure.clone(), options, stop.clone());
        ClusterApi::start(client, Arc::new(workloads.clone()), management.clock(), 1, stop);
        let world = World { azure, shape: Arc::new(shape), management, workloads };
        tokio::spawn(world.clone().play());
        world
    }

    fn id(&self, kind: &str, name: &str) -> ResourceId {
        let provider = if kind == "virtualMachines" { "Microsoft.Compute" } else { "Microsoft.Network" };
        self.shape.group().resource(provider, kind, name)
    }

    /// A minimal infrastructure provider.
    async fn play(self) {
        loop {
            for object in self.management.list("AzureCluster") {
                self.play_cluster(object.value());
            }
            for object in self.management.list("AzureMachine") {
                self.play_machine(object.value());
            }
            for object in self.management.list("AzureMachinePool") {
                self.play_pool(object.value());
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    fn claimed(&self, kind: &str, object: &Value) -> bool {
        let name = object["metadata"]["name"].as_str().unwrap();
        if object["metadata"]["ownerReferences"][0]["kind"].is_null() {
            return false;
        }
        if object["metadata"]["finalizers"].is_null() {
            let finalizers = json!({"metadata": {"finalizers": [FINALIZER]}});
            self.management.merge(kind, "default", name, &finalizers).unwrap();
        }
        true
    }

    fn play_cluster(&self, object: &Value) {
        let name = object["metadata"]["name"].as_str().unwrap();
        let merge = |patch: Value| self.management.merge("AzureCluster", "default", name, &patch).unwrap();
        if object["metadata"]["deletionTimestamp"].is_string() {
            self.azure.delete(&self.id("loadBalancers", name)).unwrap();
            self.azure.delete(&self.id("publicIPAddresses", name)).unwrap();
            merge(json!({"metadata": {"finalizers": []}}));
            return;
        }
        if !self.claimed("AzureCluster", object) || object["status"]["ready"] == true {
            return;
        }
        let (region, balancer, address) =
            (&self.shape.region, self.id("loadBalancers", name), self.id("publicIPAddresses", name));
        let made = self
            .azure
            .put(&address, json!({"location": region, "sku": {"name": "Standard"},
                "properties": {"publicIPAllocationMethod": "Static", "dnsSettings": {"domainNameLabel": format!("{name}-api")}}}))
            .unwrap();
        let (frontend, pool, probe) = (
            balancer.child("frontendIPConfigurations", "f"),
            balancer.child("backendAddressPools", "p"),
            balancer.child("probes", "h"),
        );
        self.azure
            .put(&balancer, json!({"location": region, "sku": {"name": "Standard"}, "properties": {
                "frontendIPConfigurations": [{"name": "f", "properties": {"publicIPAddress": {"id": address}}}],
                "backendAddressPools": [{"name": "p"}],
                "probes": [{"name": "h", "properties": {"protocol": "Https", "port": 6443, "requestPath": "/readyz",
                    "intervalInSeconds": 15, "numberOfProbes": 1}}],
                "loadBalancingRules": [{"name": "r", "properties": {"frontendIPConfiguration": {"id": frontend},
                    "backendAddressPool": {"id": pool}, "probe": {"id": probe}, "protocol": "Tcp", "frontendPort": 6443,
                    "backendPort": 6443}}]}}))
            .unwrap();
        let host = &made["properties"]["dnsSettings"]["fqdn"];
        merge(json!({"spec": {"controlPlaneEndpoint": {"host": host, "port": 6443}}}));
        let ready = json!({"status": {"ready": true, "failureDomains": {"1": {"controlPlane": true}}}});
        self.management.merge_status("AzureCluster", "default", name, &ready).unwrap();
    }

    fn play_machine(&self, object: &Value) {
        let name = object["metadata"]["name"].as_str().unwrap();
        let merge = |patch: Value| self.management.merge("AzureMachine", "default", name, &patch).unwrap();
        let (vm, nic) = (self.id("virtualMachines", name), self.id("networkInterfaces", name));
        if object["metadata"]["deletionTimestamp"].is_string() {
            for id in [&vm, &nic] {
                if self.azure.document(id).is_some() {
                    self.azure.delete(id).unwrap();
                }
            }
            merge(json!({"metadata": {"finalizers": []}}));
            return;
        }
        let owner = &object["metadata"]["ownerReferences"][0];
        if !self.claimed("AzureMachine", object)
            || owner["kind"] != "Machine"
            || object["status"]["ready"] == true
        {
            return;
        }
        if let Some(document) = self.azure.document(&vm) {
            if document["properties"]["provisioningState"] == "Succeeded" {
                let id = format!("azure://{}", document["id"].as_str().unwrap());
                merge(json!({"spec": {"providerID": id}}));
                self.management
                    .merge_status("AzureMachine", "default", name, &json!({"status": {"ready": true}}))
                    .unwrap();
            }
            return;
        }
        let machine = self.management.get("Machine", "default", owner["name"].as_str().unwrap()).unwrap();
        let Some(secret) = machine["spec"]["bootstrap"]["dataSecretName"].as_str() else { return };
        let secret = self.management.get("Secret", "default", secret).unwrap();
        let cluster = machine["spec"]["clusterName"].as_str().unwrap();
        let is_control_plane = machine["metadata"]["labels"]["cluster.x-k8s.io/control-plane"].is_string();
        let subnet = self.shape.network().child("subnets", &self.shape.subnet);
        let mut configuration = json!({"name": "ip", "properties": {"subnet": {"id": subnet}}});
        if is_control_plane {
            let pool = self.id("loadBalancers", cluster).child("backendAddressPools", "p");
            configuration["properties"]["loadBalancerBackendAddressPools"] = json!([{"id": pool}]);
        }
        let region = &self.shape.region;
        self.azure
            .put(&nic, json!({"location": region, "properties": {"ipConfigurations": [configuration]}}))
            .unwrap();
        self.azure
            .put(&vm, json!({"location": region, "properties": {
                "hardwareProfile": {"vmSize": "Standard_D2s_v3"},
                "storageProfile": {"imageReference": {"communityGalleryImageId": "/CommunityGalleries/g/Images/i/Versions/1.33.2"},
                    "osDisk": {"createOption": "FromImage", "name": format!("{name}_OSDisk")}},
                "osProfile": {"computerName": name, "adminUsername": "capi", "customData": secret["data"]["value"],
                    "linuxConfiguration": {"disablePasswordAuthentication": true, "ssh": {"publicKeys": [
                        {"path": "/home/capi/.ssh/authorized_keys", "keyData": "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQC7 a"}]}}},
                "networkProfile": {"networkInterfaces": [{"id": nic}]}}}))
            .unwrap();
    }

    /// A scale set, whose instances boot with the bootstrapping extension.
    fn play_pool(&self, object: &Value) {
        let name = object["metadata"]["name"].as_str().unwrap();
        let owner = &object["metadata"]["ownerReferences"][0];
        let Some(pool) =
            self.management.get("MachinePool", "default", owner["name"].as_str().unwrap_or_default())
        else {
            return;
        };
        let Some(secret) = pool["spec"]["template"]["spec"]["bootstrap"]["dataSecretName"].as_str() else {
            return;
        };
        let set = self.shape.scale_set(name);
        if self.azure.document(&set).is_none() {
            let secret = self.management.get("Secret", "default", secret).unwrap();
            let subnet = self.shape.network().child("subnets", &self.shape.subnet);
            self.azure
                .put(&set, json!({"location": self.shape.region,
                    "sku": {"name": "Standard_D2s_v5", "capacity": pool["spec"]["replicas"]},
                    "properties": {"upgradePolicy": {"mode": "Manual"}, "virtualMachineProfile": {
                        "osProfile": {"computerNamePrefix": name, "adminUsername": "capi",
                            "customData": secret["data"]["value"]},
                        "networkProfile": {"networkInterfaceConfigurations": [{"name": "nic", "properties": {
                            "primary": true, "ipConfigurations": [{"name": "ip", "properties": {"subnet": {"id": subnet}}}]}}]},
                        "extensionProfile": {"extensions": [{"name": "CAPZ.Linux.Bootstrapping", "properties": {
                            "publisher": "Microsoft.Azure.ContainerUpstream", "type": "CAPZ.Linux.Bootstrapping",
                            "typeHandlerVersion": "1.0"}}]}}}}))
                .unwrap();
        }
        let instances =
            self.azure.documents_of_type("Microsoft.Compute/virtualMachineScaleSets/virtualMachines");
        let ids: Vec<String> =
            instances.iter().map(|one| format!("azure://{}", one["id"].as_str().unwrap())).collect();
        if object["spec"]["providerIDList"] != json!(ids) {
            let list = json!({"spec": {"providerIDList": ids}});
            self.management.merge("AzureMachinePool", "default", name, &list).unwrap();
            let status = json!({"status": {"ready": true, "replicas": ids.len()}});
            self.management.merge_status("AzureMachinePool", "default", name, &status).unwrap();
        }
    }

    async fn apply(&self, objects: &[Value]) {
        let client = Client::new(self.management.router(), "default");
        for object in objects {
            let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
            let kind = GroupVersionKind::try_from(&object.types.clone().unwrap()).unwrap();
            let api: Api<DynamicObject> =
                Api::namespaced_with(client.clone(), "default", &ApiResource::from_gvk(&kind));
            api.create(&PostParams::default(), &object).await.unwrap();
        }
    }

    /// Lets the API servers be reached from the internet.
    fn open(&self) {
        let guard = self.id("networkSecurityGroups", &self.shape.security_group);
        self.azure
            .put(
                &guard.child("securityRules", "api"),
                json!({"properties": {"protocol": "Tcp", "access": "Allow",
                "direction": "Inbound", "priority": 2201, "sourceAddressPrefix": "*", "sourcePortRange": "*",
                "destinationAddressPrefix": "*", "destinationPortRange": "6443"}}),
            )
            .unwrap();
    }

    fn status(&self, kind: &str, name: &str) -> Value {
        self.management.get(kind, "default", name).map(|object| object["status"].clone()).unwrap_or_default()
    }

    async fn until(&self, what: &str, mut holds: impl FnMut(&World) -> bool) {
        for _ in 0..1800 {
            if holds(self) {
                return;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let machines: Vec<Value> =
            self.management.list("Machine").iter().map(|one| one["status"].clone()).collect();
        panic!("{what} does not come: {:#}\n{:#}", self.status("Cluster", "c"), Value::from(machines));
    }
}

fn objects(control_planes: u64) -> Vec<Value> {
    let reference =
        |kind: &str, name: &str| json!({"apiVersion": INFRASTRUCTURE, "kind": kind, "name": name});
    vec![
        json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": {"name": "c"},
            "spec": {"infrastructureRef": reference("AzureCluster", "c"), "controlPlaneRef": {
                "apiVersion": "controlplane.cluster.x-k8s.io/v1beta1", "kind": "KubeadmControlPlane", "name": "c-cp"}}}),
        json!({"apiVersion": INFRASTRUCTURE, "kind": "AzureCluster", "metadata": {"name": "c"},
            "spec": {"location": "westeurope", "identityRef": {"kind": "AzureClusterIdentity", "name": "i"},
                "networkSpec": {"vnet": {"name": "v"}}}}),
        json!({"apiVersion": INFRASTRUCTURE, "kind": "AzureMachineTemplate", "metadata": {"name": "c-cp"},
            "spec": {"template": {"spec": {"vmSize": "Standard_D2s_v3", "osDisk": {"osType": "Linux"}}}}}),
        json!({"apiVersion": "controlplane.cluster.x-k8s.io/v1beta1", "kind": "KubeadmControlPlane",
            "metadata": {"name": "c-cp"}, "spec": {"replicas": control_planes, "version": "v1.33.2",
                "machineTemplate": {"infrastructureRef": reference("AzureMachineTemplate", "c-cp")},
                "kubeadmConfigSpec": {
                    "initConfiguration": {"nodeRegistration": {"name": "{{ ds.meta_data[\"local_hostname\"] }}"}},
                    "joinConfiguration": {"nodeRegistration": {"name": "{{ ds.meta_data[\"local_hostname\"] }}",
                        "kubeletExtraArgs": {"node-labels": "pool=control"}}}}}}),
    ]
}

#[tokio::test(start_paused = true)]
async fn machines_become_a_cluster_behind_its_load_balancer() {
    let world = World::start(WorkloadOptions::default()).await;
    world.open();
    world.apply(&objects(3)).await;
    world
        .until("three machines", |world| world.status("KubeadmControlPlane", "c-cp")["readyReplicas"] == 3)
        .await;
    let cluster = world.workloads.cluster("c").unwrap();
    assert_eq!(cluster.endpoint, "c-api.westeurope.cloudapp.azure.com:6443");
    let nodes = cluster.kubernetes.list("Node");
    assert_eq!(nodes.len(), 3);
    for node in &nodes {
        assert!(node["metadata"]["labels"]["node-role.kubernetes.io/control-plane"].is_string());
        assert_eq!(node["status"]["nodeInfo"]["kubeletVersion"], "v1.33.2");
        assert_eq!(node["spec"]["taints"][0]["key"], "node-role.kubernetes.io/control-plane");
        assert!(node["spec"]["providerID"].as_str().unwrap().ends_with(node.name()));
        let is_ready = |one: &Value| one["type"] == "Ready" && one["status"] == "True";
        assert!(node["status"]["conditions"].as_array().unwrap().iter().any(is_ready));
    }
    assert_eq!(nodes.iter().filter(|node| node["metadata"]["labels"]["pool"] == "control").count(), 2);

    // Each machine shows what runs in its control plane, and that it is well.
    let well = |name: &str, component: &str| {
        let Some(pod) = cluster.kubernetes.get("Pod", "kube-system", name) else { return false };
        assert_eq!(pod["metadata"]["labels"], json!({"component": component, "tier": "control-plane"}));
        let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|one| one["type"] == "Ready" && one["status"] == "True")
    };
    for component in ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"] {
        for node in &nodes {
            let name = format!("{component}-{}", node.name());
            world.until(&name, |_| well(&name, component)).await;
        }
    }

    // A client with the kubeconfig gets access. Without its token access is refused, and with the endpoint closed no
    // client gets through.
    let secret = world.management.get("Secret", "default", "c-kubeconfig").unwrap();
    let kubeconfig = STANDARD.decode(secret["data"]["value"].as_str().unwrap()).unwrap();
    let kubeconfig: Value = serde_saphyr::from_str(std::str::from_utf8(&kubeconfig).unwrap()).unwrap();
    let token = kubeconfig["users"][0]["user"]["token"].as_str().unwrap();
    let namespaces = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Namespace"));
    let list = async |client: Client| {
        let api: Api<DynamicObject> = Api::all_with(client, &namespaces);
        api.list(&Default::default()).await.map(|list| list.items.len())
    };
    assert!(list(world.workloads.client(&cluster.endpoint, token)).await.unwrap() > 0);
    assert!(list(world.workloads.client(&cluster.endpoint, "guessed")).await.is_err());
    let guard = world.id("networkSecurityGroups", &world.shape.security_group);
    world.azure.delete(&guard.child("securityRules", "api")).unwrap();
    assert!(list(world.workloads.client(&cluster.endpoint, token)).await.is_err());
    world.open();

    let served = world.workloads.serve(&cluster, "c", "127.0.0.1:0".parse().unwrap()).await.unwrap();
    assert!(served.contains("https://127.0.0.1:") && served.contains(token));

    // Deleted without Kubernetes' knowledge: the Node stays and becomes silent, the API goes on.
    let gone = nodes[0].name().to_owned();
    world.azure.delete(&world.id("virtualMachines", &gone)).unwrap();
    tokio::time::sleep(Duration::from_secs(120)).await;
    let node = cluster.kubernetes.get("Node", "", &gone).unwrap();
    let ready =
        node["status"]["conditions"].as_array().unwrap().iter().find(|one| one["type"] == "Ready").cloned();
    assert_eq!(ready.unwrap()["status"], "Unknown");
    assert!(list(world.workloads.client(&cluster.endpoint, token)).await.unwrap() > 0);
}

/// An authority as kubeadm makes it: RSA, in PKCS#1.
const OF_KUBEADM: [&str; 2] = [
    include_str!("../../../certificate-authority/tests/authorities/kubeadm.crt"),
    include_str!("../../../certificate-authority/tests/authorities/kubeadm.key"),
];

/// The Secret of a cluster's authority, created before Cluster API creates one.
fn authority_of(cluster: &str, [certificate, key]: [&str; 2]) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
        "metadata": {"namespace": "default", "name": format!("{cluster}-ca"),
            "labels": {"cluster.x-k8s.io/cluster-name": cluster}},
        "data": {"tls.crt": STANDARD.encode(certificate), "tls.key": STANDARD.encode(key)}})
}

/// R1, R2: a cluster uses an authority that its user provides, and accepts clients with a certificate of that
/// authority: Cluster API's kubeadm providers authenticate with nothing else.
#[tokio::test(start_paused = true)]
async fn a_cluster_has_any_authority_and_lets_its_clients_in() {
    // The authority is valid from November 2026 on.
    let world = World::start_at("2027-01-01T00:00:00Z", WorkloadOptions::default()).await;
    world.open();
    world.management.create(authority_of("c", OF_KUBEADM)).unwrap();
    world.apply(&objects(1)).await;
    world.until("a machine", |world| world.status("KubeadmControlPlane", "c-cp")["readyReplicas"] == 1).await;
    let cluster = world.workloads.cluster("c").unwrap();
    let [certificate, key] = OF_KUBEADM;
    assert_eq!(cluster.authority.0.trim(), certificate.trim());
    let client =
        ClientCertificate { user: "cluster-admin".to_owned(), groups: vec!["system:masters".to_owned()] };
    let kubeconfig = |issued: &IssuedCertificate| {
        json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": format!("https://{}", cluster.endpoint),
                "certificate-authority-data": STANDARD.encode(certificate)}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "admin"}}],
            "users": [{"name": "admin", "user": {"client-certificate-data": STANDARD.encode(&issued.certificate_pem),
                "client-key-data": STANDARD.encode(&issued.key_pem)}}]})
        .to_string()
    };
    let reviews =
        ApiResource::from_gvk(&GroupVersionKind::gvk("authentication.k8s.io", "v1", "SelfSubjectReview"));
    let who = async |client: Client| {
        let api: Api<DynamicObject> = Api::all_with(client, &reviews);
        let answer = api.create(&PostParams::default(), &DynamicObject::new("", &reviews)).await;
        answer.map(|answer| answer.data["status"]["userInfo"].clone())
    };
    let through = async |text: &str| {
        Workloads::client(&world.workloads, "default", "c", &cluster.endpoint, text).await.unwrap()
    };
    let authority = CertificateAuthority::from_kept(certificate, key).unwrap();
    let issued = kubeconfig(&authority.issue_client(&client).unwrap());
    let seen = who(through(&issued).await).await.unwrap();
    assert_eq!(
        seen,
        json!({"username": "cluster-admin", "groups": ["system:masters", "system:authenticated"]})
    );
    let stranger = CertificateAuthority::generate().unwrap();
    let foreign = kubeconfig(&stranger.issue_client(&client).unwrap());
    assert!(who(through(&foreign).await).await.is_err());
}

/// R1: a cluster with a broken authority does not come up; another cluster does.
#[tokio::test(start_paused = true)]
async fn a_broken_authority_ends_its_own_cluster_alone() {
    let world = World::start(WorkloadOptions::default()).await;
    world.open();
    world.management.create(authority_of("c", [OF_KUBEADM[0], "broken"])).unwrap();
    world.apply(&objects(1)).await;
    let other: Vec<Value> = objects(1)
        .into_iter()
        .map(|object| {
            serde_json::from_str(
                &object.to_string().replace("\"c\"", "\"d\"").replace("\"c-cp\"", "\"d-cp\""),
            )
            .unwrap()
        })
        .collect();
    world.apply(&other).await;
    world
        .until("the other one", |world| world.status("KubeadmControlPlane", "d-cp")["readyReplicas"] == 1)
        .await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert!(world.workloads.cluster("c").is_none());
    let machines = world.management.list("Machine");
    let machine = machines.iter().find(|one| one["spec"]["clusterName"] == "c").unwrap();
    let result = world.workloads.bootstrapped(&world.id("virtualMachines", machine.name()));
    assert!(result.unwrap().unwrap_err().contains("its private key cannot be read"));
}

#[tokio::test(start_paused = true)]
async fn a_deleted_cluster_takes_its_machines_and_its_kubernetes() {
    let world = World::start(WorkloadOptions::default()).await;
    world.open();
    world.apply(&objects(1)).await;
    world.until("a machine", |world| world.status("KubeadmControlPlane", "c-cp")["readyReplicas"] == 1).await;
    world.management.delete("Cluster", "default", "c").unwrap();
    world.until("an end", |world| world.management.list("Cluster").is_empty()).await;
    assert!(world.azure.documents_of_type("Microsoft.Compute/virtualMachines").is_empty());
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(world.workloads.cluster("c").is_none());
}

#[tokio::test(start_paused = true)]
async fn boots_fail_as_they_are_told() {
    let boot = Boot { outcome: Outcome::BootstrapFails("the disk is full".to_owned()), ..Boot::default() };
    let options = WorkloadOptions { boot: Arc::new(move |_| boot.clone()), ..WorkloadOptions::default() };
    let world = World::start(options).await;
    world.apply(&objects(1)).await;
    world
        .until("infrastructure", |world| {
            let machines = world.management.list("Machine");
            machines.first().is_some_and(|one| one["status"]["phase"] == "Provisioned")
        })
        .await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(world.workloads.clusters().is_empty());
    let machine = world.management.list("Machine")[0].name().to_owned();
    let result = world.workloads.bootstrapped(&world.id("virtualMachines", &machine));
    assert_eq!(result, Some(Err("the disk is full".to_owned())));
    // The extension that waits for the sentinel fails after its timeout.
    let extension = world.id("virtualMachines", &machine).child("extensions", "CAPZ.Linux.Bootstrapping");
    world
        .azure
        .put(
            &extension,
            json!({"location": world.shape.region, "properties": {
            "publisher": "Microsoft.Azure.ContainerUpstream", "type": "CAPZ.Linux.Bootstrapping",
            "typeHandlerVersion": "1.0"}}),
        )
        .unwrap();
    let vm = world.id("virtualMachines", &machine);
    // Once written, it counts as created; its status comes from the machine.
    let said = || {
        let view = world.azure.document(&vm).unwrap()["properties"]["instanceView"].clone();
        view["extensions"][0]["statuses"][0]["message"].clone()
    };
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(said(), "");
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert!(said().as_str().unwrap().ends_with("is not there"), "{}", said());
}

#[tokio::test(start_paused = true)]
async fn instances_of_scale_sets_join_with_the_token_of_their_pool() {
    let world = World::start(WorkloadOptions::default()).await;
    world.open();
    world.apply(&objects(1)).await;
    let reference = |kind: &str| json!({"apiVersion": INFRASTRUCTURE, "kind": kind, "name": "pool"});
    world
        .apply(&[
            json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachinePool", "metadata": {"name": "pool"},
                "spec": {"clusterName": "c", "replicas": 2, "template": {"spec": {"clusterName": "c", "version": "v1.33.2",
                    "infrastructureRef": reference("AzureMachinePool"), "bootstrap": {"configRef": {
                        "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1", "kind": "KubeadmConfig", "name": "pool"}}}}}}),
            json!({"apiVersion": INFRASTRUCTURE, "kind": "AzureMachinePool", "metadata": {"name": "pool"},
                "spec": {"location": "westeurope", "template": {"vmSize": "Standard_D2s_v5", "osDisk": {"osType": "Linux"}}}}),
            json!({"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1", "kind": "KubeadmConfig",
                "metadata": {"name": "pool"}, "spec": {"joinConfiguration": {}}}),
        ])
        .await;
    world.until("a running pool", |world| world.status("MachinePool", "pool")["phase"] == "Running").await;
    let cluster = world.workloads.cluster("c").unwrap();
    assert_eq!(cluster.kubernetes.list("Node").len(), 3);
    let set = world.shape.scale_set("pool");
    tokio::time::sleep(Duration::from_secs(10)).await;
    let instance = world.azure.document(&set.child("virtualMachines", "0")).unwrap();
    assert_eq!(instance["resources"][0]["properties"]["provisioningState"], "Succeeded", "{instance:#}");

    // With an expired token the machine runs but does not join.
    tokio::time::sleep(Duration::from_secs(1800)).await;
    world.azure.scale(&set, 3).unwrap();
    tokio::time::sleep(Duration::from_secs(900)).await;
    assert_eq!(cluster.kubernetes.list("Node").len(), 3);
    let late = world.workloads.bootstrapped(&set.child("virtualMachines", "2")).unwrap();
    assert!(late.unwrap_err().contains("token"), "the token is at fault");
}
