//! Custom resources: pruning, defaulting and validation by their schema.
//!
//! The order is the API server's: unknown members are removed, then nulls that the schema does not allow, and defaults
//! are set; then values are validated against the schema, lists are checked for duplicates, and rules are evaluated.
//! Invalid parts that an update does not change are accepted (KEP-4008, ratcheting).

pub(crate) mod cel;
mod correlate;
mod defaults;
mod formats;
mod rules;
mod settle;
mod uniqueness;
mod validate;
mod values;

pub(crate) use settle::{prune, settle};
pub(crate) use validate::{validate_default, validate_rules, validate_values};

#[cfg(test)]
mod tests;
