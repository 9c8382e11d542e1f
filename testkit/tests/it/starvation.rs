//! A Service that cannot be served, or only slowly, does not delay others: they get their addresses in the usual time.

use std::collections::BTreeMap;
use std::time::Duration;

use azure_simulator::{Fault, FaultAction, typical_latency};
use serde_json::json;
use testkit::types::PUBLIC_IPS;
use testkit::{ServiceBuilder, World, run, service};
use tokio::time::Instant;

const BAD: &str = "shop/bad";

/// The number of other Services, created a few at a time.
const OTHERS: usize = 12;
const PAUSE: Duration = Duration::from_secs(20);

/// The problem of one Service.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Trouble {
    /// There is no such Service.
    None,
    /// Refused by the planner.
    Mistake,
    /// The load balancer is refused because of it.
    AddressReserved,
    /// The security group is refused because of it.
    UnknownTag,
    /// Every write of its public IP is answered like this.
    PublicIp(Answer),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Answer {
    Refused,
    Conflict,
    Broken,
    Lost,
    FailsLater,
    Slow,
}

impl Answer {
    fn action(self) -> FaultAction {
        let fail = |status, code: &str| FaultAction::Fail {
            status,
            code: code.to_owned(),
            message: "An error of this test.".to_owned(),
        };
        match self {
            Self::Refused => fail(400, "NotWelcome"),
            Self::Conflict => fail(409, "AnotherOperationInProgress"),
            Self::Broken => fail(500, "InternalServerError"),
            Self::Lost => FaultAction::DropAnswer,
            Self::FailsLater => FaultAction::FailOperation {
                code: "InternalServerError".to_owned(),
                message: "An error of this test.".to_owned(),
            },
            Self::Slow => FaultAction::SlowOperation { ms: 3_600_000 },
        }
    }
}

impl Trouble {
    fn bring(self, world: &World) {
        let bad = service(BAD);
        let bad: ServiceBuilder = match self {
            Self::None => return,
            Self::Mistake => bad.annotation("azure-load-balancer-tcp-idle-timeout", "x"),
            Self::AddressReserved => bad.internal().annotation("azure-load-balancer-ipv4", "10.240.0.1"),
            Self::UnknownTag => bad.annotation("azure-allowed-service-tags", "NobodyKnowsThis"),
            Self::PublicIp(_) => bad,
        };
        world.create(bad);
        if let Self::PublicIp(answer) = self {
            let uid = world.service(BAD)["metadata"]["uid"].as_str().unwrap().replace('-', "");
            let name: String = format!("kubernetes-a{uid}").chars().take("kubernetes-".len() + 32).collect();
            let fault = Fault::new(answer.action()).on_type(PUBLIC_IPS).on_resource(&name).on_method("PUT");
            world.azure.inject(fault.named("bad"));
        }
    }
}

/// The time until each of the others has its address.
async fn waits(trouble: Trouble) -> (World, BTreeMap<String, Duration>) {
    let world = World::builder().latency(typical_latency()).start().await;
    let mut begun = BTreeMap::new();
    let mut waited: BTreeMap<String, Duration> = BTreeMap::new();
    trouble.bring(&world);
    let begin = Instant::now();
    while waited.len() < OTHERS {
        assert!(begin.elapsed() < Duration::from_secs(3600), "{trouble:?}: {waited:?}");
        if begun.len() < OTHERS && begin.elapsed() >= PAUSE * u32::try_from(begun.len() / 3).unwrap() {
            for _ in 0..3 {
                let key = format!("shop/s{:02}", begun.len());
                let one = service(&key).source_ranges(&["203.0.113.0/24"]);
                world.create(if begun.len() % 3 == 2 { service(&key).internal() } else { one });
                begun.insert(key, Instant::now());
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        for (key, since) in &begun {
            if !waited.contains_key(key) && !world.addresses(key).is_empty() {
                waited.insert(key.clone(), since.elapsed());
            }
        }
    }
    let journal = world.azure.journal();
    let is_struck = journal.entries.iter().any(|entry| entry.fault.as_deref() == Some("bad"));
    assert_eq!(is_struck, matches!(trouble, Trouble::PublicIp(_)), "{trouble:?}");
    (world, waited)
}

/// LB-462: whatever is wrong with one Service, the others wait no longer than without it, except for one refusal by
/// Azure.
#[test]
fn lb_462_no_service_starves_another() {
    run(async || {
        let (_, ordinary) = waits(Trouble::None).await;
        let answers = [
            Answer::Refused,
            Answer::Conflict,
            Answer::Broken,
            Answer::Lost,
            Answer::FailsLater,
            Answer::Slow,
        ];
        let troubles = [Trouble::Mistake, Trouble::AddressReserved, Trouble::UnknownTag];
        let mut report = Vec::new();
        for trouble in troubles.into_iter().chain(answers.map(Trouble::PublicIp)) {
            let (mut world, waited) = waits(trouble).await;
            for (key, took) in &waited {
                if *took > ordinary[key] + MAX_MORE {
                    report.push(format!("{trouble:?}: {key} waits {took:?} instead of {:?}", ordinary[key]));
                }
            }
            // Nothing is left of it after its deletion, nor of the others.
            world.azure.clear_faults();
            world.delete(BAD);
            for key in waited.keys() {
                world.delete(key);
            }
            world.settle().await;
            let left = world.azure.documents_of_type(PUBLIC_IPS);
            assert_eq!(left, [json!(null); 0], "{trouble:?}");
            world.stop().await;
        }
        assert!(report.is_empty(), "{}", report.join("\n"));
    });
}

/// One more write of each shared resource, as long as it usually takes.
const MAX_MORE: Duration = Duration::from_secs(30);
