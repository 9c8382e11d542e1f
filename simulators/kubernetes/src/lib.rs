//! The Kubernetes API in one process.
//!
//! [`Kubernetes`] is the handle to one API server: an ordered log of changes over shelves of objects, the verbs, and
//! the rules that kube-apiserver and kube-controller-manager enforce. Reach it
//!
//! * in-process: `kube::Client::new(kubernetes.router(), "default")`, without sockets, on paused time;
//! * over HTTPS: [`Kubernetes::serve_https`] and [`Kubernetes::kubeconfig`], for kubectl and any client;
//! * directly: [`Kubernetes::create`], [`Kubernetes::get`] and their kin, for builders and assertions.
//!
//! Behaviour follows Kubernetes' "API Concepts" and "API Conventions"; what is served is the table in
//! [`registry`]. Everything random is seeded and time is tokio's, so that a run can be repeated.

pub mod admission;
mod aggregated_discovery;
mod control;
mod conversion;
mod discovery;
mod fault;
mod hook;
mod identity;
mod journal;
mod kubeconfig;
mod kubernetes;
mod object;
mod openapi;
mod own_service;
mod patch;
mod port_forward;
mod quantity;
pub mod registry;
mod rest;
mod schema;
mod selector;
mod server;
mod snapshot;
mod status;
mod store;
pub mod table;
mod verbs;
mod watch;
mod webhook;
mod wire;

pub use certificate_authority::{CertificateAuthority, TlsError};
pub use fault::{Fault, FaultAction};
pub use hook::{AdmissionHook, AdmissionRequest, Decision};
pub use journal::{Counts, Journal, JournalEntry};
pub use kubernetes::{Kubernetes, Options, Token};
pub use object::Object;
pub use port_forward::{Duplex, PodConnection, PodPorts};
pub use server::ServeError;
pub use snapshot::BadSnapshot;
pub use status::ApiError;
pub use verbs::Collection;
pub use webhook::WebhookHost;
