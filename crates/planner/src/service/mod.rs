//! What a Service asks for: its object, read and checked once.

pub(crate) mod access;
pub(crate) mod annotations;
pub(crate) mod arrival;
pub(crate) mod intent;
pub mod local_pool;
pub(crate) mod mistakes;
pub(crate) mod owner;
pub(crate) mod parsed;
pub(crate) mod placement;
pub(crate) mod port;
pub(crate) mod private_link;
pub(crate) mod probe;
pub(crate) mod security_needs;
pub(crate) mod security_rule;

pub use access::Access;
pub use arrival::Arrival;
pub use intent::ServiceIntent;
pub use local_pool::{EndpointNodes, LocalService};
pub use owner::ServiceRemoval;
pub(crate) use parsed::ParsedService;
pub use parsed::ParsedServices;
pub(crate) use placement::Mode;
pub use port::{PortIntent, Transport};
pub use private_link::PrivateLinkIntent;
pub use probe::ProbeSpec;
pub(crate) use probe::{NodeProbe, PortProbe};
pub(crate) use security_needs::{Destinations, Needs};
pub(crate) use security_rule::{Traffic, WantedRule};
