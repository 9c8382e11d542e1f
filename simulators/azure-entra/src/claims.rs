//! Claims of access tokens, and those whose signature was checked before.

use std::collections::HashMap;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// Claims of an access token for Resource Manager (version 1.0 tokens).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct AccessClaims {
    pub aud: String,
    pub iss: String,
    pub iat: i64,
    pub nbf: i64,
    pub exp: i64,
    pub appid: String,
    #[serde(default)]
    pub idtyp: String,
    pub oid: String,
    pub sub: String,
    pub tid: String,
    #[serde(default)]
    pub uti: String,
    pub ver: String,
    /// The client's capabilities.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub xms_cc: Vec<String>,
}

/// Hash of a token.
pub(super) type TokenHash = [u8; 32];

/// Claims of tokens whose signature has been checked before: one client sends the same token with
/// every request for a day, and checking a signature costs more than answering.
#[derive(Default)]
pub(super) struct SeenTokens(pub(super) Mutex<HashMap<TokenHash, AccessClaims>>);
