//! Documents and resource IDs, read and written again.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod nothing_is_lost;
mod resource_ids;
