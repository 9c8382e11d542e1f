//! One budget for each subscription and group of operations, learned from Azure's own headers.
//!
//! Azure counts reads, writes and deletes of a subscription in token buckets and reports the remaining tokens in every
//! answer ("Understand how Azure Resource Manager throttles requests"). The budget keeps that figure, lets it refill at
//! Azure's documented rate between answers, and makes calls wait only when it runs low: the lower its class, the
//! earlier a call waits, so that the last tokens go to repairs. A 429 closes the budget, or one provider's part of it,
//! until `Retry-After`, for all callers together; they queue by class. The limit of a provider's window is learned from
//! its refusals ([`provider`]).

mod provider;
mod under_way;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;

use provider::Provider;
use under_way::{Sent, UnderWay};

/// The urgency of a call. No call waits behind a class below its own; calls of one class go in order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum Class {
    /// Restores traffic: a write that repairs something, a drained or lost machine.
    Repair,
    /// Removes resources that are no longer desired, and writes shared ones: a removal may wait for that.
    Delete,
    /// Creates or changes resources for one object.
    Create,
    /// Reads the present state, with nothing broken.
    Refresh,
}

impl Class {
    /// All classes, most urgent first.
    pub const ALL: [Self; 4] = [Self::Repair, Self::Delete, Self::Create, Self::Refresh];

    /// A word for labels and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Repair => "repair",
            Self::Delete => "delete",
            Self::Create => "create",
            Self::Refresh => "refresh",
        }
    }

    /// The tokens that must be left for a call of this class to go; the difference is reserved for the classes above.
    /// It is small against the buckets (200 and 250), so that nothing waits on ordinary days.
    fn floor(self) -> f64 {
        match self {
            Self::Repair => 1.0,
            Self::Delete => 5.0,
            Self::Create => 10.0,
            Self::Refresh => 20.0,
        }
    }
}

/// The buckets in which Azure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OperationGroup {
    /// GET and HEAD.
    Reads,
    /// PUT, PATCH and POST.
    Writes,
    /// DELETE.
    Deletes,
}

impl OperationGroup {
    /// The group of a method.
    pub fn of(method: &http::Method) -> Self {
        match method.as_str() {
            "GET" | "HEAD" => Self::Reads,
            "DELETE" => Self::Deletes,
            _ => Self::Writes,
        }
    }

    /// Bucket size and refill per second, as Azure publishes them.
    fn bucket(self) -> (f64, f64) {
        match self {
            Self::Reads => (250.0, 25.0),
            Self::Writes | Self::Deletes => (200.0, 10.0),
        }
    }

    /// A word for labels and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reads => "reads",
            Self::Writes => "writes",
            Self::Deletes => "deletes",
        }
    }

    fn headers(self) -> [&'static str; 2] {
        match self {
            Self::Reads => [
                "x-ms-ratelimit-remaining-subscription-reads",
                "x-ms-ratelimit-remaining-subscription-global-reads",
            ],
            Self::Writes => [
                "x-ms-ratelimit-remaining-subscription-writes",
                "x-ms-ratelimit-remaining-subscription-global-writes",
            ],
            Self::Deletes => [
                "x-ms-ratelimit-remaining-subscription-deletes",
                "x-ms-ratelimit-remaining-subscription-global-deletes",
            ],
        }
    }
}

/// Larger than any bucket of Azure's, which hold some thousands.
const MAX_TOKENS: f64 = 1e6;

/// No call waits longer than this for a closed budget; it fails instead and reports when to retry. Most of Azure's
/// budgets are full again within five minutes; a call that has to wait longer should give its place to others.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(300);

/// By subscription, in lower case, and group.
type Gates = HashMap<(String, OperationGroup), Arc<Gate>>;

/// The budgets of a process. Clones share them.
#[derive(Clone, Default)]
pub struct Budgets {
    gates: Arc<Mutex<Gates>>,
}

impl std::fmt::Debug for Budgets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Budgets({} known)", self.gates.lock().len())
    }
}

impl Budgets {
    /// Creates budgets that have not learned anything: they permit what Azure's documented buckets hold, until the
    /// first answers report more.
    pub fn new() -> Self {
        Self::default()
    }

    /// The tokens that the last answer reported, refilled since; `None` before the first answer.
    pub fn remaining(&self, subscription: &str, group: OperationGroup) -> Option<u32> {
        let gate = self.gates.lock().get(&(subscription.to_ascii_lowercase(), group)).cloned()?;
        let mut state = gate.state.lock();
        state.refill(Instant::now());
        state.tokens.filter(|_| state.learned).map(|tokens| tokens.max(0.0) as u32)
    }

    /// All budgets as they are now, in the order of subscriptions and groups.
    pub fn all(&self) -> Vec<BudgetState> {
        let gates: Vec<_> = self.gates.lock().iter().map(|(key, gate)| (key.clone(), gate.clone())).collect();
        let now = Instant::now();
        let mut states: Vec<BudgetState> = gates
            .into_iter()
            .map(|((subscription, group), gate)| gate.state.lock().shown(subscription, group, now))
            .collect();
        states.sort_by(|a, b| (&a.subscription, a.group).cmp(&(&b.subscription, b.group)));
        states
    }

    /// Whether a call of this class would be sent at once, as far as is known.
    pub fn has_room(&self, subscription: &str, group: OperationGroup, class: Class) -> bool {
        let known = self.gates.lock().get(&(subscription.to_ascii_lowercase(), group)).cloned();
        known.is_none_or(|gate| {
            let mut state = gate.state.lock();
            state.refill(Instant::now());
            state.closed.is_none() && state.has_tokens(class) && state.waiting.is_empty()
        })
    }

    pub(crate) fn gate(&self, subscription: &str, group: OperationGroup) -> Arc<Gate> {
        let key = (subscription.to_ascii_lowercase(), group);
        Arc::clone(self.gates.lock().entry(key).or_insert_with(|| Arc::new(Gate::new(group))))
    }
}

/// A budget as it is now.
#[derive(Debug, Clone, PartialEq)]
pub struct BudgetState {
    /// The subscription's id in lower case.
    pub subscription: String,
    /// The group of operations.
    pub group: OperationGroup,
    /// The tokens that the last answer reported, refilled since; `None` before the first answer.
    pub remaining: Option<f64>,
    /// The tokens of a full budget.
    pub capacity: f64,
    /// For how long it is closed for all calls; zero if it is open.
    pub closed: Duration,
    /// For how long it is closed for calls to a provider, by namespace in lower case; zero for an open one.
    pub providers: BTreeMap<Box<str>, Duration>,
    /// The number of waiting calls of each class, as in [`Class::ALL`].
    pub waiting: [usize; 4],
}

/// One budget.
pub(crate) struct Gate {
    group: OperationGroup,
    state: Mutex<State>,
}

struct State {
    /// Bucket size: the documented one, or more if Azure reports more.
    capacity: f64,
    /// Tokens per second.
    rate: f64,
    /// The tokens left: a full bucket until Azure reports a figure; `None` if Azure reports none.
    tokens: Option<f64>,
    /// Whether `tokens` is based on a figure of Azure's.
    learned: bool,
    /// The time for which `tokens` holds.
    at: Instant,
    /// Calls that were permitted.
    under_way: UnderWay,
    /// Closed for all calls until then.
    closed: Option<Instant>,
    /// The limits of single providers, by namespace in lower case.
    providers: BTreeMap<Box<str>, Provider>,
    waiting: BTreeMap<(Class, u64), Waiter>,
    next: u64,
}

struct Waiter {
    namespace: Box<str>,
    granted: oneshot::Sender<Sent>,
}

impl State {
    fn new(group: OperationGroup, now: Instant) -> Self {
        let (capacity, rate) = group.bucket();
        Self {
            capacity,
            rate,
            tokens: Some(capacity),
            learned: false,
            at: now,
            under_way: UnderWay::default(),
            closed: None,
            providers: BTreeMap::new(),
            waiting: BTreeMap::new(),
            next: 0,
        }
    }

    fn shown(&mut self, subscription: String, group: OperationGroup, now: Instant) -> BudgetState {
        self.refill(now);
        let left = |until: Option<Instant>| {
            until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
        };
        let providers = self.providers.iter();
        BudgetState {
            subscription,
            group,
            remaining: self.tokens.filter(|_| self.learned).map(|tokens| tokens.max(0.0)),
            capacity: self.capacity,
            closed: left(self.closed),
            providers: providers.map(|(name, provider)| (name.clone(), left(provider.closed()))).collect(),
            waiting: Class::ALL.map(|class| self.waiting.range((class, 0)..=(class, u64::MAX)).count()),
        }
    }

    fn refill(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.at).as_secs_f64();
        self.at = now;
        if let Some(tokens) = &mut self.tokens {
            *tokens = (*tokens + elapsed * self.rate).min(self.capacity);
        }
        self.closed = self.closed.filter(|until| *until > now);
        self.providers.values_mut().for_each(|provider| provider.advance(now));
    }

    /// When calls of this class to this namespace may go again; `None` if they may go now.
    fn opens(&self, class: Class, namespace: &str) -> Option<Instant> {
        let own = self.providers.get(namespace).and_then(|provider| provider.opens(class.floor()));
        own.max(self.closed)
    }

    fn has_tokens(&self, class: Class) -> bool {
        self.tokens.is_none_or(|tokens| tokens >= class.floor())
    }

    fn take(&mut self, namespace: &str, now: Instant) -> Sent {
        match self.providers.get_mut(namespace) {
            Some(provider) => provider.pass(now),
            None => self.providers.entry(namespace.into()).or_default().pass(now),
        }
        if let Some(tokens) = &mut self.tokens {
            *tokens -= 1.0;
        }
        self.under_way.go(now)
    }

    /// Whether a new call would overtake one that waits only for tokens or its turn.
    fn would_overtake(&self, class: Class) -> bool {
        self.waiting
            .range(..=(class, u64::MAX))
            .any(|(key, waiter)| self.opens(key.0, &waiter.namespace).is_none())
    }

    fn try_take(&mut self, class: Class, namespace: &str, now: Instant) -> Option<Sent> {
        self.refill(now);
        let free =
            self.opens(class, namespace).is_none() && self.has_tokens(class) && !self.would_overtake(class);
        free.then(|| self.take(namespace, now))
    }

    /// Permits all calls whose turn it is, in order of class and arrival.
    fn pump(&mut self, now: Instant) {
        self.refill(now);
        let mut granted = Vec::new();
        let keys: Vec<(Class, u64)> = self.waiting.keys().copied().collect();
        for key in keys {
            let Some(waiter) = self.waiting.get(&key) else { continue };
            if self.opens(key.0, &waiter.namespace).is_some() {
                continue;
            }
            // Lower classes need even more tokens, so no later call may go either.
            if !self.has_tokens(key.0) {
                break;
            }
            if let Some(waiter) = self.waiting.remove(&key) {
                granted.push((waiter.granted, self.take(&waiter.namespace, now)));
            }
        }
        for (sender, sent) in granted {
            // A dropped receiver returns its place when its guard is dropped.
            let _ = sender.send(sent);
        }
    }

    /// When a waiter can expect its turn: after its gate opens and there are enough tokens for all before it.
    fn expected(&self, key: (Class, u64), namespace: &str, now: Instant) -> Instant {
        let opens = self.opens(key.0, namespace).unwrap_or(now);
        let is_open = |class, namespace: &str| self.opens(class, namespace).is_none();
        let before = self.waiting.range(..key).filter(|(other, it)| is_open(other.0, &it.namespace)).count();
        let missing = self.tokens.map_or(0.0, |tokens| key.0.floor() + before as f64 - tokens);
        let tokens = now + Duration::from_secs_f64((missing / self.rate).clamp(0.0, 3600.0));
        // At least a millisecond more, so that rounding never wakes a waiter just before its token; and upper classes a
        // little earlier, because the first waiter to wake permits the others after itself.
        opens.max(tokens) + Duration::from_millis(1 + key.0 as u64)
    }

    /// Learns from the answer to a call.
    fn observe(&mut self, sent: Sent, remaining: Option<f64>, now: Instant) {
        self.refill(now);
        self.under_way.end(sent);
        if let Some(remaining) = remaining {
            self.capacity = self.capacity.max(remaining);
            if let Some(left) = self.under_way.left(sent, remaining, self.capacity, self.rate, now) {
                self.tokens = Some(left);
            }
            self.learned = true;
        } else if !self.learned {
            // The service does not count, or not these calls: there is nothing to pace by.
            self.tokens = None;
        }
    }
}

/// The permission to send one request; dropping it means that the request has ended.
#[must_use]
pub(crate) struct Permit {
    gate: Arc<Gate>,
    sent: Sent,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.gate.state.lock().under_way.end(self.sent);
    }
}

/// A place in the queue; leaving it early wakes the next call that can take it.
struct Place {
    gate: Arc<Gate>,
    key: (Class, u64),
    turn: oneshot::Receiver<Sent>,
    done: bool,
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let mut state = self.gate.state.lock();
        if state.waiting.remove(&self.key).is_none() {
            // Granted while leaving: nothing was sent, so the token is still there.
            if let Ok(sent) = self.turn.try_recv() {
                state.under_way.end(sent);
            }
            if let Some(tokens) = &mut state.tokens {
                *tokens += 1.0;
            }
        }
        state.pump(Instant::now());
    }
}

impl Gate {
    fn new(group: OperationGroup) -> Self {
        Self { group, state: Mutex::new(State::new(group, Instant::now())) }
    }

    /// Waits for permission to send. Fails at once if the budget is closed for longer than the call waits, with the time
    /// until it opens.
    pub(crate) async fn enter(
        self: &Arc<Self>,
        class: Class,
        namespace: &str,
        longest: Duration,
    ) -> Result<Permit, Duration> {
        let namespace = namespace.to_ascii_lowercase();
        let (key, turn) = {
            let mut state = self.state.lock();
            let now = Instant::now();
            if let Some(sent) = state.try_take(class, &namespace, now) {
                return Ok(Permit { gate: Arc::clone(self), sent });
            }
            if let Some(wait) =
                state.opens(class, &namespace).map(|until| until.saturating_duration_since(now))
                && wait > longest
            {
                return Err(wait);
            }
            let key = (class, state.next);
            state.next += 1;
            let (granted, turn) = oneshot::channel();
            state.waiting.insert(key, Waiter { namespace: namespace.clone().into(), granted });
            (key, turn)
        };
        let mut place = Place { gate: Arc::clone(self), key, turn, done: false };
        loop {
            let until = self.state.lock().expected(key, &namespace, Instant::now());
            tokio::select! {
                biased;
                granted = &mut place.turn => {
                    // A granted turn is removed from the queue and sent in one step: the sender is never dropped
                    // without that.
                    if let Ok(sent) = granted {
                        place.done = true;
                        return Ok(Permit { gate: Arc::clone(self), sent });
                    }
                }
                () = tokio::time::sleep_until(until) => self.state.lock().pump(Instant::now()),
            }
        }
    }

    /// Learns from an answer; `permit` is that of its request.
    pub(crate) fn observe(&self, permit: Permit, headers: &HeaderMap) {
        let count = |name| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
        let remaining = self.group.headers().into_iter().filter_map(count).reduce(f64::min);
        let mut state = self.state.lock();
        let now = Instant::now();
        // A figure beyond any bucket would stop the callers for ever, or permit all of them.
        let remaining = remaining.filter(|count| count.is_finite()).map(|count| count.clamp(0.0, MAX_TOKENS));
        state.observe(permit.sent, remaining, now);
        state.pump(now);
        drop(state);
        drop(permit);
    }

    /// Closes the budget for all calls, or for one provider's namespace.
    pub(crate) fn close(&self, namespace: Option<&str>, wait: Duration) {
        let mut state = self.state.lock();
        let now = Instant::now();
        let until = now + wait.min(Duration::from_secs(24 * 3600));
        state.refill(now);
        match namespace {
            None => state.closed = state.closed.max(Some(until)),
            Some(namespace) => {
                let namespace = namespace.to_ascii_lowercase();
                state.providers.entry(namespace.into()).or_default().refuse(now, until);
            }
        }
    }
}

#[cfg(test)]
mod tests;
