//! A request, freed from HTTP.

pub mod body;
pub mod provider_request;
pub mod target;

use std::collections::BTreeMap;

use self::body::Body;
use self::target::{BadPath, Target};

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
    /// The target of the path, or why it names none.
    pub target: Result<&'a Target, BadPath>,
    /// Query options by lower-case name.
    pub query: &'a BTreeMap<String, String>,
    /// Its preconditions.
    pub conditions: &'a Conditions,
    /// The body.
    pub body: &'a Body,
    /// The caller's object id, where tokens are verified.
    pub caller: Option<&'a str>,
}
