//! Shares of Azure Files: an account for a share, documents of accounts and shares, snapshots of shares.

pub mod account;
pub mod account_document;
pub mod capability;
pub mod choice;
pub mod context;
pub mod own;
pub mod share;
pub mod snapshot;
