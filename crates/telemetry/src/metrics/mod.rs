//! Metrics under the names that dashboards know.

mod cloud;
mod configuration;
mod controllers;
mod registry;
mod requests;
mod webhooks;

pub use cloud::CloudMetrics;
pub use configuration::{ConfigMetrics, Reload};
pub use controllers::ControllerMetrics;
pub use registry::{ArmOutcome, ArmRequest, Metrics};
pub use requests::RequestMetrics;
pub use webhooks::WebhookMetrics;
