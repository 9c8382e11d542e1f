//! The instance metadata service ("Azure Instance Metadata Service"): a machine's data about itself, and tokens without
//! any secret.
//!
//! [`MetadataService`] serves all machines of a simulated Azure from one listener, or one machine at 169.254.169.254
//! inside a network namespace. [`router`] and [`app_service_router`] only give tokens, for identities that the
//! embedding program names.

mod caller;
mod compute;
mod host;
mod leaf;
mod load_balancer;
mod network;
mod service;
mod token;
mod versions;

pub use azure_engine::settings::options::MetadataAddresses;
pub use azure_providers::compute::scheduled_events::{EventPlan, EventType};
pub use azure_providers::identity::ManagedIdentity;
pub use host::Host;
pub use service::MetadataService;
pub use token::{APP_SERVICE_PATH, IMDS_TOKEN_PATH, MachineIdentities, app_service_router, router};
