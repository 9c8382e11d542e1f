//! A disk in Azure: created, cloned, restored, grown, modified and deleted, each as a document to write or as nothing.

pub mod attachment;
pub mod compatibility;
pub mod context;
pub mod create;
mod create_document;
pub mod delete;
pub mod expand;
pub mod migration;
pub mod modify;
pub mod observed;
pub mod publish_context;
pub mod source;
