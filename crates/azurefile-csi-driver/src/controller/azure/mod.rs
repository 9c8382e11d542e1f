//! Azure, as the controller asks it: documents of accounts, shares and snapshots, with errors as statuses.

mod client;
mod failure;
mod ids;

pub use client::{Azure, Connection};
pub(super) use failure::{is_full, status_of};
pub(super) use ids::{account_id, file_service, share_id};
