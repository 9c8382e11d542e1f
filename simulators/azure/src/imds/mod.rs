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
mod service;
mod token;
mod versions;

pub use crate::compute::scheduled_events::{EventPlan, EventType};
pub use crate::engine::options::MetadataAddresses;
pub use crate::identity::ManagedIdentity;
pub(crate) use control::router as control_router;
pub use service::MetadataService;
pub use token::{APP_SERVICE_PATH, IMDS_TOKEN_PATH, MachineIdentities, app_service_router, router};
