//! A cluster of three machines in a simulated Azure, and programs that run against it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arm::{Client, Clock, Cloud, Credential};
use azure_simulator::{Azure, Documents, LatencyProfile};
use azure_types::ResourceId;
pub use cloud::LoadBalancers as _;
use cloud::{ClusterState, Ensured, LogicalTime, Notice, ServiceError};
use k8s::{Node, ObjectKey, Service};
use parking_lot::Mutex;
use planner::Cluster;
use provider::{Options, Provider};
use serde_json::{Value, json};
use simulated_cluster::{NodePool, Shape};
use testkit::KillSwitch;

pub const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000000";
pub const LOAD_BALANCERS: &str = "Microsoft.Network/loadBalancers";
pub const PUBLIC_IPS: &str = "Microsoft.Network/publicIPAddresses";
pub const SECURITY_GROUPS: &str = "Microsoft.Network/networkSecurityGroups";
pub const PRIVATE_LINKS: &str = "Microsoft.Network/privateLinkServices";
pub const SCALE_SETS: &str = "Microsoft.Compute/virtualMachineScaleSets";
pub const INSTANCES: &str = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines";
pub const MACHINES: &str = "Microsoft.Compute/virtualMachines";
pub const INTERFACES: &str = "Microsoft.Network/networkInterfaces";

/// A running program.
pub struct Program {
    pub provider: Provider,
    /// Counts its calls, and can kill it.
    pub switch: KillSwitch,
}

impl Program {
    /// Whether anything of a Service is left.
    pub async fn holds(&self, service: &Arc<Service>) -> Result<bool, ServiceError> {
        Ok(self.provider.prepare_deletion(service, LogicalTime::now()).await?.is_some())
    }

    /// Deletes what is left of a Service. Returns notices for its owner.
    pub async fn delete(&self, service: &Arc<Service>) -> Result<Vec<Notice>, ServiceError> {
        match self.provider.prepare_deletion(service, LogicalTime::now()).await? {
            Some(deletion) => deletion.run().await,
            None => Ok(Vec::new()),
        }
    }
}

/// Azure, and the objects in Kubernetes.
pub struct World {
    pub azure: Azure,
    pub services: Mutex<BTreeMap<String, Arc<Service>>>,
    pub nodes: Mutex<Vec<Arc<Node>>>,
}

pub fn id(kind: &str, name: &str) -> ResourceId {
    let namespace = if kind == "virtualMachineScaleSets" { "Microsoft.Compute" } else { "Microsoft.Network" };
    ResourceId::group(SUBSCRIPTION, "rg").resource(namespace, kind, name)
}

/// The initial state of Azure: one scale set of three machines.
pub fn shape() -> Shape {
    Shape {
        subscription: SUBSCRIPTION.to_owned(),
        region: "eastus".to_owned(),
        resource_group: "rg".to_owned(),
        virtual_network: "net".to_owned(),
        security_group: "nsg".to_owned(),
        pools: vec![NodePool::new("pool", "pool", 3)],
        ..Shape::default()
    }
}

pub fn cluster() -> Cluster {
    cluster_with(&json!({}))
}

/// The cluster with further keys of azure.json.
pub fn cluster_with(extra: &Value) -> Cluster {
    let mut config = shape().azure_json("", "secret");
    config["putVMSSVMBatchSize"] = 2.into();
    for (key, value) in extra.as_object().unwrap() {
        config[key] = value.clone();
    }
    Cluster {
        config: cloud_config::CloudConfig::parse(&config.to_string()).unwrap(),
        name: "kube".to_owned(),
        region_zones: ["1", "2", "3"].map(str::to_owned).to_vec(),
    }
}

/// A Service of type LoadBalancer with TCP ports.
pub fn service(name: &str, ports: &[i32]) -> Service {
    let ports: Vec<Value> = ports
        .iter()
        .map(|port| json!({"name": format!("p{port}"), "protocol": "TCP", "port": port, "nodePort": port + 30000 - 1}))
        .collect();
    serde_json::from_value(json!({
        "metadata": {"namespace": "shop", "name": name, "uid": name},
        "spec": {"type": "LoadBalancer", "ipFamilies": ["IPv4"], "ports": ports},
    }))
    .unwrap()
}

/// The Service with an annotation.
pub fn annotated(mut service: Service, key: &str, value: &str) -> Service {
    let annotations = service.metadata.annotations.get_or_insert_default();
    annotations.insert(format!("service.beta.kubernetes.io/{key}"), value.to_owned());
    service
}

pub fn internal(service: Service) -> Service {
    annotated(service, "azure-load-balancer-internal", "true")
}

impl World {
    /// Three machines, no Service.
    pub fn new() -> Self {
        Self::with(azure_simulator::Options::default())
    }

    pub fn with(options: azure_simulator::Options) -> Self {
        Self::laid_out(&shape(), options)
    }

    /// A cluster of another shape.
    pub fn of(shape: &Shape) -> Self {
        Self::laid_out(shape, azure_simulator::Options::default())
    }

    pub fn laid_out(shape: &Shape, options: azure_simulator::Options) -> Self {
        let azure = Azure::new(options);
        shape.lay_out(&azure).unwrap();
        let world = Self { azure, services: Mutex::default(), nodes: Mutex::default() };
        world.register_nodes();
        world
    }

    /// Every machine becomes an initialised node.
    pub fn register_nodes(&self) {
        let machines = self.azure.of_type(INSTANCES).into_iter().chain(self.azure.of_type(MACHINES));
        let nodes = machines.map(|document| {
            let name = document["properties"]["osProfile"]["computerName"].as_str().unwrap();
            let provider_id = format!("azure://{}", document["id"].as_str().unwrap());
            let interface = &document["properties"]["networkProfile"]["networkInterfaces"][0]["id"];
            let interface = self.azure.document(&interface.as_str().unwrap().parse().unwrap()).unwrap();
            let address = &interface["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"];
            let node: Node = serde_json::from_value(json!({
                "metadata": {"name": name}, "spec": {"providerID": provider_id},
                "status": {"addresses": [{"type": "InternalIP", "address": address}]},
            }))
            .unwrap();
            Arc::new(node)
        });
        *self.nodes.lock() = nodes.collect();
    }

    /// Operations take time.
    pub fn slow(&self) {
        let seconds = Duration::from_secs;
        let profile = LatencyProfile::instant()
            .with("*", PUBLIC_IPS, seconds(3))
            .with("*", LOAD_BALANCERS, seconds(10))
            .with("*", SECURITY_GROUPS, seconds(4))
            .with("*", SCALE_SETS, seconds(5))
            .with("*", INSTANCES, seconds(2));
        self.azure.set_latency(profile);
    }

    pub fn latency(&self, public_ip: u64, load_balancer: u64, security_group: u64) {
        let seconds = Duration::from_secs;
        let profile = LatencyProfile::instant()
            .with("*", PUBLIC_IPS, seconds(public_ip))
            .with("*", LOAD_BALANCERS, seconds(load_balancer))
            .with("*", SECURITY_GROUPS, seconds(security_group));
        self.azure.set_latency(profile);
    }

    /// Starts the program with the current state of Kubernetes.
    pub fn start(&self) -> Program {
        self.start_with(KillSwitch::never())
    }

    pub fn start_with(&self, switch: KillSwitch) -> Program {
        self.start_as(cluster(), switch)
    }

    /// Starts it with further keys of azure.json.
    pub fn start_configured(&self, extra: &Value) -> Program {
        self.start_as(cluster_with(extra), KillSwitch::never())
    }

    /// Starts the program for a cluster of another name.
    pub fn start_named(&self, name: &str) -> Program {
        self.start_as(Cluster { name: name.to_owned(), ..cluster() }, KillSwitch::never())
    }

    /// A second cluster in the same Azure, with the same network and security group. It has no nodes yet.
    pub fn second(&self) -> Self {
        Self { azure: self.azure.clone(), services: Mutex::default(), nodes: Mutex::default() }
    }

    /// Starts it while the first list of nodes is not complete.
    pub fn start_before_nodes_are_known(&self, extra: &Value) -> Program {
        self.start_knowing(cluster_with(extra), KillSwitch::never(), false)
    }

    fn start_as(&self, cluster: Cluster, switch: KillSwitch) -> Program {
        self.start_knowing(cluster, switch, true)
    }

    fn start_knowing(&self, cluster: Cluster, switch: KillSwitch, knows_nodes: bool) -> Program {
        let transport = switch.transport(&self.azure);
        let cloud = Cloud::built_in(&cloud_config::PUBLIC).unwrap();
        let clock = Clock::following_tokio(Duration::from_secs(1_767_225_600));
        let client =
            Client::builder(cloud, transport, Credential::fixed("token")).clock(clock.clone()).build();
        let state = ClusterState::default();
        for service in self.services.lock().values() {
            state.apply_service(Arc::clone(service));
        }
        for node in self.nodes.lock().iter() {
            state.apply_node(Arc::clone(node));
        }
        state.services_are_synced();
        if knows_nodes {
            state.nodes_are_synced();
        }
        let cluster_ranges = [Shape::PODS_V4, Shape::PODS_V6].map(|range| range.parse().unwrap()).to_vec();
        let options = Options { clock, cluster_ranges, ..Options::default() };
        Program { provider: Provider::new(cluster, client, state, options), switch }
    }

    /// Like `kubectl apply`.
    pub fn apply(&self, program: &Program, service: Service) -> Arc<Service> {
        let mut service = service;
        let mut services = self.services.lock();
        if let Some(old) = services.get(&service.key().to_string()) {
            service.status = old.status.clone();
            // The controller adds it before its first call.
            service.metadata.finalizers = Some(vec![k8s::names::LOAD_BALANCER_FINALIZER.to_owned()]);
        }
        let service = Arc::new(service);
        services.insert(service.key().to_string(), Arc::clone(&service));
        program.provider.state().apply_service(Arc::clone(&service));
        service
    }

    pub fn stored(&self, service: &Service) -> Arc<Service> {
        Arc::clone(&self.services.lock()[&service.key().to_string()])
    }

    /// Like the Service controller: ensures the Service, then writes its status.
    pub async fn ensure(&self, program: &Program, service: &Arc<Service>) -> Result<Ensured, ServiceError> {
        let ensured = program.provider.ensure(service, LogicalTime::BEGINNING).await?;
        let mut published = Service::clone(&self.stored(service));
        published.status.load_balancer.ingress = ensured
            .addresses
            .iter()
            .map(|address| serde_json::from_value(json!({ "ip": address })).unwrap())
            .collect();
        self.apply_status(program, published);
        Ok(ensured)
    }

    fn apply_status(&self, program: &Program, service: Service) {
        let service = Arc::new(service);
        self.services.lock().insert(service.key().to_string(), Arc::clone(&service));
        program.provider.state().apply_service(service);
    }

    /// Applies and ensures.
    pub async fn serve(&self, program: &Program, service: Service) -> Result<Ensured, ServiceError> {
        let service = self.apply(program, service);
        self.ensure(program, &service).await
    }

    /// Like the Service controller for a deleted Service.
    pub async fn remove(&self, program: &Program, service: &Service) -> Result<(), ServiceError> {
        let service = self.stored(service);
        program.delete(&service).await?;
        self.services.lock().remove(&service.key().to_string());
        program.provider.state().remove_service(&service.key());
        Ok(())
    }

    pub fn documents(&self, kind: &str) -> Vec<Value> {
        self.azure.of_type(kind)
    }

    pub fn load_balancer(&self, name: &str) -> Option<Value> {
        self.azure.document(&id("loadBalancers", name))
    }

    /// How often a type was written, refused writes included.
    pub fn writes(&self, kind: &str) -> usize {
        self.puts(kind).len()
    }

    /// The statuses of all writes of a type.
    pub fn puts(&self, kind: &str) -> Vec<u16> {
        let journal = self.azure.journal();
        let mine = journal.entries.iter().filter(|entry| {
            entry.method == "PUT"
                && entry.resource_type.as_deref().is_some_and(|k| k.eq_ignore_ascii_case(kind))
        });
        mine.map(|entry| entry.status).collect()
    }

    /// All writes and deletions as text.
    pub fn all_writes(&self) -> Vec<String> {
        let journal = self.azure.journal();
        let changing =
            journal.entries.iter().filter(|entry| !matches!(entry.method.as_str(), "GET" | "HEAD"));
        changing.map(|entry| format!("{} {} {}", entry.method, entry.path, entry.status)).collect()
    }

    pub fn reads(&self) -> usize {
        self.azure.journal().entries.iter().filter(|entry| entry.method == "GET").count()
    }

    /// The number of pool members of a load balancer.
    pub fn members(&self, load_balancer: &str) -> usize {
        let Some(document) = self.load_balancer(load_balancer) else { return 0 };
        let pools = document["properties"]["backendAddressPools"].as_array().cloned().unwrap_or_default();
        pools.iter().map(|p| p["properties"]["backendIPConfigurations"].as_array().map_or(0, Vec::len)).sum()
    }

    /// The relevant state, such that equal states give equal texts.
    pub fn normalised(&self) -> String {
        let public_ips = self.documents(PUBLIC_IPS);
        let names: Vec<(String, String)> = public_ips
            .iter()
            .filter_map(|ip| {
                let address = ip["properties"]["ipAddress"].as_str()?;
                Some((address.to_owned(), ip["name"].as_str()?.to_owned()))
            })
            .collect();
        let mut names = names;
        for balancer in self.documents(LOAD_BALANCERS) {
            for frontend in
                balancer["properties"]["frontendIPConfigurations"].as_array().into_iter().flatten()
            {
                if let Some(address) = frontend["properties"]["privateIPAddress"].as_str() {
                    names.push((address.to_owned(), frontend["name"].as_str().unwrap().to_owned()));
                }
            }
        }
        let mut all = Vec::new();
        for kind in [PUBLIC_IPS, LOAD_BALANCERS, PRIVATE_LINKS, SECURITY_GROUPS, SCALE_SETS, INSTANCES] {
            for mut document in self.documents(kind) {
                normalise(&mut document, &names);
                all.push(serde_json::to_string_pretty(&document).unwrap());
            }
        }
        all.join("\n")
    }
}

fn normalise(value: &mut Value, addresses: &[(String, String)]) {
    match value {
        Value::Object(members) => {
            for volatile in ["etag", "resourceGuid", "timeCreated", "time", "priority"] {
                members.remove(volatile);
            }
            members.values_mut().for_each(|member| normalise(member, addresses));
        }
        Value::Array(items) => {
            items.iter_mut().for_each(|item| normalise(item, addresses));
            items.sort_by_key(ToString::to_string);
        }
        Value::String(text) => {
            if let Some((_, name)) = addresses.iter().find(|(address, _)| address == text) {
                *text = format!("<address of {name}>");
            }
        }
        _ => {}
    }
}

pub fn key(name: &str) -> ObjectKey {
    ObjectKey::new("shop", name)
}
