//! Factors, and rows with a value for each of them.

/// A value for each factor, by its position in [`FACTORS`]; 0 is the default.
pub type Row = Vec<usize>;

/// A field or annotation (or a group of them) and the values to try. The first is the default; those that begin with
/// `!` are mistakes, for which a Service is refused.
#[derive(Debug)]
pub struct Factor {
    /// Its name.
    pub name: &'static str,
    /// Its values.
    pub values: &'static [&'static str],
}

macro_rules! factors {
    ($($name:literal: $($value:literal)+;)+) => {
        /// All factors.
        pub const FACTORS: &[Factor] = &[$(Factor { name: $name, values: &[$($value),+] }),+];
    };
}

factors! {
    "placement": "external" "internal" "internal-in-capitals";
    "families": "IPv4" "IPv6" "dual" "prefer-dual" "dual-IPv6-first";
    "ports": "tcp" "udp" "tcp-and-udp" "two-tcp" "tcp-then-other-udp";
    "policy": "Cluster" "Local";
    "affinity": "None" "ClientIP";
    "source-ranges": "none" "network" "single-address" "everybody" "both-families" "overlapping";
    "allowed-ranges": "none" "networks" "core-annotation" "invalid";
    "service-tags": "none" "one" "two-in-other-case";
    "deny-all": "no" "yes";
    "security-rules": "yes" "no";
    "idle-timeout": "none" "4" "100" "!3" "!x";
    "tcp-reset": "on" "off";
    "high-availability-ports": "no" "yes";
    "floating-ip": "on" "off";
    "probe-protocol": "none" "http" "HTTPS" "gopher";
    "probe-timing": "none" "10s-x3" "x4-of-all";
    "probe-path": "none" "/healthz";
    "probe-port": "none" "10256" "own";
    "first-probe-protocol": "none" "HTTP" "tcp" "gopher";
    "first-probe-interval": "none" "7";
    "first-probe-path": "none" "/ready";
    "first-port": "plain" "no-rule" "no-probe";
    "app-protocol": "none" "http";
    "public-ip": "own" "named" "named-by-plain-key" "named-by-IPv6-key" "address" "address-in-field" "!missing";
    "prefix": "no" "yes" "by-plain-key" "by-IPv6-key";
    "pip-tags": "none" "some";
    "ip-tags": "none" "some";
    "dns-label": "none" "some";
    "resource-group": "cluster" "other";
    "additional-addresses": "none" "one" "!garbage";
    "subnet": "none" "second" "!missing";
    "node-ports": "yes" "no" "chosen";
    "target-port": "name" "number" "none";
    "health-check-port": "none" "chosen" "chosen-and-timed";
    "mode": "none" "auto" "scale-set";
    "balancer-names": "none" "two";
    "shared-security-rule": "none" "yes";
    "private-link-service": "no" "yes" "second-subnet";
}

/// The value of a factor in a row.
///
/// # Panics
/// There is no such factor.
pub fn value<'a>(row: &[usize], factor: &str) -> &'a str {
    let place = FACTORS.iter().position(|known| known.name == factor);
    let place = place.unwrap_or_else(|| panic!("no factor is called {factor}"));
    FACTORS[place].values[row[place]]
}

/// Whether a Service asks for a private address.
pub(crate) fn is_internal(row: &[usize]) -> bool {
    value(row, "placement") != "external"
}

/// Whether a value is a mistake.
pub fn is_mistake(factor: usize, number: usize) -> bool {
    FACTORS[factor].values[number].starts_with('!')
}

/// A row of defaults.
pub fn usual() -> Row {
    vec![0; FACTORS.len()]
}

/// The features of a row that differ from the defaults, as `factor=value`.
pub fn features(row: &[usize]) -> Vec<String> {
    let unusual = row.iter().enumerate().filter(|(_, number)| **number != 0);
    unusual
        .map(|(place, number)| format!("{}={}", FACTORS[place].name, FACTORS[place].values[*number]))
        .collect()
}

/// The row with these features.
///
/// # Errors
/// An unknown feature.
pub fn with_features<'a>(features: impl IntoIterator<Item = &'a str>) -> Result<Row, String> {
    let mut row = usual();
    for feature in features {
        let unknown = || format!("`{feature}` is no feature");
        let (name, value) = feature.split_once('=').ok_or_else(unknown)?;
        let place = FACTORS.iter().position(|factor| factor.name == name).ok_or_else(unknown)?;
        let number = FACTORS[place].values.iter().position(|known| *known == value).ok_or_else(unknown)?;
        row[place] = number;
    }
    Ok(row)
}

/// Rows as lists of their features.
pub(crate) mod as_features {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::{Row, features, with_features};

    pub(crate) fn serialize<S: Serializer>(row: &Row, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(features(row))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Row, D::Error> {
        let features = Vec::<String>::deserialize(deserializer)?;
        with_features(features.iter().map(String::as_str)).map_err(D::Error::custom)
    }
}
