//! The scheme of a request.

/// How a request reached the simulator. Every served request carries it as an extension, beside
/// `ConnectInfo` with the peer's address; a request called in-process carries neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Over TLS.
    Https,
    /// In the clear.
    Http,
}

impl Scheme {
    /// The word that begins URLs of this scheme.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
        }
    }
}
