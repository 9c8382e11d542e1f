//! The instance metadata service ("Azure Instance Metadata Service"): what a machine can learn about itself,
//! and tokens without any secret.
//!
//! [`MetadataService`] serves all machines of a simulated Azure from one listener, or one machine at
//! 169.254.169.254 inside a network namespace. [`router`] and [`app_service_router`] give tokens alone,
//! for identities that are said outright.

mod caller;
mod compute;
mod control;
mod leaf;
mod load_balancer;
mod network;
pub(crate) mod scheduled_events;
mod service;
mod token;
mod versions;

pub use caller::MetadataAddresses;
pub(crate) use control::router as control_router;
pub use scheduled_events::{EventPlan, EventType};
pub use service::MetadataService;
pub use token::{
    APP_SERVICE_PATH, IMDS_TOKEN_PATH, MachineIdentities, ManagedIdentity, app_service_router, router,
};
