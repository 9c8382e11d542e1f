//! The part of Resource Manager that is common to all resource types.

pub mod answer;
pub mod document;
pub mod fault;
pub mod journal;
pub mod operation;
pub mod provider;
pub mod refusal;
pub mod request;
pub mod settings;
pub mod state;
pub mod store;
pub mod types;
pub mod verbs;

pub use faults::glob;
