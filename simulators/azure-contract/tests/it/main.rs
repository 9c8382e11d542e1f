//! Documents, judged by Azure's published contract.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod judging;
mod recordings;
