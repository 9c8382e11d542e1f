//! The client of the service, and its cached answers.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use serde_json::json;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::connection::{ANSWER_TIMEOUT, Endpoint, Service, Transport};
use crate::document::{Instance, LoadBalancer};
use crate::error::Error;
use crate::machine_facts::{MachineFacts, StorageFacts};
use crate::scheduled_events::{ScheduledEvent, of_machine};

/// The newest version with all members used here that every cloud supports.
const INSTANCE: &str = "/metadata/instance?api-version=2021-10-01&format=json";
/// The addresses of load balancers in front of the machine.
const LOAD_BALANCER: &str = "/metadata/loadbalancer?api-version=2020-10-01&format=json";

/// The newest version, the first with the duration of an event.
const EVENTS: &str = "/metadata/scheduledevents?api-version=2020-07-01";

/// The timeout of the list: the first request enables scheduled events, and Azure then takes up to two minutes.
const LIST_TIMEOUT: Duration = Duration::from_secs(150);

/// A client of the service.
#[derive(Debug)]
pub struct Imds {
    service: Service,
    // Held during a request, so that concurrent requests share the answer.
    cached: Mutex<CachedAnswers>,
}

/// The last answers of the service.
#[derive(Debug, Default)]
struct CachedAnswers {
    instance: Option<(Instant, Instance)>,
    load_balancer: Option<LoadBalancer>,
    /// The machine's name in scheduled events.
    machine_name: Option<String>,
}

impl Imds {
    /// Creates a client; sends no request.
    pub fn new(endpoint: Endpoint) -> Self {
        Self::over(endpoint.clone(), endpoint)
    }

    /// Uses another transport.
    pub fn over(endpoint: Endpoint, transport: impl Transport) -> Self {
        let service = Service { endpoint, transport: Box::new(transport) };
        Self { service, cached: Mutex::default() }
    }

    /// The facts about this machine, for the node of that name, as read at most `max_age` ago. A document without all
    /// facts is not cached.
    ///
    /// # Errors
    /// The service does not answer, or its answer lacks facts that a node needs.
    pub async fn describe(&self, node: &str, max_age: Duration) -> Result<MachineFacts, Error> {
        let mut cached = self.cached.lock().await;
        let (read, instance) = match cached.instance.take() {
            Some((read, instance)) if read.elapsed() <= max_age => (read, instance),
            _ => {
                let instance: Instance = self.service.get(INSTANCE, ANSWER_TIMEOUT).await?;
                if !instance.has_no_public_address() {
                    cached.load_balancer = None;
                } else {
                    match self.service.get(LOAD_BALANCER, ANSWER_TIMEOUT).await {
                        Ok(load_balancer) => cached.load_balancer = Some(load_balancer),
                        // No load balancer: a valid answer.
                        Err(Error::Status { status: StatusCode::NOT_FOUND, .. }) => {
                            cached.load_balancer = None
                        }
                        // The previous public addresses are more likely than none.
                        Err(_) => {}
                    }
                }
                (Instant::now(), instance)
            }
        };
        let facts = MachineFacts::read(node, &instance, cached.load_balancer.as_ref())?;
        cached.instance = Some((read, instance));
        Ok(facts)
    }

    /// The facts about this machine that a driver of volumes needs, as they are now: disks come and go.
    ///
    /// # Errors
    /// The service does not answer, or its answer lacks required facts.
    pub async fn storage(&self) -> Result<StorageFacts, Error> {
        let instance: Instance = self.service.get(INSTANCE, ANSWER_TIMEOUT).await?;
        StorageFacts::read(&instance)
    }

    /// The scheduled and running events of this machine.
    ///
    /// # Errors
    /// The service does not answer, or does not return the machine's name.
    pub async fn scheduled_events(&self) -> Result<Vec<ScheduledEvent>, Error> {
        let name = self.machine_name().await?;
        let list = self.service.get(EVENTS, LIST_TIMEOUT).await?;
        Ok(of_machine(&name, list))
    }

    /// Lets an event start before its time, for all of its machines.
    ///
    /// # Errors
    /// The service refuses it.
    pub async fn approve(&self, event: &str) -> Result<(), Error> {
        let body = json!({ "StartRequests": [{ "EventId": event }] });
        self.service.post(EVENTS, Bytes::from(body.to_string())).await
    }

    /// The name of this machine in scheduled events; it never changes.
    async fn machine_name(&self) -> Result<String, Error> {
        let mut cached = self.cached.lock().await;
        if let Some(name) = &cached.machine_name {
            return Ok(name.clone());
        }
        let instance: Instance = self.service.get(INSTANCE, ANSWER_TIMEOUT).await?;
        let name = instance.compute.ok_or(Error::NoCompute)?.name;
        if name.is_empty() {
            return Err(Error::NoName);
        }
        cached.machine_name = Some(name.clone());
        Ok(name)
    }
}
