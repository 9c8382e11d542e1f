//! Controllers: their queues, their requests to Kubernetes, who leads, and what they do.

mod events;
mod leadership;
mod nodes;
mod queues;
mod requests;
mod runtime;
mod services;
mod webhooks;

pub use events::EventMetrics;
pub use leadership::LeadershipMetrics;
pub use nodes::NodeMetrics;
pub use queues::{QueueMetrics, QueueNames};
pub use requests::RequestMetrics;
pub use runtime::ControllerMetrics;
pub use services::{Cluster, FEATURES, Features, ServiceMetrics};
pub use webhooks::WebhookMetrics;
