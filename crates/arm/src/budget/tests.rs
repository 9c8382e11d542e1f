//! Budgets on paused time, and their promises as properties.

use super::*;
use proptest::prelude::*;

fn headers(remaining: u32) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("x-ms-ratelimit-remaining-subscription-writes", remaining.into());
    headers
}

const NETWORK: &str = "Microsoft.Network";

#[tokio::test(start_paused = true)]
async fn plenty_means_no_waiting_at_all() {
    let gate = Budgets::new().gate("s", OperationGroup::Writes);
    let start = Instant::now();
    for _ in 0..1000 {
        let permit = gate.enter(Class::Refresh, NETWORK).await.unwrap();
        gate.observe(permit, &headers(199));
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn the_last_tokens_are_kept_for_the_upper_classes() {
    let budgets = Budgets::new();
    let gate = budgets.gate("s", OperationGroup::Writes);
    let permit = gate.enter(Class::Create, NETWORK).await.unwrap();
    gate.observe(permit, &headers(6));
    assert_eq!(budgets.remaining("S", OperationGroup::Writes), Some(6));
    let start = Instant::now();
    drop(gate.enter(Class::Repair, NETWORK).await.unwrap());
    drop(gate.enter(Class::Delete, NETWORK).await.unwrap());
    assert_eq!(start.elapsed(), Duration::ZERO, "6 and 5 tokens: enough for both");
    drop(gate.enter(Class::Refresh, NETWORK).await.unwrap());
    // From 4 tokens to 20 at 10 a second.
    let waited = start.elapsed().as_secs_f64();
    assert!((1.6..1.7).contains(&waited), "{waited}");
}

/// Queued behind a closed gate, callers go in order of class, then of arrival.
#[tokio::test(start_paused = true)]
async fn a_closed_gate_opens_in_class_order() {
    let gate = Budgets::new().gate("s", OperationGroup::Writes);
    let permit = gate.enter(Class::Create, NETWORK).await.unwrap();
    gate.observe(permit, &headers(100));
    gate.close(None, Duration::from_secs(30));
    let order = Arc::new(Mutex::new(Vec::new()));
    let start = Instant::now();
    let mut tasks = Vec::new();
    for (index, class) in
        [Class::Refresh, Class::Create, Class::Repair, Class::Delete, Class::Repair, Class::Refresh]
            .into_iter()
            .enumerate()
    {
        let (gate, order) = (Arc::clone(&gate), Arc::clone(&order));
        tasks.push(tokio::spawn(async move {
            let permit = gate.enter(class, NETWORK).await.unwrap();
            order.lock().push((class, index));
            drop(permit);
        }));
        tokio::task::yield_now().await;
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert!(start.elapsed() >= Duration::from_secs(30) && start.elapsed() < Duration::from_secs(31));
    let order = order.lock().clone();
    let mut sorted = order.clone();
    sorted.sort();
    assert_eq!(order, sorted);
}

#[tokio::test(start_paused = true)]
async fn one_providers_throttling_leaves_the_others_alone() {
    let gate = Budgets::new().gate("s", OperationGroup::Writes);
    gate.close(Some("Microsoft.Compute"), Duration::from_secs(60));
    let start = Instant::now();
    let waiting = {
        let gate = Arc::clone(&gate);
        tokio::spawn(async move { drop(gate.enter(Class::Repair, "microsoft.compute").await.unwrap()) })
    };
    tokio::task::yield_now().await;
    drop(gate.enter(Class::Refresh, NETWORK).await.unwrap());
    assert_eq!(start.elapsed(), Duration::ZERO);
    waiting.await.unwrap();
    assert!(start.elapsed() >= Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn a_long_closure_fails_at_once_and_says_when_to_come_back() {
    let gate = Budgets::new().gate("s", OperationGroup::Reads);
    gate.close(None, Duration::from_secs(1000));
    let wait = gate.enter(Class::Repair, NETWORK).await.err().unwrap();
    assert_eq!(wait, Duration::from_secs(1000));
    gate.close(None, Duration::from_secs(10));
    assert!(gate.enter(Class::Repair, NETWORK).await.is_err(), "a shorter closure does not open it");
}

#[tokio::test(start_paused = true)]
async fn one_who_leaves_the_queue_makes_room() {
    let gate = Budgets::new().gate("s", OperationGroup::Writes);
    let permit = gate.enter(Class::Create, NETWORK).await.unwrap();
    gate.observe(permit, &headers(0));
    let leaver = {
        let gate = Arc::clone(&gate);
        tokio::spawn(async move { drop(gate.enter(Class::Repair, NETWORK).await) })
    };
    tokio::task::yield_now().await;
    leaver.abort();
    let _ = leaver.await;
    assert!(gate.state.lock().waiting.is_empty());
    drop(gate.enter(Class::Repair, NETWORK).await.unwrap());
    assert_eq!(gate.state.lock().in_flight, 0);
}

#[derive(Debug, Clone)]
enum GateEvent {
    Enter(usize),
    Answer(u32),
    Pass(u64),
    Close(u64),
}

fn event() -> impl Strategy<Value = GateEvent> {
    prop_oneof![
        4 => (0..4usize).prop_map(GateEvent::Enter),
        2 => (0..40u32).prop_map(GateEvent::Answer),
        2 => (1..3000u64).prop_map(GateEvent::Pass),
        1 => (0..2000u64).prop_map(GateEvent::Close),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever happens: nobody goes while closed or without tokens for its class (conservation), and
    /// nobody goes while one of a class above, or an earlier one of its own, still waits.
    #[test]
    fn conservation_and_no_starvation_from_below(events in prop::collection::vec(event(), 1..120)) {
        let mut now = Instant::now();
        let mut state = State::new(OperationGroup::Writes, now);
        let mut receivers: BTreeMap<(Class, u64), oneshot::Receiver<()>> = BTreeMap::new();
        // Since the last answer: the figure, when, and how many were let through.
        let mut known: Option<(f64, Instant, u32)> = None;
        for event in events {
            let granted_before = state.in_flight;
            match event {
                GateEvent::Enter(class) => {
                    let class = Class::ALL[class];
                    let went = state.try_take(class, "n", now);
                    if went {
                        prop_assert!(state.closed.is_none());
                        prop_assert!(!receivers.keys().any(|(other, _)| *other <= class), "overtook");
                    } else {
                        let key = (class, state.next);
                        state.next += 1;
                        let (granted, turn) = oneshot::channel();
                        state.waiting.insert(key, Waiter { namespace: "n".into(), granted });
                        receivers.insert(key, turn);
                    }
                }
                GateEvent::Answer(remaining) => {
                    state.in_flight = state.in_flight.saturating_sub(1);
                    state.observe(Some(f64::from(remaining)), now);
                    known = Some((f64::from(remaining) - f64::from(state.in_flight), now, 0));
                    let before = state.in_flight;
                    state.pump(now);
                    known = known.map(|(figure, at, _)| (figure, at, state.in_flight - before));
                }
                GateEvent::Pass(ms) => {
                    now += Duration::from_millis(ms);
                    state.pump(now);
                }
                GateEvent::Close(ms) => {
                    let until = now + Duration::from_millis(ms);
                    state.closed = state.closed.max(Some(until));
                }
            }
            if !matches!(event, GateEvent::Answer(_)) {
                let granted = state.in_flight - granted_before;
                if let Some((_, _, count)) = &mut known {
                    *count += granted;
                }
            }
            // Whoever was let through came before everyone who still waits and could go.
            let mut gone = Vec::new();
            for (key, turn) in &mut receivers {
                if turn.try_recv().is_ok() {
                    gone.push(*key);
                }
            }
            for key in &gone {
                receivers.remove(key);
            }
            if let (Some(last), Some(first)) = (gone.last(), receivers.keys().next()) {
                prop_assert!(last < first, "{last:?} went before {first:?}");
            }
            if let Some((figure, at, count)) = known {
                let refilled = figure.max(-1000.0) + now.duration_since(at).as_secs_f64() * 10.0;
                prop_assert!(f64::from(count) <= refilled.max(0.0) + 1e-6, "{count} of {refilled}");
            }
        }
        // Given time, everybody goes.
        for _ in 0..200 {
            now += Duration::from_secs(5);
            state.pump(now);
        }
        prop_assert!(state.waiting.is_empty());
    }
}
