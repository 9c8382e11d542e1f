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
        let permit = gate.enter(Class::Refresh, NETWORK, MAX_WAIT).await.unwrap();
        gate.observe(permit, &headers(199));
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn the_last_tokens_are_kept_for_the_upper_classes() {
    let budgets = Budgets::new();
    let gate = budgets.gate("s", OperationGroup::Writes);
    let permit = gate.enter(Class::Create, NETWORK, MAX_WAIT).await.unwrap();
    gate.observe(permit, &headers(6));
    assert_eq!(budgets.remaining("S", OperationGroup::Writes), Some(6));
    let start = Instant::now();
    drop(gate.enter(Class::Repair, NETWORK, MAX_WAIT).await.unwrap());
    drop(gate.enter(Class::Delete, NETWORK, MAX_WAIT).await.unwrap());
    assert_eq!(start.elapsed(), Duration::ZERO, "6 and 5 tokens: enough for both");
    drop(gate.enter(Class::Refresh, NETWORK, MAX_WAIT).await.unwrap());
    // From 4 tokens to 20 at 10 a second.
    let waited = start.elapsed().as_secs_f64();
    assert!((1.6..1.7).contains(&waited), "{waited}");
}

#[tokio::test(start_paused = true)]
async fn all_budgets_are_shown_as_they_are_now() {
    let budgets = Budgets::new();
    let gate = budgets.gate("S", OperationGroup::Writes);
    let permit = gate.enter(Class::Create, NETWORK, MAX_WAIT).await.unwrap();
    assert_eq!(budgets.all()[0].remaining, None, "Azure has named no figure yet");
    gate.observe(permit, &headers(17));
    gate.close(Some(NETWORK), Duration::from_secs(30));
    let waits = tokio::spawn({
        let gate = Arc::clone(&gate);
        async move { gate.enter(Class::Delete, NETWORK, MAX_WAIT).await.map(drop) }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let expected = BudgetState {
        subscription: "s".into(),
        group: OperationGroup::Writes,
        remaining: Some(27.0),
        capacity: 200.0,
        closed: Duration::ZERO,
        providers: BTreeMap::from([(NETWORK.to_ascii_lowercase().into(), Duration::from_secs(29))]),
        waiting: [0, 1, 0, 0],
    };
    assert_eq!(budgets.all(), [expected]);
    waits.await.unwrap().unwrap();
    assert_eq!(budgets.all()[0].waiting, [0; 4]);
}

/// Behind a closed gate, calls queue in order of class, then of arrival.
#[tokio::test(start_paused = true)]
async fn a_closed_gate_opens_in_class_order() {
    let gate = Budgets::new().gate("s", OperationGroup::Writes);
    let permit = gate.enter(Class::Create, NETWORK, MAX_WAIT).await.unwrap();
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
            let permit = gate.enter(class, NETWORK, MAX_WAIT).await.unwrap();
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
        tokio::spawn(
            async move { drop(gate.enter(Class::Repair, "microsoft.compute", MAX_WAIT).await.unwrap()) },
        )
    };
    tokio::task::yield_now().await;
    drop(gate.enter(Class::Refresh, NETWORK, MAX_WAIT).await.unwrap());
    assert_eq!(start.elapsed(), Duration::ZERO);
    waiting.await.unwrap();
    assert!(start.elapsed() >= Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn a_long_closure_fails_at_once_and_says_when_to_come_back() {
    let gate = Budgets::new().gate("s", OperationGroup::Reads);
    gate.close(None, Duration::from_secs(1000));
    let wait = gate.enter(Class::Repair, NETWORK, MAX_WAIT).await.err().unwrap();
    assert_eq!(wait, Duration::from_secs(1000));
    gate.close(None, Duration::from_secs(10));
    assert!(
        gate.enter(Class::Repair, NETWORK, MAX_WAIT).await.is_err(),
        "a shorter closure does not open it"
    );
}

#[tokio::test(start_paused = true)]
async fn one_who_leaves_the_queue_makes_room() {
    let gate = Budgets::new().gate("s", OperationGroup::Writes);
    let permit = gate.enter(Class::Create, NETWORK, MAX_WAIT).await.unwrap();
    gate.observe(permit, &headers(0));
    let leaver = {
        let gate = Arc::clone(&gate);
        tokio::spawn(async move { drop(gate.enter(Class::Repair, NETWORK, MAX_WAIT).await) })
    };
    tokio::task::yield_now().await;
    leaver.abort();
    let _ = leaver.await;
    assert!(gate.state.lock().waiting.is_empty());
    drop(gate.enter(Class::Repair, NETWORK, MAX_WAIT).await.unwrap());
    assert_eq!(gate.state.lock().under_way.count(), 0);
}

/// Azure's own bucket, which counts at the arrival of a call.
struct Bucket {
    tokens: f64,
    at: Instant,
    refused: u32,
}

impl Bucket {
    fn count(&mut self) -> u32 {
        let now = Instant::now();
        self.tokens = (self.tokens + now.duration_since(self.at).as_secs_f64() * 10.0).min(200.0) - 1.0;
        self.at = now;
        if self.tokens < 0.0 {
            self.tokens = 0.0;
            self.refused += 1;
        }
        self.tokens as u32
    }
}

/// Figures of slow answers are old: calls that were sent later are not in them.
#[tokio::test(start_paused = true)]
async fn answers_in_any_order_let_nothing_through_that_azure_would_refuse() {
    let gate = Budgets::new().gate("s", OperationGroup::Writes);
    let bucket = Arc::new(Mutex::new(Bucket { tokens: 200.0, at: Instant::now(), refused: 0 }));
    let start = Instant::now();
    let calls: Vec<_> = (0..800u64)
        .map(|number| {
            let (gate, bucket) = (Arc::clone(&gate), Arc::clone(&bucket));
            tokio::spawn(async move {
                let permit = gate.enter(Class::Create, NETWORK, MAX_WAIT).await.unwrap();
                let left = bucket.lock().count();
                tokio::time::sleep(Duration::from_millis(number * 7_919 % 1_500)).await;
                gate.observe(permit, &headers(left));
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(bucket.lock().refused, 0);
    // 800 calls, of which the bucket held 200: none is delayed without need, either.
    assert!(start.elapsed() < Duration::from_secs(70), "{:?}", start.elapsed());
}

/// A provider that accepts this many calls in a window of five minutes.
struct Window {
    limit: u32,
    begun: Option<Instant>,
    passed: u32,
    refused: Vec<Instant>,
}

impl Window {
    const LENGTH: Duration = Duration::from_secs(300);

    /// The wait time of a refusal.
    fn count(&mut self) -> Option<Duration> {
        let now = Instant::now();
        let begun = match self.begun {
            Some(begun) if now - begun < Self::LENGTH => begun,
            _ => {
                self.passed = 0;
                *self.begun.insert(now)
            }
        };
        self.passed += 1;
        if self.passed <= self.limit {
            return None;
        }
        self.refused.push(now);
        Some((begun + Self::LENGTH - now).max(Duration::from_secs(1)))
    }
}

/// Sends calls at once to a provider whose window permits fewer; returns the times of refusals, and the total time.
async fn go_through_windows(calls: usize, limit: u32) -> (Vec<Duration>, Duration) {
    let gate = Budgets::new().gate("s", OperationGroup::Writes);
    let window = Window { limit, begun: None, passed: 0, refused: Vec::new() };
    let window = Arc::new(Mutex::new(window));
    let start = Instant::now();
    let calls: Vec<_> = (0..calls)
        .map(|_| {
            let (gate, window) = (Arc::clone(&gate), Arc::clone(&window));
            tokio::spawn(async move {
                loop {
                    let permit = gate.enter(Class::Create, NETWORK, MAX_WAIT).await.unwrap();
                    tokio::time::sleep(Duration::from_millis(400)).await;
                    let refused = window.lock().count();
                    gate.observe(permit, &HeaderMap::new());
                    let Some(wait) = refused else { return };
                    gate.close(Some(NETWORK), wait);
                }
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    let refused = window.lock().refused.iter().map(|at| *at - start).collect();
    (refused, start.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_a_provider_has_shown_is_not_run_into_again() {
    let (refused, took) = go_through_windows(3_500, 1_000).await;
    assert!(!refused.is_empty());
    assert!(refused.iter().all(|at| *at < Duration::from_secs(2)), "only in the first window: {refused:?}");
    // Three windows have to pass, with a margin for each.
    assert!(took > Duration::from_secs(900) && took < Duration::from_secs(930), "{took:?}");
}

/// A refusal after few calls has another reason, and does not show a provider's limit.
#[tokio::test(start_paused = true)]
async fn a_small_limit_is_none_of_a_whole_provider() {
    let (refused, _) = go_through_windows(300, 100).await;
    assert!(refused.iter().any(|at| *at > Duration::from_secs(299)), "{refused:?}");
}

#[derive(Debug, Clone)]
enum GateEvent {
    Enter(usize),
    Answer(u32, usize),
    Pass(u64),
    Close(u64),
}

fn event() -> impl Strategy<Value = GateEvent> {
    prop_oneof![
        4 => (0..4usize).prop_map(GateEvent::Enter),
        2 => (0..40u32, 0..40usize).prop_map(|(remaining, which)| GateEvent::Answer(remaining, which)),
        2 => (1..3000u64).prop_map(GateEvent::Pass),
        1 => (0..2000u64).prop_map(GateEvent::Close),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever happens: no call goes while the budget is closed or lacks tokens for its class (conservation), and no
    /// call goes while one of a class above, or an earlier one of its own, still waits.
    #[test]
    fn conservation_and_no_starvation_from_below(events in prop::collection::vec(event(), 1..120)) {
        let mut now = Instant::now();
        let mut state = State::new(OperationGroup::Writes, now);
        let mut receivers: BTreeMap<(Class, u64), oneshot::Receiver<Sent>> = BTreeMap::new();
        let mut open: Vec<Sent> = Vec::new();
        // Since the last answer: the remaining tokens, the time, and the number of permitted calls.
        let mut known: Option<(f64, Instant, usize)> = None;
        for event in events {
            match event {
                GateEvent::Enter(class) => {
                    let class = Class::ALL[class];
                    if let Some(sent) = state.try_take(class, "n", now) {
                        prop_assert!(state.closed.is_none());
                        prop_assert!(!receivers.keys().any(|(other, _)| *other <= class), "overtook");
                        open.push(sent);
                        known.iter_mut().for_each(|(_, _, count)| *count += 1);
                    } else {
                        let key = (class, state.next);
                        state.next += 1;
                        let (granted, turn) = oneshot::channel();
                        state.waiting.insert(key, Waiter { namespace: "n".into(), granted });
                        receivers.insert(key, turn);
                    }
                }
                GateEvent::Answer(remaining, which) => {
                    if !open.is_empty() {
                        let sent = open.remove(which % open.len());
                        state.observe(sent, Some(f64::from(remaining)), now);
                        let left = state.tokens.unwrap();
                        known = Some((left, now, 0));
                        state.pump(now);
                    }
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
            // Permitted calls came before all that still wait and could go.
            let mut gone = Vec::new();
            for (key, turn) in &mut receivers {
                if let Ok(sent) = turn.try_recv() {
                    gone.push(*key);
                    open.push(sent);
                    known.iter_mut().for_each(|(_, _, count)| *count += 1);
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
                prop_assert!(count as f64 <= refilled.max(0.0) + 1e-6, "{count} of {refilled}");
            }
        }
        // Given time, all calls go.
        for _ in 0..200 {
            now += Duration::from_secs(5);
            state.pump(now);
        }
        prop_assert!(state.waiting.is_empty());
    }
}
