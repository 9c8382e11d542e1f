//! Objects in the versions of their kind: the one in which they are stored, and those in which they are served.
//!
//! Built-in kinds are converted by code, custom ones by their schemas alone or by a webhook. Results of a webhook are
//! cached. If a verb needs a result that is not cached, it fails before it changes anything, with an error that
//! contains the missing requests ([`Pending`]). [`crate::Kubernetes::settled`] sends them outside of the lock and runs
//! the verb again.

mod cache;
mod call;
mod convert;
mod review;
mod settle;
mod versions;
mod webhook;

pub(crate) use convert::{answer, read_back, reshape, serve, to_stored};
pub(crate) use versions::Versions;
pub(crate) use webhook::{ConversionWebhook, Pending};
