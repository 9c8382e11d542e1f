//! The messages and services of the Container Storage Interface, version 1.12, compiled from `proto/csi.proto`.
//!
//! Where a message has secrets, its `Debug` prints none of their values, and of its other maps it prints the keys: see
//! [`crate::secrets`].

// Neither the definition nor the code made from it is ours.
#![allow(missing_docs, rust_2018_idioms, rustdoc::all, clippy::all, clippy::expect_used, clippy::unwrap_used)]

include!(concat!(env!("OUT_DIR"), "/csi.v1.rs"));
include!(concat!(env!("OUT_DIR"), "/confidential.rs"));

/// The definition in the form of protobuf's descriptors, with the options that it declares.
pub const DESCRIPTOR: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/csi.bin"));
