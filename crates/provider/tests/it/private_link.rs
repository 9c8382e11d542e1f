//! Private link services, with private endpoints that are connected to them.

use std::time::Duration;

use azure_simulator::{Fault, FaultAction};
use azure_types::ResourceId;
use cloud::LogicalTime;
use k8s::Service;
use serde_json::{Value, json};

use crate::world::*;

const NAME: &str = "pls-aweb";

/// An internal Service that asks for a private link service.
pub fn linked(service: Service) -> Service {
    annotated(internal(service), "azure-pls-create", "true")
}

fn web() -> Service {
    linked(service("web", &[80]))
}

fn private_link(world: &World) -> Option<Value> {
    world.azure.document(&id("privateLinkServices", NAME))
}

/// Two private endpoints in another network, connected to the Service's private link service.
pub fn connect(world: &World) -> Vec<ResourceId> {
    let far = id("virtualNetworks", "far");
    let subnets = json!([{"name": "s", "properties": {"addressPrefix": "172.16.0.0/24"}}]);
    let network = json!({"location": "eastus", "properties": {
        "addressSpace": {"addressPrefixes": ["172.16.0.0/16"]}, "subnets": subnets}});
    world.azure.put(&far, network).unwrap();
    let endpoints = ["one", "two"].map(|name| id("privateEndpoints", name));
    for endpoint in &endpoints {
        let way =
            json!({"name": "way", "properties": {"privateLinkServiceId": id("privateLinkServices", NAME)}});
        let document = json!({"location": "eastus", "properties": {
            "subnet": {"id": far.child("subnets", "s")}, "privateLinkServiceConnections": [way]}});
        world.azure.put(endpoint, document).unwrap();
    }
    endpoints.into()
}

fn status(world: &World, endpoint: &ResourceId) -> Value {
    let document = world.azure.document(endpoint).unwrap();
    let connection = &document["properties"]["privateLinkServiceConnections"][0]["properties"];
    connection["privateLinkServiceConnectionState"]["status"].clone()
}

/// How often private link services were listed.
fn lists(world: &World) -> usize {
    let journal = world.azure.journal();
    let is_list = |path: &str| path.ends_with("/privateLinkServices");
    journal.entries.iter().filter(|entry| entry.method == "GET" && is_list(&entry.path)).count()
}

/// LB-310, LB-320: created after the frontend, in a subnet that is opened for it; a second reconcile, by this program
/// or the next, writes nothing.
#[tokio::test(start_paused = true)]
async fn lb_310_lb_320_a_private_link_service_is_made_once() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, web()).await.unwrap();
    let link = private_link(&world).unwrap();
    assert_eq!(link["tags"]["k8s-azure-owner-service"], "shop/web");
    let frontend = id("loadBalancers", "kube-internal").child("frontendIPConfigurations", "aweb");
    assert_eq!(link["properties"]["loadBalancerFrontendIpConfigurations"], json!([{"id": frontend}]));
    let writes = world.all_writes();
    let last: Vec<&str> =
        writes[writes.len() - 2..].iter().map(|write| write.split('?').next().unwrap()).collect();
    assert!(
        last[0].contains("/subnets/") && last[1].contains("/privateLinkServices/pls-aweb"),
        "{writes:#?}"
    );
    for program in [world.start(), program] {
        world.azure.clear_journal();
        world.ensure(&program, &world.stored(&web())).await.unwrap();
        assert_eq!(world.all_writes(), Vec::<String>::new());
    }
}

/// LB-322: connections are deleted, then the private link service, then the load balancer is planned again and written,
/// or deleted with its last Service.
#[tokio::test(start_paused = true)]
async fn lb_322_a_service_that_goes_takes_its_private_link_service_along() {
    for has_neighbour in [false, true] {
        let world = World::new();
        let program = world.start();
        world.serve(&program, web()).await.unwrap();
        if has_neighbour {
            world.serve(&program, internal(service("other", &[80]))).await.unwrap();
        }
        let endpoints = connect(&world);
        assert!(endpoints.iter().all(|endpoint| status(&world, endpoint) == "Approved"));
        world.azure.clear_journal();
        world.remove(&program, &web()).await.unwrap();
        let writes = world.all_writes();
        let of = |part: &str| writes.iter().filter(|write| write.contains(part)).collect::<Vec<_>>();
        let at = |write: &String| writes.iter().position(|one| one == write).unwrap();
        let connections = of("/privateEndpointConnections/");
        let links: Vec<_> = of("/privateLinkServices/pls-aweb ").into_iter().collect();
        let balancers = of("/loadBalancers/kube-internal ");
        assert_eq!((connections.len(), links.len(), balancers.len()), (2, 1, 1), "{writes:#?}");
        assert!(at(connections[1]) < at(links[0]) && at(links[0]) < at(balancers[0]), "{writes:#?}");
        assert!(balancers[0].starts_with(if has_neighbour { "PUT" } else { "DELETE" }), "{writes:#?}");
        assert!(endpoints.iter().all(|endpoint| status(&world, endpoint) == "Disconnected"));
        assert_eq!(private_link(&world), None);
    }
}

/// LB-322: a Service that changes to public deletes it at once, and leaves nothing on the internal load balancer.
#[tokio::test(start_paused = true)]
async fn lb_322_a_service_that_turns_public_takes_its_private_link_service_along() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, web()).await.unwrap();
    connect(&world);
    world.serve(&program, service("web", &[80])).await.unwrap();
    assert_eq!(private_link(&world), None);
    assert_eq!(world.load_balancer("kube-internal"), None);
    assert!(world.load_balancer("kube").is_some());
}

/// LB-322: a private link service that Azure does not delete keeps its frontend, and Azure's words are reported.
#[tokio::test(start_paused = true)]
async fn lb_322_a_private_link_service_that_azure_keeps_is_told() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, web()).await.unwrap();
    let locked = FaultAction::Fail { status: 409, code: "ScopeLocked".into(), message: "a lock".into() };
    world.azure.inject(Fault::new(locked).on_method("DELETE").on_type(PRIVATE_LINKS));
    world.azure.clear_journal();
    let failure = world.remove(&program, &web()).await.unwrap_err();
    assert!(
        failure.to_string().contains("ScopeLocked") && failure.to_string().contains("a lock"),
        "{failure}"
    );
    assert_eq!(world.writes(LOAD_BALANCERS), 0, "{:#?}", world.all_writes());
    assert!(private_link(&world).is_some());
    world.azure.clear_faults();
    world.remove(&program, &web()).await.unwrap();
    assert_eq!((private_link(&world), world.load_balancer("kube-internal")), (None, None));
}

/// LB-323: without the annotation it is deleted, and the Service stays provisioned; also if the annotation was removed
/// while no program ran.
#[tokio::test(start_paused = true)]
async fn lb_323_without_the_annotation_it_goes() {
    for restarts in [false, true] {
        let world = World::new();
        let program = world.start();
        let before = world.serve(&program, web()).await.unwrap().addresses;
        connect(&world);
        let program = if restarts { world.start() } else { program };
        world.azure.clear_journal();
        let after = world.serve(&program, internal(service("web", &[80]))).await.unwrap().addresses;
        assert_eq!(before, after);
        assert_eq!(private_link(&world), None);
        assert_eq!(world.writes(LOAD_BALANCERS), 0);
        // Two connections, and the private link service.
        assert_eq!(world.all_writes().len(), 3);
        world.azure.clear_journal();
        world.ensure(&program, &world.stored(&web())).await.unwrap();
        assert_eq!(world.all_writes(), Vec::<String>::new());
    }
}

/// LB-323: one edit removes the annotation of a public Service and what made it possible: one deletion, and an end.
#[tokio::test(start_paused = true)]
async fn lb_323_a_service_that_can_have_none_any_more_deletes_it_once() {
    let world = World::new();
    let program = world.start();
    let plain = service("web", &[80]);
    let floating = annotated(plain.clone(), "azure-disable-load-balancer-floating-ip", "true");
    world.serve(&program, annotated(floating, "azure-pls-create", "true")).await.unwrap();
    assert_eq!(world.documents(PRIVATE_LINKS).len(), 1);
    world.azure.clear_journal();
    let served = tokio::time::timeout(Duration::from_secs(600), world.serve(&program, plain)).await;
    served.unwrap().unwrap();
    assert_eq!(world.documents(PRIVATE_LINKS), Vec::<Value>::new());
    let deletions = world.all_writes().into_iter().filter(|write| write.starts_with("DELETE"));
    assert_eq!(deletions.count(), 1);
}

/// LB-313, LB-441: a foreign private link service is never changed; the frontend that it uses stays, and a notice says
/// why.
#[tokio::test(start_paused = true)]
async fn lb_441_a_frontend_that_somebody_else_offers_stays() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, web()).await.unwrap();
    let link = id("privateLinkServices", NAME);
    world.azure.edit(&link, |document| document["tags"] = json!({"owner": "somebody"})).unwrap();
    let theirs = private_link(&world).unwrap();
    for program in [world.start(), program] {
        let failure = program.provider.ensure(&world.stored(&web()), LogicalTime::now()).await.unwrap_err();
        assert!(failure.to_string().contains("already has unmanaged private link service"), "{failure}");
    }
    let program = world.start();
    let stored = world.stored(&web());
    let notices = program.delete(&stored).await.unwrap();
    assert!(notices[0].message.contains("private link service pls-aweb refers to it"), "{notices:?}");
    assert_eq!(private_link(&world), Some(theirs));
    let properties = world.load_balancer("kube-internal").unwrap()["properties"].clone();
    assert_eq!(properties["frontendIPConfigurations"][0]["name"], "aweb");
    assert_eq!(properties["loadBalancingRules"], json!([]));
}

/// LB-442: a foreign write is read and planned again; its change stays.
#[tokio::test(start_paused = true)]
async fn lb_442_a_lost_race_is_planned_again() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, web()).await.unwrap();
    let link = id("privateLinkServices", NAME);
    let theirs = FaultAction::Interfere { id: Some(link), patch: json!({"tags": {"theirs": "x"}}) };
    world.azure.inject(Fault::new(theirs).on_method("PUT").on_type(PRIVATE_LINKS).times(1));
    world.azure.clear_journal();
    let changed = annotated(web(), "azure-pls-fqdns", "web.example");
    world.serve(&program, changed).await.unwrap();
    assert_eq!(world.puts(PRIVATE_LINKS), [412, 200]);
    let document = private_link(&world).unwrap();
    assert_eq!(document["tags"]["theirs"], "x");
    assert_eq!(document["properties"]["fqdns"], json!(["web.example"]));
}

/// Services that are created together open their subnet for private link services together.
#[tokio::test(start_paused = true)]
async fn services_side_by_side_share_a_subnet() {
    let world = World::new();
    world.slow();
    let program = world.start();
    let services: Vec<_> =
        ["a", "b", "c", "d"].iter().map(|name| world.apply(&program, linked(service(name, &[80])))).collect();
    let ensured =
        futures::future::join_all(services.iter().map(|service| world.ensure(&program, service))).await;
    ensured.into_iter().for_each(|result| drop(result.unwrap()));
    assert_eq!(world.documents(PRIVATE_LINKS).len(), 4);
}

/// Denies lists of private link services in this scope: a resource group, or the subscription.
fn deny(world: &World, scope: &ResourceId) {
    let denied =
        FaultAction::Fail { status: 403, code: "AuthorizationFailed".into(), message: "no role".into() };
    let path = Some(format!("{scope}/providers/{PRIVATE_LINKS}"));
    world.azure.inject(Fault { path, ..Fault::new(denied) });
}

fn group(world: &World, name: &str) -> ResourceId {
    let group = ResourceId::group(SUBSCRIPTION, name);
    world.azure.put(&group, json!({"location": "eastus"})).unwrap();
    group
}

/// LB-443: a resource group that the Service no longer names is found, or named by Azure because of a frontend that it
/// keeps.
#[tokio::test(start_paused = true)]
async fn lb_443_a_private_link_service_in_a_group_that_nobody_names_goes_too() {
    for is_denied in [false, true] {
        let world = World::new();
        let links = group(&world, "links");
        let elsewhere = annotated(web(), "azure-pls-resource-group", "links");
        world.serve(&world.start(), elsewhere).await.unwrap();
        let link = links.resource("Microsoft.Network", "privateLinkServices", NAME);
        assert!(world.azure.document(&link).is_some());
        if is_denied {
            deny(&world, &ResourceId::subscription(SUBSCRIPTION));
        }
        let program = world.start();
        world.apply(&program, web());
        world.remove(&program, &web()).await.unwrap();
        assert_eq!(world.azure.document(&link), None);
        assert_eq!(world.load_balancer("kube-internal"), None);
    }
}

/// LB-446: a name that another private link service of the group has is refused before any request to Azure.
#[tokio::test(start_paused = true)]
async fn lb_446_a_name_that_is_taken_is_refused() {
    let world = World::new();
    let program = world.start();
    let first = annotated(web(), "azure-pls-name", "shop");
    world.serve(&program, first).await.unwrap();
    let second = annotated(linked(service("other", &[80])), "azure-pls-name", "Shop");
    let before = world.documents(PRIVATE_LINKS);
    world.azure.clear_journal();
    let failure = world.serve(&program, second.clone()).await.unwrap_err();
    assert!(failure.to_string().contains("write another name"), "{failure}");
    assert_eq!(world.documents(PRIVATE_LINKS), before);
    assert!(!world.all_writes().iter().any(|write| write.contains("privateLinkServices")));
    let planned = program.provider.dry_run().await.unwrap();
    assert!(planned.refused[0].1.to_string().contains("write another name"), "{planned:#?}");
    world.serve(&program, annotated(second, "azure-pls-name", "other")).await.unwrap();
    assert_eq!(world.documents(PRIVATE_LINKS).len(), 2);
}

/// LB-447: an unreadable resource group is skipped, and affects no other Service; a Service that names it gets a
/// notice.
#[tokio::test(start_paused = true)]
async fn lb_447_a_group_that_may_not_be_read_is_left_out() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, web()).await.unwrap();
    deny(&world, &group(&world, "theirs"));
    deny(&world, &ResourceId::subscription(SUBSCRIPTION));
    let naming = annotated(internal(service("other", &[80])), "azure-pls-resource-group", "theirs");
    let asking = annotated(linked(service("asking", &[80])), "azure-pls-resource-group", "theirs");
    let program = world.start();
    world.serve(&program, naming.clone()).await.unwrap();
    let told = world.ensure(&program, &world.stored(&naming)).await.unwrap().notices;
    assert!(told[0].message.contains("resource group theirs cannot be read"), "{told:?}");
    let failure = world.serve(&program, asking.clone()).await.unwrap_err();
    assert!(failure.to_string().contains("no role"), "{failure}");
    let planned = program.provider.dry_run().await.unwrap();
    assert_eq!(planned.refused.len(), 1, "{planned:#?}");
    assert_eq!(planned.refused[0].0, asking.key());
    assert!(planned.warnings[0].contains("resource group theirs cannot be read"), "{planned:#?}");
    world.remove(&program, &web()).await.unwrap();
    assert_eq!(private_link(&world), None);
}

/// LB-448: nothing is deleted for a frontend that stays because another owner uses it now.
#[tokio::test(start_paused = true)]
async fn lb_448_what_others_made_of_a_frontend_meanwhile_keeps_its_private_link_service() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, web()).await.unwrap();
    let endpoints = connect(&world);
    let stored = world.stored(&web());
    world.ensure(&program, &stored).await.unwrap();
    let balancer = id("loadBalancers", "kube-internal");
    let rule = json!({"name": "theirs", "properties": {"protocol": "Tcp", "frontendPort": 8443, "backendPort": 8443,
        "frontendIPConfiguration": {"id": balancer.child("frontendIPConfigurations", "aweb")}}});
    // It appears after the deletion was planned, when private link services are listed.
    let patch = json!({"properties": {"inboundNatRules": [rule]}});
    let theirs = FaultAction::Interfere { id: Some(balancer), patch };
    world.azure.inject(Fault::new(theirs).on_method("GET").on_type(PRIVATE_LINKS).times(1));
    program.delete(&stored).await.unwrap();
    assert!(private_link(&world).is_some());
    assert!(endpoints.iter().all(|endpoint| status(&world, endpoint) == "Approved"));
    let properties = &world.load_balancer("kube-internal").unwrap()["properties"];
    assert_eq!(properties["frontendIPConfigurations"][0]["name"], "aweb");
    assert_eq!(properties["loadBalancingRules"], json!([]));
}

/// LB-448: a private link service that has another owner by now keeps its connections.
#[tokio::test(start_paused = true)]
async fn lb_448_one_that_is_somebody_elses_by_now_keeps_its_connections() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, web()).await.unwrap();
    let endpoints = connect(&world);
    world.ensure(&program, &world.stored(&web())).await.unwrap();
    let link = id("privateLinkServices", NAME);
    world.azure.edit(&link, |document| document["tags"] = json!({"owner": "somebody"})).unwrap();
    world.serve(&program, internal(service("web", &[80]))).await.unwrap();
    assert!(private_link(&world).is_some());
    assert!(endpoints.iter().all(|endpoint| status(&world, endpoint) == "Approved"));
}

/// LB-449: a foreign private link service that is cached, and deleted by now, keeps no frontend.
#[tokio::test(start_paused = true)]
async fn lb_449_what_somebody_else_offered_before_keeps_no_frontend() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, web()).await.unwrap();
    let link = id("privateLinkServices", NAME);
    world.azure.edit(&link, |document| document["tags"] = json!({"owner": "somebody"})).unwrap();
    program.provider.ensure(&world.stored(&web()), LogicalTime::now()).await.unwrap_err();
    world.azure.delete(&link).unwrap();
    world.remove(&program, &web()).await.unwrap();
    assert_eq!(world.load_balancer("kube-internal"), None);
}

/// LB-323: all annotations are removed while no program runs, including the one that made it possible and the one that
/// named its group.
#[tokio::test(start_paused = true)]
async fn lb_323_annotations_that_went_while_no_program_ran() {
    let world = World::new();
    let links = group(&world, "links");
    let plain = service("web", &[80]);
    let floating = annotated(plain.clone(), "azure-disable-load-balancer-floating-ip", "true");
    let elsewhere = annotated(floating, "azure-pls-resource-group", "links");
    world.serve(&world.start(), annotated(elsewhere, "azure-pls-create", "true")).await.unwrap();
    let link = links.resource("Microsoft.Network", "privateLinkServices", NAME);
    assert!(world.azure.document(&link).is_some());
    world.serve(&world.start(), plain).await.unwrap();
    assert_eq!(world.azure.document(&link), None);
}

/// If no Service asks for one they are listed once: never for new Services, and then for the first one that is checked
/// or deleted.
#[tokio::test(start_paused = true)]
async fn private_link_services_are_listed_once_where_nobody_asks() {
    let world = World::new();
    let program = world.start();
    let services = [service("web", &[80]), internal(service("a", &[80])), internal(service("b", &[80]))];
    for service in &services {
        world.serve(&program, service.clone()).await.unwrap();
    }
    assert_eq!(lists(&world), 0);
    for service in &services {
        world.ensure(&program, &world.stored(service)).await.unwrap();
    }
    assert_eq!(lists(&world), 1);
    world.remove(&program, &service("web", &[80])).await.unwrap();
    assert_eq!(lists(&world), 1);
}

/// LB-444: without private link services the right to read them is not needed.
#[tokio::test(start_paused = true)]
async fn lb_444_without_the_right_to_read_them_services_come_and_go() {
    let world = World::new();
    let denied =
        FaultAction::Fail { status: 403, code: "AuthorizationFailed".into(), message: "no role".into() };
    world.azure.inject(Fault::new(denied).on_type(PRIVATE_LINKS));
    let program = world.start();
    for service in [service("web", &[80]), internal(service("inside", &[80]))] {
        world.serve(&program, service.clone()).await.unwrap();
        program.provider.dry_run().await.unwrap();
        world.remove(&program, &service).await.unwrap();
    }
    assert!(world.documents(LOAD_BALANCERS).is_empty());
    let failure = world.serve(&program, web()).await.unwrap_err();
    assert!(failure.to_string().contains("no role"), "{failure}");
}

/// A private link service that does not keep what is written to it is used as it is, and the owner gets a notice.
#[tokio::test(start_paused = true)]
async fn one_that_is_changed_back_each_time_is_left() {
    let world = World::new();
    let program = world.start();
    let service = annotated(web(), "azure-pls-fqdns", "web.example");
    world.serve(&program, service.clone()).await.unwrap();
    let link = id("privateLinkServices", NAME);
    let mut told = Vec::new();
    for _ in 0..5 {
        world
            .azure
            .edit(&link, |document| document["properties"]["fqdns"] = json!(["other.example"]))
            .unwrap();
        let stored = world.stored(&service);
        told.extend(program.provider.ensure(&stored, LogicalTime::now()).await.unwrap().notices);
    }
    assert!(
        told.iter().any(|notice| notice.message.contains("does not keep what is written to it")),
        "{told:?}"
    );
    assert_eq!(private_link(&world).unwrap()["properties"]["fqdns"], json!(["other.example"]));
}
