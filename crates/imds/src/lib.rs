//! A machine's facts about itself from the instance metadata service: its ID, its addresses, its location.
//!
//! ```text
//! connection: one GET, no proxy ─▶ document: the members that are used ─▶ facts: for a node (pure)
//!            └──────────────────────── cache ───────────────────────────────┘
//! ```
//!
//! [`Imds::describe`] returns the facts about the machine, [`Imds::scheduled_events`] its upcoming events. The service
//! is a link-local address of the machine's own host: it needs no credentials, no TLS and no proxy, and this crate
//! links no code for these.

mod connection;
mod document;
mod error;
mod facts;
mod scheduled_events;

use std::time::Duration;

use http::StatusCode;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::connection::{ANSWER_TIMEOUT, Service};
use crate::document::{Instance, LoadBalancer};

pub use crate::connection::{Endpoint, EndpointError, Transport};
pub use crate::error::Error;
pub use crate::facts::{Address, AddressKind, Facts};
pub use crate::scheduled_events::{EventType, ScheduledEvent};

/// The newest version with all members used here that every cloud supports.
const INSTANCE: &str = "/metadata/instance?api-version=2021-10-01&format=json";
/// The addresses of load balancers in front of the machine.
const LOAD_BALANCER: &str = "/metadata/loadbalancer?api-version=2020-10-01&format=json";

/// A client of the service.
#[derive(Debug)]
pub struct Imds {
    service: Service,
    // Held during a request, so that concurrent requests share the answer.
    known: Mutex<Known>,
}

/// The last answers of the service.
#[derive(Debug, Default)]
struct Known {
    instance: Option<(Instant, Instance)>,
    load_balancer: Option<LoadBalancer>,
    /// The machine's name in scheduled events.
    name: Option<String>,
}

impl Imds {
    /// Creates a client; sends no request.
    pub fn new(endpoint: Endpoint) -> Self {
        Self::over(endpoint.clone(), endpoint)
    }

    /// Uses another transport.
    pub fn over(endpoint: Endpoint, transport: impl Transport) -> Self {
        let service = Service { endpoint, transport: Box::new(transport) };
        Self { service, known: Mutex::default() }
    }

    /// The facts about this machine, for the node of that name, as read at most `max_age` ago. A document without all
    /// facts is not cached.
    ///
    /// # Errors
    /// The service does not answer, or its answer lacks facts that a node needs.
    pub async fn describe(&self, node: &str, max_age: Duration) -> Result<Facts, Error> {
        let mut known = self.known.lock().await;
        let (read, instance) = match known.instance.take() {
            Some((read, instance)) if read.elapsed() <= max_age => (read, instance),
            _ => {
                let instance: Instance = self.service.get(INSTANCE, ANSWER_TIMEOUT).await?;
                if !instance.has_no_public_address() {
                    known.load_balancer = None;
                } else {
                    match self.service.get(LOAD_BALANCER, ANSWER_TIMEOUT).await {
                        Ok(load_balancer) => known.load_balancer = Some(load_balancer),
                        // No load balancer: a valid answer.
                        Err(Error::Status { status: StatusCode::NOT_FOUND, .. }) => {
                            known.load_balancer = None
                        }
                        // The previous public addresses are more likely than none.
                        Err(_) => {}
                    }
                }
                (Instant::now(), instance)
            }
        };
        let facts = Facts::read(node, &instance, known.load_balancer.as_ref())?;
        known.instance = Some((read, instance));
        Ok(facts)
    }
}
