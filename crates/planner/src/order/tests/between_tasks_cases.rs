//! What a controller asks between the tasks of a Service: which resources concern it, what it lost, and what has drifted
//! since it had all it wants.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde_json::json;

use super::*;
use crate::model::{Balancer, Family, Flavor};
use crate::order::drift::{Drift, DriftCheck, DriftResult, by_service};
use crate::order::sequence::{ResourceIntent, Sequence, Stage, Task};
use crate::outcome::{Action, Stop, Wait};
use crate::placement::ServiceObservation;
use crate::resources::load_balancer::{ListedLoadBalancer, LoadBalancerIntent, Places, holds, services_on};
use crate::service::{ServiceRemoval, local_pool};

fn web() -> Svc {
    svc("web").tcp(80)
}

fn ips(list: &[&str]) -> Vec<IpAddr> {
    list.iter().map(|ip| ip.parse().unwrap()).collect()
}

fn tags() -> Value {
    json!({"k8s-azure-service": "default/web", "k8s-azure-cluster-name": "testCluster"})
}

fn served(services: &[Svc]) -> Azure {
    let mut azure = Azure::new();
    azure.converge(&arcs(services), &[]);
    azure
}

fn arcs(services: &[Svc]) -> Vec<Arc<Service>> {
    services.iter().map(Svc::arc).collect()
}

fn own(azure: &Azure, services: &[Svc]) -> Vec<(Balancer, ListedLoadBalancer)> {
    let all = azure.observed.load_balancers.iter().cloned();
    azure.cluster.own_load_balancers(all, &arcs(services))
}

fn removal(service: &Svc) -> Arc<ServiceRemoval> {
    Arc::new(ServiceRemoval::of(&cluster(), &service.0))
}

fn next(azure: &Azure, sequence: &mut Sequence, load_balancers: &[(Balancer, ListedLoadBalancer)]) -> Task {
    try_next(azure, sequence, load_balancers).unwrap()
}

fn try_next(
    azure: &Azure,
    sequence: &mut Sequence,
    load_balancers: &[(Balancer, ListedLoadBalancer)],
) -> Result<Task, Stop> {
    let observed = &azure.observed;
    let subnet = observed.subnets.iter().find(|one| one.name.as_deref() == Some("subnet"));
    let observation = ServiceObservation {
        public_ips: &observed.public_ips,
        load_balancers,
        subnet,
        nodes: &[],
        private_links: Some(&observed.private_links),
        private_link_subnet: subnet,
        namespace: None,
        machine_sets: None,
    };
    sequence.next(&azure.cluster, &observation, &mut Places::default())
}

/// What differs, in a few words, and whether the Service wants anything of the security group for the nodes' addresses.
fn drift(azure: &Azure, service: &Svc) -> (String, bool) {
    let cluster = &azure.cluster;
    let intent = service.intent(cluster);
    let subnets =
        azure.observed.subnets.iter().map(|one| (one.id.clone().unwrap(), Arc::clone(one))).collect();
    let check = DriftCheck {
        load_balancers: own(azure, std::slice::from_ref(service)),
        nodes: &[],
        private_links: &azure.observed.private_links,
        subnets: &subnets,
        namespaces: &BTreeMap::new(),
        machine_sets: None,
        public_ips: &by_service(std::iter::once(&*intent), &azure.observed.public_ips),
    };
    let published = service.0.status.load_balancer.ingress.iter().filter_map(|one| one.ip.parse().ok());
    let DriftResult { difference, access } =
        check.compare(cluster, &intent, &published.collect(), &mut Places::default());
    let names = |steps: Vec<Step>| {
        let names: Vec<String> =
            steps.iter().map(|step| format!("{:?} {}", step.action, step.target.name())).collect();
        names.join(", ")
    };
    let words = match difference {
        None => "nothing".to_owned(),
        Some(Drift::PublicIps(steps)) => format!("public IPs: {}", names(steps)),
        Some(Drift::PrivateLink(steps)) => format!("private link: {}", names(steps)),
        Some(other) => format!("{other:?}"),
    };
    (words, access.is_some())
}

#[test]
fn every_kind_of_drift_is_found() {
    let linked = || web().internal().annotate("azure-pls-create", "true");
    let at_nodes = || web().annotate("azure-disable-load-balancer-floating-ip", "true");
    let nothing: fn(&mut Azure) = |_| {};
    let is_published = |azure: &Azure, service: Svc| {
        let address = azure.observed.public_ips[0].properties.as_ref().unwrap().ip_address.clone().unwrap();
        service.published(&[&address])
    };
    for (before, edit, after, expected) in [
        (web(), nothing, web(), ("nothing", false)),
        (web(), nothing, web().published(&["20.9.9.9"]), ("Status", false)),
        (
            web(),
            |azure| Arc::make_mut(&mut azure.observed.public_ips[0]).tags = None,
            web(),
            ("public IPs: Update testCluster-aweb", false),
        ),
        (web(), nothing, web().annotate("azure-pip-name", "theirs"), ("Refused", false)),
        (web(), nothing, web().internal(), ("Misplaced", false)),
        (linked(), nothing, linked(), ("nothing", false)),
        (
            linked(),
            |azure| azure.observed.private_links.clear(),
            linked(),
            ("private link: Create pls-aweb", false),
        ),
        (at_nodes(), nothing, at_nodes(), ("nothing", true)),
    ] {
        let mut azure = served(&[before]);
        edit(&mut azure);
        let (words, access) = drift(&azure, &after);
        assert_eq!((&*words, access), expected, "{after:?}");
    }
    let azure = served(&[web()]);
    assert_eq!(drift(&azure, &is_published(&azure, web())).0, "nothing");
}

#[test]
fn published_public_addresses_that_no_public_ip_has_are_lost() {
    let service = web().annotate("azure-additional-public-ips", "20.0.0.3").published(&[
        "20.0.0.1",
        "20.0.0.2",
        "20.0.0.3",
        "10.0.0.5",
        "2001:db8::1",
        "fd00::1",
    ]);
    let sequence = Sequence::ensure(service.intent(&cluster()));
    let known = |address| Arc::new(public_ip(&cluster(), "one", Some(address), tags()));
    assert_eq!(sequence.lost_addresses(&[known("20.0.0.1")]), ips(&["20.0.0.2", "2001:db8::1"]));
    let all = ["20.0.0.1", "20.0.0.2", "2001:db8::1"].map(known);
    assert_eq!(sequence.lost_addresses(&all), ips(&[]));
}

#[test]
fn a_sequence_sees_frontends_and_public_ips_of_its_service_alone() {
    let azure = served(&[web()]);
    let balancers = own(&azure, &[web()]);
    let cluster = &azure.cluster;
    for (service, expected) in [(web(), true), (svc("other").tcp(80), false)] {
        let mut sequence = Sequence::ensure(service.intent(cluster));
        assert_eq!(sequence.has_frontend(cluster, &balancers, &azure.observed.public_ips), expected);
        let mut elsewhere = public_ip(cluster, "testCluster-aweb", Some("20.0.0.9"), tags());
        elsewhere.id = Some(cluster.public_ip_id("elsewhere", "testCluster-aweb"));
        let group = cluster.network_group("elsewhere");
        assert_eq!(sequence.see_public_ips(cluster, [&elsewhere]), expected);
        assert_eq!(sequence.owner().public_ip_groups.contains(&group), expected);
        assert!(!sequence.see_public_ips(cluster, [&elsewhere]), "it was seen already");
    }
}

#[test]
fn the_services_on_a_load_balancer_are_those_that_its_parts_are_named_after() {
    let (web, other) = (web(), svc("other").tcp(81));
    let azure = served(std::slice::from_ref(&web));
    let found = services_on(azure.load_balancer(Flavor::External).unwrap(), &arcs(&[other, web.clone()]));
    assert_eq!(found, [web.arc().key()]);
}

#[test]
fn the_destination_is_known_where_there_is_only_one_load_balancer() {
    let entries = json!({"multipleStandardLoadBalancerConfigurations": [{"name": "one", "primaryVMSet": "vmss"}],
        "loadBalancerBackendPoolConfigurationType": "nodeIP"});
    for (cluster, expected) in [
        (cluster(), Some(cluster().placement(Flavor::Internal))),
        (cluster_with(json!({"loadBalancerSku": "basic"})), None),
        (cluster_with(entries), None),
    ] {
        let sequence = Sequence::ensure(web().internal().intent(&cluster));
        assert_eq!(sequence.destination(&cluster), expected, "{:?}", cluster.config.load_balancer_sku);
    }
    assert_eq!(Sequence::remove(removal(&web())).destination(&cluster()), None);
}

/// A load balancer on which Services were placed under an earlier configuration.
#[test]
fn former_load_balancers_are_own_ones_that_are_not_configured() {
    let mut azure = served(&[web()]);
    let former = |azure: &Azure, extra: Value| {
        let cluster = cluster_with(extra);
        let all = azure.observed.load_balancers.iter().cloned();
        let found = cluster.former_load_balancers(all, &[web().arc()]);
        found.into_iter().map(|(balancer, _)| balancer.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(former(&azure, json!({})), Vec::<String>::new());
    let earlier = Balancer { name: "earlier".to_owned(), flavor: Flavor::External };
    Arc::make_mut(&mut azure.observed.load_balancers[0]).id = Some(azure.cluster.load_balancer_id(&earlier));
    // Where an operator names the only load balancer, one of another name may be the operator's.
    for (extra, expected) in [
        (json!({}), &["earlier"][..]),
        (json!({"loadBalancerName": "own"}), &[]),
        (json!({"loadBalancerName": "own", "loadBalancerSku": "basic"}), &["earlier"]),
        (
            json!({"loadBalancerName": "own", "multipleStandardLoadBalancerConfigurations":
            [{"name": "one", "primaryVMSet": "vmss"}]}),
            &["earlier"],
        ),
        (json!({"loadBalancerResourceGroup": "elsewhere"}), &[]),
    ] {
        assert_eq!(former(&azure, extra.clone()), expected, "{extra}");
    }
}

/// A load balancer on which nothing but a pool of its own is left of a Service.
#[test]
fn a_pool_of_a_single_service_is_a_part_of_it() {
    let cluster = cluster();
    let balancer = cluster.placement(Flavor::External);
    let name = local_pool::name(&web().arc().key(), Family::V6);
    let document = Arc::new(
        serde_json::from_value::<LoadBalancer>(json!({
            "id": cluster.load_balancer_id(&balancer), "name": balancer.name,
            "properties": {"backendAddressPools": [{"name": name.to_uppercase(), "properties": {}}]},
        }))
        .unwrap(),
    );
    for listed in
        [ListedLoadBalancer::from(Arc::clone(&document)), ListedLoadBalancer::from(document).indexed()]
    {
        for (service, expected) in [(web(), true), (svc("other").tcp(81), false)] {
            let found = holds(&cluster, &balancer, &listed, &removal(&service), &BTreeMap::new());
            assert_eq!(found, expected, "{service:?}");
        }
    }
}

/// The stages of a Service's tasks, and whether each depends on the current public IPs.
#[test]
fn public_ips_are_read_again_where_a_task_depends_on_them() {
    let mut azure = Azure::new();
    let mut sequence = Sequence::ensure(web().intent(&azure.cluster));
    let mut asked = vec![(sequence.stage(), sequence.needs_public_ips())];
    loop {
        let task = next(&azure, &mut sequence, &own(&azure, &[web()]));
        asked.push((sequence.stage(), sequence.needs_public_ips()));
        match task {
            Task::WritePublicIps(steps) => steps.iter().for_each(|step| azure.take(step)),
            Task::Submit(intents) => {
                let has_balancer = intents.iter().any(|intent| {
                    matches!(intent, ResourceIntent::LoadBalancer(_, LoadBalancerIntent::Present { .. }))
                });
                if has_balancer {
                    azure.converge(&[web().arc()], &[]);
                }
                sequence.submitted();
            }
            Task::Finish(_) => break,
            other => panic!("{other:?}"),
        }
        asked.push((sequence.stage(), sequence.needs_public_ips()));
    }
    asked.dedup();
    use Stage::*;
    assert_eq!(
        asked,
        [(Retiring, true), (Addresses, true), (Balancing, false), (Linking, false), (Releasing, false)]
    );
    assert!(Sequence::remove(removal(&web())).needs_public_ips());
}

/// The public IPs that a leaving Service gives up: `Delete` or `Update`, and the name.
fn given_up(azure: &Azure, services: &[Svc], kept: &[&str]) -> Vec<String> {
    let mut sequence = Sequence::remove(removal(&services[0]));
    kept.iter().for_each(|name| sequence.keep(azure.cluster.public_ip_id("rg", name)));
    let balancers = own(azure, services);
    assert!(matches!(next(azure, &mut sequence, &balancers), Task::Submit(_)));
    sequence.submitted();
    match next(azure, &mut sequence, &balancers) {
        Task::ReleasePublicIps(steps) => {
            steps.iter().map(|step| format!("{:?} {}", step.action, step.target.name())).collect()
        }
        Task::Finish(_) => Vec::new(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_public_ip_that_is_in_use_is_not_given_up() {
    let other = svc("other").uid("257b9655-5137-4ad2-b091-ef3f07043ad3").tcp(81);
    let base = "a257b965551374ad2b091ef3f07043ad";
    let both = [web(), other];
    let mut azure = served(&both[..1]);
    assert_eq!(given_up(&azure, &both, &[]), ["Delete testCluster-aweb"]);
    assert_eq!(given_up(&azure, &both, &["another"]), ["Delete testCluster-aweb"]);
    assert_eq!(given_up(&azure, &both, &["testCluster-aweb"]), Vec::<String>::new());
    // A frontend of another Service has it, or one that a rule of another Service refers to, although its tag does not
    // list that Service.
    let served = azure.observed.load_balancers[0].clone();
    for (frontend, rule, expected) in [
        (base, "aweb-TCP-80", "Update"),
        ("shared", &*format!("{base}-TCP-81"), "Update"),
        ("shared", "theirs", "Delete"),
    ] {
        let mut document = serde_json::to_value(&*served).unwrap();
        let id = azure.cluster.frontend_id(&azure.cluster.placement(Flavor::External), frontend);
        let properties = &mut document["properties"];
        properties["frontendIPConfigurations"][0]["name"] = json!(frontend);
        properties["frontendIPConfigurations"][0]["id"] = json!(id);
        properties["loadBalancingRules"][0]["name"] = json!(rule);
        properties["loadBalancingRules"][0]["properties"]["frontendIPConfiguration"]["id"] = json!(id);
        azure.observed.load_balancers[0] = Arc::new(serde_json::from_value(document).unwrap());
        assert_eq!(
            given_up(&azure, &both, &[]),
            [format!("{expected} testCluster-aweb")],
            "{frontend} {rule}"
        );
    }
}

#[test]
fn a_resource_whose_changes_do_not_last_is_used_as_it_is() {
    let mut azure = served(&[web()]);
    Arc::make_mut(&mut azure.observed.public_ips[0]).tags.as_mut().unwrap().remove("k8s-azure-cluster-name");
    let id = azure.cluster.public_ip_id("rg", "testCluster-aweb");
    for (accepted, expected) in
        [(None, true), (Some(azure.cluster.public_ip_id("rg", "another")), true), (Some(id), false)]
    {
        let mut sequence = Sequence::ensure(web().intent(&azure.cluster));
        accepted.into_iter().for_each(|id| sequence.accept(id));
        let task = loop {
            match next(&azure, &mut sequence, &own(&azure, &[web()])) {
                Task::Submit(_) if sequence.stage() == Stage::Retiring => sequence.submitted(),
                task => break task,
            }
        };
        let writes = matches!(&task, Task::WritePublicIps(steps) if steps[0].action == Action::Update);
        assert_eq!(writes, expected, "{task:?}");
    }
}

/// A new internal frontend gets the published address again, unless another frontend holds it.
#[test]
fn a_published_private_address_that_is_taken_is_not_asked_for() {
    let address = |azure: &Azure, service: &Svc, other: &Svc| {
        let planned = azure.plan(&arcs(&[service.clone(), other.clone()]), &[]).plan;
        let step = planned
            .steps
            .iter()
            .find(|step| matches!(step.document, Some(Document::LoadBalancer(_))))
            .unwrap();
        let properties = load_balancer_of(step).properties.clone().unwrap();
        let mut frontends = properties.frontend_ip_configurations.unwrap().into_iter();
        let own = frontends.find(|one| one.name.as_deref() == Some("aweb")).unwrap();
        own.properties.unwrap().private_ip_address
    };
    let other = svc("other").tcp(81).internal();
    let azure = served(std::slice::from_ref(&other));
    let held = "10.0.0.4";
    for (published, expected) in [(held, None), ("10.0.0.77", Some("10.0.0.77")), ("10.9.0.1", None)] {
        let found = address(&azure, &web().internal().published(&[published]), &other);
        assert_eq!(found.as_deref(), expected, "{published}");
    }
    let sets: BTreeSet<String> =
        azure.observed.load_balancers.iter().filter_map(|one| one.name.clone()).collect();
    assert_eq!(sets.len(), 1);
}

/// A public IP that has to be replaced, and comes back as it was each time.
#[test]
fn a_public_ip_is_created_again_a_few_times_only() {
    let mut azure = served(&[web()]);
    let mut wrong = PublicIpAddress::clone(&azure.observed.public_ips[0]);
    wrong.properties.as_mut().unwrap().public_ip_address_version = Some("IPv6".into());
    azure.observed.public_ips = vec![Arc::new(wrong.clone())];
    let mut sequence = Sequence::ensure(web().intent(&azure.cluster));
    let mut created = 0;
    let stop = loop {
        match try_next(&azure, &mut sequence, &own(&azure, &[web()])) {
            Ok(Task::Submit(_)) => sequence.submitted(),
            Ok(Task::ReleasePublicIps(_)) => azure.observed.public_ips.clear(),
            Ok(Task::WritePublicIps(_)) => {
                created += 1;
                azure.observed.public_ips = vec![Arc::new(wrong.clone())];
            }
            Ok(other) => panic!("{other:?}"),
            Err(stop) => break stop,
        }
        assert!(created < 20, "it does not end");
    };
    assert!(matches!(stop, Stop::NotYet(Wait::PublicIpRecreated { .. })), "{stop:?}");
    assert_eq!(created, 3);
}
