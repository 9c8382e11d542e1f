//! A pure model of Azure: applies the steps of a plan, refuses what Azure would refuse, and fills in what Azure fills
//! in.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use azure_types::{InterfaceConfigurations, LoadBalancer, ResourceId, SubResource, Word};
use k8s::{Node, Service};

use super::fixtures::{
    cluster, flexible_set, network_interface, scale_set, security_group, subnet, virtual_machine,
};
use crate::machines::inventory::Machines;
use crate::model::Cluster;
use crate::order::cluster_plan::plan_cluster;
use crate::order::observed::Observed;
use crate::outcome::{Action, ClusterPlan, Document, Plan, Step};

/// How this Azure stores a source: single addresses without their length, service tags in its own case.
fn stored_prefix(prefix: &str) -> String {
    let bare = prefix.strip_suffix(if prefix.contains(':') { "/128" } else { "/32" });
    let tag = ["Internet", "AzureCloud", "Storage"].into_iter().find(|tag| tag.eq_ignore_ascii_case(prefix));
    bare.or(tag).unwrap_or(prefix).to_owned()
}

/// Azure, and the cluster in it.
pub(crate) struct Azure {
    pub cluster: Cluster,
    pub observed: Observed,
    clock: u32,
}

impl Azure {
    /// Two uniform scale sets with three and two running instances, a standalone machine, a flexible scale set with one
    /// machine, an empty security group, two subnets.
    pub fn new() -> Self {
        Self::of(cluster())
    }

    pub fn of(cluster: Cluster) -> Self {
        let observed = Observed {
            security_group: Some(security_group(serde_json::json!([]))),
            machines: Machines {
                scale_sets: vec![
                    scale_set("alpha", 3),
                    scale_set("beta", 2),
                    (flexible_set("gamma"), Vec::new()),
                ],
                interfaces: ["alone", "gamma_1"].map(|name| Arc::new(network_interface(name))).to_vec(),
                virtual_machines: vec![virtual_machine("gamma_1", Some("gamma"))],
            },
            subnets: vec![
                subnet(&cluster, "subnet", &["10.0.0.0/24", "fd00::/64"]),
                subnet(&cluster, "other", &["10.1.0.0/24", "fd01::/64"]),
            ],
            ..Observed::default()
        };
        Self { cluster, observed, clock: 0 }
    }

    pub fn plan(&self, services: &[Arc<Service>], nodes: &[Arc<Node>]) -> ClusterPlan {
        plan_cluster(&self.cluster, services, nodes, &self.observed)
    }

    /// Applies plans until nothing is left to do; panics if that does not happen.
    pub fn converge(&mut self, services: &[Arc<Service>], nodes: &[Arc<Node>]) -> ClusterPlan {
        for _ in 0..6 {
            let planned = self.plan(services, nodes);
            if planned.plan.is_empty() {
                return planned;
            }
            self.apply(&planned.plan);
        }
        panic!("does not converge; still planned:\n{}", self.plan(services, nodes));
    }

    pub fn apply(&mut self, plan: &Plan) {
        let mut written = BTreeSet::new();
        for step in &plan.steps {
            let mut step = step.clone();
            // A resource that a plan writes twice has the version of the first write then.
            if !written.insert(step.target.clone()) && step.action == Action::Update {
                step.if_match = self.etag_of(&step.target).flatten();
            }
            self.take(&step);
        }
    }

    fn etag(&mut self) -> Option<String> {
        self.clock += 1;
        Some(format!("etag-{}", self.clock))
    }

    /// Applies one step.
    pub fn take(&mut self, step: &Step) {
        let current = self.etag_of(&step.target);
        if step.action == Action::Create {
            assert_eq!(current, None, "created although it exists: {}", step.target);
        } else if step.action == Action::Update {
            assert_eq!(
                step.if_match,
                current.expect("changed although it does not exist"),
                "{}",
                step.target
            );
        }
        if step.action == Action::Delete {
            return self.delete(&step.target);
        }
        match &step.document {
            None => {}
            Some(Document::PublicIp(document)) => {
                let mut document = (**document).clone();
                document.etag = self.etag();
                document.id = Some(step.target.clone());
                self.clock += 1;
                let properties = document.properties.as_mut().unwrap();
                let v6 = properties.public_ip_address_version.as_ref().is_some_and(|word| word.is("IPv6"));
                let old = self.observed.public_ips.iter().find(|ip| ip.id.as_ref() == Some(&step.target));
                if let Some(old) = old.filter(|old| old.sku != document.sku) {
                    let was = old.properties.as_ref().unwrap();
                    let is_static = was.public_ip_allocation_method.as_ref().unwrap().is("Static");
                    let is_free = was.ip_configuration.is_none();
                    assert!(is_static && is_free, "PublicIPAddressSkuCannotBeChanged {}", step.target);
                }
                let address = if v6 { format!("2001:db8::{}", self.clock) } else { self.public_v4() };
                properties.ip_address.get_or_insert(address);
                self.observed.public_ips.retain(|ip| ip.id.as_ref() != Some(&step.target));
                self.observed.public_ips.push(Arc::new(document));
            }
            Some(Document::PrivateLink(document)) => {
                let mut document = (**document).clone();
                document.etag = self.etag();
                document.id = Some(step.target.clone());
                let links = &mut self.observed.private_links;
                links.retain(|link| link.id.as_ref() != Some(&step.target));
                links.push(document.into());
            }
            Some(Document::Subnet(document)) => {
                let mut document = (**document).clone();
                document.etag = self.etag();
                let subnets = &mut self.observed.subnets;
                subnets.retain(|subnet| subnet.id.as_ref() != Some(&step.target));
                subnets.push(Arc::new(document));
            }
            Some(Document::LoadBalancer(document)) => {
                let mut document = (**document).clone();
                document.etag = self.etag();
                document.id = Some(step.target.clone());
                self.complete(&mut document, &step.target);
                let old = self.observed.load_balancers.iter().find(|lb| lb.id.as_ref() == Some(&step.target));
                assert!(old.is_none_or(|old| old.sku == document.sku), "LoadBalancerSkuCannotBeChanged");
                self.observed.load_balancers.retain(|lb| lb.id.as_ref() != Some(&step.target));
                self.observed.load_balancers.push(Arc::new(document));
                self.attach();
                self.check_offered();
            }
            Some(Document::SecurityGroup(document)) => {
                let mut document = (**document).clone();
                document.etag = self.etag();
                let mut seen = BTreeSet::new();
                for rule in document.properties.as_mut().unwrap().security_rules.as_mut().unwrap() {
                    let name = rule.name.clone().unwrap().to_lowercase();
                    rule.id = Some(step.target.child("securityRules", &name));
                    let p = rule.properties.as_mut().unwrap();
                    assert!(seen.insert(name.clone()), "two rules {name}");
                    assert!(seen.insert(p.priority.unwrap().to_string()), "two rules with one priority");
                    let has = |one: &Option<String>, many: &Option<Vec<String>>| {
                        one.is_some() != many.as_ref().is_some_and(|list| !list.is_empty())
                    };
                    assert!(has(&p.destination_address_prefix, &p.destination_address_prefixes), "{name}");
                    assert!(has(&p.source_address_prefix, &p.source_address_prefixes), "{name}");
                    assert!(has(&p.destination_port_range, &p.destination_port_ranges), "{name}");
                    for item in p
                        .source_address_prefix
                        .iter_mut()
                        .chain(p.source_address_prefixes.iter_mut().flatten())
                    {
                        *item = stored_prefix(item);
                    }
                    // Azure answers with an empty list where the singular is in use.
                    p.destination_address_prefixes.get_or_insert_default();
                    p.source_address_prefixes.get_or_insert_default();
                    p.destination_port_ranges.get_or_insert_default();
                    p.source_port_ranges.get_or_insert_default();
                }
                self.observed.security_group = Some(document);
            }
            Some(_) => {
                let etag = self.etag();
                let (id, machines) = (&step.target, &mut self.observed.machines);
                machines.apply(std::slice::from_ref(step));
                for (set, instances) in &mut machines.scale_sets {
                    let set = Arc::make_mut(set);
                    let instances = instances.iter_mut().map(Arc::make_mut);
                    let instances = instances.map(|instance| (&instance.id, &mut instance.etag));
                    let mut all = instances.chain([(&set.id, &mut set.etag)]);
                    let written = all.find(|(own, _)| own.as_ref() == Some(id));
                    written.into_iter().for_each(|(_, version)| *version = etag.clone());
                }
                let mut interfaces = machines.interfaces.iter_mut().map(Arc::make_mut);
                if let Some(interface) = interfaces.find(|one| one.id.as_ref() == Some(id)) {
                    interface.etag = etag;
                }
            }
        }
    }

    fn public_v4(&self) -> String {
        format!("20.0.{}.{}", self.clock / 250, self.clock % 250 + 1)
    }

    #[allow(clippy::option_option, reason = "absent resource, or one without a version")]
    pub fn etag_of(&self, id: &ResourceId) -> Option<Option<String>> {
        let observed = &self.observed;
        let balancers = observed.load_balancers.iter().map(|lb| (&lb.id, &lb.etag));
        let addresses = observed.public_ips.iter().map(|ip| (&ip.id, &ip.etag));
        let group = observed.security_group.iter().map(|group| (&group.id, &group.etag));
        let machines = &observed.machines;
        let sets = machines.scale_sets.iter().map(|(set, _)| (&set.id, &set.etag));
        let instances =
            machines.scale_sets.iter().flat_map(|(_, list)| list.iter().map(|i| (&i.id, &i.etag)));
        let interfaces = machines.interfaces.iter().map(|interface| (&interface.id, &interface.etag));
        let holders = sets.chain(instances).chain(interfaces);
        let links = observed.private_links.iter().map(|link| (&link.id, &link.etag));
        let subnets = observed.subnets.iter().map(|subnet| (&subnet.id, &subnet.etag));
        let own = balancers.chain(addresses).chain(links).chain(subnets);
        let mut all = own.chain(group).chain(holders);
        all.find(|(own, _)| own.as_ref() == Some(id)).map(|(_, etag)| etag.clone())
    }

    fn delete(&mut self, id: &ResourceId) {
        let attached = self.observed.public_ips.iter().find(|ip| ip.id.as_ref() == Some(id));
        let attached = attached.and_then(|ip| ip.properties.as_ref()?.ip_configuration.as_ref());
        assert_eq!(attached, None, "PublicIPAddressCannotBeDeleted {id}");
        let uses = |interfaces: &InterfaceConfigurations| {
            interfaces.network_interface_configurations.iter().flatten().any(|interface| {
                let addresses =
                    interface.properties.iter().flat_map(|p| p.ip_configurations.iter().flatten());
                let pools = addresses.flat_map(|a| a.properties.iter());
                pools
                    .flat_map(|p| p.load_balancer_backend_address_pools.iter().flatten())
                    .any(|pool| pool.id.as_ref().is_some_and(|pool| pool.is_within(id)))
            })
        };
        for (set, instances) in &self.observed.machines.scale_sets {
            let model = set.properties.as_ref().unwrap().virtual_machine_profile.as_ref().unwrap();
            assert!(
                !uses(model.network_profile.as_ref().unwrap()),
                "LoadBalancerInUseByVirtualMachineScaleSet"
            );
            for instance in instances {
                let own =
                    instance.properties.as_ref().unwrap().network_profile_configuration.as_ref().unwrap();
                assert!(!uses(own), "LoadBalancerInUseByVirtualMachineScaleSet");
            }
        }
        for link in &mut self.observed.private_links {
            let link = Arc::make_mut(link);
            let connections = &mut link.properties.as_mut().unwrap().private_endpoint_connections;
            if link.id.as_ref() == Some(id) {
                assert!(
                    connections.as_ref().is_none_or(Vec::is_empty),
                    "ItHasPrivateEndpointConnections {id}"
                );
            }
            connections
                .iter_mut()
                .for_each(|all| all.retain(|connection| connection.id.as_ref() != Some(id)));
        }
        self.observed.private_links.retain(|link| link.id.as_ref() != Some(id));
        self.observed.load_balancers.retain(|lb| lb.id.as_ref() != Some(id));
        self.observed.public_ips.retain(|ip| ip.id.as_ref() != Some(id));
        self.attach();
        self.check_offered();
    }

    /// Azure keeps a frontend that a private link service offers.
    fn check_offered(&self) {
        let balancers = self.observed.load_balancers.iter().filter_map(|lb| lb.properties.as_ref());
        let frontends: BTreeSet<&ResourceId> = balancers
            .flat_map(|p| p.frontend_ip_configurations.iter().flatten())
            .filter_map(|frontend| frontend.id.as_ref())
            .collect();
        let links = self.observed.private_links.iter().filter_map(|link| link.properties.as_ref());
        for offered in links.flat_map(|p| p.load_balancer_frontend_ip_configurations.iter().flatten()) {
            let id = offered.id.as_ref().unwrap();
            assert!(
                frontends.contains(id),
                "LoadBalancerFrontendIPConfigurationInUseByPrivateLinkService {id}"
            );
        }
    }

    /// Fills in IDs, defaults and private addresses; refuses contradictory documents.
    fn complete(&mut self, document: &mut LoadBalancer, id: &ResourceId) {
        let mut taken: BTreeSet<IpAddr> = BTreeSet::new();
        for other in self.observed.load_balancers.iter().filter(|lb| lb.id.as_ref() != Some(id)) {
            let frontends =
                other.properties.iter().flat_map(|p| p.frontend_ip_configurations.iter().flatten());
            taken.extend(frontends.filter_map(crate::resources::load_balancer::frontend::private_address_of));
        }
        let properties = document.properties.as_mut().unwrap();
        let mut ids = BTreeSet::new();
        let mut public = BTreeSet::new();
        for frontend in properties.frontend_ip_configurations.get_or_insert_default() {
            let own = id.child("frontendIPConfigurations", frontend.name.as_deref().unwrap());
            assert!(frontend.id.as_ref().is_none_or(|given| *given == own), "{frontend:?}");
            assert!(ids.insert(own.clone()), "two frontends {own}");
            frontend.id = Some(own);
            let p = frontend.properties.as_mut().unwrap();
            if let Some(ip) = p.public_ip_address.as_ref().and_then(|ip| ip.id.as_ref()) {
                assert!(public.insert(ip.clone()), "one public IP in two frontends: {ip}");
                let exists = self.observed.public_ips.iter().any(|public| public.id.as_ref() == Some(ip));
                assert!(exists, "InvalidResourceReference {ip}");
            }
            p.private_ip_allocation_method.get_or_insert_with(|| Word::from("Dynamic"));
            if let Some(given) = &p.private_ip_address {
                assert!(taken.insert(given.parse().unwrap()), "PrivateIPAddressInUse {given}");
            }
        }
        for frontend in properties.frontend_ip_configurations.iter_mut().flatten() {
            let p = frontend.properties.as_mut().unwrap();
            if let Some(subnet) = p.subnet.as_ref().filter(|_| p.private_ip_address.is_none()) {
                let v6 = p.private_ip_address_version.as_ref().is_some_and(|word| word.is("IPv6"));
                let net = if subnet.name.as_deref() == Some("other") { 1 } else { 0 };
                let free = (4..250)
                    .map(|n| if v6 { format!("fd0{net}::{n}") } else { format!("10.{net}.0.{n}") })
                    .find(|address| !taken.contains(&address.parse().unwrap()))
                    .unwrap();
                taken.insert(free.parse().unwrap());
                p.private_ip_address = Some(free);
            }
        }
        for pool in properties.backend_address_pools.get_or_insert_default() {
            let own = id.child("backendAddressPools", pool.name.as_deref().unwrap());
            assert!(ids.insert(own.clone()), "two pools {own}");
            pool.id = Some(own);
            pool.properties.get_or_insert_default().load_balancer_backend_addresses.get_or_insert_default();
        }
        for probe in properties.probes.get_or_insert_default() {
            let own = id.child("probes", probe.name.as_deref().unwrap());
            assert!(ids.insert(own.clone()), "two probes {own}");
            probe.id = Some(own);
            probe.properties.as_mut().unwrap().number_of_probes.get_or_insert(1);
        }
        let mut ports: BTreeMap<ResourceId, BTreeSet<(String, i32)>> = BTreeMap::new();
        for rule in properties.load_balancing_rules.get_or_insert_default() {
            let own = id.child("loadBalancingRules", rule.name.as_deref().unwrap());
            assert!(ids.insert(own.clone()), "two rules {own}");
            rule.id = Some(own);
            let p = rule.properties.as_mut().unwrap();
            let refers = |reference: &Option<SubResource>, needed: bool| match reference {
                Some(reference) => {
                    let target = reference.id.clone().unwrap();
                    assert!(ids.contains(&target), "InvalidResourceReference {target}");
                }
                None => assert!(!needed),
            };
            refers(&p.frontend_ip_configuration, true);
            refers(&p.backend_address_pool, true);
            refers(&p.probe, false);
            p.enable_tcp_reset.get_or_insert(false);
            // Azure returns the pool twice.
            let pool = serde_json::json!([p.backend_address_pool]);
            p.rest.insert("backendAddressPools", pool);
            let frontend = p.frontend_ip_configuration.clone().unwrap().id.unwrap();
            let key = (p.protocol.as_ref().unwrap().as_str().to_lowercase(), p.frontend_port.unwrap());
            assert!(ports.entry(frontend).or_default().insert(key), "two rules with one port: {rule:?}");
        }
        let outbound = properties.outbound_rules.get_or_insert_default();
        for frontend in outbound.iter().flat_map(|r| r.properties.iter()).flat_map(|p| {
            p.frontend_ip_configurations.iter().flatten().filter_map(|reference| reference.id.as_ref())
        }) {
            assert!(ids.contains(frontend), "InvalidResourceReference {frontend}");
        }
    }

    /// Sets on every public IP the frontend that uses it.
    pub fn attach(&mut self) {
        let mut users: BTreeMap<ResourceId, ResourceId> = BTreeMap::new();
        for lb in &self.observed.load_balancers {
            for frontend in lb.properties.iter().flat_map(|p| p.frontend_ip_configurations.iter().flatten()) {
                if let Some(ip) = crate::resources::load_balancer::frontend::public_ip_of(frontend) {
                    users.insert(ip.clone(), frontend.id.clone().unwrap());
                }
            }
        }
        for ip in self.observed.public_ips.iter_mut().map(Arc::make_mut) {
            let user = users.get(ip.id.as_ref().unwrap()).cloned();
            ip.properties.get_or_insert_default().ip_configuration = user.map(SubResource::to);
        }
    }

    /// The load balancer with public addresses (or the internal one).
    pub fn load_balancer(&self, flavor: crate::model::Flavor) -> Option<&LoadBalancer> {
        let id = self.cluster.load_balancer_id(&self.cluster.placement(flavor));
        self.observed.load_balancers.iter().map(Arc::as_ref).find(|lb| lb.id.as_ref() == Some(&id))
    }
}
