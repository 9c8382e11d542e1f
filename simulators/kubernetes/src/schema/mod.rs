//! Schemas of objects: one tree for built-in and custom kinds.
//!
//! The tree contains the parts of an OpenAPI v3 schema that are used here: types, defaults, constraints, rules, and how
//! lists and maps merge. The tree of a custom kind comes from its definition ([`Schema::custom`]), that of a built-in
//! one from its types and a table of the parts that those lack ([`builtin`]). Decoding, pruning, defaulting,
//! validation, patches and field ownership all walk it.

pub(crate) mod builtin;
pub(crate) mod decode;
mod merge_rules;
mod parse;
mod tree;
pub(crate) mod types;

pub(crate) use tree::{ANYTHING, Additional, Constraints, Form, Link, ListType, Rule, Schema};

#[cfg(test)]
mod tests;
