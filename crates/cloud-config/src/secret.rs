//! Texts that must never be printed.

use std::fmt;

/// A secret text: a client secret, a certificate's password.
///
/// No formatting and no serialisation shows anything of it, not even its length. Only [`Secret::reveal`] does, so that
/// every use of the plain text can be found by that word.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(Box<str>);

/// The replacement of a secret in every text.
pub(crate) const HIDDEN: &str = "(hidden)";

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into().into_boxed_str())
    }

    /// The plain text, for the one place that sends it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether no secret is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl serde::Serialize for Secret {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(HIDDEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_cannot_be_formatted() {
        let secret = Secret::new("correct-horse");
        let holder = Some(("name", secret.clone()));
        for text in [
            format!("{secret}"),
            format!("{secret:?}"),
            format!("{secret:#?}"),
            format!("{secret:>40}"),
            format!("{holder:?}"),
            serde_json::to_string(&secret).unwrap(),
        ] {
            assert!(!text.contains("correct"), "{text}");
            assert!(!text.contains("horse"), "{text}");
        }
        assert_eq!(secret.reveal(), "correct-horse");
    }
}
