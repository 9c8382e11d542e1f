//! What a service of files has, and what a mount of a share is logged in with.

use std::collections::BTreeSet;
use std::net::IpAddr;

/// An account's service of files at one host name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileService {
    pub account: String,
    pub keys: Vec<String>,
    pub shares: BTreeSet<String>,
    pub addresses: Vec<IpAddr>,
    /// Ports that take connections.
    pub ports: BTreeSet<u16>,
    /// It takes connections and never answers.
    pub is_silent: bool,
}

impl FileService {
    /// A service with shares, which is reachable for both protocols.
    pub fn new(account: &str, key: &str, shares: &[&str]) -> Self {
        Self {
            account: account.to_owned(),
            keys: vec![key.to_owned()],
            shares: shares.iter().map(|share| (*share).to_owned()).collect(),
            addresses: vec![IpAddr::from([10, 0, 0, 9])],
            ports: BTreeSet::from([445, 2049]),
            is_silent: false,
        }
    }
}

/// What a mount of a share is logged in with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Session {
    pub host: String,
    /// Nothing for NFS and for tickets.
    pub key: Option<String>,
}
