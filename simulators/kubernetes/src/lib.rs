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
//! `kinds/table.rs`. Everything random is seeded and time is tokio's, so that a run can be repeated.

mod admission;
mod conversion;
mod discovery;
mod expression;
mod fault;
mod hook;
mod identity;
mod kinds;
mod object;
mod patch;
mod registry;
mod rest;
mod schema;
mod selector;
mod server;
mod status;
mod store;
mod structural;
mod verbs;
mod webhook;
mod wire;

pub use certificate_authority::{CertificateAuthority, TlsError};
pub use fault::{Fault, FaultAction};
pub use hook::{AdmissionHook, AdmissionRequest, Decision};
pub use kinds::{Example, examples};
pub use object::Object;
pub use rest::port_forward::{Duplex, PodConnection, PodPorts};
pub use server::handle::Kubernetes;
pub use server::https::ServeError;
pub use server::journal::{Counts, Journal, JournalEntry};
pub use server::options::{Collection, Options, Token};
pub use server::snapshot::BadSnapshot;
pub use status::ApiError;
pub use webhook::WebhookHost;
