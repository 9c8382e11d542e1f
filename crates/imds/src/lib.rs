//! What a machine in Azure learns about itself from the instance metadata service: its id, its addresses, where it is.
//!
//! ```text
//! connection: one GET, no proxy ─▶ document: what is read of an answer ─▶ facts: what it means (pure)
//!            └──────────────────────── cache ───────────────────────────────┘
//! ```
//!
//! [`Imds::describe`] says what the machine is, [`Imds::scheduled_events`] what will soon happen to it. The service is a link-local address of the machine's own host: it takes no
//! credentials, no TLS and no proxy, and this crate links nothing that has to do with them.

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

/// The newest version with everything that is read here and that every cloud has.
const INSTANCE: &str = "/metadata/instance?api-version=2021-10-01&format=json";
/// The addresses that balancers in front of the machine give it.
const LOAD_BALANCER: &str = "/metadata/loadbalancer?api-version=2020-10-01&format=json";

/// A client of the service.
#[derive(Debug)]
pub struct Imds {
    service: Service,
    // Held while the service is asked, so that questions at the same time share the answer.
    known: Mutex<Known>,
}

/// What the service answered last.
#[derive(Debug, Default)]
struct Known {
    instance: Option<(Instant, Instance)>,
    load_balancer: Option<LoadBalancer>,
    /// What scheduled events call the machine.
    name: Option<String>,
}

impl Imds {
    /// A client that has asked nothing yet.
    pub fn new(endpoint: Endpoint) -> Self {
        Self::over(endpoint.clone(), endpoint)
    }

    /// The same over another transport.
    pub fn over(endpoint: Endpoint, transport: impl Transport) -> Self {
        let service = Service { endpoint, transport: Box::new(transport) };
        Self { service, known: Mutex::default() }
    }

    /// What this machine is, for the node of that name, as read at most `max_age` ago. A document from which that cannot
    /// be told is not kept.
    ///
    /// # Errors
    /// The service does not answer, or not with what a node needs.
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
                        // No balancer: an answer like any other.
                        Err(Error::Status { status: StatusCode::NOT_FOUND, .. }) => {
                            known.load_balancer = None
                        }
                        // The public addresses of before are more likely than none.
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
