//! The API server's processing of an object between the request and the store: defaults and validation.
//!
//! Messages are kube-apiserver's, so that users find them when they search. Facts are from the Kubernetes API reference
//! and from a kube-apiserver tested side by side.

mod admit;
mod custom;
mod metadata;

pub(crate) use admit::{admit, allocations, prepare};

#[cfg(test)]
mod tests;
