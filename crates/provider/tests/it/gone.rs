//! Missing resources need no removal, and nothing is remembered of deleted Services.

use std::collections::BTreeSet;

use azure_simulator::{Fault, FaultAction};
use azure_types::ResourceId;
use cloud::ServiceError;
use serde_json::json;

use crate::private_link::linked;
use crate::world::*;

fn refusal(status: u16, code: &str) -> FaultAction {
    FaultAction::Fail { status, code: code.into(), message: "no".into() }
}

/// Provisioned Services of all kinds.
async fn served(world: &World) -> Vec<k8s::Service> {
    let program = world.start();
    let services = vec![
        service("web", &[80]),
        annotated(service("guarded", &[81]), "azure-allowed-ip-ranges", "10.9.0.0/16"),
        internal(service("inside", &[82])),
        linked(service("linked", &[83])),
    ];
    for service in &services {
        world.serve(&program, service.clone()).await.unwrap();
    }
    services
}

/// LB-045. A deletion does not need missing resources: the security group, whatever azure.json calls it, or all of
/// them.
#[tokio::test(start_paused = true)]
async fn services_go_although_what_they_were_in_is_gone() {
    // The security group has another name, or is in a deleted resource group.
    for wrong in [
        json!({"securityGroupName": "renamed"}),
        json!({"securityGroupResourceGroup": "nowhere"}),
        json!({"subnetName": "nowhere"}),
        json!({"loadBalancerResourceGroup": "nowhere"}),
        json!({"privateLinkServiceResourceGroup": "nowhere"}),
    ] {
        let world = World::new();
        let services = served(&world).await;
        let program = world.start_configured(&wrong);
        for service in &services {
            world.remove(&program, service).await.unwrap_or_else(|error| panic!("{wrong}: {error}"));
        }
        if wrong.get("loadBalancerResourceGroup").is_none() {
            assert!(world.documents(LOAD_BALANCERS).is_empty(), "{wrong}");
            assert!(world.documents(PUBLIC_IPS).is_empty(), "{wrong}");
        }
        assert_eq!(program.provider.remembered(), BTreeSet::new(), "{wrong}");
    }
    // The resource group is deleted with everything in it.
    let world = World::new();
    let services = served(&world).await;
    let program = world.start();
    world.azure.delete(&ResourceId::group(SUBSCRIPTION, "rg")).unwrap();
    for service in &services {
        world.remove(&program, service).await.unwrap();
    }
}

/// While a Service clearly cannot be completed, nothing is taken from it.
#[tokio::test(start_paused = true)]
async fn traffic_is_not_cut_while_a_refusal_stands() {
    let world = World::new();
    let services = served(&world).await;
    let program = world.start_configured(&json!({"securityGroupName": "renamed"}));
    world.azure.clear_journal();
    let other_way = internal(service("web", &[80]));
    let error = world.serve(&program, other_way).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, ServiceError::Retry { .. }), "it may be created: {text}");
    assert!(text.contains("renamed does not exist") && text.contains("securityGroupName"), "{text}");
    assert_eq!(world.all_writes(), Vec::<String>::new());
    // A Service that is removed keeps everything while it is unknown what is open for it.
    let world = World::new();
    let before = served(&world).await;
    assert_eq!(before.len(), services.len());
    let program = world.start();
    let denied = Fault::new(refusal(403, "AuthorizationFailed")).on_method("GET").on_type(SECURITY_GROUPS);
    world.azure.inject(denied);
    world.azure.clear_journal();
    world.remove(&program, &before[1]).await.unwrap_err();
    assert_eq!(world.all_writes(), Vec::<String>::new());
    world.azure.clear_faults();
    world.remove(&program, &before[1]).await.unwrap();
}

/// Resource groups that Services name are no longer read when the last of these Services is deleted.
#[tokio::test(start_paused = true)]
async fn resource_groups_are_forgotten_with_the_last_service_that_names_them() {
    for denied in [false, true] {
        let world = World::new();
        let program = world.start();
        if denied {
            let fault = Fault::new(refusal(403, "AuthorizationFailed")).on_method("GET");
            world.azure.inject(Fault { path: Some("*/resourceGroups/elsewhere/*".to_owned()), ..fault });
        }
        let asking = annotated(linked(service("asking", &[81])), "azure-pls-resource-group", "elsewhere");
        world.serve(&program, asking.clone()).await.unwrap_err();
        let elsewhere = annotated(service("far", &[82]), "azure-load-balancer-resource-group", "elsewhere");
        world.serve(&program, elsewhere.clone()).await.unwrap_err();
        world.azure.clear_faults();
        world.remove(&program, &asking).await.unwrap();
        world.remove(&program, &elsewhere).await.unwrap();
        // A Service with a private link service reads all relevant groups.
        world.serve(&program, linked(service("first", &[83]))).await.unwrap();
        world.azure.clear_journal();
        world.serve(&program, linked(service("second", &[84]))).await.unwrap();
        world.serve(&program, service("web", &[80])).await.unwrap();
        let journal = world.azure.journal();
        let paths = journal.entries.iter().map(|entry| entry.path.to_lowercase());
        let strange: Vec<String> = paths.filter(|path| path.contains("/resourcegroups/elsewhere/")).collect();
        assert_eq!(strange, Vec::<String>::new(), "denied {denied}");
    }
}

/// A place on a load balancer that was promised to a Service whose address could not be bought is free when the Service
/// is deleted.
#[tokio::test(start_paused = true)]
async fn places_of_services_that_never_came_to_be_are_free() {
    let world = World::new();
    let program = world.start();
    // Six of these Services fill a load balancer.
    let ports: Vec<i32> = (1000..1250).collect();
    let fault = Fault::new(refusal(409, "PublicIPCountLimitReached")).on_method("PUT").on_type(PUBLIC_IPS);
    world.azure.inject(fault);
    for number in 0..6 {
        let bad = service(&format!("bad{number}"), &ports);
        world.serve(&program, bad.clone()).await.unwrap_err();
        world.remove(&program, &bad).await.unwrap();
    }
    world.azure.clear_faults();
    world.serve(&program, service("good", &ports)).await.unwrap();
}

/// Whatever Services are created, fail, change and are deleted: the provider only remembers existing ones.
#[tokio::test(start_paused = true)]
async fn nothing_is_remembered_of_services_that_are_gone() {
    for seed in 0..8_usize {
        let world = World::new();
        let program = world.start();
        let mut alive = BTreeSet::new();
        for step in 0..24_usize {
            // Not random, but different for each seed.
            let draw = (step * 7 + seed * 13 + step * seed) % 11;
            let name = format!("s{}", (draw + step) % 7);
            let web = service(&name, &[80]);
            let is_there = alive.contains(&key(&name));
            let bad =
                [(409, "PublicIPCountLimitReached"), (403, "AuthorizationFailed"), (400, "InvalidParameter")];
            match draw {
                // It is created or retried, and its address cannot be bought.
                0..=4 => {
                    let (status, code) = bad[draw % 3];
                    let fault = Fault::new(refusal(status, code)).on_method("PUT").on_type(PUBLIC_IPS);
                    world.azure.inject(fault);
                    let _ = world.serve(&program, web).await;
                    world.azure.clear_faults();
                    alive.insert(key(&name));
                }
                5 | 6 if is_there => {
                    let _ = world.serve(&program, internal(web)).await;
                }
                _ if is_there => {
                    world.remove(&program, &web).await.unwrap();
                    alive.remove(&key(&name));
                }
                _ => {}
            }
            let remembered = program.provider.remembered();
            assert!(remembered.is_subset(&alive), "seed {seed} step {step}: {remembered:?}, {alive:?}");
        }
        for key in alive {
            let gone = world.services.lock()[&key.to_string()].clone();
            world.remove(&program, &gone).await.unwrap();
        }
        assert_eq!(program.provider.remembered(), BTreeSet::new(), "seed {seed}");
    }
}
