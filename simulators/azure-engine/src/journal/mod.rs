//! The journal: every Resource Manager request and what it changed. Of bodies it holds names of members, never their
//! values, so that no secret of a body or header can enter it; the text of a refusal quotes only what rules judge,
//! and none judges a secret.

mod book;
mod compact_entry;
mod diff;
mod differences;
mod entry;
mod export;

pub use self::book::{Counts, Journal, JournalBook};
pub use self::diff::{Divergence, JournalDiff, ResourceDiff, diff};
pub use self::differences::differences;
pub use self::entry::{JournalEntry, RequestKind};
pub use self::export::BadLine;
