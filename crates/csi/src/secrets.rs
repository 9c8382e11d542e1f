//! Secrets of requests, which cannot be printed.
//!
//! The definition marks fields as secret (`csi_secret`). For every message with such a field the build writes a `Debug` that
//! says how many secrets there are, and [`Confidential::take_secrets`], which moves them into a type that does not print
//! them either.

use std::collections::HashMap;
use std::fmt;

use secrecy::{ExposeSecret as _, SecretString};

/// The secrets of a request by their names. They are wiped from memory when they are dropped.
#[derive(Default)]
pub struct Secrets(HashMap<String, SecretString>);

impl Secrets {
    /// The value of a secret, for the one use that it has.
    pub fn expose(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(SecretString::expose_secret)
    }

    /// The names, sorted.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.0.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<HashMap<String, String>> for Secrets {
    fn from(values: HashMap<String, String>) -> Self {
        Self(values.into_iter().map(|(name, value)| (name, SecretString::from(value))).collect())
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Secrets").field(&Withheld(self.0.len())).finish()
    }
}

/// A request with secrets.
pub trait Confidential {
    /// Takes the secrets out of the request.
    fn take_secrets(&mut self) -> Secrets;
}

/// Stands for so many values that are not printed.
pub(crate) struct Withheld(pub(crate) usize);

impl fmt::Debug for Withheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{} withheld>", self.0)
    }
}

/// Stands for a map of which only the keys are printed.
pub(crate) struct Keys<'a>(pub(crate) &'a HashMap<String, String>);

impl fmt::Debug for Keys<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut keys: Vec<&String> = self.0.keys().collect();
        keys.sort_unstable();
        f.debug_list().entries(keys).finish()
    }
}

#[cfg(test)]
#[path = "secrets_tests.rs"]
mod tests;
