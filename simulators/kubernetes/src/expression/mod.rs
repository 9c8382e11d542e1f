//! Expressions in CEL: the rules of definitions and the conditions of webhooks.

mod identifier;
mod program;

pub(crate) use identifier::escape;
pub(crate) use program::{Program, compile};
