//! The part of Resource Manager that is the same for every resource type.

pub(crate) mod answer;
pub(crate) mod budget;
mod conflict;
pub(crate) mod dispatch;
pub(crate) mod document;
pub(crate) mod error;
pub(crate) mod fault;
pub(crate) mod glob;
pub(crate) mod history;
mod inner_request;
pub(crate) mod journal;
pub(crate) mod kind;
pub(crate) mod latency;
pub(crate) mod limits;
pub(crate) mod make;
pub(crate) mod names;
pub(crate) mod operation;
pub(crate) mod paging;
mod read;
mod resolve;
pub(crate) mod seed;
pub(crate) mod snapshot;
pub(crate) mod store;
pub(crate) mod target;
pub(crate) mod version;
pub(crate) mod world;
pub(crate) mod write;
