//! Slim Kubernetes types, and the one place that pins the version of Kubernetes' API.
//!
//! Controllers cache every Service and Node of a cluster, so these types contain only the members that are used; whole
//! objects take ten times as much memory. They are read from the API and never written back whole: changes are sent as
//! patches. Types that are not cached ([`api`]) are complete.

mod endpoint_slice;
mod event;
mod kind;
mod meta;
pub mod names;
mod namespace;
mod node;
mod service;
mod term;
mod text;
mod volume;

pub use endpoint_slice::{Endpoint, EndpointSlice};
pub use event::{Event, InvolvedObject};
pub use meta::{Notice, ObjectKey, ObjectMeta, Time, is_deleting};
pub use namespace::Namespace;
pub use node::*;
pub use service::*;
pub use term::Term;
pub use text::{MAX_EVENT_MESSAGE, parse_bool, shorten};
pub use volume::*;

/// Kubernetes' own types at the version that the whole workspace uses, for objects that are not cached.
pub use k8s_openapi as api;
