//! Command lines written for Go programs. Every flag of the replaced program is known; flags without effect have a
//! reason. One start reports everything that is wrong with the command line, and what to pass instead.

mod flags_without_effect;
mod parser;
mod problem;
mod refusal;
mod spelling;

pub use cloud_config::keys::nearest;
pub use flags_without_effect::{FlagValue, FlagsWithoutEffect, is_set};
pub use parser::{EarlyExit, describe, parse};
pub use problem::Problem;
pub use refusal::{InputRefusal, StartRefusal, end, last_words};
pub use spelling::{is_version, with_two_dashes};
