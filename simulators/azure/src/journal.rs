//! Journals as text, and how two runs differ: for `cerulean journal`.

pub use azure_engine::journal::{BadLine, Divergence, JournalDiff, ResourceDiff, diff};
