//! Built-in kinds as Go's types have them, beyond OpenAPI: field numbers in protobuf, and which empty members are left
//! out.
//!
//! The schemas ([`crate::schema`]) contain the type of each member; the table beside this file adds the rest.
//! `scripts/kubernetes_types.py` generated it from the types of the release that the schemas follow: no crate publishes
//! descriptors of Kubernetes' messages, and a crate with a Rust type for each of them takes half a minute to compile.

mod form;
mod members;
pub(crate) mod protobuf;

pub(crate) use form::{complete, tidy};
