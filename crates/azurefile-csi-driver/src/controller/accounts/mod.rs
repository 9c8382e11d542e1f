//! Storage accounts: those of a group, listed once for many requests; new ones, made once for many.

mod directory;
mod listing;
mod making;

pub(super) use directory::{Accounts, Search};
