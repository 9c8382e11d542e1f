//! What managers share between `telemetry`, which knows neither cloud nor Kubernetes, and these two.

mod calls;
mod delegated;

pub use calls::Calls;
pub use delegated::DelegatedAuthorizer;
