//! The builder of a client.

use std::sync::Arc;
use std::time::Duration;

use clock::Clock;
use http::HeaderValue;
use parking_lot::Mutex;

use crate::operation_watch::OperationDurations;
use crate::retry;
use crate::send::{Connection, Manner};
use crate::{Budgets, CallObserver, Client, Cloud, Credential, RetryPolicy, Transport};

/// The default time to wait for an operation. Writes of load balancers and scale sets end within minutes: one that
/// still runs after half an hour will not end, and its caller should get an error.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// Builds a [`Client`].
pub struct ClientBuilder(Connection);

impl Client {
    /// Begins a client of this cloud.
    pub fn builder(cloud: Cloud, transport: Transport, credential: Credential) -> ClientBuilder {
        ClientBuilder::new(cloud, transport, credential)
    }
}

impl ClientBuilder {
    fn new(cloud: Cloud, transport: Transport, credential: Credential) -> Self {
        let user_agent = concat!("kubernetes-cloudprovider/", env!("CARGO_PKG_VERSION"));
        Self(Connection {
            scope: cloud.scope(),
            cloud,
            transport,
            credential,
            user_agent: HeaderValue::from_static(user_agent),
            budgets: Budgets::new(),
            retry: RetryPolicy::default(),
            rng: Mutex::new(retry::seeded(0)),
            clock: Clock::system(),
            observer: None,
            minimum_retry_after: false,
            operation_deadline: OPERATION_TIMEOUT,
            operation_durations: OperationDurations::default(),
        })
    }

    /// The `User-Agent`; blank means the default, `kubernetes-cloudprovider/<version>`.
    pub fn user_agent(mut self, text: &str) -> Self {
        if !text.trim().is_empty() {
            let fallback = HeaderValue::from_static("kubernetes-cloudprovider");
            self.0.user_agent = HeaderValue::from_str(text.trim()).unwrap_or(fallback);
        }
        self
    }

    /// Budgets to share with another client (of another credential on the same subscriptions).
    pub fn budgets(mut self, budgets: Budgets) -> Self {
        self.0.budgets = budgets;
        self
    }

    /// How passing failures are retried.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.0.retry = policy;
        self
    }

    /// The seed of the jitter between retries.
    pub fn seed(mut self, seed: u64) -> Self {
        self.0.rng = Mutex::new(retry::seeded(seed));
        self
    }

    /// The wall clock.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.0.clock = clock;
        self
    }

    /// The observer of every attempt.
    pub fn observer(mut self, observer: Arc<dyn CallObserver>) -> Self {
        self.0.observer = Some(observer);
        self
    }

    /// `enableMinimumRetryAfter`: a `Retry-After` below 5 s of a success is ignored.
    pub fn minimum_retry_after(mut self, on: bool) -> Self {
        self.0.minimum_retry_after = on;
        self
    }

    /// How long operations are waited for; 30 minutes by default.
    pub fn operation_deadline(mut self, deadline: Duration) -> Self {
        self.0.operation_deadline = deadline;
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
        Client { connection: Arc::new(self.0), manner: Manner::default() }
    }
}
