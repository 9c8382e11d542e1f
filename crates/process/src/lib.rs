//! A process and its system: signals, and listeners on both address families. Knows neither Azure nor Kubernetes.

mod listener;
mod signal;

pub use listener::bind;
pub use signal::stop_signal;
