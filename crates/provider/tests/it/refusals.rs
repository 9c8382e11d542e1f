//! A refusal of a shared write delays the Services that it concerns, and no others.

use azure_simulator::{Fault, FaultAction};
use cloud::ServiceError;
use tokio::time::{Duration, Instant};

use crate::world::*;

/// Azure's refusals of Service `bad`, with and without naming it.
fn refusals() -> Vec<(&'static str, FaultAction)> {
    let pip = id("publicIPAddresses", "kube-abad");
    let group = id("networkSecurityGroups", "nsg");
    let fail = |status, code: &str, message: String| FaultAction::Fail { status, code: code.into(), message };
    let linked = format!(
        "The client 'c' with object id 'o' has permission to perform action 'write' on scope 'own'; however, it does not \
         have permission to perform action(s) 'join/action' on the linked scope(s) '{pip}' (respectively)."
    );
    let locked = format!(
        "The scope 'own' cannot perform write operation because following scope(s) are locked: '{pip}'. Please remove \
         the lock and try again."
    );
    vec![
        ("a value, named", fail(400, "FrontendNotWelcome", format!("Resource {pip} is not welcome."))),
        ("a value", fail(400, "SomethingIsWrong", "Something is wrong.".into())),
        ("a terminal value", fail(400, "InvalidRequestFormat", "Something is wrong.".into())),
        ("no right, named", fail(403, "LinkedAuthorizationFailed", linked)),
        ("no right", fail(403, "LinkedAuthorizationFailed", "A linked scope is not yours.".into())),
        ("no right at another resource", fail(403, "AuthorizationFailed", format!("over scope '{group}/x'"))),
        ("a policy", fail(403, "RequestDisallowedByPolicy", "Disallowed by policy.".into())),
        ("not there, named", fail(404, "ResourceNotFound", format!("The Resource '{pip}' was not found."))),
        ("not there", fail(404, "NotFound", "Something was not found.".into())),
        ("a lock, named", fail(409, "ScopeLocked", locked)),
        ("a conflict", fail(409, "NameIsTaken", "A name is taken.".into())),
        ("too large", fail(413, "RequestEntityTooLarge", "Too large.".into())),
        (
            "later, named",
            FaultAction::FailOperation {
                code: "NotWelcome".into(),
                message: format!("{pip} is not welcome."),
            },
        ),
        (
            "later",
            FaultAction::FailOperation { code: "NotWelcome".into(), message: "Something is wrong.".into() },
        ),
    ]
}

/// LB-462. Each kind of refusal of a load balancer and of the security group: the good Service beside the bad one is
/// provisioned in the time that it takes alone, plus a batch or two.
#[tokio::test(start_paused = true)]
async fn each_refusal_holds_up_the_service_that_it_concerns() {
    for kind in [LOAD_BALANCERS, SECURITY_GROUPS] {
        for (what, action) in refusals() {
            let named = what.ends_with("named");
            let world = World::new();
            world.latency(1, 10, 10);
            let program = world.start();
            // Both are refused together, and the bad one alone; what fails later is reverted by the next write.
            let times = if named { 1 } else { 2 };
            world.azure.inject(Fault::new(action).on_method("PUT").on_type(kind).times(times));
            let bad = world.apply(&program, service("bad", &[80]));
            let good = world.apply(&program, service("good", &[81]));
            let begin = Instant::now();
            let timed = async {
                let ensured = world.ensure(&program, &good).await;
                (ensured, begin.elapsed())
            };
            let (refused, (served, took)) = futures::join!(world.ensure(&program, &bad), timed);
            served.unwrap_or_else(|error| panic!("{kind} {what}: {error}"));
            assert!(took <= Duration::from_secs(75), "{kind} {what}: {took:?}");
            let refused = refused.expect_err(&format!("{kind} {what}"));
            let is_terminal = matches!(refused, ServiceError::Refused { .. });
            assert_eq!(is_terminal, what == "a terminal value", "{kind} {what}: {refused:?}");
            // Nothing blocks it any more, and it is provisioned.
            let bad = world.stored(&service("bad", &[80]));
            world.ensure(&program, &bad).await.unwrap_or_else(|error| panic!("{kind} {what}: {error}"));
        }
    }
}

/// LB-462. A refusal about the caller or the load balancer itself concerns all, and costs one write.
#[tokio::test(start_paused = true)]
async fn what_concerns_all_is_not_looked_for() {
    let balancer = id("loadBalancers", "kube");
    for (status, code, message) in [
        (
            403,
            "AuthorizationFailed",
            format!("no authorization over scope '{balancer}' or the scope is invalid."),
        ),
        (403, "AuthorizationFailed", format!("over scope '/subscriptions/{SUBSCRIPTION}/resourceGroups/rg'")),
        (409, "ScopeLocked", format!("The scope '{balancer}' is locked")),
        (409, "ReadOnlyDisabledSubscription", "The subscription is disabled.".into()),
        (404, "ResourceGroupNotFound", "Resource group 'rg' could not be found.".into()),
    ] {
        let world = World::new();
        let program = world.start();
        let action = FaultAction::Fail { status, code: code.into(), message };
        world.azure.inject(Fault::new(action).on_method("PUT").on_type(LOAD_BALANCERS));
        let names: Vec<String> = (0..16).map(|number| format!("s{number}")).collect();
        let services: Vec<_> = names.iter().map(|name| world.apply(&program, service(name, &[80]))).collect();
        let all = services.iter().map(|service| world.ensure(&program, service));
        for answer in futures::future::join_all(all).await {
            assert!(matches!(answer, Err(ServiceError::Retry { .. })), "{code}: {answer:?}");
        }
        assert!(world.writes(LOAD_BALANCERS) <= 2, "{code}: {:?}", world.puts(LOAD_BALANCERS));
    }
}

/// U8: a failed write is one line of the log, with the change, the Service, and Azure's words; a resource group that
/// does not exist yet is not a failure.
#[tokio::test(start_paused = true)]
async fn a_failed_write_is_one_line() {
    let (captured, guard) = logs::captured::Captured::of_this_thread();
    let world = World::new();
    let program = world.start();
    let refused =
        FaultAction::Fail { status: 409, code: "NameIsTaken".into(), message: "A name is taken.".into() };
    world.azure.inject(Fault::new(refused).on_method("PUT").on_type(LOAD_BALANCERS).times(1));
    let bad = world.apply(&program, service("bad", &[80]));
    world.ensure(&program, &bad).await.unwrap_err();
    drop(guard);
    let text = captured.text();
    let is_told = |line: &&str| [" INFO ", " WARN ", " ERROR "].iter().any(|level| line.contains(level));
    let about: Vec<&str> = text.lines().filter(is_told).filter(|line| line.contains("NameIsTaken")).collect();
    assert_eq!(about.len(), 1, "{about:#?}");
    assert!(about[0].contains("shop/bad") && about[0].contains("duration_ms="), "{about:#?}");
    let failed: Vec<&str> =
        text.lines().filter(is_told).filter(|line| line.contains("azure call failed")).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}
