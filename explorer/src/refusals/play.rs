//! A run of refusals: the good Services alone, then next to the bad ones.

use std::sync::Arc;
use std::time::Duration;

use testkit::types::{LOAD_BALANCERS, SECURITY_GROUPS};
use tokio::time::{Instant, sleep};

use super::case::{Bad, Mistake, Refusal, Refusals};
use super::refuser::{Culprit, Refuser};
use crate::ledger::Hand;
use crate::rule;
use crate::service_option::SERVICES;
use crate::single::{Single, keyed};

/// Names of bad Services.
const BAD: [&str; 2] = ["default/bad", "shop/bad"];

/// The maximum time for the good ones.
const PATIENCE: Duration = Duration::from_secs(900);

/// How long the good ones wait for others on their way: 2 s before the list of addresses is read, 5 s before a batch is
/// written, and a second for everything else.
const LINGER: Duration = Duration::from_secs(8);

/// The time for which Azure asks its clients to wait when it throttles.
const THROTTLED: Duration = Duration::from_secs(7);

/// A fault of Azure's is usually temporary: a shared resource is written once more, after this time, before the Service
/// that causes the fault is searched. Likewise for a lost race, seven times.
const REPETITION: Duration = Duration::from_secs(2);

/// The time within which every bad one has an event: while Azure is busy, it may take some minutes.
const MAX_SILENCE: Duration = Duration::from_secs(1_200);

/// The precision of measured times.
const TICK: Duration = Duration::from_millis(250);

/// The maximum number of refused writes in the ten minutes after the good ones are done, for each bad one: some
/// attempts of the Service, each with the writes that find it in a batch.
const MAX_WRITES: u64 = 40;

/// The cost of the good ones.
struct Taken {
    time: Option<Duration>,
    writes: u64,
    single: Single,
}

pub(super) async fn run(trial: &Refusals) -> Vec<String> {
    let alone = take(trial, false).await;
    let Some(time_alone) = alone.time else {
        return vec![format!("the good ones are not served alone: {:?}", unserved(trial, &alone.single))];
    };
    let latency = alone.single.azure.latency();
    let operation = |kind: &str| latency.of("PUT", kind, None, 0);
    let batch = operation(LOAD_BALANCERS).max(operation(SECURITY_GROUPS));
    let writes_alone = alone.writes;
    drop(alone);
    let beside = take(trial, true).await;
    let mut complaints = Vec::new();
    let services = trial.good.len() + trial.bad.len();
    let fails_later = |bad: &&Bad| {
        matches!(
            bad,
            Bad::Balancer { refusal: Refusal::Later, .. } | Bad::Guard { refusal: Refusal::Later, .. }
        )
    };
    // If Azure fails late, each step of the search takes a whole operation.
    let steps = usize::try_from(services.next_power_of_two().ilog2()).unwrap_or_default() + 1;
    let late = trial.bad.iter().filter(fails_later).count() * steps;
    let mut may_take = time_alone + batch * u32::try_from(1 + late).unwrap_or(1) + LINGER;
    let passes_as_a_rule = |refusal: Refusal| matches!(refusal, Refusal::Status(409 | 500));
    let is_repeated = |bad: &&Bad| match bad {
        Bad::Balancer { refusal, .. } | Bad::Guard { refusal, .. } => passes_as_a_rule(*refusal),
        Bad::Address(_) | Bad::Mistake(_) => false,
    };
    may_take += REPETITION * u32::try_from(trial.bad.iter().filter(is_repeated).count()).unwrap_or(1);
    // Azure throttles the subscription, not one Service of it: the good ones wait twice, and before each write of a
    // search. A step of the search may take two writes: one for each half.
    let throttles = trial.bad.contains(&Bad::Address(Refusal::Status(429)));
    let is_searched = |bad: &&Bad| matches!(bad, Bad::Balancer { .. } | Bad::Guard { .. });
    if throttles {
        let searched = trial.bad.iter().filter(is_searched).count() * steps * 2;
        may_take += THROTTLED * u32::try_from(2 + searched).unwrap_or(2);
    }
    match beside.time {
        None => complaints.push(format!(
            "the good ones are not served beside {:?}: {:?}",
            trial.bad,
            unserved(trial, &beside.single)
        )),
        Some(time) if time > may_take => {
            complaints.push(format!(
                "the good ones take {time:?}, alone {time_alone:?}; they may take {may_take:?} beside {:?}",
                trial.bad
            ));
        }
        Some(_) => {}
    }
    let steps = u64::try_from(steps * 2 + 3).unwrap_or_default();
    let may_write = writes_alone + steps * trial.bad.len() as u64 * 2;
    if beside.writes > may_write {
        complaints.push(format!(
            "{} writes until the good ones are done, alone {writes_alone}, beside {:?}",
            beside.writes, trial.bad
        ));
    }
    let single = &beside.single;
    let writes = calls(single);
    sleep(Duration::from_secs(600)).await;
    let more = calls(single) - writes;
    // As often as Azure's throttling allows.
    let max_writes = if throttles { MAX_WRITES * 3 } else { MAX_WRITES };
    if more > max_writes * trial.bad.len() as u64 {
        complaints.push(format!(
            "{more} writes in the ten minutes after the good ones are done, beside {:?}",
            trial.bad
        ));
    }
    let is_told = |key: &&str| single.world().events(key).iter().any(|event| event.starts_with("Warning "));
    if !BAD[..trial.bad.len()].iter().all(&is_told) {
        sleep(MAX_SILENCE).await;
    }
    for (key, bad) in BAD.into_iter().zip(&trial.bad) {
        let events = single.world().events(key);
        if !is_told(&key) {
            complaints.push(format!("no event says what is wrong with {key} ({bad:?}): {events:#?}"));
        }
    }
    for (key, options) in keyed(&trial.good) {
        let lost = single.unserved(key, options);
        if beside.time.is_some() {
            complaints.extend(lost.into_iter().map(|lost| format!("later, beside {:?}: {lost}", trial.bad)));
        }
    }
    complaints
}

/// The number of writes so far, including refused ones.
fn calls(single: &Single) -> u64 {
    let counts = single.azure.journal_after(u64::MAX).counts;
    counts.writes + counts.deletes
}

fn unserved(trial: &Refusals, single: &Single) -> Vec<String> {
    keyed(&trial.good).flat_map(|(key, options)| single.unserved(key, options)).collect()
}

async fn take(trial: &Refusals, with_bad: bool) -> Taken {
    let refuser = Arc::new(Refuser::default());
    let mut single = Single::build(trial.seed, trial.slow, false, Some(refuser.clone()));
    single.world_mut().start();
    single.rest(Duration::from_secs(8)).await;
    // A first Service stays, as in every cluster in use.
    let keeper = "keepers/first";
    single.create(keeper, &[], &[]);
    while single.world().addresses(keeper).is_empty() {
        sleep(Duration::from_secs(1)).await;
    }
    single.rest(Duration::from_secs(8)).await;
    let begin = Instant::now();
    let before = single.ledger.writes(Hand::Cluster(0));
    if with_bad && trial.bad_first {
        create_bad(trial, &single, &refuser);
    }
    for (key, options) in keyed(&trial.good) {
        single.create(key, options, &[]);
    }
    if with_bad && !trial.bad_first {
        create_bad(trial, &single, &refuser);
    }
    let has_address = |key: &&str| !single.world().addresses(key).is_empty();
    let keys = &SERVICES[..trial.good.len()];
    while !keys.iter().all(&has_address) && begin.elapsed() < PATIENCE {
        sleep(TICK).await;
    }
    let is_done = keys.iter().all(has_address) && unserved(trial, &single).is_empty();
    let time = is_done.then(|| begin.elapsed());
    let writes = single.ledger.writes(Hand::Cluster(0)) - before;
    Taken { time, writes, single }
}

fn create_bad(trial: &Refusals, single: &Single, refuser: &Refuser) {
    for (key, bad) in BAD.into_iter().zip(&trial.bad) {
        let internal = ("azure-load-balancer-internal", "true");
        let annotations: &[(&str, &str)] = match bad {
            Bad::Mistake(Mistake::UnknownTag) => &[("azure-allowed-service-tags", "UnheardOf")],
            Bad::Mistake(Mistake::MissingAddress) => &[("azure-pip-name", "nowhere")],
            Bad::Mistake(Mistake::MissingSubnet) => {
                &[internal, ("azure-load-balancer-internal-subnet", "nowhere")]
            }
            Bad::Mistake(Mistake::OutsideOfSubnet) => &[internal, ("azure-load-balancer-ipv4", "10.250.0.9")],
            Bad::Mistake(Mistake::BadValue) => &[("azure-load-balancer-tcp-idle-timeout", "soon")],
            Bad::Mistake(Mistake::BadLabel) => &[("azure-dns-label-name", "No_Label")],
            _ => &[],
        };
        single.create(key, &[], annotations);
        let base_name = rule::base_name(&single.world().service(key));
        refuser.refuse(&single.azure, Culprit { bad: *bad, base_name });
    }
}
