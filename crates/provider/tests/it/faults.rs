//! Faults of Azure.

use std::time::Duration;

use azure_simulator::{Fault, FaultAction};
use cloud::ServiceError;
use tokio::time::{Instant, sleep};

use crate::world::*;

fn fail(status: u16, code: &str, message: &str) -> FaultAction {
    FaultAction::Fail { status, code: code.into(), message: message.into() }
}

/// LB-047, NODE-151.
#[tokio::test(start_paused = true)]
async fn lb_047_a_foreign_write_between_reading_and_writing_is_kept() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, service("zero", &[80])).await.unwrap();
    world.serve(&program, service("one", &[80])).await.unwrap();
    world
        .azure
        .edit(&id("loadBalancers", "kube"), |document| {
            document["tags"] = serde_json::json!({ "owner": "somebody" });
        })
        .unwrap();
    // The program does not know about it: the first write must fail, the second must keep the tag.
    world.azure.clear_journal();
    world.serve(&program, service("two", &[80])).await.unwrap();
    assert_eq!(world.puts(LOAD_BALANCERS), [412, 200]);
    assert_eq!(world.load_balancer("kube").unwrap()["tags"]["owner"], "somebody");
}

/// LB-048, NODE-153.
#[tokio::test(start_paused = true)]
async fn lb_048_a_public_ip_that_is_not_ready_is_repaired_and_the_load_balancer_written_again() {
    let world = World::new();
    let program = world.start();
    let public_ip = id("publicIPAddresses", "kube-aweb");
    let message = format!(
        "Cannot proceed with operation because resource {public_ip} used by resource {} is not in Succeeded state. \
         Resource is in Failed state and the last operation that updated/is updating the resource is \
         PutPublicIpAddressOperation.",
        id("loadBalancers", "kube")
    );
    let fault = fail(429, "ReferencedResourceNotProvisioned", &message);
    world.azure.inject(Fault::new(fault).on_method("PUT").on_type(LOAD_BALANCERS).times(1));
    world.serve(&program, service("web", &[80])).await.unwrap();
    assert_eq!(world.writes(LOAD_BALANCERS), 2);
    assert_eq!(world.writes(PUBLIC_IPS), 2, "created, then written again as it is");
}

#[tokio::test(start_paused = true)]
async fn throttling_is_waited_for() {
    let world = World::new();
    let program = world.start();
    let throttle = FaultAction::Throttle { retry_after: Some(30) };
    world.azure.inject(Fault::new(throttle).on_method("PUT").on_type(LOAD_BALANCERS).times(2));
    let begin = Instant::now();
    world.serve(&program, service("web", &[80])).await.unwrap();
    assert!(begin.elapsed() >= Duration::from_secs(60), "{:?}", begin.elapsed());
    assert!(begin.elapsed() < Duration::from_secs(120), "{:?}", begin.elapsed());
}

#[tokio::test(start_paused = true)]
async fn faults_of_azure_pass() {
    let world = World::new();
    let program = world.start();
    for kind in [LOAD_BALANCERS, PUBLIC_IPS, SECURITY_GROUPS, SCALE_SETS, INSTANCES] {
        let fault = fail(503, "ServiceUnavailable", "try later");
        world.azure.inject(Fault::new(fault).on_method("PUT").on_type(kind).times(1));
        let fault = fail(500, "InternalServerError", "oops");
        world.azure.inject(Fault::new(fault).on_method("GET").on_type(kind).times(1));
    }
    world.serve(&program, service("web", &[80])).await.unwrap();
    assert_eq!(world.members("kube"), 3);
}

#[tokio::test(start_paused = true)]
async fn lost_answers_do_not_change_what_comes_of_it() {
    for kind in [LOAD_BALANCERS, PUBLIC_IPS, SECURITY_GROUPS, SCALE_SETS, INSTANCES] {
        let undisturbed = World::new();
        let program = undisturbed.start();
        undisturbed.serve(&program, service("web", &[80])).await.unwrap();
        let world = World::new();
        let program = world.start();
        world.azure.inject(Fault::new(FaultAction::DropAnswer).on_method("PUT").on_type(kind).times(1));
        world.serve(&program, service("web", &[80])).await.unwrap();
        assert_eq!(world.normalised(), undisturbed.normalised(), "{kind}");
    }
}

/// The answer to a write is lost, and another client writes before the next one: that write is kept.
#[tokio::test(start_paused = true)]
async fn lost_answers_do_not_write_twice_over_somebody() {
    let balancer = id("loadBalancers", "kube");
    let scale_set = id("virtualMachineScaleSets", "pool");
    let places = [
        (LOAD_BALANCERS, balancer.clone()),
        (PUBLIC_IPS, id("publicIPAddresses", "kube-aweb")),
        (SECURITY_GROUPS, id("networkSecurityGroups", "nsg")),
        (SCALE_SETS, scale_set.clone()),
        (INSTANCES, scale_set.child("virtualMachines", "0")),
    ];
    for (kind, place) in places {
        let world = World::new();
        let program = world.start();
        world.azure.inject(Fault::new(FaultAction::DropAnswer).on_method("PUT").on_type(kind).times(1));
        let web = world.apply(&program, service("web", &[80]));
        let serving = world.ensure(&program, &web);
        let interfering = async {
            while world.writes(kind) == 0 {
                sleep(Duration::from_millis(100)).await;
            }
            world.azure.edit(&place, |document| document["tags"]["owner"] = "somebody".into()).unwrap();
            if kind == LOAD_BALANCERS {
                let theirs = |document: &mut serde_json::Value| {
                    let pools = document["properties"]["backendAddressPools"].as_array_mut().unwrap();
                    pools.push(serde_json::json!({"name": "theirs"}));
                };
                world.azure.edit(&place, theirs).unwrap();
            }
        };
        let (served, ()) = futures::join!(serving, interfering);
        served.unwrap();
        let document = world.azure.document(&place).unwrap();
        // Machines show the tags of their scale set.
        if kind != INSTANCES {
            assert_eq!(document["tags"]["owner"], "somebody", "{kind}: {:#?}", world.all_writes());
        }
        if kind == LOAD_BALANCERS {
            assert!(document["properties"]["backendAddressPools"].to_string().contains("theirs"));
        }
        // The client repeats the write with the version before it.
        let lost = world.puts(kind).iter().filter(|status| **status == 412).count();
        assert_eq!(lost, 1, "{kind}: {:?}", world.puts(kind));
        assert_eq!(world.members("kube"), 3, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_is_superseded_is_planned_again() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, service("one", &[80])).await.unwrap();
    world.latency(0, 30, 0);
    let two = world.apply(&program, service("two", &[80]));
    let serving = world.ensure(&program, &two);
    let interfering = async {
        sleep(Duration::from_secs(10)).await;
        // Another client writes while our operation runs: ours is cancelled.
        world
            .azure
            .edit(&id("loadBalancers", "kube"), |document| {
                document["tags"] = serde_json::json!({ "owner": "somebody" });
            })
            .unwrap();
    };
    let (served, ()) = futures::join!(serving, interfering);
    served.unwrap();
    let balancer = world.load_balancer("kube").unwrap();
    assert_eq!(balancer["properties"]["frontendIPConfigurations"].as_array().unwrap().len(), 2);
    assert_eq!(balancer["tags"]["owner"], "somebody");
}

#[tokio::test(start_paused = true)]
async fn a_refused_public_ip_is_told_in_azures_words_and_only_bad_values_are_refused_for_good() {
    for (code, terminal) in
        [("DnsRecordInUse", false), ("NobodyKnowsThis", false), ("InvalidDomainNameLabel", true)]
    {
        let world = World::new();
        let program = world.start();
        let fault = fail(400, code, "DNS label x is not to be had.");
        world.azure.inject(Fault::new(fault).on_method("PUT").on_type(PUBLIC_IPS));
        let error = world.serve(&program, service("web", &[80])).await.unwrap_err();
        assert_eq!(matches!(error, ServiceError::Refused { .. }), terminal, "{error:?}");
        let (ServiceError::Refused { message, notices } | ServiceError::Retry { message, notices, .. }) =
            error;
        assert!(message.contains(code) && message.contains("not to be had"), "{message}");
        assert_eq!(notices[0].reason, "CreateOrUpdatePublicIPAddress");
    }
}

/// LB-104.
#[tokio::test(start_paused = true)]
async fn lb_104_ip_tags_that_azure_does_not_change_are_told() {
    let world = World::new();
    let program =
        world.start_configured(&serde_json::json!({"enableIPTagMutationForExistingPublicIP": true}));
    world.serve(&program, service("web", &[80])).await.unwrap();
    let fault =
        fail(400, "PublicIPAddressIpTagsCannotBeChanged", "IP tag RoutingPreference cannot be changed.");
    world.azure.inject(Fault::new(fault).on_method("PUT").on_type(PUBLIC_IPS));
    let tagged = annotated(service("web", &[80]), "azure-pip-ip-tags", "RoutingPreference=Internet");
    let error = world.serve(&program, tagged).await.unwrap_err();
    let (ServiceError::Refused { message, notices } | ServiceError::Retry { message, notices, .. }) = error;
    assert!(message.contains("RoutingPreference cannot be changed"), "{message}");
    assert_eq!(notices[0].reason, "CreateOrUpdatePublicIPAddress");
    let public_ip = world.azure.document(&id("publicIPAddresses", "kube-aweb")).unwrap();
    assert!(public_ip["properties"]["ipTags"].as_array().is_none_or(Vec::is_empty), "{public_ip:#}");
    assert!(world.load_balancer("kube").is_some(), "it still takes traffic");
}

#[tokio::test(start_paused = true)]
async fn a_missing_permission_is_nobodys_terminal_fault() {
    let world = World::new();
    let program = world.start();
    let fault = fail(403, "AuthorizationFailed", "The client does not have authorization to perform action.");
    world.azure.inject(Fault::new(fault).on_method("PUT").on_type(LOAD_BALANCERS));
    let error = world.serve(&program, service("web", &[80])).await.unwrap_err();
    assert!(
        matches!(&error, ServiceError::Retry { message, .. } if message.contains("AuthorizationFailed")),
        "{error:?}"
    );
    world.azure.clear_faults();
    let web = world.stored(&service("web", &[80]));
    world.ensure(&program, &web).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_a_killed_predecessor_left_running_is_waited_for_and_what_failed_is_repaired() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, service("one", &[80])).await.unwrap();
    drop(program);
    let fault = FaultAction::FailOperation { code: "InternalServerError".into(), message: "oops".into() };
    world.latency(0, 20, 0);
    world.azure.inject(Fault::new(fault).on_method("PUT").on_type(LOAD_BALANCERS).times(1));
    let dying = world.start();
    let two = world.apply(&dying, service("two", &[80]));
    let cut = tokio::time::timeout(Duration::from_secs(8), world.ensure(&dying, &two)).await;
    assert!(cut.is_err());
    drop(dying);
    let program = world.start();
    world.ensure(&program, &two).await.unwrap();
    let one = world.stored(&service("one", &[80]));
    world.ensure(&program, &one).await.unwrap();
    let balancer = world.load_balancer("kube").unwrap();
    assert_eq!(balancer["properties"]["provisioningState"], "Succeeded");
    assert_eq!(balancer["properties"]["frontendIPConfigurations"].as_array().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_change_that_azure_accepts_and_then_refuses_is_taken_back() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, service("one", &[80])).await.unwrap();
    // Azure fails the operation later, naming the frontend of `bad` whenever that is part of the write.
    let refuse = |times| {
        let action = FaultAction::FailOperation {
            code: "FrontendNotWelcome".into(),
            message: format!(
                "Frontend {}/frontendIPConfigurations/abad is not welcome.",
                id("loadBalancers", "kube")
            ),
        };
        world.azure.inject(Fault::new(action).on_method("PUT").on_type(LOAD_BALANCERS).times(times));
    };
    refuse(1);
    let bad = world.apply(&program, service("bad", &[80]));
    let good = world.apply(&program, service("good", &[80]));
    let (bad, good) = futures::join!(world.ensure(&program, &bad), world.ensure(&program, &good));
    good.unwrap();
    assert!(
        matches!(&bad, Err(ServiceError::Retry { message, .. }) if message.contains("not welcome")),
        "{bad:?}"
    );
    let balancer = world.load_balancer("kube").unwrap();
    assert_eq!(balancer["properties"]["provisioningState"], "Succeeded");
    assert!(!balancer["properties"].to_string().contains("abad"), "nothing of it is left");
    assert_eq!(balancer["properties"]["frontendIPConfigurations"].as_array().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_first_service_that_is_refused_later_leaves_no_load_balancer() {
    let world = World::new();
    let program = world.start();
    let action = FaultAction::FailOperation { code: "NotWelcome".into(), message: "No.".into() };
    world.azure.inject(Fault::new(action).on_method("PUT").on_type(LOAD_BALANCERS).times(1));
    let error = world.serve(&program, service("bad", &[80])).await.unwrap_err();
    assert!(matches!(error, ServiceError::Retry { .. }), "an unknown refusal may pass: {error:?}");
    assert!(world.documents(LOAD_BALANCERS).is_empty());
}

/// LB-023.
#[tokio::test(start_paused = true)]
async fn lb_023_load_balancers_that_cannot_be_listed_are_an_error_with_an_event() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, service("web", &[80])).await.unwrap();
    let restarted = world.start();
    let fault = fail(500, "InternalServerError", "oops");
    world.azure.inject(Fault::new(fault).on_method("GET").on_type(LOAD_BALANCERS));
    let error = world.serve(&restarted, service("api", &[80])).await.unwrap_err();
    let ServiceError::Retry { notices, .. } = error else { panic!("{error:?}") };
    assert_eq!((notices[0].reason, notices[0].warning), ("ListLoadBalancers", true));
    assert_eq!(world.documents(PUBLIC_IPS).len(), 1, "no address is bought for what cannot be seen");
    let web = world.stored(&service("web", &[80]));
    restarted.holds(&web).await.unwrap_err();
    restarted.delete(&web).await.unwrap_err();
    assert_eq!(world.documents(PUBLIC_IPS).len(), 1, "what cannot be seen is not concluded from");
}

/// LB-333.
#[tokio::test(start_paused = true)]
async fn lb_333_an_address_that_is_not_known_yet_is_no_address() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, internal(service("one", &[80]))).await.unwrap();
    // An operation on the public IP that never ends keeps its address unknown.
    world.azure.inject(Fault::new(FaultAction::StallOperation).on_method("PUT").on_type(PUBLIC_IPS));
    let error = world.serve(&program, service("web", &[80])).await.unwrap_err();
    assert!(matches!(error, ServiceError::Retry { .. }), "{error:?}");
    assert!(world.load_balancer("kube").is_none(), "nothing refers to a public IP that is not ready");
}

/// LB-333: with two families both addresses are needed.
#[tokio::test(start_paused = true)]
async fn lb_333_one_of_two_addresses_is_not_enough() {
    let world = World::new();
    let program = world.start();
    let stalled = Fault::new(FaultAction::StallOperation).on_method("PUT").on_type(PUBLIC_IPS);
    world.azure.inject(stalled.on_resource("kube-aweb-IPv6"));
    let mut web = service("web", &[80]);
    web.spec.ip_families = ["IPv4", "IPv6"].map(str::to_owned).to_vec();
    let error = world.serve(&program, web).await.unwrap_err();
    assert!(matches!(error, ServiceError::Retry { .. }), "{error:?}");
    assert!(world.load_balancer("kube").is_none());
    let rules =
        |group: &serde_json::Value| group["properties"]["securityRules"].as_array().map_or(0, Vec::len);
    assert!(world.documents(SECURITY_GROUPS).iter().all(|group| rules(group) == 0));
}

#[tokio::test(start_paused = true)]
async fn a_reference_that_is_missing_for_the_moment_is_not_held_against_the_service() {
    let world = World::new();
    let program = world.start();
    let message = format!(
        "Resource {} referenced by resource {} was not found. Please make sure that the referenced resource exists, \
         and that both resources are in the same region.",
        id("publicIPAddresses", "kube-aweb"),
        id("loadBalancers", "kube")
    );
    let fault = fail(400, "InvalidResourceReference", &message);
    world.azure.inject(Fault::new(fault).on_method("PUT").on_type(LOAD_BALANCERS).times(1));
    let error = world.serve(&program, service("web", &[80])).await.unwrap_err();
    assert!(
        matches!(&error, ServiceError::Retry { message, .. } if message.contains("InvalidResourceReference")),
        "{error:?}"
    );
    let web = world.stored(&service("web", &[80]));
    world.ensure(&program, &web).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn two_programs_that_disagree_stop_and_say_so() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, service("web", &[80])).await.unwrap();
    let web = world.stored(&service("web", &[80]));
    let mut outcomes = Vec::new();
    for _ in 0..4 {
        world
            .azure
            .edit(&id("loadBalancers", "kube"), |document| {
                document["properties"]["loadBalancingRules"] = serde_json::json!([]);
            })
            .unwrap();
        outcomes.push(world.ensure(&program, &web).await);
    }
    assert!(outcomes[0].is_ok());
    let Err(ServiceError::Retry { message, after, .. }) = &outcomes[3] else { panic!("{outcomes:?}") };
    assert!(message.contains("another program"), "{message}");
    assert!(*after > Some(Duration::from_secs(10)), "{after:?}");
}
