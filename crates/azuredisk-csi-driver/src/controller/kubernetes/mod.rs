//! What Kubernetes says about nodes, volumes and attachments, kept from watches.
//!
//! Without a connection to Kubernetes nothing is known, and nothing is concluded from that.

mod attachment_name;
mod objects;
mod view;

pub use view::KubernetesView;
