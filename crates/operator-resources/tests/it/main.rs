//! Objects of the operator's kinds as users write them, against the documents that Azure takes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod flavors;
mod known;
