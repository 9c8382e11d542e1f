//! Transport protocols.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Protocol {
    /// The name as Azure writes it in rules, ignoring case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether a protocol as written in a rule takes in another.
pub(super) fn carries(written: &str, protocol: Protocol) -> bool {
    written.eq_ignore_ascii_case("All") || written.eq_ignore_ascii_case(protocol.as_str())
}
