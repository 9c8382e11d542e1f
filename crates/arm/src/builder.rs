//! The builder of a client.

use std::sync::Arc;
use std::time::Duration;

use clock::Clock;
use http::HeaderValue;
use parking_lot::Mutex;

use crate::operation_watch::OperationDurations;
use crate::retry;
use crate::send::Connection;
use crate::{Budgets, CallObserver, Client, Cloud, Credential, RetryPolicy, Transport};

/// The default time to wait for an operation. Writes of load balancers and scale sets end within minutes: one that
/// still runs after half an hour will not end, and its caller should get an error.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// Builds a [`Client`].
pub struct ClientBuilder {
    cloud: Cloud,
    transport: Transport,
    credential: Credential,
    user_agent: String,
    budgets: Budgets,
    retry: RetryPolicy,
    seed: u64,
    clock: Clock,
    observer: Option<Arc<dyn CallObserver>>,
    minimum_retry_after: bool,
    operation_deadline: Duration,
}

impl Client {
    /// Begins a client of this cloud.
    pub fn builder(cloud: Cloud, transport: Transport, credential: Credential) -> ClientBuilder {
        ClientBuilder::new(cloud, transport, credential)
    }
}

impl ClientBuilder {
    fn new(cloud: Cloud, transport: Transport, credential: Credential) -> Self {
        Self {
            cloud,
            transport,
            credential,
            user_agent: format!("kubernetes-cloudprovider/{}", env!("CARGO_PKG_VERSION")),
            budgets: Budgets::new(),
            retry: RetryPolicy::default(),
            seed: 0,
            clock: Clock::system(),
            observer: None,
            minimum_retry_after: false,
            operation_deadline: OPERATION_TIMEOUT,
        }
    }

    /// The `User-Agent`; blank means the default, `kubernetes-cloudprovider/<version>`.
    pub fn user_agent(mut self, text: &str) -> Self {
        if !text.trim().is_empty() {
            self.user_agent = text.trim().to_owned();
        }
        self
    }

    /// Budgets to share with another client (of another credential on the same subscriptions).
    pub fn budgets(mut self, budgets: Budgets) -> Self {
        self.budgets = budgets;
        self
    }

    /// How passing failures are retried.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// The seed of the jitter between retries.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The wall clock.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// The observer of every attempt.
    pub fn observer(mut self, observer: Arc<dyn CallObserver>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// `enableMinimumRetryAfter`: a `Retry-After` below 5 s of a success is ignored.
    pub fn minimum_retry_after(mut self, on: bool) -> Self {
        self.minimum_retry_after = on;
        self
    }

    /// How long operations are waited for; 30 minutes by default.
    pub fn operation_deadline(mut self, deadline: Duration) -> Self {
        self.operation_deadline = deadline;
        self
    }

    /// Takes user agent, retries and minimum retry-after from a configuration.
    pub fn configure(self, config: &cloud_config::CloudConfig) -> Self {
        self.user_agent(&config.user_agent)
            .retry(RetryPolicy::from_config(config))
            .minimum_retry_after(config.enable_minimum_retry_after)
    }

    /// The client.
    pub fn build(self) -> Client {
        let fallback = HeaderValue::from_static("kubernetes-cloudprovider");
        Client {
            connection: Arc::new(Connection {
                scope: self.cloud.scope(),
                user_agent: HeaderValue::from_str(&self.user_agent).unwrap_or(fallback),
                cloud: self.cloud,
                transport: self.transport,
                credential: self.credential,
                budgets: self.budgets,
                retry: self.retry,
                rng: Mutex::new(retry::seeded(self.seed)),
                clock: self.clock,
                observer: self.observer,
                minimum_retry_after: self.minimum_retry_after,
                operation_deadline: self.operation_deadline,
                operation_durations: OperationDurations::default(),
            }),
            gives_faults_back: false,
        }
    }
}
