//! One API server: its handle, its state and how it is reached.

mod control;
pub(crate) mod direct;
pub(crate) mod handle;
mod housekeeper;
pub(crate) mod https;
pub(crate) mod journal;
mod kubeconfig;
pub(crate) mod options;
mod own_service;
pub(crate) mod snapshot;
