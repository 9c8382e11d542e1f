//! A request, freed from HTTP.

use std::collections::BTreeMap;

/// The preconditions of a request.
#[derive(Debug, Clone, Default)]
pub struct Conditions {
    /// `If-Match`.
    pub if_match: Option<String>,
    /// `If-None-Match`.
    pub if_none_match: Option<String>,
}

/// A request, freed from HTTP.
pub struct Request<'a> {
    /// The HTTP method.
    pub method: &'a str,
    /// The path as sent.
    pub path: &'a str,
    /// Query options by lower-case name.
    pub query: &'a BTreeMap<String, String>,
    /// Its preconditions.
    pub conditions: &'a Conditions,
    /// The body; empty for a request without one.
    pub body: &'a [u8],
    /// The caller's object id, where tokens are verified.
    pub caller: Option<&'a str>,
}
