//! A request, freed from HTTP.

use std::collections::BTreeMap;

/// The preconditions of a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Conditions {
    pub(crate) if_match: Option<String>,
    pub(crate) if_none_match: Option<String>,
}

/// A request, freed from HTTP.
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    /// Query options by lower-case name.
    pub(crate) query: &'a BTreeMap<String, String>,
    pub(crate) conditions: &'a Conditions,
    pub(crate) body: &'a [u8],
}
