//! Failures of one Service, one machine or one scope do not spread.

use std::time::Duration;

use azure_simulator::{Fault, FaultAction, PowerState};
use azure_types::ResourceId;
use cloud::{Ensured, LoadBalancers, LogicalTime, ServiceError};
use futures::future::join_all;
use serde_json::json;
use simulated_cluster::{NodePool, Shape, StandaloneMachine};

use crate::world::*;

fn refuse(status: u16, code: &str) -> FaultAction {
    FaultAction::Fail { status, code: code.into(), message: "Not today.".into() }
}

/// A resource group that one Service names is read only for that Service.
#[tokio::test(start_paused = true)]
async fn a_resource_group_that_one_service_names_is_read_for_nobody_else() {
    let world = World::new();
    let program = world.start();
    world.azure.inject(Fault::new(refuse(403, "AuthorizationFailed")).on_method("GET").on_type(PUBLIC_IPS));
    let elsewhere = annotated(service("elsewhere", &[80]), "azure-load-balancer-resource-group", "other");
    let in_that_group = || {
        let journal = world.azure.journal();
        let paths = journal.entries.into_iter().map(|entry| entry.path);
        paths.filter(|path| path.to_lowercase().contains("/resourcegroups/other/")).collect::<Vec<_>>()
    };
    world.serve(&program, elsewhere).await.unwrap_err();
    assert!(!in_that_group().is_empty(), "it is read for the Service that names it");
    world.azure.clear_faults();
    world.azure.clear_journal();
    world.serve(&program, service("web", &[80])).await.unwrap();
    assert_eq!(in_that_group(), Vec::<String>::new());
}

/// A deletion fails after the pools were emptied: the next Service on that load balancer fills them again.
#[tokio::test(start_paused = true)]
async fn pools_that_an_aborted_deletion_emptied_are_filled_again() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, service("web", &[80])).await.unwrap();
    assert_eq!(world.members("kube"), 3);
    let fault = Fault::new(refuse(403, "AuthorizationFailed")).on_method("DELETE").on_type(LOAD_BALANCERS);
    world.azure.inject(fault);
    world.remove(&program, &service("web", &[80])).await.unwrap_err();
    world.azure.clear_faults();
    assert_eq!(world.members("kube"), 0, "all members left before the deletion");
    world.serve(&program, service("api", &[443])).await.unwrap();
    assert_eq!(world.members("kube"), 3);
}

/// The creation of a load balancer never overwrites one that another client created a moment ago.
#[tokio::test(start_paused = true)]
async fn a_creation_overwrites_nobodys_load_balancer() {
    let world = World::new();
    let program = world.start();
    // The program has seen that it does not exist.
    world.serve(&program, internal(service("inside", &[80]))).await.unwrap();
    world.latency(5, 0, 0);
    let web = world.apply(&program, service("web", &[80]));
    let serving = world.ensure(&program, &web);
    let interfering = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        let theirs = json!({"location": "eastus", "sku": {"name": "Standard"}, "tags": {"owner": "somebody"},
            "properties": {"backendAddressPools": [{"name": "theirs"}]}});
        world.azure.put(&id("loadBalancers", "kube"), theirs).unwrap();
    };
    let (served, ()) = futures::join!(serving, interfering);
    served.unwrap();
    let balancer = world.load_balancer("kube").unwrap();
    assert_eq!(balancer["tags"]["owner"], "somebody");
    assert!(balancer["properties"]["backendAddressPools"].to_string().contains("theirs"));
}

/// The security group fails while the load balancer is cleaned: the Service still exists, and the next try completes.
#[tokio::test(start_paused = true)]
async fn a_service_whose_security_rules_are_left_still_exists() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, service("other", &[80])).await.unwrap();
    let inside = internal(annotated(service("inside", &[81]), "azure-allowed-ip-ranges", "10.9.0.0/16"));
    world.serve(&program, inside.clone()).await.unwrap();
    let rules = || {
        let group = world.azure.document(&id("networkSecurityGroups", "nsg")).unwrap();
        group["properties"]["securityRules"].to_string().contains("10.9.0.0/16")
    };
    assert!(rules());
    let fault = Fault::new(refuse(403, "AuthorizationFailed")).on_method("PUT").on_type(SECURITY_GROUPS);
    world.azure.inject(fault);
    world.remove(&program, &inside).await.unwrap_err();
    world.azure.clear_faults();
    assert!(world.load_balancer("kube-internal").is_none());
    assert!(program.holds(&world.stored(&inside)).await.unwrap());
    world.remove(&program, &inside).await.unwrap();
    assert!(!rules());
}

/// A public IP whose tags another client keeps resetting is used as it is, and its owner gets a notice.
#[tokio::test(start_paused = true)]
async fn a_public_ip_that_does_not_keep_its_tags_is_used_as_it_is() {
    let world = World::new();
    let program = world.start();
    let tagged = annotated(service("web", &[80]), "azure-pip-tags", "team=net");
    world.serve(&program, tagged.clone()).await.unwrap();
    let pip = id("publicIPAddresses", "kube-aweb");
    let mut told = 0;
    world.azure.clear_journal();
    for _ in 0..5 {
        world
            .azure
            .edit(&pip, |document| drop(document["tags"].as_object_mut().unwrap().remove("team")))
            .unwrap();
        let ensured = world.serve(&program, tagged.clone()).await.unwrap();
        told += ensured.notices.iter().filter(|notice| notice.message.contains("team=net")).count();
    }
    assert!((1..=3).contains(&world.writes(PUBLIC_IPS)), "{:?}", world.puts(PUBLIC_IPS));
    assert!(told >= 2, "{told}");
}

/// A stopped machine joins when it has started, although no Node and no Service changes.
#[tokio::test(start_paused = true)]
async fn a_machine_that_starts_later_joins_later() {
    let world = World::new();
    let program = world.start();
    let machine = id("virtualMachineScaleSets", "pool").child("virtualMachines", "0");
    world.azure.set_power_state(&machine, PowerState::Deallocated).unwrap();
    world.serve(&program, service("web", &[80])).await.unwrap();
    assert_eq!(world.members("kube"), 2);
    assert!(program.provider.waits_for_machines());
    world.azure.clear_journal();
    program.provider.update_waiting_machines(LogicalTime::BEGINNING).await.unwrap();
    assert_eq!(world.reads(), 0, "the answer to another request suffices");
    world.azure.set_power_state(&machine, PowerState::Running).unwrap();
    program.provider.update_waiting_machines(LogicalTime::now()).await.unwrap();
    assert_eq!(world.members("kube"), 3);
    assert!(!program.provider.waits_for_machines());
}

/// Scale sets without waiting machines are not read.
#[tokio::test(start_paused = true)]
async fn a_look_at_waiting_machines_reads_their_scale_set_alone() {
    let world = World::of(&Shape {
        pools: vec![NodePool::new("pool", "pool", 2), NodePool::new("more", "more", 2)],
        ..shape()
    });
    let program = world.start();
    let machine = id("virtualMachineScaleSets", "more").child("virtualMachines", "1");
    world.azure.set_power_state(&machine, PowerState::Deallocated).unwrap();
    world.serve(&program, service("web", &[80])).await.unwrap();
    assert_eq!(world.members("kube"), 3);
    world.azure.clear_journal();
    program.provider.update_waiting_machines(LogicalTime::now()).await.unwrap();
    let journal = world.azure.journal();
    let listed: Vec<&String> = journal.entries.iter().map(|entry| &entry.path).collect();
    assert!(listed.iter().any(|path| path.contains("/more/")), "its own is read: {listed:?}");
    assert!(listed.iter().all(|path| !path.contains("/pool/")), "{listed:?}");
    assert!(program.provider.waits_for_machines());
    // Deleted nodes are not waited for.
    for node in
        world.nodes.lock().iter().filter(|node| node.spec.provider_id.ends_with("more/virtualMachines/1"))
    {
        program.provider.state().remove_node(node.name());
    }
    program.provider.update_waiting_machines(LogicalTime::now()).await.unwrap();
    assert!(!program.provider.waits_for_machines());
}

/// A change of nodes reads and writes the scale set of those nodes alone. What another hand takes from the machines of
/// another set meanwhile comes back with the next comparison, for which the change of nodes is no substitute.
#[tokio::test(start_paused = true)]
async fn a_change_of_nodes_reads_their_scale_set_alone() {
    let world = World::of(&Shape {
        pools: vec![NodePool::new("pool", "pool", 2), NodePool::new("more", "more", 2)],
        ..shape()
    });
    let program = world.start();
    world.serve(&program, service("web", &[80])).await.unwrap();
    assert_eq!(world.members("kube"), 4);
    let state = program.provider.state();
    let grow = |machines: u64| {
        world.azure.scale(&id("virtualMachineScaleSets", "more"), machines).unwrap();
        world.register_nodes();
        let nodes = world.nodes.lock();
        let of_set = nodes.iter().filter(|node| node.spec.provider_id.contains("/more/"));
        of_set.for_each(|node| state.apply_node(node.clone()));
    };
    let instances_read = |set: &str| {
        let journal = world.azure.journal();
        let part = format!("/{set}/virtualMachines");
        journal.entries.iter().filter(|one| one.method == "GET" && one.path.contains(&part)).count()
    };
    let machines = id("virtualMachineScaleSets", "pool");
    take_out_of_pools(&world, &machines.child("virtualMachines", "0"));
    grow(3);
    world.azure.clear_journal();
    program.provider.update_nodes(LogicalTime::now()).await.unwrap();
    assert_eq!((instances_read("pool"), instances_read("more") > 0), (0, true));
    assert_eq!(world.members("kube"), 4);
    program.provider.look_again().await;
    assert_eq!(world.members("kube"), 5);
    // A machine that was refused is tried again with the next change, whichever nodes that concerns.
    take_out_of_pools(&world, &machines.child("virtualMachines", "0"));
    let gone = world
        .nodes
        .lock()
        .iter()
        .find(|node| node.spec.provider_id.ends_with("/pool/virtualMachines/1"))
        .cloned();
    state.remove_node(gone.unwrap().name());
    world.azure.inject(Fault::new(refuse(403, "AuthorizationFailed")).on_method("PUT").on_type(INSTANCES));
    program.provider.update_nodes(LogicalTime::now()).await.unwrap();
    assert_eq!(world.members("kube"), 4);
    world.azure.clear_faults();
    grow(4);
    program.provider.update_nodes(LogicalTime::now()).await.unwrap();
    assert_eq!(
        world.members("kube"),
        5,
        "four of `more`, one of `pool`; the machine of the deleted node has left"
    );
}

/// Another client takes a machine of a uniform scale set out of all pools.
fn take_out_of_pools(world: &World, machine: &ResourceId) {
    let mut document = world.azure.document(machine).unwrap();
    let interfaces = "/properties/networkProfileConfiguration/networkInterfaceConfigurations";
    for interface in document.pointer_mut(interfaces).unwrap().as_array_mut().unwrap() {
        for address in interface["properties"]["ipConfigurations"].as_array_mut().unwrap() {
            address["properties"]["loadBalancerBackendAddressPools"] = json!([]);
        }
    }
    world.azure.put(machine, document).unwrap();
}

/// Nodes change while a Service whose packets arrive at the nodes waits: only that Service is affected.
#[tokio::test(start_paused = true)]
async fn a_waiting_service_at_nodes_fails_no_change_of_nodes() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, service("web", &[80])).await.unwrap();
    let at_nodes = annotated(service("named", &[81]), "azure-disable-load-balancer-floating-ip", "true");
    let named = annotated(at_nodes, "azure-dns-label-name", "taken");
    world.azure.inject(Fault::new(refuse(400, "DnsRecordInUse")).on_method("PUT").on_type(PUBLIC_IPS));
    world.serve(&program, named.clone()).await.unwrap_err();
    world.azure.scale(&id("virtualMachineScaleSets", "pool"), 4).unwrap();
    world.register_nodes();
    for node in world.nodes.lock().iter() {
        program.provider.state().apply_node(node.clone());
    }
    world.azure.clear_journal();
    program.provider.update_nodes(LogicalTime::now()).await.unwrap();
    assert_eq!(world.members("kube"), 4);
    assert_eq!(world.writes(PUBLIC_IPS), 0, "the Service is not worked on");
    assert!(program.provider.follows_nodes(&std::sync::Arc::new(named)));
    assert!(!program.provider.follows_nodes(&std::sync::Arc::new(service("web", &[80]))));
}

/// Machines that were added while there was no Service are in the pool of the next one.
#[tokio::test(start_paused = true)]
async fn machines_that_came_while_there_was_no_service_join() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, service("web", &[80])).await.unwrap();
    world.remove(&program, &service("web", &[80])).await.unwrap();
    world.azure.scale(&id("virtualMachineScaleSets", "pool"), 5).unwrap();
    world.register_nodes();
    for node in world.nodes.lock().iter() {
        program.provider.state().apply_node(node.clone());
    }
    let api = world.apply(&program, service("api", &[443]));
    program.provider.ensure(&api, LogicalTime::BEGINNING).await.unwrap();
    assert_eq!(world.members("kube"), 5);
}

/// A node whose machine cannot join is named in an event.
#[tokio::test(start_paused = true)]
async fn nodes_that_get_no_traffic_are_named() {
    let alone = StandaloneMachine::new("alone-1");
    let world = World::of(&Shape { machines: vec![alone.clone()], ..shape() });
    let (others, interface) = (id("loadBalancers", "others"), shape().interface(&alone));
    let pool = others.child("backendAddressPools", "pool");
    let document = json!({"location": "eastus", "sku": {"name": "Standard"}, "properties": {
        "backendAddressPools": [{"name": "pool"}]}});
    world.azure.put(&others, document).unwrap();
    let join = |document: &mut serde_json::Value| {
        let configuration = &mut document["properties"]["ipConfigurations"][0]["properties"];
        configuration["loadBalancerBackendAddressPools"] = json!([{"id": pool}]);
    };
    world.azure.edit(&interface, join).unwrap();
    let program = world.start();
    let ensured = world.serve(&program, service("web", &[80])).await.unwrap();
    let notice = ensured.notices.iter().find(|notice| notice.reason == "NodesWithoutTraffic").unwrap();
    assert!(notice.warning && notice.message.contains("alone-1: "), "{notice:?}");
    assert!(notice.message.contains("load balancer others"), "{notice:?}");
    let plan = program.provider.dry_run().await.unwrap();
    assert_eq!(plan.notices, ensured.notices, "a plan tells the same");
    assert_eq!(world.members("kube"), 3);
    // The advice does not cut the machine's way to the internet, and an internal Service gets the notice, too.
    let inside = world.serve(&program, internal(service("inside", &[81]))).await.unwrap();
    for ensured in [ensured, inside] {
        let notice = ensured.notices.iter().find(|notice| notice.reason == "NodesWithoutTraffic").unwrap();
        for part in ["loadBalancerName to others", "nodeIP", "Leave them there"] {
            assert!(notice.message.contains(part), "{notice:?}");
        }
    }
}

/// LB-490: each Service with rules in a security group gets a notice while that group is not in force at some nodes.
#[tokio::test(start_paused = true)]
async fn a_security_group_that_is_in_force_nowhere_is_told_until_it_is() {
    let world = World::new();
    let network = id("virtualNetworks", "net");
    let subnets = &world.azure.document(&network).unwrap()["properties"]["subnets"];
    let group = subnets[0]["properties"]["networkSecurityGroup"].clone();
    let guard = |group: Option<serde_json::Value>| {
        let change = |document: &mut serde_json::Value| {
            let properties = document["properties"]["subnets"][0]["properties"].as_object_mut().unwrap();
            properties.remove("networkSecurityGroup");
            properties.extend(group.map(|group| ("networkSecurityGroup".to_owned(), group)));
        };
        world.azure.edit(&network, change).unwrap();
    };
    let told = |ensured: &Ensured| {
        let mut all = ensured.notices.iter().filter(|notice| notice.reason == "SecurityGroupNotInForce");
        all.next().map(|notice| notice.message.clone())
    };
    let program = world.start();
    let web = world.serve(&program, service("web", &[80])).await.unwrap();
    assert_eq!(told(&web), None);
    guard(None);
    let api = world.serve(&program, service("api", &[443])).await.unwrap();
    let message = told(&api).unwrap();
    assert!(message.contains("security group nsg is in force nowhere"), "{message}");
    assert!(message.contains("subnet nodes") && message.contains("securityGroupName"), "{message}");
    let plan = program.provider.dry_run().await.unwrap();
    assert_eq!(plan.warnings, [message]);
    guard(Some(group));
    let shop = world.serve(&program, service("shop", &[8443])).await.unwrap();
    assert_eq!(told(&shop), None);
}

/// Only Services that want IPv6 get a notice about machines without IPv6 addresses.
#[tokio::test(start_paused = true)]
async fn a_service_is_told_of_no_traffic_in_its_own_families_alone() {
    let world = World::new();
    let program = world.start();
    let mut both = service("both", &[80]);
    both.spec.ip_families = vec!["IPv4".into(), "IPv6".into()];
    let told = |ensured: &Ensured| ensured.notices.iter().any(|n| n.reason == "NodesWithoutTraffic");
    assert!(told(&world.serve(&program, both).await.unwrap()));
    assert!(!told(&world.serve(&program, service("web", &[80])).await.unwrap()));
}

/// 640 Services where 600 frontends fit: no address is bought without a place, Azure refuses nothing, and a Service
/// that leaves makes room.
#[tokio::test(start_paused = true)]
async fn services_without_a_place_buy_no_address() {
    let world = World::new();
    let program = world.start();
    let services: Vec<_> =
        (0..640).map(|number| world.apply(&program, service(&format!("s{number}"), &[80]))).collect();
    let outcomes = join_all(services.iter().map(|service| world.ensure(&program, service))).await;
    let served = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!(served, 600);
    for outcome in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
        let ServiceError::Retry { message, .. } = outcome else { panic!("{outcome:?}") };
        assert!(message.contains("600 frontends"), "{message}");
    }
    assert_eq!(world.documents(PUBLIC_IPS).len(), 600);
    // Machines that join meanwhile change the load balancer's version: a lost race each, and no refusal.
    let puts = world.puts(LOAD_BALANCERS);
    assert!(puts.iter().all(|status| *status < 300 || *status == 412), "{puts:?}");
    assert!(puts.iter().filter(|status| **status == 412).count() <= 4, "{puts:?}");
    let (gone, waiting) =
        (outcomes.iter().position(Result::is_ok).unwrap(), outcomes.iter().position(Result::is_err).unwrap());
    world.remove(&program, &services[gone]).await.unwrap();
    world.ensure(&program, &services[waiting]).await.unwrap();
}

/// Another client writes the name of another Service on a public IP just before it is deleted: it stays for that
/// Service.
#[tokio::test(start_paused = true)]
async fn a_public_ip_that_another_service_has_claimed_is_not_deleted() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, service("a", &[80])).await.unwrap();
    let claimed = json!({"tags": {"k8s-azure-service": "shop/a,shop/b"}});
    let claim = FaultAction::Interfere { id: None, patch: claimed };
    world.azure.inject(Fault::new(claim).on_method("DELETE").on_type(PUBLIC_IPS).times(1));
    world.azure.clear_journal();
    world.remove(&program, &service("a", &[80])).await.unwrap();
    let public_ips = world.documents(PUBLIC_IPS);
    assert_eq!(public_ips.len(), 1, "{:#?}", world.all_writes());
    assert_eq!(public_ips[0]["tags"]["k8s-azure-service"], "shop/b");
    assert!(public_ips[0]["properties"]["ipAddress"].is_string());
}

/// A hundred Services that are deleted together share the reads before their public IPs are deleted.
#[tokio::test(start_paused = true)]
async fn deletions_of_public_ips_share_what_they_read() {
    let world = World::new();
    let program = world.start();
    let services: Vec<_> =
        (0..100).map(|number| world.apply(&program, service(&format!("s{number}"), &[80]))).collect();
    for outcome in join_all(services.iter().map(|service| world.ensure(&program, service))).await {
        outcome.unwrap();
    }
    world.azure.clear_journal();
    for outcome in join_all(services.iter().map(|service| world.remove(&program, service))).await {
        outcome.unwrap();
    }
    assert!(world.documents(PUBLIC_IPS).is_empty());
    let journal = world.azure.journal();
    let deletions: Vec<u16> = (journal.entries.iter())
        .filter(|entry| entry.method == "DELETE" && entry.resource_type.as_deref() == Some(PUBLIC_IPS))
        .map(|entry| entry.status)
        .collect();
    assert_eq!(deletions.len(), 100, "each is asked for once: {deletions:?}");
    let reads = journal
        .entries
        .iter()
        .filter(|entry| entry.method == "GET" && entry.path.to_lowercase().contains("publicipaddresses"))
        .map(|entry| (entry.time, entry.path.clone()))
        .collect::<Vec<_>>();
    assert!(reads.len() <= 10, "{} reads: {reads:#?}", reads.len());
}

/// A promised place that its Service no longer wants is free for others at once.
#[tokio::test(start_paused = true)]
async fn a_promised_place_that_is_not_wanted_any_more_is_for_others() {
    let world = World::new();
    let program = world.start();
    // Services with a place cannot have an address yet.
    world.azure.inject(Fault::new(refuse(400, "DnsRecordInUse")).on_method("PUT").on_type(PUBLIC_IPS));
    let promised: Vec<_> =
        (0..600).map(|number| world.apply(&program, service(&format!("s{number}"), &[80]))).collect();
    for outcome in join_all(promised.iter().map(|service| world.ensure(&program, service))).await {
        assert!(outcome.unwrap_err().to_string().contains("DnsRecordInUse"));
    }
    world.azure.clear_faults();
    let late = world.apply(&program, service("late", &[80]));
    assert!(world.ensure(&program, &late).await.unwrap_err().to_string().contains("600 frontends"));
    world.serve(&program, internal(service("s0", &[80]))).await.unwrap();
    world.ensure(&program, &late).await.unwrap();
    // A Service that names an address joins an existing frontend.
    let later = world.apply(&program, service("later", &[8080]));
    assert!(world.ensure(&program, &later).await.unwrap_err().to_string().contains("600 frontends"));
    world.serve(&program, annotated(service("s1", &[8081]), "azure-pip-name", "kube-alate")).await.unwrap();
    world.ensure(&program, &later).await.unwrap();
}

/// Compute throttles for longer than the writer of a scale set retries, while the last Service is deleted: the deletion
/// of the load balancer waits for it.
#[tokio::test(start_paused = true)]
async fn a_deletion_waits_for_a_scale_set_that_is_throttled() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, service("web", &[80])).await.unwrap();
    let throttle = FaultAction::Throttle { retry_after: Some(30) };
    world.azure.inject(Fault::new(throttle).on_method("PUT").on_type(SCALE_SETS).times(12));
    world.remove(&program, &service("web", &[80])).await.unwrap();
    assert!(world.documents(LOAD_BALANCERS).is_empty());
}

/// A dry run refuses the Services that name an unreadable resource group, and shows the rest.
#[tokio::test(start_paused = true)]
async fn a_preview_goes_on_without_a_resource_group_that_may_not_be_read() {
    let world = World::new();
    let program = world.start();
    let elsewhere = annotated(service("elsewhere", &[80]), "azure-load-balancer-resource-group", "other");
    world.apply(&program, elsewhere);
    world.apply(&program, service("web", &[80]));
    // Groups are read in the order of their names.
    let denied = Fault::new(refuse(403, "AuthorizationFailed")).on_method("GET").on_type(PUBLIC_IPS);
    world.azure.inject(denied.times(1));
    let plan = program.provider.dry_run().await.unwrap();
    let refused: Vec<String> =
        plan.refused.iter().map(|(key, refusal)| format!("{key}: {refusal}")).collect();
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert!(refused[0].starts_with("shop/elsewhere: ") && refused[0].contains("AuthorizationFailed"));
    let steps: Vec<&str> = plan.plan.steps.iter().map(|step| step.target.name()).collect();
    assert!(steps.contains(&"kube-aweb") && steps.contains(&"kube"), "{steps:?}");
    assert!(!steps.contains(&"kube-aelsewhere"), "{steps:?}");
}

/// LB-453: a program that is configured with another cluster name finds the Services provisioned, and writes nothing
/// for any Service, until it has the right name or the load balancer is deleted.
#[tokio::test(start_paused = true)]
async fn a_wrong_name_writes_nothing_and_lets_nothing_go() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, service("web", &[80])).await.unwrap();
    let program = world.start_configured(&json!({"loadBalancerName": "second"}));
    let before = world.all_writes();
    for name in ["web", "new"] {
        let failure = world.serve(&program, service(name, &[80])).await.unwrap_err().to_string();
        assert!(failure.contains("set loadBalancerName=kube"), "{failure}");
    }
    let web = service("web", &[80]);
    world.remove(&program, &web).await.unwrap_err();
    world.remove(&program, &service("new", &[80])).await.unwrap();
    assert_eq!(world.all_writes(), before);

    let right = world.start();
    world.remove(&right, &web).await.unwrap();
    world.serve(&program, service("web", &[80])).await.unwrap();
    assert!(world.load_balancer("second").is_some() && world.load_balancer("kube").is_none());
}

/// LB-046: while the load balancers may not be read, it is unknown what a Service has there. The Service is kept, with
/// the missing permission in its event, and removed once the permission is back.
#[tokio::test(start_paused = true)]
async fn a_service_stays_while_its_load_balancer_may_not_be_read() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, service("web", &[80])).await.unwrap();
    let program = world.start();
    let fault = Fault::new(refuse(403, "AuthorizationFailed")).on_method("GET").on_type(LOAD_BALANCERS);
    world.azure.inject(fault);
    let before = world.normalised();
    let error = world.remove(&program, &service("web", &[80])).await.unwrap_err().to_string();
    assert!(error.contains("AuthorizationFailed"), "{error}");
    assert_eq!(world.normalised(), before);
    world.azure.clear_faults();
    world.remove(&program, &service("web", &[80])).await.unwrap();
    assert!(
        world.load_balancer("kube").is_none()
            && world.documents("Microsoft.Network/publicIPAddresses").is_empty()
    );
}

/// LB-454: a provisioned Service keeps its rules when it is refused.
#[tokio::test(start_paused = true)]
async fn a_service_that_is_refused_keeps_what_it_lives_on() {
    let world = World::new();
    let program = world.start();
    // Its status does not show the address yet.
    let web = world.apply(&program, service("web", &[80]));
    program.provider.ensure(&web, LogicalTime::BEGINNING).await.unwrap();
    let before = world.normalised();
    let refused = annotated(service("web", &[80]), "azure-load-balancer-tcp-idle-timeout", "soon");
    world.serve(&program, refused).await.unwrap_err();
    world.serve(&program, service("other", &[81])).await.unwrap();
    world.remove(&program, &service("other", &[81])).await.unwrap();
    assert_eq!(world.normalised(), before);
}

/// LB-454: what a Service no longer wants is removed, although the Service is refused for another reason.
#[tokio::test(start_paused = true)]
async fn a_refused_service_keeps_no_rule_that_it_does_not_want() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, service("web", &[80])).await.unwrap();
    let closed = annotated(service("web", &[80]), "azure-disable-load-balancer-nsg-rule", "true");
    world.serve(&program, annotated(closed, "azure-pip-name", "missing")).await.unwrap_err();
    let group = &world.documents(SECURITY_GROUPS)[0];
    assert_eq!(group["properties"]["securityRules"], json!([]));
}

/// LB-464: a refused Service keeps its rules for nodes, but not those of a deleted node: its address may soon belong to
/// another owner.
#[tokio::test(start_paused = true)]
async fn lb_464_a_refused_service_names_no_node_that_left() {
    let world = World::new();
    let program = world.start();
    let at_nodes = annotated(service("web", &[80]), "azure-disable-load-balancer-floating-ip", "true");
    world.serve(&program, at_nodes.clone()).await.unwrap();
    let refused = annotated(at_nodes, "azure-load-balancer-tcp-idle-timeout", "soon");
    world.serve(&program, refused).await.unwrap_err();
    let opened = || {
        let rules = &world.documents(SECURITY_GROUPS)[0]["properties"]["securityRules"];
        let one = &rules[0]["properties"];
        let several = one["destinationAddressPrefixes"].as_array().map_or(0, Vec::len);
        several + usize::from(one["destinationAddressPrefix"].is_string())
    };
    let nodes = world.nodes.lock().clone();
    assert_eq!(opened(), nodes.len());
    let left = nodes[0].name();
    program.provider.state().remove_node(left);
    program.provider.update_nodes(LogicalTime::now()).await.unwrap();
    assert_eq!(opened(), nodes.len() - 1);
    world.azure.clear_journal();
    program.provider.update_nodes(LogicalTime::now()).await.unwrap();
    assert_eq!(world.writes(SECURITY_GROUPS), 0);
}
