//! Load balancers under another name than the configured one that serve this cluster's Services.

use std::fmt;

use k8s::ObjectKey;

/// Load balancers that serve this cluster's Services and are not named after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherName {
    /// The configured name.
    pub given: String,
    /// The names that the load balancers imply, without `-internal`, sorted and without duplicates.
    pub found: Vec<String>,
    /// The Services that those load balancers serve, sorted.
    pub services: Vec<ObjectKey>,
    /// The setting that determines the name.
    pub setting: &'static str,
}

impl OtherName {
    /// Adds the findings for other Services.
    pub(crate) fn join(&mut self, other: &Self) {
        self.found.extend_from_slice(&other.found);
        self.found.sort();
        self.found.dedup();
        self.services.extend_from_slice(&other.services);
        self.services.sort();
        self.services.dedup();
    }
}

impl fmt::Display for OtherName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { given, found, services, setting } = self;
        let such_as = services.first().map(ToString::to_string).unwrap_or_default();
        let (names, number) = (found.join("`, `"), services.len());
        let those = match number {
            1 => such_as,
            _ => format!("{number} Services of this cluster, such as {such_as}"),
        };
        write!(
            f,
            "load balancers of the name `{names}` already serve {those}; with {setting}={given} they would be \
             created a second time: set {setting}={first}, or delete load balancer {first} first to change the name",
            first = found.first().map(String::as_str).unwrap_or_default()
        )
    }
}
