//! A machine's facts about itself from the instance metadata service: its ID, its addresses, its location.
//!
//! ```text
//! connection: one GET, no proxy ─▶ document: the members that are used ─▶ facts: for a node (pure)
//!            └──────────────────────── cache ───────────────────────────────┘
//! ```
//!
//! [`Imds::describe`] returns the facts about the machine, [`Imds::storage`] those about its disks,
//! [`Imds::scheduled_events`] its upcoming events. The service is a link-local address of the machine's own host: it
//! needs no credentials, no TLS and no proxy, and this crate links no code for these.

mod client;
mod connection;
mod document;
mod error;
mod machine_facts;
mod scheduled_events;

pub use crate::client::Imds;
pub use crate::connection::{Endpoint, EndpointError, Transport};
pub use crate::error::Error;
pub use crate::machine_facts::{Address, AddressKind, AttachedDisk, MachineFacts, StorageFacts};
pub use crate::scheduled_events::{EventType, ScheduledEvent};
